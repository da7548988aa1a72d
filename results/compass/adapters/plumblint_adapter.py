"""plumblint 0.1.2 (PyPI) behind the scorer's protocol: "injection" counts, "suspicious" does not."""

import json
import sys

from plumblint import scan

for line in sys.stdin:
    verdict = scan(json.loads(line)["text"]).verdict
    sys.stdout.write(json.dumps({"block": str(verdict) == "injection", "reason": str(verdict)}) + "\n")
    sys.stdout.flush()
