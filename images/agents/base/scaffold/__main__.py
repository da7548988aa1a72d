"""``python3 -m scaffold INPUT WORKSPACE``: one JSON line, or one line of what is off and exit 1."""

import json
import sys
from pathlib import Path

from scaffold.errors import Off
from scaffold.prepare import load, prepare


def main(arguments: list[str]) -> int:
    """Prepare the workspace; ``arguments`` are the input folder and the workspace."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python3 -m scaffold INPUT WORKSPACE\n")
        return 2
    try:
        done = prepare(load(Path(arguments[0]), Path(arguments[1])))
    except Off as off:
        sys.stderr.write(f"scaffold: {off}\n")
        return 1
    except (OSError, UnicodeError, ValueError, KeyError, IndexError) as error:
        sys.stderr.write(f"scaffold: {error.__class__.__name__}: {' '.join(str(error).split())}\n")
        return 1
    sys.stdout.write(json.dumps(done, ensure_ascii=True, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
