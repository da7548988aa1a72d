"""``copperbench``, killed at one step: ``python -m tests.crash.die TARGET WHEN NTH COMMAND…``.

The product has no hook for this: a function of it is wrapped from outside, and the process kills itself
before or after the nth call, as SIGKILL would from anywhere.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import sys
from importlib import import_module
from typing import Any

from orchestrator.cli import main


def arm(target: str, when: str, nth: int) -> None:
    """Wrap ``module:function`` or ``module:Class.method``."""
    module, _, path = target.partition(":")
    owner: Any = import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    real = getattr(owner, name)
    calls = itertools.count(1)

    @functools.wraps(real)
    def dying(*arguments: Any, **options: Any) -> Any:
        mine = next(calls) == nth
        if mine and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **options)
        if mine and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dying)


if __name__ == "__main__":
    arm(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    sys.argv = ["copperbench", *sys.argv[4:]]
    main()
