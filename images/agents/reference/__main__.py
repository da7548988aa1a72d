"""``python3 -I /opt/agent COMMAND``: puts the scaffolder beside us, then hands over to the command line."""

import sys

# The image's own copy: what the documents look like is known in one place.
sys.path.append("/opt/copperbench")

from reference.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
