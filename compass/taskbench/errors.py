"""Why the benchmark stops, and the exit code of each reason.

TaskbenchError
├── UsageError   2  the caller asked for something that is not there or not allowed
└── SetupError   3  this machine, or a task on it, cannot be used as it is
"""


class TaskbenchError(Exception):
    """One line: what is wrong, where, and what to do."""

    code = 1


class UsageError(TaskbenchError):
    """The caller asked for something that is not there or not allowed."""

    code = 2


class SetupError(TaskbenchError):
    """This machine, or a task on it, cannot be used as it is."""

    code = 3
