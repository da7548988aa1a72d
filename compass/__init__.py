"""compass: offline detectors and labelled corpora for command and text safety.

``danger_reason(command, branch=None)`` says why a shell command must not run, ``injection_findings(text)``
what in a text tries to give an agent orders, ``route(task)`` which model tier a task needs.
"""

from compass.guardrail import danger_reason
from compass.redteam import injection_findings
from compass.router import route

__version__ = "0.1.0"

__all__ = ["__version__", "danger_reason", "injection_findings", "route"]
