#!/bin/sh
# usage: check.sh REPOSITORY - exit 0 if both commands behave as before and share layers.layer
set -eu
repo=${1:?usage: check.sh REPOSITORY}
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

# The judge never imports the repository's code (-I): what it runs can only print, and must print the right thing.
exec python3 -I - "$repo" <<'JUDGE'
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

repo = sys.argv[1]


def run(*arguments, cwd=repo):
    try:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=20
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return None, "", type(error).__name__
    return done.returncode, done.stdout, done.stderr


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}"[:1000])


BASE = {
    "name": "web",
    "port": 80,
    "hosts": ["a", "b"],
    "log": {"level": "info", "file": "web.log", "rotate": {"days": 7, "keep": {"min": 1, "max": 9}}},
    "cache": {"size": 64},
}
LOG = BASE["log"]
ROTATE = LOG["rotate"]
# what, profile, settings, changed keys
CASES = [
    ("nothing", {}, BASE, ""),
    ("top level", {"port": 81, "debug": True}, {**BASE, "port": 81, "debug": True}, "debug port"),
    ("one level down", {"log": {"level": "debug"}}, {**BASE, "log": {**LOG, "level": "debug"}}, "log.level"),
    ("three levels down", {"log": {"rotate": {"keep": {"max": 3}}}},
     {**BASE, "log": {**LOG, "rotate": {**ROTATE, "keep": {"min": 1, "max": 3}}}}, "log.rotate.keep.max"),
    ("null at the top", {"port": None}, {k: v for k, v in BASE.items() if k != "port"}, "port"),
    ("null in a section", {"log": {"file": None}},
     {**BASE, "log": {k: v for k, v in LOG.items() if k != "file"}}, "log.file"),
    ("null for what is not there", {"nothing": None, "log": {"nothing": None}}, BASE, ""),
    ("null in a new section", {"new": {"a": None, "b": {"c": None, "d": 1}}},
     {**BASE, "new": {"b": {"d": 1}}}, "new.b.d"),
    ("null for the last key of a section", {"cache": {"size": None}}, {**BASE, "cache": {}}, "cache cache.size"),
    ("lists are replaced", {"hosts": ["c"]}, {**BASE, "hosts": ["c"]}, "hosts"),
    ("a section for a value", {"port": {"http": 80}}, {**BASE, "port": {"http": 80}}, "port port.http"),
    ("a section for a list", {"hosts": {"a": 1, "b": None}}, {**BASE, "hosts": {"a": 1}}, "hosts hosts.a"),
    ("a value for a section", {"cache": 5}, {**BASE, "cache": 5}, "cache cache.size"),
    ("false, zero and empty are values", {"port": 0, "name": "", "hosts": [], "cache": False},
     {**BASE, "port": 0, "name": "", "hosts": [], "cache": False}, "cache cache.size hosts name port"),
    ("an empty section changes nothing", {"log": {}, "cache": {}}, BASE, ""),
    ("a new empty section", {"new": {}}, {**BASE, "new": {}}, "new"),
]
with tempfile.TemporaryDirectory() as folder:
    def write(name, value):
        path = pathlib.Path(folder, name)
        path.write_text(json.dumps(value), encoding="utf-8")
        return str(path)

    base = write("base.json", BASE)
    profiles = [write(f"{number}.json", case[1]) for number, case in enumerate(CASES)]
    shown = [json.dumps(case[2], sort_keys=True) for case in CASES]
    changed = [case[3] for case in CASES]
    # All profiles in one call, in both orders: no profile may leave a trace in the next one.
    for command, wanted in (("show", shown), ("changed", changed)):
        for order in (1, -1):
            code, out, _ = run(f"{command}.py", base, *profiles[::order])
            expect(f"{command}: exit code and lines", (code, out.count("\n")), (0, len(CASES)))
            for case, got, line in zip(CASES[::order], out.splitlines(), wanted[::order]):
                expect(f"{command}: {case[0]}", got, line)
        alone = run(f"{command}.py", base, profiles[3])[:2]
        expect(f"{command}: {CASES[3][0]}, alone", alone, (0, wanted[3] + "\n"))

    # Both commands must follow the shared function: with another one in its place they print something else.
    other = pathlib.Path(folder, "other")
    try:
        shutil.copytree(repo, other, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        (other / "layers.py").write_text("def layer(base, profile):\n    return {'shared': 1}\n", encoding="utf-8")
    except (OSError, shutil.Error) as error:
        sys.exit(f"the repository cannot be copied: {type(error).__name__}")
    expect("show uses layers.layer", run("show.py", base, profiles[0], cwd=other)[:2], (0, '{"shared": 1}\n'))
    keys = "cache.size hosts log.file log.level log.rotate.days log.rotate.keep.max log.rotate.keep.min name port shared\n"
    expect("changed uses layers.layer", run("changed.py", base, profiles[0], cwd=other)[:2], (0, keys))

code, _, err = run("-m", "unittest", "discover", "-s", "tests")
ran = re.search(r"^Ran (\d+) test", err, re.M)
expect("the repository's tests: exit code", code, 0)
expect("the repository's tests: at least the 3 it had", bool(ran and int(ran[1]) >= 3), True)
JUDGE
