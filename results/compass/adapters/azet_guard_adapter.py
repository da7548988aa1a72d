"""azet-guard 0.2.0 (PyPI) behind the scorer's protocol: actions deny and ask count as a block; a warning
does not."""

import json
import sys

from azet_guard.rules import check_command

for line in sys.stdin:
    found = check_command(json.loads(line)["text"])
    stopped = [finding.rule for finding in found if finding.action in ("deny", "ask")]
    sys.stdout.write(json.dumps({"block": bool(stopped), "reason": ", ".join(stopped)}) + "\n")
    sys.stdout.flush()
