"""What shell text is parsed into."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Redirect:
    """``fd op target``; for here-documents ``target`` is the body and ``literal`` says it was quoted."""

    fd: str
    op: str
    target: str
    literal: bool = False


@dataclass(slots=True)
class Simple:
    """Assignments, words and redirections, all as written; ``start`` and ``end`` are offsets."""

    start: int
    end: int = 0
    assignments: list[tuple[str, str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)


@dataclass(slots=True)
class Pipeline:
    """Two or more commands joined by ``|`` or ``|&``."""

    stages: list["Node"]


@dataclass(slots=True)
class Compound:
    """``kind`` is brace, subshell, if, while, for, case; ``values`` are a for loop's words or a case's
    subject."""

    kind: str
    start: int
    parts: list["Sequence"]
    name: str = ""
    values: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    end: int = 0


@dataclass(slots=True)
class Function:
    """A function definition."""

    name: str
    body: "Node"
    start: int
    end: int


@dataclass(slots=True)
class Item:
    """One entry of a list: ``joiner`` stands before it (``&&``, ``||`` or empty), ``background`` after it."""

    node: "Node"
    joiner: str = ""
    background: bool = False


Node = Simple | Pipeline | Compound | Function
Sequence = list[Item]
