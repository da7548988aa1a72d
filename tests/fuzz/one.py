"""``python -m tests.fuzz.one TARGET [libFuzzer option …]``: fuzz one target here; never returns."""

import sys

import atheris

# Before anything else imports them: only what is instrumented guides.
READERS = ["grader", "orchestrator.collect", "schema", "compass", "tarfile", "markdown_it"]
with atheris.instrument_imports(include=READERS):
    from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    name, *options = sys.argv[1:]
    atheris.Setup([sys.argv[0], *options], TARGETS[name].check)
    atheris.Fuzz()
