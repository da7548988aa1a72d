"""ai-agent-guardrails 0.1.1 (PyPI) behind the scorer's protocol: its action BLOCK counts; the branch is
passed on."""

import json
import sys

from guardrails.policy import PolicyEngine

engine = PolicyEngine()
for line in sys.stdin:
    case = json.loads(line)
    decision = engine.evaluate(case["text"], {"branch": case["branch"]} if case["branch"] else {})
    stopped = decision.action == "BLOCK"
    sys.stdout.write(json.dumps({"block": stopped, "reason": decision.matched_rule or ""}) + "\n")
    sys.stdout.flush()
