"""ai-injection-guard 0.3.0 (PyPI) behind the scorer's protocol: MEDIUM, its default, or worse counts."""

import json
import sys

from prompt_shield import PromptScanner

scanner = PromptScanner(threshold="MEDIUM")
for line in sys.stdin:
    result = scanner.scan(json.loads(line)["text"])
    stopped = str(result.severity).upper() in {"MEDIUM", "HIGH", "CRITICAL"}
    sys.stdout.write(json.dumps({"block": stopped, "reason": ", ".join(map(str, result.matches))}) + "\n")
    sys.stdout.flush()
