"""The ledger: one JSON line a fact, each naming the digest of the line before it (Standard §8)."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from schema.base import Model
from schema.hashing import sha256
from schema.jsonfile import canonical
from schema.task import Sha256

GENESIS = "0" * 64
"""``prev`` of the first line, and the head of a ledger without lines."""


FaultSource = Literal["infrastructure", "provider", "harness"]
"""Engine or host; the model's provider; or the harness, which ended the plan: that takes no attempt."""


class _Line(Model):
    prev: Sha256
    """SHA-256 of the line before, without its newline."""
    at: str
    """UTC time, ISO 8601. Informative: order is the chain's."""

    def digest(self) -> str:
        """SHA-256 of this line as it is written."""
        return sha256(self.text())

    def text(self) -> bytes:
        """The line, without its newline."""
        return canonical(self.to_json())


class PlanLine(_Line):
    """A plan was fixed: its runs are the denominator from here on."""

    kind: Literal["plan"] = "plan"
    path: str
    """Relative to the results folder."""
    sha256: Sha256
    """Of the file's bytes."""


class ClaimLine(_Line):
    """A run was taken on, before its container was made."""

    kind: Literal["claim"] = "claim"
    run: str
    claim: int = Field(ge=1)
    """Counts the claims of this run in this ledger: also names its containers and its evidence."""
    attempt: int = Field(ge=1, le=3)
    """One more than the infrastructure faults that this run has had under this stamp."""
    stamp: Sha256
    host: str
    """Tells hosts apart without naming them."""


class FaultLine(_Line):
    """A claim came to nothing."""

    kind: Literal["fault"] = "fault"
    run: str
    claim: int = Field(ge=1)
    source: FaultSource
    what: str
    usd: float | None = 0
    """What its model cost all the same; None when unknown."""


class RecordLine(_Line):
    """A record was written. A run graded again adds a record under its old claim, with another stamp."""

    kind: Literal["record"] = "record"
    run: str
    claim: int = Field(ge=1)
    path: str
    """Relative to the results folder."""
    sha256: Sha256
    """Of the file's bytes."""


LedgerLine = Annotated[PlanLine | ClaimLine | FaultLine | RecordLine, Field(discriminator="kind")]
LEDGER_LINE: TypeAdapter[LedgerLine] = TypeAdapter(LedgerLine)
