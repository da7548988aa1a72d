"""The one error tree.

CopperbenchError                 exit code
├── UsageError                   2   the command line or an input file is wrong
│   └── InvalidFile              2   a file breaks its schema; names file, place and mend
├── CheckFailed                  1   a gate, comparison or verification said no
├── EnvironmentFault             3   engine, image, fixture or machine is not as needed
│   ├── EngineError              3
│   └── FixtureError             3
├── InfrastructureLeft           4   runs were left without a verdict
└── Interrupted                130

Each says what happened, which file or run it is about, and what to do, in one line.
"""

from schema.text import plain


class CopperbenchError(Exception):
    """Base of all expected failures; ``exit_code`` is what the command line ends with."""

    exit_code = 1

    def __init__(self, what: str, *, about: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.about = about
        self.fix = fix

    def __str__(self) -> str:
        head = f"{self.about}: {self.what}" if self.about else self.what
        line = f"{head}; {self.fix}" if self.fix else head
        # A message may name a file or quote a line that is not ours.
        return plain(" ".join(line.split()))


class UsageError(CopperbenchError):
    """The command line, or an input file, is wrong."""

    exit_code = 2


class InvalidFile(UsageError):
    """A file breaks its schema."""


class CheckFailed(CopperbenchError):
    """A gate, comparison or verification did not hold."""

    exit_code = 1


class EnvironmentFault(CopperbenchError):
    """The machine lacks something a command needs."""

    exit_code = 3


class EngineError(EnvironmentFault):
    """The Docker engine does not answer, or refuses what we need."""


class FixtureError(EnvironmentFault):
    """A fixture cannot be had, or is not byte for byte what its manifest pins."""


class InfrastructureLeft(CopperbenchError):
    """Some planned runs have no verdict because of faults outside the agent."""

    exit_code = 4


class Interrupted(CopperbenchError):
    """A signal asked us to stop."""

    exit_code = 130
