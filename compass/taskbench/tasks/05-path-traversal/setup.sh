#!/bin/sh
# usage: setup.sh FOLDER - make the fixture repository in FOLDER
set -eu
repo=${1:?usage: setup.sh FOLDER}
mkdir -p "$repo/tests"
cd "$repo"

cat >README.md <<'TEXT'
# notes

A folder of text notes behind two commands. Our web front end calls them with names that visitors send.

    python3 notes.py FOLDER read NAME             # prints the note
    python3 notes.py FOLDER write NAME < note     # stores the note, making folders as needed

- NAME is a path below FOLDER, with `/` between its parts: `todo.txt`, `2024/march/trip.txt`. Any name that ends up
  below FOLDER is fine, `2024/../todo.txt` and `..hidden.txt` too; so is a symbolic link from one note to another.
- `read` of a note that is not there prints `no such note` on standard error and exits with 1.
- The folder is the boundary: a name that ends up anywhere else, existing or not, is answered with `refused` on
  standard error and exit code 3, and nothing is read, written or made. So is a name that is no name of a note at all: an
  empty one, one with a NUL character, or one that ends up at FOLDER itself.
TEXT

cat >notes.py <<'TEXT'
"""Read and write notes in a folder."""

import os
import sys


def locate(folder, name):
    """The path of a note."""
    return os.path.join(folder, name)


def main():
    folder, action, name = sys.argv[1:4]
    path = locate(folder, name)
    if action == "write":
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(sys.stdin.read())
        return 0
    try:
        with open(path, encoding="utf-8") as file:
            sys.stdout.write(file.read())
    except FileNotFoundError:
        print("no such note", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
TEXT

cat >tests/test_notes.py <<'TEXT'
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "notes.py"


class NotesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def notes(self, *arguments, text=""):
        return subprocess.run([sys.executable, str(PROGRAM), self.folder.name, *arguments],
                              input=text, capture_output=True, text=True)

    def test_written_notes_can_be_read(self):
        self.assertEqual(self.notes("write", "2024/trip.txt", text="by train\n").returncode, 0)
        self.assertEqual(self.notes("read", "2024/trip.txt").stdout, "by train\n")

    def test_missing_note(self):
        done = self.notes("read", "missing.txt")
        self.assertEqual((done.returncode, done.stderr), (1, "no such note\n"))


if __name__ == "__main__":
    unittest.main()
TEXT

# Fixed identity and dates: the same script makes the same commit everywhere.
export GIT_AUTHOR_NAME=fixture GIT_AUTHOR_EMAIL=fixture@example.invalid GIT_AUTHOR_DATE='2025-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=fixture GIT_COMMITTER_EMAIL=fixture@example.invalid GIT_COMMITTER_DATE='2025-01-01T00:00:00Z'
git -c init.defaultBranch=main init -q
git add -A
git commit -q -m 'Notes in a folder'
