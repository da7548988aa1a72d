"""prompt-inject-detect 0.1.0 (PyPI) behind the scorer's protocol: ``is_injection`` counts."""

import json
import sys

from prompt_inject_detect import scan

for line in sys.stdin:
    result = scan(json.loads(line)["text"])
    reason = ", ".join(map(str, result.triggers))
    sys.stdout.write(json.dumps({"block": bool(result.is_injection), "reason": reason}) + "\n")
    sys.stdout.flush()
