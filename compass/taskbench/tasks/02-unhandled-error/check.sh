#!/bin/sh
# usage: check.sh REPOSITORY - exit 0 if bad rows and unreadable files are handled as the README says
set -eu
repo=${1:?usage: check.sh REPOSITORY}
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

# The judge never imports the repository's code (-I): what it runs can only print, and must print the right thing.
exec python3 -I - "$repo" <<'JUDGE'
import pathlib
import re
import subprocess
import sys
import tempfile

repo = sys.argv[1]


def run(*arguments):
    try:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=repo, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=20
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return None, "", type(error).__name__
    return done.returncode, done.stdout, done.stderr


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}"[:1000])


def skipped(count):
    return f"skipped {count} bad row{'s' if count > 1 else ''}\n" if count else ""


GOOD = b"boiler,60\nboiler,62.5\n"
MEAN = "boiler 61.25\n"
# what, the file's bytes, standard output, bad rows
CASES = [
    ("all good", b"cellar,12.5\n" + GOOD, MEAN + "cellar 12.50\n", 0),
    ("a word for a value", b"boiler,n/a\n" + GOOD, MEAN, 1),
    ("a missing value", b"boiler,\n" + GOOD, MEAN, 1),
    ("one field", b"boiler\n" + GOOD, MEAN, 1),
    ("three fields", b"boiler,1,2\n" + GOOD, MEAN, 1),
    ("no name", b",5\n" + GOOD, MEAN, 1),
    ("not finite", b"boiler,nan\nboiler,inf\nboiler,-Infinity\nboiler,1e999\n" + GOOD, MEAN, 4),
    ("bytes that are not UTF-8 in a value", b"boiler,\xff\xfe\n" + GOOD, MEAN, 1),
    ("bytes that are not UTF-8 in a name", GOOD + b"bo\xe9ler,7\n", MEAN, 1),
    ("a good name beyond ASCII", "küche,7\n".encode() + GOOD, MEAN + "küche 7.00\n", 0),
    ("a sensor with bad rows only", b"attic,n/a\nattic\n" + GOOD, MEAN, 2),
    ("bad rows only", b"attic,n/a\n", "", 1),
    ("an empty file", b"", "", 0),
    ("empty lines", b"\n\n" + GOOD + b"\n", MEAN, 0),
    ("negative and exponent", b"cellar,-1e1\n" + GOOD, MEAN + "cellar -10.00\n", 0),
    ("bad row in the last line without its end", GOOD + b"boiler,x", MEAN, 1),
]
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "night.csv")
    for what, content, out, bad in CASES:
        path.write_bytes(content)
        # UTF-8 mode: a name beyond ASCII can be printed whatever the machine's locale
        expect(what, run("-X", "utf8", "readings.py", str(path)), (0, out, skipped(bad)))
    for what, name in [("a missing file", "missing.csv"), ("a folder", ".")]:
        where = str(pathlib.Path(folder, name))
        code, out, err = run("readings.py", where)
        expect(what, (code, out, err.count("\n"), where in err), (2, "", 1, True))

code, _, err = run("-m", "unittest", "discover", "-s", "tests")
ran = re.search(r"^Ran (\d+) test", err, re.M)
expect("the repository's tests: exit code", code, 0)
expect("the repository's tests: at least the 2 it had", bool(ran and int(ran[1]) >= 2), True)
JUDGE
