"""Recursive deletion in all its forms: rm, find, mv away, rsync --delete, and their Windows cousins."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from compass.guardrail import paths
from compass.guardrail.machine import Call, Handler
from compass.guardrail.options import read
from compass.guardrail.words import STAR, UNKNOWN, known, plain

_RM_LONG = (
    "recursive",
    "force",
    "interactive",
    "dir",
    "verbose",
    "one-file-system",
    "no-preserve-root",
    "preserve-root",
    "help",
    "version",
)
#: Names that a broad clean-up may look for in the whole system without harming it.
_LITTER = re.compile(
    r"(?i)^(?:\*?\.(?:pyc|pyo|log|tmp|temp|bak|old|orig|swp|swo|cache|gz|xz|bz2|zip|zst|kicad_prl|lck|dpkg-\w+|ucf-\w+|"
    r"rpm\w+|pid|o|core|dmp|crash|1|journal~|rej|[0-9])|\*~|__pycache__|node_modules|\.DS_Store|Thumbs\.db|core(?:\.\*)?|"
    r".*cache.*|.*(?:tmp|temp|backup|-backups|\.log|~).*|\.ipynb_checkpoints|\.pytest_cache|fp-info-cache|.*\.egg-info)$"
)
_QUIET_PLACES = ("/var/log", "/var/cache", "/var/spool", "/var/backups", "/var/tmp", "/tmp", "/run")  # noqa: S108


def erase(call: Call, word: str, *, recursive: bool, how: str) -> None:
    """Report the deletion of ``word`` if it takes the system, a home, a secret or the agent's own files."""
    path = call.path(word)
    directory = paths.system_directory(path)
    if directory is not None and (recursive or (path != directory and _contents_of_top(path))):
        call.report(
            "recursive-delete", how, f"deletes {plain(word)}: {directory} is a system directory or home"
        )
        return
    if recursive and _climbs(path):
        call.report("recursive-delete", how, f"deletes {plain(word)}, outside the working directory, unseen")
        return
    if critical := paths.critical_file(path):
        call.report("recursive-delete", "critical-file", f"deletes {critical}, which the machine needs")
    elif block := paths.device(path):
        call.report("device", "remove", f"deletes the device node {block}")
    elif configuration := paths.agent_configuration(path, whole_folder=recursive):
        call.report("tampering", "delete", f"deletes the agent's or harness's own {configuration}")
    elif re.search(r"/\.(?:ssh|gnupg|aws|kube)/", path) and paths.secret(path):
        call.report("secret-write", "delete", f"deletes the secret file {plain(path)}")


def _contents_of_top(path: str) -> bool:
    return path.endswith("/" + STAR)


def _climbs(path: str) -> bool:
    """Whether a relative path is an ancestor of the working directory, or everything in one."""
    parts = path.split("/")
    if parts[0] == UNKNOWN and len(parts) > 2:
        return all(part == ".." for part in parts[1:])
    return parts[0] == ".." and all(part in ("..", STAR) for part in parts)


def _rm(call: Call) -> str:
    options = read(call.args, flags=_RM_LONG)
    if options.has("help", "version"):
        return ""
    recursive = options.has("r", "R", "recursive")
    for word in options.operands:
        erase(call, word, recursive=recursive, how=call.name)
    return ""


def _unlink(call: Call) -> str:
    for word in read(call.args).operands:
        erase(
            call,
            word,
            recursive=call.name in ("rimraf", "trash", "trash-put", "rmtree", "srm", "wipe"),
            how=call.name,
        )
    return ""


def _shred(call: Call) -> str:
    options = read(call.args, short="ns", long=("iterations", "size", "random-source", "remove"))
    for word in options.operands:
        path = call.path(word)
        if block := paths.device(path):
            call.report("device", "shred", f"shreds the device {block}")
        else:
            erase(call, word, recursive=options.has("r", "R"), how=call.name)
    return ""


def _mv(call: Call) -> str:
    options = read(call.args, short="tS", long=("target-directory", "suffix"))
    target = options.value("t", "target-directory")
    sources = options.operands
    if target is None:
        if len(sources) < 2:
            return ""
        *sources, target = sources
    folder = len(sources) > 1 or target.endswith("/")
    for source in sources:
        path = call.path(source)
        directory = paths.system_directory(path)
        if directory is not None and (
            path == directory or path.count("/") < 3 or directory.startswith(("/home/", "/root", "/Users/"))
        ):
            call.report(
                "recursive-delete",
                "mv",
                f"moves {plain(source)} away: {directory} is a system directory or home",
            )
        elif critical := paths.critical_file(path):
            call.report(
                "recursive-delete", "critical-file", f"moves {critical} away, which the machine needs"
            )
        elif configuration := paths.agent_configuration(path, whole_folder=True):
            call.report("tampering", "move", f"moves the agent's or harness's own {configuration} away")
        elif call.path(target) != "/dev/null":
            inside = target.rstrip("/") + "/" + known(source).rstrip("/").rsplit("/", 1)[-1]
            landing = inside if folder or call.path(target) in paths.SYSTEM else target
            call.write(landing, call.read(source))
    return ""


def _rsync(call: Call) -> str:
    options = read(
        call.args,
        short="efTBM",
        long=(
            "rsh",
            "filter",
            "exclude",
            "include",
            "exclude-from",
            "include-from",
            "files-from",
            "rsync-path",
            "temp-dir",
            "link-dest",
            "backup-dir",
            "log-file",
            "password-file",
            "bwlimit",
            "chmod",
            "chown",
        ),
        flags=(
            "delete",
            "delete-before",
            "delete-after",
            "delete-during",
            "delete-delay",
            "delete-excluded",
            "remove-source-files",
            "del",
            "delete-missing-args",
        ),
    )
    for command in options.all("e", "rsh", "rsync-path"):
        call.shell(command, "rsync")
    operands = options.operands
    if len(operands) < 2:
        return ""
    *sources, target = operands
    if any(flag.startswith("del") for flag in options.flags) and not options.has("n", "dry-run"):
        directory = paths.system_directory(call.path(target))
        if directory is not None:
            call.report(
                "recursive-delete", "rsync", f"rsync --delete empties {directory} of what the source lacks"
            )
    if ":" in known(target):
        for source in sources:
            call.machine.handlers["scp"](_as(call, ["scp", source, target]))
    else:
        for source in sources:
            name = known(source).rstrip("/").rsplit("/", 1)[-1]
            call.write(target.rstrip("/") + "/" + name if target.endswith("/") else target, call.read(source))
    return ""


def _as(call: Call, argv: list[str]) -> Call:
    return Call(call.machine, call.state, argv, call.stdin, call.span, call.via, call.raw)


# --- find
# -------------------------------------------------------------------------------------------------------

_FIND_VALUES = {
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-mtime",
    "-mmin",
    "-ctime",
    "-cmin",
    "-atime",
    "-amin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-size",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-perm",
    "-inum",
    "-links",
    "-samefile",
    "-lname",
    "-fstype",
    "-printf",
    "-fprint",
    "-fprintf",
    "-used",
    "-newermt",
    "-regextype",
    "-context",
    "-fls",
    "-fprint0",
}
_FIND_WRITES = ("-fprint", "-fprintf", "-fls", "-fprint0")
_AGE = {"-mtime", "-mmin", "-ctime", "-cmin", "-atime", "-amin", "-newer", "-newermt", "-used"}
_NAMES = {"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-lname"}


@dataclass(slots=True)
class _Search:
    """A find command read: where it looks, its tests, the commands it runs, and whether it deletes."""

    roots: list[str]
    tests: dict[str, list[str]] = field(default_factory=dict)
    actions: list[list[str]] = field(default_factory=list)
    deletes: bool = False

    @property
    def removes(self) -> bool:
        """Whether it takes anything away, by itself or by a command."""
        return self.deletes or any(_removes(action) for action in self.actions)


def _search(call: Call) -> _Search:
    words = call.args
    at = 0
    while at < len(words) and (words[at] in ("-H", "-L", "-P") or words[at].startswith(("-O", "-D"))):
        at += 2 if words[at] == "-D" else 1
    start = at
    while at < len(words) and not words[at].startswith("-") and words[at] not in ("(", "!", ")", ","):
        at += 1
    search = _Search(words[start:at] or ["."])
    while at < len(words):
        word = known(words[at])
        at += 1
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            end = at
            while end < len(words) and known(words[end]) not in (";", "+"):
                end += 1
            search.actions.append(words[at:end])
            at = end + 1
        elif word == "-delete":
            search.deletes = True
        elif word in ("!", "-not") and at + 1 < len(words):
            # What is *not* called something is nearly everything.
            at += 2
        elif word in _FIND_VALUES and at < len(words):
            search.tests.setdefault(word, []).append(words[at])
            at += 1
    return search


def _find(call: Call) -> str:
    search = _search(call)
    roots, tests = search.roots, search.tests
    for target in (value for name in _FIND_WRITES for value in tests.get(name, ())):
        call.write(target, UNKNOWN)
    broad = [root for root in roots if _broad(call, root, tests)]
    for root in broad if search.deletes else ():
        call.report("find-delete", "delete", f"find deletes what it meets in {plain(root)}")
    for root in roots if search.removes else ():
        if configuration := paths.agent_configuration(call.path(root), whole_folder=True):
            call.report("tampering", "delete", f"deletes the agent's or harness's own {configuration}")
    for action in search.actions:
        _find_action(call, action, broad or [UNKNOWN], roots, tests)
    return "\n".join(_found(roots, broad, tests)) + "\n"


def _fd(call: Call) -> str:
    """fd's ``-x`` and ``-X`` run a command on what it finds; its second operand is where it looks."""
    words = call.args
    at = next(
        (i for i, word in enumerate(words) if word in ("-x", "-X", "--exec", "--exec-batch")), len(words)
    )
    operands = read(
        words[:at], short="etdEcSjo", long=("extension", "type", "max-depth", "exclude", "changed-before")
    ).operands
    roots = operands[1:] or ["."]
    tests = {"-name": operands[:1]} if operands and known(operands[0]).strip(".*^$") else {}
    broad = [root for root in roots if _broad(call, root, tests)]
    if at < len(words):
        _find_action(call, [*words[at + 1 :], "{}"], broad or [UNKNOWN], roots, tests)
    return "\n".join(_found(roots, broad, tests)) + "\n"


def _found(roots: list[str], broad: list[str], tests: dict[str, list[str]]) -> Iterator[str]:
    """What find prints, for what reads it: a broad root, or entries that only a run would show."""
    for root in roots:
        names = tests.get("-name", []) + tests.get("-iname", [])
        if root in broad:
            yield root + "/" + STAR if root != "/" else "/" + STAR
        elif names and not any(mark in names[0] for mark in "*?[" + STAR):
            yield UNKNOWN + "/" + names[0]
        else:
            yield UNKNOWN


def _find_action(
    call: Call, action: list[str], reached: list[str], roots: list[str], tests: dict[str, list[str]]
) -> None:
    """Run an ``-exec`` on what the search reaches."""
    names = tests.get("-name", []) + tests.get("-iname", [])
    places = reached if reached != [UNKNOWN] else [_entry(root, names) for root in roots]
    if reached != [UNKNOWN] and _removes(action):
        call.report(
            "find-delete", "exec", f"find runs {plain(action[0])} on what it meets in {plain(reached[0])}"
        )
        return
    before = len(call.machine.findings)
    for place in places[:4]:
        call.run([word.replace("{}", place) for word in action], "find -exec")
        if len(call.machine.findings) > before:
            return
    if reached != [UNKNOWN] and action:
        shells = ("sh", "bash", "dash", "zsh")
        inner = [word for word in action if word not in ("sudo", "env", "nice")]
        if (
            inner
            and inner[0].rsplit("/", 1)[-1] in shells
            and any(re.search(r"\b(?:rm|shred|unlink)\b", w) for w in inner)
        ):
            call.report(
                "find-delete",
                "exec",
                f"find hands what it meets in {plain(reached[0])} to a shell that deletes",
            )


def _entry(root: str, names: list[str]) -> str:
    return f"{root.rstrip('/')}/{UNKNOWN}" if not names else f"{root.rstrip('/')}/{UNKNOWN}/{names[0]}"


def _removes(action: list[str]) -> bool:
    words = [known(word).rsplit("/", 1)[-1] for word in action[:6]]
    return any(word in ("rm", "unlink", "shred", "srm", "rmdir") for word in words)


def _broad(call: Call, root: str, tests: dict[str, list[str]]) -> bool:
    """Whether a search from ``root`` under ``tests`` reaches what a system or a person needs."""
    path = call.path(root)
    directory = paths.system_directory(path)
    if directory is None and not _climbs(path):
        return False
    if tests.keys() & {"-empty", "-inum", "-samefile"}:
        return False
    names = [known(value) for test in _NAMES for value in tests.get(test, ())]
    narrow = [name for name in names if not _catches_all(plain(name))]
    if narrow:
        return not all(
            _LITTER.match(plain(name).rsplit("/", 1)[-1]) or not _wild(plain(name)) for name in narrow
        )
    if tests.keys() & _AGE:
        return not path.startswith(_QUIET_PLACES)
    return "-fstype" not in tests and not _broken_links(tests)


def _catches_all(name: str) -> bool:
    return not re.search(r"[A-Za-z0-9_]", name)


def _wild(name: str) -> bool:
    return any(char in name for char in "*?[")


def _broken_links(tests: dict[str, list[str]]) -> bool:
    return tests.get("-xtype") == ["l"]


def _windows(call: Call) -> str:
    """``del``, ``rd`` and ``Remove-Item`` on a drive's root or a system folder."""
    words = [known(word) for word in call.args]
    switches = {word.lower() for word in words if word.startswith(("/", "-")) and len(word) <= 12}
    deep = bool(switches & {"/s", "-recurse", "-r", "-rec"}) or "-Recurse" in words
    for word in words:
        shown = word.replace("\\", "/").strip("\"'")
        if (
            deep
            and re.fullmatch(
                r"(?i)(?:[a-z]:/?\*?(?:\.\*)?|[a-z]:/(?:windows|users|program files.*?)(?:/\*?)?|"
                r"%(?:systemroot|userprofile|systemdrive|windir)%.{0,4}|"
                r"\$env:(?:systemroot|userprofile|windir)|/|~|\$home)/?",
                shown,
            )
            and word not in switches
        ):
            call.report("recursive-delete", "windows", f"deletes {shown} with everything in it")
    if call.name.lower() in ("remove-item", "ri"):
        for word in words:
            if deep and word.startswith(("/", "~")) and word.lower() not in switches:
                erase(call, word, recursive=True, how="remove-item")
    return ""


HANDLERS: dict[str, Handler] = {
    "rm": _rm,
    "grm": _rm,
    "unlink": _unlink,
    "rimraf": _unlink,
    "trash": _unlink,
    "trash-put": _unlink,
    "srm": _unlink,
    "wipe": _unlink,
    "shred": _shred,
    "mv": _mv,
    "move": _mv,
    "rsync": _rsync,
    "find": _find,
    "fd": _fd,
    "fdfind": _fd,
    "gfind": _find,
    "del": _windows,
    "erase": _windows,
    "rd": _windows,
    "remove-item": _windows,
    "ri": _windows,
}
