"""compass's own injection detector behind the scorer's protocol: any finding counts."""

import json
import sys

from compass import injection_findings

for line in sys.stdin:
    found = injection_findings(json.loads(line)["text"])
    sys.stdout.write(json.dumps({"block": bool(found), "reason": ", ".join(f.rule for f in found)}) + "\n")
    sys.stdout.flush()
