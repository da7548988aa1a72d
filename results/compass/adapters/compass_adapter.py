"""compass itself through the same protocol, so that the scorer's own path is measured too."""

import json
import sys

from compass import danger_reason, injection_findings

for line in sys.stdin:
    case = json.loads(line)
    if case["corpus"] == "guardrail":
        reason = danger_reason(case["text"], case["branch"])
    else:
        found = injection_findings(case["text"])
        reason = found[0].rule if found else None
    sys.stdout.write(json.dumps({"block": reason is not None, "reason": reason or ""}) + "\n")
    sys.stdout.flush()
