"""Generate the committed JSON Schemas from the models, or check that they agree.

``python -m schema.export`` writes ``schema/json``; ``--check`` exits 1 when a file differs.
"""

import sys
from pathlib import Path

from pydantic import TypeAdapter

from schema.agent import Agent, Models
from schema.assertions import ASSERTION_LIST
from schema.fixture import BaselineReport, Fixture
from schema.gateway import EVENT, GatewayConfig
from schema.jsonfile import pretty
from schema.ledger import LEDGER_LINE
from schema.pricing import Pricing
from schema.proven import Proven
from schema.record import Record
from schema.run import Evidence, Plan, RunFacts
from schema.task import Solution, Suite, Task
from schema.transcript import Event
from schema.verdict import Verdict

FOLDER = Path(__file__).parent / "json"

EXPORTED: dict[str, TypeAdapter[object]] = {
    "agent": TypeAdapter(Agent),
    "assertions": ASSERTION_LIST,  # type: ignore[dict-item]  # invariance: each adapter has its own type
    "baseline-report": TypeAdapter(BaselineReport),
    "evidence": TypeAdapter(Evidence),
    "fixture": TypeAdapter(Fixture),
    "ledger-line": LEDGER_LINE,  # type: ignore[dict-item]  # as above
    "gateway-config": TypeAdapter(GatewayConfig),
    "gateway-event": EVENT,  # type: ignore[dict-item]  # as above
    "models": TypeAdapter(Models),
    "plan": TypeAdapter(Plan),
    "pricing": TypeAdapter(Pricing),
    "proven": TypeAdapter(Proven),
    "record": TypeAdapter(Record),
    "run": TypeAdapter(RunFacts),
    "solution": TypeAdapter(Solution),
    "suite": TypeAdapter(Suite),
    "task": TypeAdapter(Task),
    "transcript-event": TypeAdapter(Event),
    "verdict": TypeAdapter(Verdict),
}


def render() -> dict[str, str]:
    """File name → text of each schema."""
    out = {}
    for name, adapter in EXPORTED.items():
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **adapter.json_schema(by_alias=True),
        }
        out[f"{name}.schema.json"] = pretty(schema)
    return out


def stale(folder: Path = FOLDER) -> list[str]:
    """Names of schema files that differ from the models, are missing, or are left over."""
    wanted = render()
    present = {path.name: path.read_text("utf-8") for path in folder.glob("*.json")}
    return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))


def main() -> int:
    """Write the schemas, or with ``--check`` compare them."""
    if "--check" in sys.argv[1:]:
        for name in (differing := stale()):
            sys.stderr.write(f"schema/json/{name}: differs from the models; run python -m schema.export\n")
        return 1 if differing else 0
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.json"):
        path.unlink()
    for name, text in render().items():
        (FOLDER / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
