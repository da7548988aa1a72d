"""cmd-risk 0.4.0 (PyPI) behind the scorer's protocol: levels high and critical count as a block."""

import json
import sys

from cmd_risk import classify

for line in sys.stdin:
    verdict = classify(json.loads(line)["text"])
    blocked = verdict.level in ("high", "critical")
    sys.stdout.write(json.dumps({"block": blocked, "reason": f"{verdict.level} {verdict.matched}"}) + "\n")
    sys.stdout.flush()
