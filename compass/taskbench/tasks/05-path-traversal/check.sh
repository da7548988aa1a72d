#!/bin/sh
# usage: check.sh REPOSITORY - exit 0 if no name leads out of the notes folder and every good name still works
set -eu
repo=${1:?usage: check.sh REPOSITORY}
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

# The judge never imports the repository's code (-I): what it runs can only print, and must print the right thing.
exec python3 -I - "$repo" <<'JUDGE'
import os
import pathlib
import re
import subprocess
import sys
import tempfile

repo = sys.argv[1]
program = str(pathlib.Path(repo, "notes.py").absolute())


def run(*arguments, stdin="", cwd=repo):
    try:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=cwd, input=stdin, capture_output=True, encoding="utf-8", timeout=20
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return None, "", type(error).__name__
    return done.returncode, done.stdout, done.stderr


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}"[:1000])


def everything(top):
    """Every file below ``top`` with its text, every folder, every link."""
    found = {}
    for path in sorted(top.rglob("*")):
        found[str(path)] = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else "folder"
    return found


with tempfile.TemporaryDirectory() as name:
    top = pathlib.Path(name).resolve()
    notes = top / "notes"
    (notes / "2024").mkdir(parents=True)
    (top / "notes-private").mkdir()
    (top / "accounts.txt").write_text("secret\n")
    (top / "notes-private" / "a.txt").write_text("secret\n")
    (notes / "todo.txt").write_text("buy salt\n")
    (notes / "..hidden.txt").write_text("dots\n")
    (notes / "2024" / "trip...txt").write_text("by train\n")
    (notes / "alias.txt").symlink_to("todo.txt")
    (notes / "year").symlink_to("2024")
    (notes / "leak.txt").symlink_to(top / "accounts.txt")
    (notes / "out").symlink_to(top)
    (notes / "up").symlink_to("..")
    (notes / "dangling.txt").symlink_to(top / "new.txt")

    for what, note, text in [
        ("plain", "todo.txt", "buy salt\n"), ("dots in front", "..hidden.txt", "dots\n"),
        ("dots inside", "2024/trip...txt", "by train\n"), ("down and up", "2024/../todo.txt", "buy salt\n"),
        ("here", "./todo.txt", "buy salt\n"), ("out and in again", "../notes/todo.txt", "buy salt\n"),
        ("a link to a note", "alias.txt", "buy salt\n"), ("a link to a folder", "year/trip...txt", "by train\n"),
    ]:
        expect(f"read {what}", run(program, str(notes), "read", note), (0, text, ""))
    expect("read a missing note", run(program, str(notes), "read", "2024/none.txt"), (1, "", "no such note\n"))

    # Every target lies below ``top``: the program under test may still have the hole, and it will be used.
    before = everything(top)
    for note in [
        "../accounts.txt", "2024/../../accounts.txt", "../notes-private/a.txt", "../missing.txt", "../new/deep/file.txt",
        "..", ".", "", "2024/..", str(top / "absolute.txt"), str(top / "accounts.txt"), str(top / "notes-private" / "a.txt"),
        "leak.txt", "out/accounts.txt", "up/accounts.txt", "out/new/file.txt", "dangling.txt",
        "none/../../accounts.txt",
    ]:
        for action in ("read", "write"):
            expect(f"{action} {note!r}", run(program, str(notes), action, note, stdin="x"), (3, "", "refused\n"))
            if everything(top) != before:
                sys.exit(f"{action} {note!r} changed files")

    # A NUL cannot be an argument of a process, so the program is driven from inside one.
    driver = (
        "import runpy, sys; sys.argv = ['notes.py', {!r}, 'read', 'todo.txt\\0.png']; "
        "runpy.run_path('notes.py', run_name='__main__')"
    )
    expect("read a name with NUL", run("-c", driver.format(str(notes))), (3, "", "refused\n"))

    # The folder itself may be given by a relative path, with a slash at its end, or by a link.
    (top / "link").symlink_to("notes")
    for folder in ("notes", "./notes/", "link"):
        expect(f"read, folder {folder}", run(program, folder, "read", "todo.txt", cwd=top), (0, "buy salt\n", ""))
        expect(f"leave, folder {folder}", run(program, folder, "read", "../accounts.txt", cwd=top), (3, "", "refused\n"))
    expect("write", run(program, str(notes), "write", "new/deep/..note.txt", stdin="hi\n"), (0, "", ""))
    expect("write over a link", run(program, "link", "write", "alias.txt", stdin="buy tea\n", cwd=top), (0, "", ""))
    expect("read both", (run(program, "link", "read", "new/deep/..note.txt", cwd=top)[1],
                         run(program, "notes", "read", "todo.txt", cwd=top)[1]), ("hi\n", "buy tea\n"))
    expect("write beside", run(program, "notes", "write", "top.txt", stdin="hi\n", cwd=top), (0, "", ""))

code, _, err = run("-m", "unittest", "discover", "-s", "tests")
ran = re.search(r"^Ran (\d+) test", err, re.M)
expect("the repository's tests: exit code", code, 0)
expect("the repository's tests: at least the 2 it had", bool(ran and int(ran[1]) >= 2), True)
JUDGE
