"""A very small task of our own, to be broken in one place at a time."""

from pathlib import Path

NAME = "01-small"
SETUP = """#!/bin/sh
set -eu
mkdir -p "$1/tests"
cd "$1"
echo 'echo helo' >greet.sh
echo 'sh greet.sh' >tests/run.sh
export GIT_AUTHOR_NAME=fixture GIT_AUTHOR_EMAIL=fixture@example.invalid GIT_AUTHOR_DATE='2025-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=fixture GIT_COMMITTER_EMAIL=fixture@example.invalid
export GIT_COMMITTER_DATE='2025-01-01T00:00:00Z'
git -c init.defaultBranch=main init -q
git add -A
git commit -q -m 'Greeting'
"""
CHECK = """#!/bin/sh
set -eu
cd "$1"
[ "$(sh greet.sh)" = hello ] || { echo 'no hello' >&2; exit 1; }
[ -s tests/run.sh ]
"""
PROMPT = "The greeting has a typing error. Please mend it.\n"


def patch(line: str) -> str:
    return f"--- a/greet.sh\n+++ b/greet.sh\n@@ -1 +1 @@\n-echo helo\n+{line}\n"


FILES = {
    f"tasks/{NAME}/setup.sh": SETUP,
    f"tasks/{NAME}/check.sh": CHECK,
    f"tasks/{NAME}/task.md": PROMPT,
    f"fixes/{NAME}/fix.patch": patch("echo hello"),
    f"fixes/{NAME}/wrong-capital.patch": patch("echo Hello"),
}


def make(root: Path, **changed: str) -> Path:
    """The task below ``root``; ``setup``, ``check``, ``prompt`` or ``fix`` replace a file's text."""
    paths = {"setup": "setup.sh", "check": "check.sh", "prompt": "task.md"}
    texts = dict(FILES)
    for key, text in changed.items():
        texts[f"fixes/{NAME}/fix.patch" if key == "fix" else f"tasks/{NAME}/{paths[key]}"] = text
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root
