"""What the reading of a design can end in, besides an answer."""


class Unjudgeable(Exception):
    """The evidence cannot be read; ``str(self)`` is the one-line reason.

    Absence needs evidence (Standard §4): callers turn this into a failed assertion, never into a pass.
    """

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


class ToolUnavailable(Exception):
    """kicad-cli itself is missing or does not run: a fault of the grader's machine, not of the evidence."""
