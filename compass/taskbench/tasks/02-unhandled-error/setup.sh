#!/bin/sh
# usage: setup.sh FOLDER - make the fixture repository in FOLDER
set -eu
repo=${1:?usage: setup.sh FOLDER}
mkdir -p "$repo/tests"
cd "$repo"

cat >README.md <<'TEXT'
# readings

    python3 readings.py FILE

Reads rows `sensor,value` (UTF-8, no heading) and prints each sensor's mean, two decimals, sorted by name:

    boiler 61.25
    cellar 12.50

One bad row must not cost us the night's report:

- A row is bad when it does not have exactly two fields, when the sensor's name is empty, or when the value is not a
  finite number. Bytes that are not UTF-8 make only their own row bad. Empty lines are not rows at all.
- Bad rows are left out, and their number is printed on standard error: `skipped 3 bad rows` (`skipped 1 bad row`).
  Nothing is printed there when every row is good. The exit code is 0 either way.
- A sensor with no good row is not listed.
- A file that cannot be read is another matter: one line on standard error that names the file, nothing on standard
  output, exit code 2.
TEXT

cat >readings.py <<'TEXT'
"""Mean value of each sensor in a file of readings."""

import csv
import sys


def read(path):
    """Each sensor's values, and how many rows were bad."""
    values = {}
    bad = 0
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            if not row:
                continue
            values.setdefault(row[0], []).append(float(row[1]))
    return values, bad


def main():
    values, bad = read(sys.argv[1])
    for sensor in sorted(values):
        mean = sum(values[sensor]) / len(values[sensor])
        print(f"{sensor} {mean:.2f}")
    if bad:
        print(f"skipped {bad} bad row{'s' if bad > 1 else ''}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
TEXT

cat >tests/test_readings.py <<'TEXT'
import pathlib
import tempfile
import unittest

import readings


class ReadingsTest(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "night.csv")
            path.write_text(text, encoding="utf-8")
            return readings.read(str(path))

    def test_values_by_sensor(self):
        values, bad = self.read("boiler,60\ncellar,12.5\nboiler,62.5\n")
        self.assertEqual(values, {"boiler": [60.0, 62.5], "cellar": [12.5]})
        self.assertEqual(bad, 0)

    def test_empty_lines_are_not_rows(self):
        self.assertEqual(self.read("\nboiler,60\n\n"), ({"boiler": [60.0]}, 0))


if __name__ == "__main__":
    unittest.main()
TEXT

# Fixed identity and dates: the same script makes the same commit everywhere.
export GIT_AUTHOR_NAME=fixture GIT_AUTHOR_EMAIL=fixture@example.invalid GIT_AUTHOR_DATE='2025-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=fixture GIT_COMMITTER_EMAIL=fixture@example.invalid GIT_COMMITTER_DATE='2025-01-01T00:00:00Z'
git -c init.defaultBranch=main init -q
git add -A
git commit -q -m 'Means of the night readings'
