"""claude-safety-guard 0.2.0 (PyPI) behind the scorer's protocol: its outcome BLOCK counts; a warning does
not."""

import json
import sys

from claude_safety_guard.guard import evaluate

for line in sys.stdin:
    decision = evaluate(json.loads(line)["text"])
    sys.stdout.write(json.dumps({"block": decision.blocked, "reason": str(decision.outcome)}) + "\n")
    sys.stdout.flush()
