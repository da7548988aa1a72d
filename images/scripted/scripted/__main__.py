"""``python3 -m scripted``: reads its job from standard input, serves until that input ends.

Exit codes: 0 the input ended; 2 the job cannot be played, with one line on standard error.
"""

from __future__ import annotations

import os
import sys
import threading

from scripted.job import read
from scripted.server import serving


def main() -> int:
    """Read the job and play."""
    os.umask(0)
    try:
        server, stage = serving(read(sys.stdin.buffer.readline()))
    except ValueError as error:
        sys.stderr.write(f"scripted: {error}\n")
        return 2
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stage.note(listening=True)
        while sys.stdin.buffer.read(4096):
            pass
        stage.closing.set()
        server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
