"""Tasks as data: found in the installed package or in a folder of one's own, read as text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from schema.errors import EnvironmentFault, UsageError

#: What a task's folder holds: exactly these.
FILES = ("check.sh", "setup.sh", "task.md")
#: The reference fix, and the beginning of the names of fixes that the oracle must refuse.
FIX, WRONG = "fix.patch", "wrong-"
NAME = re.compile(r"[0-9]{2}-[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Task:
    """One task: the texts of its files."""

    name: str
    setup: str
    prompt: str
    check: str

    @property
    def scripts(self) -> dict[str, str]:
        """Its shell scripts by file name."""
        return {"setup.sh": self.setup, "check.sh": self.check}


@dataclass(frozen=True, slots=True)
class Fixes:
    """A task's reference fix, and wrong fixes by name: patches for the repository that ``setup.sh`` makes."""

    right: str
    wrong: dict[str, str]


def shipped() -> Traversable:
    """The folder of ``tasks`` and ``fixes`` that comes with the package."""
    return files("compass.taskbench")


def names(root: Traversable) -> list[str]:
    """The names of all tasks below ``root``, in order. Raises UsageError if there are none."""
    folder = root / "tasks"
    found = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    if not found:
        raise UsageError(f"{folder}: no task here; a task is a folder tasks/NN-name with {', '.join(FILES)}")
    return found


def select(root: Traversable, wanted: Iterable[str]) -> list[str]:
    """The names in ``wanted``, each once and in the tasks' order; all when it is empty. Raises UsageError."""
    known, asked = names(root), set(wanted)
    if unknown := sorted(asked - set(known)):
        raise UsageError(f"no task {unknown[0]!r}; there are: {', '.join(known)}")
    return [name for name in known if name in asked] if asked else known


def structure(root: Traversable, name: str) -> list[str]:
    """What is wrong with the files of a task, one line each; nothing when it can be loaded."""
    wrong = [] if NAME.fullmatch(name) else [f"tasks/{name}: name it NN-name, in small letters and hyphens"]
    folder, fixes = root / "tasks" / name, root / "fixes" / name
    there = {entry.name for entry in folder.iterdir()}
    wrong += [f"tasks/{name}/{missing} is missing" for missing in sorted(set(FILES) - there)]
    wrong += [f"tasks/{name}/{extra} does not belong here" for extra in sorted(there - set(FILES))]
    patches = {entry.name for entry in fixes.iterdir()} if fixes.is_dir() else set()
    if FIX not in patches:
        wrong.append(f"fixes/{name}/{FIX} is missing: a patch that mends the seeded bug")
    if not any(patch.startswith(WRONG) for patch in patches):
        wrong.append(f"fixes/{name}/{WRONG}*.patch is missing: a believable fix that the oracle must refuse")
    for file in [folder / each for each in FILES if each in there] + [
        fixes / each for each in sorted(patches)
    ]:
        try:
            empty = not file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            wrong.append(f"{file} cannot be read as UTF-8 text: {error}")
        else:
            wrong += [f"{file} is empty"] if empty else []
    return wrong


def load(root: Traversable, name: str) -> Task:
    """Read a task. Raises EnvironmentFault if a file is missing or no text."""
    folder = root / "tasks" / name
    try:
        check, setup, prompt = (folder.joinpath(each).read_text(encoding="utf-8") for each in FILES)
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentFault(
            f"{folder}: {error}; `compass taskbench validate` says what a task needs"
        ) from error
    return Task(name, setup, prompt, check)


def load_fixes(root: Traversable, name: str) -> Fixes:
    """Read a task's fixes, for validation only; the structure has been checked."""
    folder = root / "fixes" / name
    wrong = {
        entry.name.removesuffix(".patch"): entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.startswith(WRONG)
    }
    return Fixes((folder / FIX).read_text(encoding="utf-8"), wrong)
