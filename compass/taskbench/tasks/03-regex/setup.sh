#!/bin/sh
# usage: setup.sh FOLDER - make the fixture repository in FOLDER
set -eu
repo=${1:?usage: setup.sh FOLDER}
mkdir -p "$repo/tests"
cd "$repo"

cat >README.md <<'TEXT'
# latest-tag

    git tag | sh latest-tag.sh

Prints the newest release among the tags on standard input, one a line, in any order.

- A release tag is `vMAJOR.MINOR.PATCH` and nothing else: three decimal numbers without leading zeros (`v0.9.0` is one,
  `v1.02.0` is not). Release candidates, nightlies and everything else that people tag are passed over.
- Numbers compare as numbers: `v1.10.0` is newer than `v1.9.9`.
- With no release tag in the input nothing is printed and the exit code is 1.

Plain POSIX shell and tools, so that it runs in any build container.
TEXT

cat >latest-tag.sh <<'TEXT'
#!/bin/sh
# usage: git tag | sh latest-tag.sh
set -u
release='v[0-9]+.[0-9]+.[0-9]+'

latest=$(grep -E "$release" | sed 's/^v//' | sort -t . -k 1,1n -k 2,2n -k 3,3n | tail -n 1)
[ -n "$latest" ] || exit 1
printf 'v%s\n' "$latest"
TEXT

cat >tests/run.sh <<'TEXT'
#!/bin/sh
# usage: sh tests/run.sh
cd "$(dirname "$0")/.." || exit 2
passed=0

expect() { # WANTED TAG...
    wanted=$1
    shift
    got=$(printf '%s\n' "$@" | sh latest-tag.sh)
    if [ "$got" = "$wanted" ]; then
        passed=$((passed + 1))
    else
        echo "not ok: $* gave '$got', wanted '$wanted'" >&2
        exit 1
    fi
}

expect v1.2.3 v1.2.3
expect v1.10.0 v1.9.9 v1.10.0 v1.2.30
expect v2.0.0 v1.99.99 v2.0.0
expect '' nightly
echo "$passed passed"
TEXT

# Fixed identity and dates: the same script makes the same commit everywhere.
export GIT_AUTHOR_NAME=fixture GIT_AUTHOR_EMAIL=fixture@example.invalid GIT_AUTHOR_DATE='2025-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=fixture GIT_COMMITTER_EMAIL=fixture@example.invalid GIT_COMMITTER_DATE='2025-01-01T00:00:00Z'
git -c init.defaultBranch=main init -q
git add -A
git commit -q -m 'Newest release from a list of tags'
