"""Modes and owners: world-writable or recursive changes of system trees, set-user-id shells, opened keys."""

import re

from compass.guardrail import paths
from compass.guardrail.machine import Call, Handler
from compass.guardrail.options import read
from compass.guardrail.words import UNKNOWN, known, plain

_LONG = (
    "recursive",
    "changes",
    "silent",
    "quiet",
    "verbose",
    "no-preserve-root",
    "preserve-root",
    "dereference",
    "no-dereference",
)
_SHELLS = re.compile(
    r"/(?:usr/)?(?:local/)?s?bin/(?:ba|da|z|k|tc|c|fi)?sh$|/(?:usr/)?bin/(?:python[\d.]*|perl|ruby|node|vim?|nano|find|env|"
    r"busybox|cp|mv|dd|tee|less|awk|gawk|nmap|bash)$"
)
_KEY = re.compile(
    r"/\.ssh/(?:id_[^/.]+|[^/]+\.pem|authorized_keys|config)$|/etc/g?shadow$|/\.gnupg/.+|\.aws/credentials$"
)
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108


class _Mode:
    """What a chmod mode does: world-writable, world-readable, set-user-id, or taking access away."""

    def __init__(self, mode: str) -> None:
        self.writable = self.readable = self.setuid = self.closes = False
        if re.fullmatch(r"[0-7]{1,5}", mode):
            number = int(mode, 8)
            sticky = bool(number & 0o1000)
            self.writable = bool(number & 0o002) and not sticky
            self.readable = bool(number & 0o044)
            self.setuid = bool(number & 0o6000)
            self.closes = not number & 0o100
            return
        for clause in mode.split(","):
            found = re.fullmatch(r"([ugoa]*)([+=-][ugorwxXst]*)+", clause)
            if not found:
                continue
            who = found.group(1) or "a"
            for sign, letters in re.findall(r"([+=-])([ugorwxXst]*)", clause):
                others = bool(set(who) & set("oa"))
                gives = sign in "+="
                copies = bool(set(letters) & set("ug"))
                # A bare ``+w`` is masked by the umask; with a who it is not.
                self.writable |= gives and others and ("w" in letters or copies) and bool(found.group(1))
                self.readable |= gives and bool(set(who) & set("goa")) and ("r" in letters or copies)
                self.setuid |= gives and "s" in letters
                self.closes |= (sign == "-" and bool(set(who) & set("ua") and set(letters) & set("rx"))) or (
                    sign == "=" and others and not letters
                )


def _chmod(call: Call) -> str:
    # Modes such as ``-x`` look like options, so options end where a mode could begin.
    recursive = False
    words: list[str] = []
    reference = False
    ended = False
    for word in call.args:
        bare = known(word)
        if ended or not bare.startswith("-") or bare == "-":
            words.append(word)
        elif bare == "--":
            ended = True
        elif bare.startswith("--"):
            name = bare[2:].partition("=")[0]
            recursive |= len(name) > 2 and "recursive".startswith(name)
            reference |= name.startswith("ref")
        elif re.fullmatch(r"-[Rcfv]+", bare):
            recursive |= "R" in bare
        else:
            words.append(word)
    if not reference and len(words) < 2:
        return ""
    mode = _Mode("" if reference else known(words[0]))
    for word in words if reference else words[1:]:
        _judge_mode(call, word, mode, recursive=recursive)
    return ""


def _judge_mode(call: Call, word: str, mode: _Mode, *, recursive: bool) -> None:
    path = call.path(word)
    shown = plain(word)
    directory = paths.system_directory(path)
    home = bool(directory) and bool(re.match(r"/home|/root|/Users", str(directory)))
    if directory and mode.writable and path not in _TEMPORARY:
        call.report("permissions", "world-writable", f"lets everybody write {shown}")
    elif directory and recursive and not home:
        call.report("permissions", "recursive-mode", f"changes the modes of all of {shown}, a system tree")
    elif directory and recursive and mode.closes:
        call.report("permissions", "recursive-mode", f"takes access away from all of {shown}")
    elif mode.writable and (paths.critical_file(path) or _in_system(path)):
        call.report("permissions", "world-writable", f"lets everybody write {shown}, a system file")
    elif mode.setuid and _SHELLS.search(path):
        call.report("permissions", "setuid", f"makes {shown} run as its owner for everybody")
    elif mode.readable and _KEY.search(path) and not path.endswith((".pub", "config", "authorized_keys")):
        call.report("permissions", "opened-key", f"lets others read {shown}")
    elif mode.writable and paths.secret(path):
        call.report("permissions", "world-writable", f"lets everybody write the secret {shown}")
    elif configuration := paths.agent_configuration(path, whole_folder=recursive):
        call.report("tampering", "mode", f"changes the mode of the agent's or harness's own {configuration}")
    elif paths.device(path) and mode.writable:
        call.report("permissions", "world-writable", f"lets everybody write the device {shown}")


def _in_system(path: str) -> bool:
    return path.startswith(
        ("/etc/", "/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/boot/")
    ) and not path.startswith("/usr/local/share/")


def _chown(call: Call) -> str:
    options = read(call.args, long=("reference", "from"), flags=_LONG)
    recursive = options.has("R", "recursive")
    words = options.operands if options.has("reference") else options.operands[1:]
    owner = "" if options.has("reference") else known(options.operands[0]) if options.operands else ""
    for word in words:
        path = call.path(word)
        directory = paths.system_directory(path)
        whole_home = bool(directory) and bool(
            re.fullmatch(r"/home/[^/]+(?:/.*)?|/root/.+|/Users/[^/]+(?:/.*)?", path)
        )
        if directory and recursive and not whole_home:
            call.report(
                "permissions", "recursive-owner", f"gives all of {plain(word)}, a system tree, another owner"
            )
        elif (paths.critical_file(path) and owner.partition(":")[0] not in ("root", "0", "", "root.")) or (
            directory in ("/", "/etc", "/usr", "/bin", "/sbin", "/boot", "/lib")
            and owner.split(":")[0]
            not in (
                "root",
                "0",
                "",
            )
        ):
            call.report("permissions", "owner", f"gives {plain(word)} another owner")
    return ""


def _setfacl(call: Call) -> str:
    options = read(call.args, short="mMxX", long=("modify", "set", "remove", "restore"))
    recursive = options.has("R", "recursive")
    for word in options.operands:
        if recursive and paths.system_directory(call.path(word)):
            call.report("permissions", "acl", f"changes who may use all of {plain(word)}, a system tree")
    return ""


def _chattr(call: Call) -> str:
    words = [known(word) for word in call.args]
    changes = [
        word
        for word in words
        if re.fullmatch(r"[+=-][a-zA-Z]+", word) and word not in ("-R", "-f", "-V", "-v")
    ]
    for word in call.args:
        path = call.path(word)
        if any("i" in change or "a" in change for change in changes) and (
            paths.critical_file(path) or ("-R" in words and paths.system_directory(path))
        ):
            call.report("permissions", "attributes", f"changes the protection of {plain(word)}")
    return ""


def _setcap(call: Call) -> str:
    words = [known(word) for word in call.args]
    if any("setuid" in word or "all" in word for word in words[:1]) and any(
        _SHELLS.search(word) for word in words
    ):
        call.report("permissions", "setuid", "lets everybody become root through an interpreter")
    return UNKNOWN


def _icacls(call: Call) -> str:
    words = [known(word).lower() for word in call.args]
    if any(re.fullmatch(r"[a-z]:\\?(?:windows.*)?", word) for word in words) and "/t" in words:
        call.report("permissions", "acl", "changes who may use a whole drive")
    return UNKNOWN


HANDLERS: dict[str, Handler] = {
    "chmod": _chmod,
    "gchmod": _chmod,
    "chown": _chown,
    "chgrp": _chown,
    "gchown": _chown,
    "setfacl": _setfacl,
    "chattr": _chattr,
    "setcap": _setcap,
    "icacls": _icacls,
    "takeown": _icacls,
}
