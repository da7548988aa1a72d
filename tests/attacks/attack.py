"""What one attack is: data, so that suite, threat model and table say the same."""

from dataclasses import dataclass

from schema.verdict import Category

AGENT = "hostile"


@dataclass(frozen=True)
class Fails:
    """The record must say ``fail`` with this category."""

    category: Category
    says: str = ""
    """Part of a reason, diagnostic or fact of the record: it must fail for the reason we mean."""

    def __str__(self) -> str:
        return f"fail ({self.category})"


@dataclass(frozen=True)
class Gold:
    """No effect: beside an honest edit, every outcome must be that of the gold solution."""

    def __str__(self) -> str:
        return "as gold"


@dataclass(frozen=True)
class FindsNothing(Gold):
    """As gold, and the agent reports places it looked at and nothing found in them."""

    def __str__(self) -> str:
        return "as gold, nothing found"


@dataclass(frozen=True)
class Attack:
    """One named thing that a hostile agent does."""

    name: str
    """Also a function of the hostile agent, with underscores."""
    naive: str
    """What a naive harness would have done."""
    defence: str
    expect: Fails | Gold
    task: str = "rename-data-net"
    repeats: int = 1
    rewrites: bool = False
    """It changes or hides its transcript after the honest part of the run wrote it: tampering, when the
    follower saw as much, and then nothing else is judged. Every attack that must fail may end so too."""
    script: str | None = None
    """The scripted model that its agent has; None: it calls none."""

    @property
    def agent(self) -> str:
        """Which agent performs it: one with a model is told by its command which attack to perform."""
        return f"{AGENT}-{self.name}" if self.script else AGENT

    @property
    def model(self) -> str:
        """The model's id, which tells an agent without a model which attack to perform."""
        return f"scripted:{self.script}" if self.script else f"{AGENT}:{self.name}"
