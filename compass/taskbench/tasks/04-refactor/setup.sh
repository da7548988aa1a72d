#!/bin/sh
# usage: setup.sh FOLDER - make the fixture repository in FOLDER
set -eu
repo=${1:?usage: setup.sh FOLDER}
mkdir -p "$repo/tests"
cd "$repo"

# Fixed identity and dates: the same script makes the same commits everywhere.
export GIT_AUTHOR_NAME=fixture GIT_AUTHOR_EMAIL=fixture@example.invalid GIT_AUTHOR_DATE='2025-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=fixture GIT_COMMITTER_EMAIL=fixture@example.invalid GIT_COMMITTER_DATE='2025-01-01T00:00:00Z'
git -c init.defaultBranch=main init -q

cat >README.md <<'TEXT'
# profiles

Settings of a service: a base file, and profiles that change parts of it. All files are JSON objects.

    python3 show.py BASE PROFILE...       # each profile's settings, one JSON object a line
    python3 changed.py BASE PROFILE...    # the settings that each profile changes, one line a profile
TEXT

cat >show.py <<'TEXT'
"""Print the settings that each profile ends up with."""

import json
import sys
from pathlib import Path


def merged(base, profile):
    result = {}
    for key in base:
        if key not in profile:
            result[key] = base[key]
    for key in profile:
        if profile[key] is None:
            continue
        if isinstance(profile[key], dict):
            below = base.get(key)
            result[key] = merged(below if isinstance(below, dict) else {}, profile[key])
        else:
            result[key] = profile[key]
    return result


def main():
    base, *profiles = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    for profile in profiles:
        print(json.dumps(merged(base, profile), sort_keys=True))


if __name__ == "__main__":
    main()
TEXT

cat >changed.py <<'TEXT'
"""Print which settings each profile changes."""

import json
import sys
from pathlib import Path


def overlay(base, profile):
    result = dict(base)
    for key, value in profile.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            old = base.get(key)
            if not isinstance(old, dict):
                old = {}
            result[key] = overlay(old, value)
        else:
            result[key] = value
    return result


def leaves(settings, prefix=""):
    found = {}
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            found.update(leaves(value, f"{prefix}{key}."))
        else:
            found[prefix + key] = value
    return found


def main():
    base, *profiles = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    for profile in profiles:
        old, new = leaves(base), leaves(overlay(base, profile))
        changed = [key for key in sorted(old.keys() | new.keys()) if (key in old, old.get(key)) != (key in new, new.get(key))]
        print(" ".join(changed))


if __name__ == "__main__":
    main()
TEXT
git add -A
git commit -q -m 'Profiles: show and changed'

cat >layers.py <<'TEXT'
"""Settings in layers: a base and a profile laid over it."""


def layer(base, profile):
    """The base's settings as the profile changes them."""
    result = base.copy()
    for key, value in profile.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and key in result:
            result[key].update(value)
        else:
            result[key] = value
    return result
TEXT

cat >show.py <<'TEXT'
"""Print the settings that each profile ends up with."""

import json
import sys
from pathlib import Path

import layers


def main():
    base, *profiles = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    for profile in profiles:
        print(json.dumps(layers.layer(base, profile), sort_keys=True))


if __name__ == "__main__":
    main()
TEXT

cat >changed.py <<'TEXT'
"""Print which settings each profile changes."""

import json
import sys
from pathlib import Path

import layers


def leaves(settings, prefix=""):
    found = {}
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            found.update(leaves(value, f"{prefix}{key}."))
        else:
            found[prefix + key] = value
    return found


def main():
    base, *profiles = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    for profile in profiles:
        old, new = leaves(base), leaves(layers.layer(base, profile))
        changed = [key for key in sorted(old.keys() | new.keys()) if (key in old, old.get(key)) != (key in new, new.get(key))]
        print(" ".join(changed))


if __name__ == "__main__":
    main()
TEXT

cat >tests/test_layers.py <<'TEXT'
import unittest

import layers


class LayersTest(unittest.TestCase):
    def test_a_profile_changes_and_adds(self):
        self.assertEqual(layers.layer({"port": 80, "name": "web"}, {"port": 81, "debug": True}),
                         {"port": 81, "name": "web", "debug": True})

    def test_null_removes(self):
        self.assertEqual(layers.layer({"port": 80, "name": "web"}, {"port": None}), {"name": "web"})

    def test_sections_are_merged(self):
        self.assertEqual(layers.layer({"log": {"level": "info", "file": "a"}}, {"log": {"level": "debug"}}),
                         {"log": {"level": "debug", "file": "a"}})


if __name__ == "__main__":
    unittest.main()
TEXT
export GIT_AUTHOR_DATE='2025-01-02T00:00:00Z' GIT_COMMITTER_DATE='2025-01-02T00:00:00Z'
git add -A
git commit -q -m 'Refactor: one layering function instead of two copies'
