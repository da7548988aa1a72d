"""What is committed below ``results/``: it adds up, and no byte of a third-party board is in it."""

import json
import subprocess
from pathlib import Path

import pytest

from grader.ledger import audit, read_chain
from grader.report.leaderboard import published_head, render_results, splice
from grader.results import read_records
from grader.store import BUNDLE, EvidenceStore, bundled, whole_store
from orchestrator.project import Project
from schema.record import Record

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


def tracked() -> set[str]:
    """Paths below results/ that git has."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "results"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(filter(None, done.stdout.split("\0")))


def committed() -> list[Record]:
    """The records among them."""
    return [record for path, record in read_records(RESULTS) if str(path.relative_to(ROOT)) in tracked()]


def ours() -> set[str]:
    """Tree hashes of the boards that we drew."""
    project = Project(ROOT)
    fixtures = [project.fixture(name) for name in project.fixture_ids()]
    return {fixture.sha256 for fixture in fixtures if fixture.vendored}


def test_there_is_something_to_grade_again_in_a_fresh_clone() -> None:
    assert {record.verdict.verdict for record in committed()} == {"pass", "fail"}
    assert f"results/{BUNDLE}" in tracked() and "results/ledger.jsonl" in tracked()


def test_every_committed_record_stands_on_a_board_of_ours() -> None:
    assert [str(r.run) for r in committed() if r.stamp.fixture_sha256 not in ours()] == []


def test_the_bundle_holds_the_evidence_of_these_records_and_nothing_else() -> None:
    wanted = {record.evidence.ref for record in committed() if record.evidence}
    trees = {f"refs/trees/{r.stamp.fixture_sha256}" for r in committed()}
    trees |= {f"refs/trees/{r.facts.baseline_sha256}" for r in committed() if r.evidence}
    assert bundled(RESULTS / BUNDLE).keys() == wanted | trees


def test_the_evidence_is_what_the_records_name() -> None:
    with whole_store(RESULTS) as path, EvidenceStore(path) as store:
        for record in committed():
            if record.evidence:
                assert store.evidence(record.evidence)[0] == record.facts


def test_the_published_head_is_in_the_ledger() -> None:
    head = published_head(ROOT / "LEADERBOARD.md")
    assert head is not None and head in read_chain(RESULTS).digests


@pytest.mark.skipif(
    subprocess.run(
        ["git", "status", "--porcelain", "results"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    != b"",
    reason="results of this checkout go on from the committed ones",
)
def test_ledger_plans_records_and_leaderboard_add_up() -> None:
    assert list(audit(RESULTS, {})) == []
    document = (ROOT / "LEADERBOARD.md").read_text("utf-8")
    assert splice(document, render_results(RESULTS)) == document


def test_no_record_names_a_host_or_a_user() -> None:
    """The ledger tells hosts apart without naming them."""
    for line in (RESULTS / "ledger.jsonl").read_text("utf-8").splitlines():
        value = json.loads(line)
        assert set(value) <= {
            *("prev", "at", "kind", "path", "sha256", "run", "claim"),
            *("attempt", "stamp", "host", "source", "what", "usd"),
        }
        assert len(value.get("host", "0" * 12)) == 12
