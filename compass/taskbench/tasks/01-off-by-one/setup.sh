#!/bin/sh
# usage: setup.sh FOLDER - make the fixture repository in FOLDER
set -eu
repo=${1:?usage: setup.sh FOLDER}
mkdir -p "$repo/tests"
cd "$repo"

cat >README.md <<'TEXT'
# pager

    python3 pager.py --page 2 --size 10 < items.txt

Prints one page of a list (one item a line on standard input), each item with its number, then a footer:

    11. kettle
    12. toaster
    page 2 of 2

- Pages count from 1. The last page holds what is left over.
- An empty list has one page, with nothing on it: `page 1 of 1`.
- Asking for a page that is not there prints `no page N` on standard error and exits with 2.
TEXT

cat >pager.py <<'TEXT'
"""Print one page of a list."""

import argparse
import sys


def page_count(total, size):
    """How many pages a list of ``total`` items has."""
    return total // size + 1


def page_items(items, page, size):
    """The items of a page, each with its number."""
    first = (page - 1) * size
    return list(enumerate(items, 1))[first : first + size]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=int, default=1)
    parser.add_argument("--size", type=int, default=10)
    args = parser.parse_args()
    items = sys.stdin.read().splitlines()
    pages = page_count(len(items), args.size)
    if not 1 <= args.page <= pages:
        print(f"no page {args.page}", file=sys.stderr)
        return 2
    for number, item in page_items(items, args.page, args.size):
        print(f"{number}. {item}")
    print(f"page {args.page} of {pages}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
TEXT

cat >tests/test_pager.py <<'TEXT'
import unittest

import pager


class PagerTest(unittest.TestCase):
    def test_last_page_holds_the_rest(self):
        self.assertEqual(pager.page_count(25, 10), 3)
        self.assertEqual(pager.page_items(list("abc"), 2, 2), [(3, "c")])

    def test_one_short_page(self):
        self.assertEqual(pager.page_count(3, 10), 1)

    def test_first_page(self):
        self.assertEqual(pager.page_items(list("abc"), 1, 2), [(1, "a"), (2, "b")])


if __name__ == "__main__":
    unittest.main()
TEXT

# Fixed identity and dates: the same script makes the same commit everywhere.
export GIT_AUTHOR_NAME=fixture GIT_AUTHOR_EMAIL=fixture@example.invalid GIT_AUTHOR_DATE='2025-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=fixture GIT_COMMITTER_EMAIL=fixture@example.invalid GIT_COMMITTER_DATE='2025-01-01T00:00:00Z'
git -c init.defaultBranch=main init -q
git add -A
git commit -q -m 'Pager for plain lists'
