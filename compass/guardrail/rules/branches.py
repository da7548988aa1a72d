"""git: forced pushes, hard resets, deletions and rewrites of protected branches; hooks and their settings."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from compass.guardrail import paths
from compass.guardrail.machine import Call, Handler
from compass.guardrail.options import read
from compass.guardrail.words import BRACKET, QUESTION, SECRET, STAR, UNKNOWN, known, plain

#: Branches that nobody rewrites, unless the caller names others.
PROTECTED = ("main", "master", "release", "production", "prod", "develop", "staging", "release/*")

_GLOBAL_VALUES = {
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--super-prefix",
    "--config-env",
    "--attr-source",
}
_PUSH_LONG = ("repo", "receive-pack", "exec", "push-option", "recurse-submodules", "signed")
_PUSH_FLAGS = (
    "force",
    "force-with-lease",
    "force-if-includes",
    "delete",
    "mirror",
    "all",
    "branches",
    "tags",
    "prune",
    "set-upstream",
    "dry-run",
    "follow-tags",
    "no-verify",
    "atomic",
    "porcelain",
    "quiet",
    "verbose",
    "progress",
    "thin",
    "ipv4",
    "ipv6",
    "verify",
    "no-force",
    "no-force-with-lease",
)
#: git refuses longer names where they become file names.
_LONGEST_REF = 255
#: Folders of hooks that a repository keeps under version control.
_TRACKED_HOOKS = re.compile(r"(?:\./)?(?:[\w-]+/)*\.?(?:git-?)?hooks/?|\.husky(?:/_)?/?")
_AS_PATTERN = re.compile(rf"[{STAR}{QUESTION}{BRACKET}*?\[]")


def is_protected(branch: str, patterns: tuple[str, ...]) -> bool:
    """Whether ``branch`` (short name) matches one of ``patterns``."""
    return any(fnmatchcase(branch, pattern) for pattern in patterns)


def _short(ref: str) -> str:
    """A ref as a short branch name; ``refs/tags/x`` stays long, so that it never looks like a branch."""
    ref = known(ref)
    for prefix in ("refs/heads/", "heads/"):
        if ref.startswith(prefix):
            return ref[len(prefix) :]
    return ref


def _named(call: Call, ref: str) -> bool:
    """Whether ``ref`` is, or as a pattern takes in, a protected branch."""
    name = _short(ref)
    if name in ("HEAD", "@", ""):
        return call.state.branch is not None and call.machine.protected(call.state.branch)
    if len(name) > _LONGEST_REF:
        return False
    if _AS_PATTERN.search(name):
        shown = plain(name)
        return any(
            fnmatchcase(branch, shown)
            for branch in ("main", "master", "release/1.0", "production", "develop")
        )
    return call.machine.protected(name)


def _git(call: Call) -> str:
    words = call.args
    at = 0
    aliases: dict[str, str] = {}
    while at < len(words) and words[at].startswith("-"):
        word = known(words[at])
        at += 1
        value = ""
        name, equals, attached = word.partition("=")
        if name in _GLOBAL_VALUES and not (equals and word.startswith("--")):
            value = words[at] if at < len(words) else ""
            at += 1
        elif equals:
            value = attached
        if name in ("-c", "--config-env"):
            _setting(call, value, aliases)
    if at >= len(words):
        return UNKNOWN
    verb, args = known(words[at]), words[at + 1 :]
    if verb in aliases:
        alias = aliases[verb]
        if alias.startswith("!"):
            return call.shell(alias[1:] + " " + " ".join(args), "git alias")
        return call.run(["git", *alias.split(), *args], "git alias")
    rule = _VERBS.get(verb)
    if rule is not None:
        rule(call, args)
    return UNKNOWN


def _setting(call: Call, value: str, aliases: dict[str, str]) -> None:
    """``-c name=value`` for one command: aliases are followed, hooks and commands looked at."""
    name, _, setting = value.partition("=")
    lowered = known(name).lower()
    if lowered.startswith("alias."):
        aliases[known(name)[6:]] = setting
    elif lowered == "core.hookspath":
        call.report("tampering", "hooks", "turns the repository's hooks off or elsewhere")
    elif lowered in (
        "core.pager",
        "core.editor",
        "core.sshcommand",
        "core.fsmonitor",
        "sequence.editor",
        "diff.external",
    ):
        call.shell(setting, f"git -c {lowered}")


def _push(call: Call, args: list[str]) -> None:
    options = read(args, short="o", long=_PUSH_LONG, flags=_PUSH_FLAGS)
    if options.has("n", "dry-run", "help"):
        return
    lease = options.has("force-with-lease")
    force = options.has("f", "force") or lease
    refs = options.operands[1:] if not options.has("repo") else options.operands
    if options.has("mirror"):
        call.report("force-push", "mirror", "push --mirror overwrites and deletes every branch of the remote")
        return
    if options.has("d", "delete"):
        for ref in refs:
            if _named(call, ref):
                call.report(
                    "force-push", "delete", f"deletes the protected branch {_short(ref)} on the remote"
                )
        return
    if force and options.has("all", "branches"):
        call.report("force-push", "all", "forces every branch, the protected ones among them")
        return
    if options.has("prune") and not refs:
        call.report("force-push", "prune", "push --prune deletes remote branches that are not here")
        return
    for ref in refs:
        _refspec(call, known(ref), force=force)
    if force and not refs and not options.has("tags"):
        _bare(call, lease=lease and not options.has("f", "force"))


def _refspec(call: Call, ref: str, *, force: bool) -> None:
    plus = ref.startswith("+")
    source, colon, target = ref.lstrip("+").partition(":")
    target = target if colon else source
    if colon and not source and target:
        if _named(call, target):
            call.report(
                "force-push", "delete", f"deletes the protected branch {_short(target)} on the remote"
            )
    elif (plus or force) and _named(call, target):
        shown = call.state.branch if _short(target) in ("HEAD", "@") else plain(_short(target))
        call.report("force-push", "force", f"forces the protected branch {shown} on the remote")


def _bare(call: Call, *, lease: bool) -> None:
    """A forced push that names no branch pushes the current one."""
    branch = call.state.branch
    if branch is None and not lease:
        call.report(
            "force-push", "unnamed", "forces a branch it does not name, which may be a protected one; name it"
        )
    elif branch is not None and call.machine.protected(branch):
        call.report("force-push", "force", f"forces the protected branch {branch} on the remote")


def _on_protected(call: Call) -> str | None:
    branch = call.state.branch
    return branch if branch is not None and call.machine.protected(branch) else None


def _reset(call: Call, args: list[str]) -> None:
    options = read(
        args, long=("pathspec-from-file",), flags=("hard", "soft", "mixed", "merge", "keep", "quiet", "patch")
    )
    branch = _on_protected(call)
    if options.has("hard") and branch:
        call.report(
            "hard-reset", "reset", f"resets the protected branch {branch} hard: commits and changes are lost"
        )


def _branch(call: Call, args: list[str]) -> None:
    options = read(
        args,
        short="u",
        long=("set-upstream-to", "sort", "format", "points-at", "contains", "merged"),
        flags=("delete", "force", "move", "copy", "remotes", "list", "all", "track"),
    )
    forced = options.has("f", "force")
    deletes = options.has("D") or options.has("d", "delete")
    names = options.operands
    if options.has("r", "remotes"):
        return
    if deletes:
        for name in names:
            if _named(call, name):
                call.report("hard-reset", "delete", f"deletes the protected branch {_short(name)}")
    elif options.has("M") or (options.has("m", "move") and forced) or options.has("C"):
        if names and _named(call, names[-1]) and len(names) > 1:
            call.report("hard-reset", "overwrite", f"overwrites the protected branch {_short(names[-1])}")
        elif len(names) > 1 and _named(call, names[0]) and not options.has("C"):
            call.report("hard-reset", "rename", f"renames the protected branch {_short(names[0])}")
    elif forced and names and _named(call, names[0]):
        call.report("hard-reset", "move", f"moves the protected branch {_short(names[0])} to another commit")


def _switch(call: Call, args: list[str]) -> None:
    options = read(
        args, short="bBcC", long=("orphan", "create", "force-create", "conflict"), flags=("detach", "track")
    )
    forced = options.value("B", "C", "force-create")
    made = options.value("b", "c", "create", "orphan")
    if forced is not None:
        if _named(call, forced):
            call.report(
                "hard-reset", "move", f"moves the protected branch {_short(forced)} to another commit"
            )
        call.state.branch = _short(forced)
    elif made is not None:
        call.state.branch = _short(made)
    elif options.operands and "--" not in args and not options.has("detach", "d"):
        target = known(options.operands[0])
        if len(options.operands) == 1 and not re.match(r"[.\-]|.*\.\w+$", target):
            call.state.branch = target.removeprefix("origin/")


def _update_ref(call: Call, args: list[str]) -> None:
    options = read(args, short="m", flags=("no-deref", "stdin", "create-reflog"))
    refs = options.operands[:1]
    refs += re.findall(r"^(?:update|delete|create|set)\s+(\S+)", call.stdin, re.M)
    for ref in refs:
        if known(ref).startswith("refs/heads/") and _named(call, ref):
            call.report(
                "hard-reset",
                "update-ref",
                f"moves or deletes the protected branch {_short(ref)} behind git's back",
            )


def _rewrite(call: Call, args: list[str]) -> None:
    words = [known(word) for word in args]
    for flag in (
        "--tree-filter",
        "--index-filter",
        "--msg-filter",
        "--env-filter",
        "--commit-filter",
        "--setup",
    ):
        for index, word in enumerate(words[:-1]):
            if word == flag:
                call.shell(words[index + 1], f"filter-branch {flag}")
    branch = _on_protected(call)
    every = "--all" in words or "--branches" in words
    tail = words[words.index("--") + 1 :] if "--" in words else words[-1:]
    named = [word for word in tail if not word.startswith("-") and call.machine.protected(_short(word))]
    if call.args and "filter-repo" in map(known, call.args) and "--refs" not in words:
        every = True
    if every or named or (branch and not any(not word.startswith("-") and "/" in word for word in tail)):
        call.report(
            "hard-reset",
            "rewrite",
            f"rewrites the history of {named[0] if named else branch or 'every branch'}",
        )


def _fetch(call: Call, args: list[str]) -> None:
    options = read(
        args, short="oj", long=("upload-pack", "depth", "jobs", "server-option", "refmap", "deepen")
    )
    for word in options.all("upload-pack"):
        call.shell(word, "git --upload-pack")
    for ref in options.operands[1:]:
        target = known(ref).lstrip("+").partition(":")[2]
        if (
            target
            and known(ref).startswith("+")
            and _named(call, target)
            and not target.startswith("refs/remotes/")
        ):
            call.report(
                "hard-reset", "move", f"moves the protected branch {_short(target)} to another commit"
            )


def _config(call: Call, args: list[str]) -> None:
    options = read(
        args,
        short="f",
        long=("file", "blob", "type", "default", "comment", "value"),
        flags=(
            "get",
            "unset",
            "unset-all",
            "global",
            "system",
            "local",
            "add",
            "replace-all",
            "list",
            "get-all",
            "get-regexp",
            "remove-section",
            "edit",
            "worktree",
        ),
    )
    words = [known(word) for word in options.operands]
    if words[:1] == ["set"] or words[:1] == ["unset"]:
        words = words[1:]
        setting = True
    else:
        setting = len(words) > 1 or options.has("unset", "unset-all", "add", "replace-all")
    if not words or options.has("get", "get-all", "get-regexp", "list", "l") or words[0] in ("get", "list"):
        return
    name = words[0].lower()
    if setting and name in (
        "core.hookspath",
        "core.fsmonitor",
        "core.sshcommand",
        "core.pager",
        "core.editor",
    ):
        if name == "core.hookspath" and len(words) > 1 and _TRACKED_HOOKS.fullmatch(words[1]):
            return
        if name == "core.hookspath":
            call.report("tampering", "hooks", "turns the repository's hooks off or elsewhere")
        elif len(words) > 1:
            call.shell(words[1], f"git config {name}")
    elif setting and name.startswith("alias.") and len(words) > 1 and words[1].startswith("!"):
        call.shell(words[1][1:], "git alias")


def _clean(call: Call, args: list[str]) -> None:
    options = read(args, short="e", long=("exclude",), flags=("force", "dry-run", "interactive"))
    if options.has("n", "dry-run") or not options.has("f", "force"):
        return
    for word in options.operands:
        if directory := paths.system_directory(call.path(word)):
            call.report("recursive-delete", "git-clean", f"cleans {directory} away")


def _runs(flag: str) -> Callable[[Call, list[str]], None]:
    """Subcommands that run shell text given after ``flag`` or as their operands."""

    def rule(call: Call, args: list[str]) -> None:
        words = [known(word) for word in args]
        if flag == "exec":
            options = read(args, short="xsXC", long=("exec", "strategy", "onto", "strategy-option"))
            for text in options.all("x", "exec"):
                call.shell(text, "git rebase --exec")
        elif flag in words:
            rest = args[words.index(flag) + 1 :]
            rest = rest[1:] if rest and known(rest[0]) in ("--recursive", "--quiet") else rest
            if len(rest) == 1:
                call.shell(rest[0], f"git {flag}")
            elif rest:
                call.run(rest, f"git {flag}")

    return rule


def _remote_helper(call: Call, args: list[str]) -> None:
    """``git clone ext::sh -c …`` runs a command of the address's choice."""
    for word in args:
        if known(word).startswith("ext::"):
            call.shell(known(word)[5:].replace("% ", " "), "git ext::")
    options = read(args, short="uboc", long=("upload-pack", "config", "branch", "depth"))
    for text in options.all("u", "upload-pack"):
        call.shell(text, "git --upload-pack")


def _remove(call: Call, args: list[str]) -> None:
    options = read(args)
    if not options.has("cached"):
        for word in options.operands:
            if configuration := paths.agent_configuration(call.path(word), whole_folder=options.has("r")):
                call.report("tampering", "delete", f"deletes the agent's or harness's own {configuration}")


_VERBS: dict[str, Callable[[Call, list[str]], None]] = {
    "push": _push,
    "send-pack": _push,
    "reset": _reset,
    "branch": _branch,
    "checkout": _switch,
    "switch": _switch,
    "update-ref": _update_ref,
    "filter-branch": _rewrite,
    "filter-repo": _rewrite,
    "fetch": _fetch,
    "pull": _fetch,
    "config": _config,
    "clean": _clean,
    "bisect": _runs("run"),
    "submodule": _runs("foreach"),
    "rebase": _runs("exec"),
    "clone": _remote_helper,
    "ls-remote": _remote_helper,
    "rm": _remove,
}


def _gh(call: Call) -> str:
    words = [known(word) for word in call.args]
    joined = " ".join(words)
    if words[:1] == ["api"] and re.search(r"(?:-X|--method)[ =]?(?:DELETE|PATCH)", joined):
        found = re.search(r"git/refs/heads/([\w./-]+)", joined)
        if (
            found
            and call.machine.protected(found.group(1))
            and ("DELETE" in joined or "force=true" in joined)
        ):
            call.report(
                "force-push",
                "delete",
                f"deletes or forces the protected branch {found.group(1)} on the remote",
            )
        if re.search(r"branches/[\w./-]+/protection", joined) and "DELETE" in joined:
            call.report("force-push", "protection", "takes a branch's protection away")
    elif words[:2] == ["gist", "create"]:
        if SECRET in call.stdin:
            call.report("exfiltration", "publish", "publishes a secret")
        for word in call.args[2:]:
            if paths.secret(call.path(word)):
                call.report("exfiltration", "publish", f"publishes the secret {plain(word)}")
    elif words[:2] == ["repo", "delete"]:
        call.report("force-push", "repository", "deletes the remote repository with all its branches")
    return UNKNOWN


HANDLERS: dict[str, Handler] = {"git": _git, "gh": _gh, "hub": _git}
