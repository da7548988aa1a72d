#!/bin/sh
# usage: check.sh REPOSITORY - exit 0 if the pager counts its pages as the README says
set -eu
repo=${1:?usage: check.sh REPOSITORY}
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

# The judge never imports the repository's code (-I): what it runs can only print, and must print the right thing.
exec python3 -I - "$repo" <<'JUDGE'
import re
import subprocess
import sys

repo = sys.argv[1]


def run(*arguments, stdin=""):
    try:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=repo, input=stdin, capture_output=True, encoding="utf-8", timeout=20
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return None, "", type(error).__name__
    return done.returncode, done.stdout, done.stderr


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}"[:1000])


def listing(total):
    return "".join(f"item-{number}\n" for number in range(1, total + 1))


# total, page size, pages
for total, size, pages in [
    (20, 10, 2), (10, 10, 1), (9, 10, 1), (11, 10, 2), (5, 1, 5), (0, 10, 1), (0, 1, 1), (14, 7, 2), (15, 7, 3),
    (200, 50, 4),
]:
    for page in {1, pages}:
        first, last = (page - 1) * size + 1, min(page * size, total)
        wanted = "".join(f"{number}. item-{number}\n" for number in range(first, last + 1))
        code, out, _ = run("pager.py", "--page", str(page), "--size", str(size), stdin=listing(total))
        expect(f"page {page} of {total} items by {size}", (code, out), (0, f"{wanted}page {page} of {pages}\n"))
    for page in {0, pages + 1} if total == 20 else {pages + 1}:
        code, out, err = run("pager.py", "--page", str(page), "--size", str(size), stdin=listing(total))
        expect(f"page {page} of {total} items by {size}", (code, out, err), (2, "", f"no page {page}\n"))

code, _, err = run("-m", "unittest", "discover", "-s", "tests")
ran = re.search(r"^Ran (\d+) test", err, re.M)
expect("the repository's tests: exit code", code, 0)
expect("the repository's tests: at least the 3 it had", bool(ran and int(ran[1]) >= 3), True)
JUDGE
