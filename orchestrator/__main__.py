"""``python -m orchestrator``: the command line without an installed script."""

from orchestrator.cli import main

if __name__ == "__main__":
    main()
