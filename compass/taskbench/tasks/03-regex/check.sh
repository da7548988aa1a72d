#!/bin/sh
# usage: check.sh REPOSITORY - exit 0 if exactly the README's release tags count
set -eu
repo=${1:?usage: check.sh REPOSITORY}
cd "$repo" || exit 1

expect() { # WHAT WANTED-CODE WANTED-OUTPUT TAG...
    what=$1 code=$2 wanted=$3
    shift 3
    got=0
    out=$(printf '%s\n' "$@" | sh latest-tag.sh 2>/dev/null) || got=$?
    if [ "$got" != "$code" ] || [ "$out" != "$wanted" ]; then
        echo "$what: exit $got with '$out', wanted $code with '$wanted'" >&2
        exit 1
    fi
}

expect 'one release' 0 v1.2.3 v1.2.3
expect 'numbers compare as numbers' 0 v1.10.0 v1.9.9 v1.10.0 v1.2.30
expect 'major first' 0 v10.0.0 v9.99.99 v10.0.0 v2.100.100
expect 'patch last' 0 v1.2.10 v1.2.9 v1.2.10 v1.2.1
expect 'zeros are numbers' 0 v0.10.0 v0.9.0 v0.0.11 v0.10.0
expect 'a single zero release' 0 v0.0.0 v0.0.0
expect 'long numbers' 0 v1.20240131.0 v1.20240131.0 v1.3.9
expect 'release candidate' 0 v1.9.4 v2.0.0-rc1 v1.9.4
expect 'build metadata' 0 v1.9.4 v2.0.0+build7 v1.9.4
expect 'date tag' 0 v1.4.0 v20240131 v1.4.0
expect 'other separators' 0 v1.4.0 v9-9-9 v9x9x9 v9_9_9 'v9 9 9' v1.4.0
expect 'mixed separators' 0 v1.4.0 v9.9-9 v9-9.9 v1.4.0
expect 'text before' 0 v1.4.0 old-v9.9.9 lib/v9.9.9 vv9.9.9 ' v9.9.9' v1.4.0
expect 'text after' 0 v1.4.0 v9.9.9x v9.9.9. 'v9.9.9 ' v1.4.0
expect 'two and four numbers' 0 v1.4.0 v9.9 v9.9.9.9 v1.4.0
expect 'empty numbers' 0 v1.4.0 v9..9 v.9.9 v9.9. v1.4.0
expect 'no v, capital V' 0 v1.4.0 9.9.9 V9.9.9 v1.4.0
expect 'leading zeros' 0 v1.4.0 v09.1.1 v9.01.1 v9.1.01 v9.00.0 v1.4.0
expect 'letters and signs' 0 v1.4.0 v9.a.1 v9.-1.1 v9.+1.1 v0x9.1.1 v1.4.0
expect 'nothing but other tags' 1 '' nightly v2.0.0-rc1 v20240131
expect 'an empty line' 1 '' ''

out=$(sh tests/run.sh 2>/dev/null) || { echo "the repository's tests fail" >&2; exit 1; }
passed=$(printf '%s\n' "$out" | sed -n 's/^\([0-9][0-9]*\) passed$/\1/p')
if [ "${passed:-0}" -lt 4 ]; then
    echo "the repository's tests: ${passed:-0} passed, it had 4" >&2
    exit 1
fi
