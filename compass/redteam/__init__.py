"""Red team: a prompt-injection detector over layered normalisation, its corpora and its attacks.

``injection_findings`` is the whole interface for callers; ``bench``, ``attack``, ``external`` and ``scan``
measure it and put it to work.
"""

from compass.redteam.detector import injection_findings

__all__ = ["injection_findings"]
