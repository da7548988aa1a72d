"""safepaste 0.3.0 (PyPI) behind the scorer's protocol: its verdict ``flagged``, default threshold, counts."""

import json
import sys

from safepaste import scan_prompt

for line in sys.stdin:
    result = scan_prompt(json.loads(line)["text"])
    reason = ", ".join(match.id for match in result.matches)
    sys.stdout.write(json.dumps({"block": bool(result.flagged), "reason": reason}) + "\n")
    sys.stdout.flush()
