"""Writes: devices, secrets, account files, the agent's own configuration; and the commands that write
files."""

import re

from compass.guardrail import paths
from compass.guardrail.machine import Call, Handler
from compass.guardrail.options import read
from compass.guardrail.words import SECRET, UNKNOWN, known, origins, plain

_CAP = re.compile(
    r"(?:COPPERHEAD|COPPERBENCH|COMPASS|CLAUDE|CLAUDE_CODE|CODEX|GEMINI|AGENT|HARNESS|GUARDRAIL|POLICY|SDLC)_"
    r"(?:\w*(?:MAX|CAP|LIMIT|BUDGET|TURNS|TIMEOUT|QUOTA|DISABLE|BYPASS|SKIP|ALLOW|UNSAFE|GUARD|SANDBOX|"
    r"APPROVAL|POLICY|HOOK|NO_|OFF|YOLO|BRANCH|DEADLINE|CEILING)\w*)$"
)
#: Variables whose value some program runs.
_COMMAND_VARIABLES = frozenset(
    {
        "PROMPT_COMMAND",
        "GIT_EDITOR",
        "GIT_SEQUENCE_EDITOR",
        "GIT_PAGER",
        "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "PAGER",
        "MANPAGER",
        "EDITOR",
        "VISUAL",
        "LESSOPEN",
        "BROWSER",
        "RSYNC_RSH",
    }
)
_INTERPRETER = re.compile(r"/bin/(?:ba|da|z|k)?sh$|/bin/(?:python[\d.]*|perl|ruby|env|find|vim?)$")
_HARMLESS_SSH = re.compile(r"/\.ssh/(?:known_hosts[\w.]*|[^/]*\.pub)$")


def judge(call: Call, path: str, content: str) -> None:
    """Report a write to ``path`` (normalised) if it harms; ``content`` is what is written, as far as
    known."""
    shown = plain(path)
    block = paths.device(path)
    if block:
        call.report("device", "write", f"writes over the device {block}")
    elif paths.kernel_switch(path):
        call.report("device", "kernel", f"pulls a kernel switch: {shown}")
    elif paths.accounts_file(path):
        if any(known(word).startswith((f"{path}.", f"{path}-")) for word in call.args):
            return  # restored from its own backup
        call.report("secret-write", "accounts", f"changes who may log in or become root: {shown}")
    elif path in paths.CRITICAL:
        call.report("secret-write", "system-file", f"overwrites {shown}, which the machine needs to start")
    elif path.startswith("/dev/tcp/") or path.startswith("/dev/udp/"):
        if SECRET in content or SECRET in call.stdin:
            call.report("exfiltration", "socket", f"sends a secret to {shown}")
        elif call.name in ("sh", "bash", "zsh", "dash", "ksh", "exec"):
            call.report("download-run", "remote-shell", f"hands a shell to {shown}")
    elif "ssh" in call.via and path.endswith("/.ssh/authorized_keys"):
        return  # how a public key is put on another host
    elif paths.secret(path) and not _HARMLESS_SSH.search(shown) and not _from_template(call):
        call.report("secret-write", "file", f"writes the secret file {shown}")
    elif configuration := paths.agent_configuration(path):
        call.report("tampering", "write", f"changes the agent's or harness's own {configuration}")


def _from_template(call: Call) -> bool:
    """Whether a copy's source is a published template, as in ``cp .env.example .env``."""
    if call.name not in ("cp", "copy", "install", "cat", "envsubst"):
        return False
    operands = [word for word in call.args if not word.startswith("-")]
    return bool(operands) and paths.template(operands[0])


def _copies(call: Call, short: str, long: str) -> tuple[list[str], str, bool] | None:
    """Sources, target, and whether the target is a folder, of a command with cp's operands."""
    options = read(call.args, short=short, long=long.split())
    sources = options.operands
    target = options.value("t", "target-directory")
    if target is not None:
        return sources, target, True
    if len(sources) < 2:
        return None
    *sources, target = sources
    return sources, target, len(sources) > 1 or target.endswith("/")


def destination(call: Call, source: str, target: str, folder: bool) -> list[str]:
    """The paths a copy of ``source`` may land on: the target, and its name inside the target."""
    inside = target.rstrip("/") + "/" + known(source).rstrip("/").rsplit("/", 1)[-1]
    if folder or call.path(target) in paths.SYSTEM:
        return [inside]
    return [target]


def _cp(call: Call) -> str:
    found = _copies(call, "tSZ", "target-directory suffix sparse reflink preserve backup no-preserve")
    if found:
        sources, target, folder = found
        for source in sources:
            for landing in destination(call, source, target, folder):
                call.write(landing, call.read(source))
        if paths.agent_configuration(call.path(target), whole_folder=True) and folder:
            call.write(target, UNKNOWN)
    return ""


def _install(call: Call) -> str:
    options = read(call.args, short="mogtS", long=("mode", "owner", "group", "target-directory", "suffix"))
    if options.has("d", "directory"):
        return ""
    mode = known(options.value("m", "mode") or "")
    gives = bool(re.fullmatch(r"0?[2467]\d{3}", mode)) or "s" in mode
    if gives and any(_INTERPRETER.search(call.path(word)) for word in options.operands[:1]):
        call.report("permissions", "setuid", "installs a shell that runs as its owner for everybody")
    found = _copies(call, "mogtS", "mode owner group target-directory suffix")
    if found:
        sources, target, folder = found
        for source in sources:
            for landing in destination(call, source, target, folder):
                call.write(landing, call.read(source))
    return ""


def _link(call: Call) -> str:
    found = _copies(call, "tS", "target-directory suffix")
    if found:
        sources, target, folder = found
        for source in sources:
            for landing in destination(call, source, target, folder):
                call.write(landing, call.read(source))
    return ""


def _tee(call: Call) -> str:
    options = read(call.args, long=("output-error",))
    for target in options.operands:
        call.write(target, call.stdin, append=options.has("a", "append"))
    return call.stdin


def _sponge(call: Call) -> str:
    for target in read(call.args).operands:
        call.write(target, call.stdin)
    return ""


def _sed(call: Call) -> str:
    words = call.args
    options = read(words, short="efl", long=("expression", "file", "line-length"))
    scripts = options.all("e", "expression")
    operands = options.operands
    if not scripts and operands:
        scripts, operands = [operands[0]], operands[1:]
    # ``-i.bak`` and ``-ibak`` bundle letters behind the i, so the words are looked at themselves.
    in_place = options.has("in-place") or any(
        re.match(r"-(?:[nErsuz]*)i", known(word)) and not word.startswith("--") for word in words
    )
    for script in scripts:
        _sed_escapes(call, script)
    if in_place:
        for target in operands:
            call.write(target, UNKNOWN)
        return ""
    text = "".join(call.read(target) for target in operands) if operands else call.stdin
    for script in scripts:
        found = re.fullmatch(r"s(.)((?:(?!\1).)*)\1((?:(?!\1).)*)\1g?", script, re.S)
        if found and not re.search(r"[\\.*\[\]^$]", found.group(2)):
            text = text.replace(found.group(2), found.group(3))
        elif UNKNOWN not in text:
            text += UNKNOWN
    return text


def _sed_escapes(call: Call, script: str) -> None:
    """GNU sed's ``e`` command and flag run shell text; its ``w`` writes a file."""
    for found in re.finditer(r"(?:^|[;\n}\d$/])\s*e[ \t]+([^\n]+)", script[:4_000]):
        call.shell(found.group(1), "sed e")
    run = re.fullmatch(
        r"(?:[^s]*)s(.)(?:(?!\1).)*\1((?:(?!\1).)*)\1[gimp0-9]*e[gimp0-9]*", script[:4_000], re.S
    )
    if run:
        call.shell(run.group(2), "sed e")
    for found in re.finditer(r"(?:^|[;\n/\d$])\s*[gimp]*w[ \t]+([^\n;]+)", script[:4_000]):
        call.write(found.group(1).strip(), UNKNOWN)


def _truncate(call: Call) -> str:
    options = read(call.args, short="sr", long=("size", "reference"))
    for target in options.operands:
        call.write(target, "")
    return ""


def _dd(call: Call) -> str:
    operands = dict(known(word).split("=", 1) for word in call.args if "=" in word)
    source, target = operands.get("if"), operands.get("of")
    content = call.read(source) if source else call.stdin
    if target:
        call.write(target, content)
        return ""
    return content


def _patch(call: Call) -> str:
    options = read(call.args, short="pidoBzrDFV", long=("input", "output", "strip", "directory"))
    for target in options.operands[:1]:
        call.write(target, UNKNOWN)
    for target in re.findall(r"^\+\+\+ (?:b/)?(\S+)", call.stdin, re.M):
        call.write(target, UNKNOWN)
    return ""


def _editor(call: Call) -> str:
    """Editors driven from a script or a here-document."""
    options = read(call.args, short="cesS", long=("cmd",), permute=True)
    commands = options.all("c", "cmd") + [word[1:] for word in call.args if word.startswith("+")]
    for command in [*commands, *call.stdin.splitlines()[:200]]:
        shelled = re.match(r"\s*:?(?:silent!?\s+|%|\d+,?\d*)*!\s*(.+)", command)
        if shelled:
            call.shell(shelled.group(1), call.name)
    if commands or call.stdin or call.name in ("ed", "ex"):
        for target in options.operands:
            if not target.startswith("+"):
                call.write(target, UNKNOWN)
    return ""


def _export(call: Call) -> str:
    """``export NAME=value`` and its kin; also asked about plain assignments."""
    options = read(call.args)
    for word in options.operands:
        name, equals, value = word.partition("=")
        if not equals:
            continue
        call.state.values[name.rstrip("+")] = value
        if _CAP.match(known(name)) and call.state.mounts is None:
            call.report("tampering", "cap", f"changes a cap or switch of the agent or harness: {known(name)}")
        if name in _COMMAND_VARIABLES:
            call.shell(value, name)
        if (name in ("HISTFILE",) and value in ("/dev/null", "")) or (
            name in ("HISTSIZE", "HISTFILESIZE") and value == "0"
        ):
            call.report("tampering", "history", "switches the shell's history off")
    if not options.operands and (call.name != "export" or options.has("p")):
        return SECRET + UNKNOWN
    return ""


def _unset(call: Call) -> str:
    for name in read(call.args).operands:
        call.state.values[known(name)] = ""
        if _CAP.match(known(name)):
            call.report("tampering", "cap", f"removes a cap or switch of the agent or harness: {known(name)}")
        if known(name) == "HISTFILE":
            call.report("tampering", "history", "switches the shell's history off")
    return ""


def _history(call: Call) -> str:
    if read(call.args, short="danrwps").has("c") or any(known(word) == "-c" for word in call.args):
        call.report("tampering", "history", "clears the shell's history")
    return UNKNOWN


def _accounts(call: Call) -> str:
    """Commands that write the account files."""
    words = [known(word) for word in call.args]
    options = read(
        call.args, short="ubdefgGkKpsRP", long=("uid", "password", "groups", "gid", "shell", "home-dir")
    )
    if call.name in ("chpasswd", "vipw", "vigr") and "--help" not in words:
        call.report("secret-write", "accounts", f"{call.name} rewrites the account files")
    elif call.name in ("useradd", "usermod", "adduser") and options.value("u", "uid") == "0":
        call.report("secret-write", "accounts", "makes an account with root's user id")
    elif call.name == "usermod" and "root" in words and options.has("p", "password", "U", "unlock"):
        call.report("secret-write", "accounts", "sets root's password")
    elif (
        call.name == "passwd"
        and "root" in words
        and any(w in ("-d", "--delete", "-u", "--unlock") for w in words)
    ):
        call.report("secret-write", "accounts", "opens root's account")
    elif call.name == "visudo" and not options.has("c", "check"):
        call.report("secret-write", "accounts", "edits the sudo rules")
    return UNKNOWN


def _sort(call: Call) -> str:
    options = read(call.args, short="okStT", long=("output",))
    target = options.value("o", "output")
    content = "".join(call.read(word) for word in options.operands) or call.stdin
    if target:
        call.write(target, content)
        return ""
    return content


def _agent(call: Call) -> str:
    """Coding agents started with their own brakes off."""
    words = [known(word) for word in call.args]
    brakes = re.compile(
        r"--(?:dangerously[\w-]*|yolo|full-auto-no-sandbox|no-sandbox|disable-sandbox|skip-permissions|"
        r"bypass-permissions|trust-all-tools|allow-all-tools|allow-all|auto-approve-everything)$"
    )
    if any(brakes.match(word) for word in words) or "bypassPermissions" in " ".join(words):
        call.report("tampering", "brakes-off", f"starts {call.name} with its permission checks off")
    elif call.name == "codex" and (
        "danger-full-access" in " ".join(words) or ("-a" in words and "never" in words and "-s" in words)
    ):
        call.report("tampering", "brakes-off", "starts codex with full access and no approval")
    elif words[:1] == ["config"] and words[1:2] in (["set"], ["add"], ["remove"], ["unset"]):
        call.report("tampering", "write", f"changes {call.name}'s own configuration")
    return UNKNOWN


def _archive(call: Call) -> str:
    """tar: hooks that run commands, sources that vanish, and what an archive carries."""
    options = read(
        call.args,
        short="fCTXbIgKLNV",
        long=(
            "checkpoint-action",
            "to-command",
            "use-compress-program",
            "rsh-command",
            "info-script",
            "new-volume-script",
            "file",
            "directory",
            "checkpoint",
        ),
        flags=("remove-files", "create", "extract", "exclude", "list"),
    )
    for action in options.all("checkpoint-action"):
        if known(action).startswith("exec="):
            call.shell(action[5:], "tar --checkpoint-action")
    for command in options.all(
        "to-command", "use-compress-program", "I", "info-script", "new-volume-script", "rsh-command"
    ):
        call.shell(command, "tar")
    operands = options.operands
    if (
        operands
        and re.fullmatch(r"[AcdrtuxfvzjJpShkOPZa]+", known(operands[0]))
        and not call.args[0].startswith("-")
    ):
        letters = known(operands[0])
        operands = operands[1:]
        if "f" in letters and operands:
            options.values.setdefault("f", []).append(operands[0])
            operands = operands[1:]
    folder = options.value("C", "directory")
    if folder is not None:
        operands = [word if word.startswith("/") else f"{folder}/{word}" for word in operands]
    content = "".join(origins(call.read(word)) for word in operands)
    content += SECRET if any(paths.secret(call.path(word)) for word in operands) else ""
    if options.has("remove-files"):
        for word in operands:
            call.machine.handlers["rm"](_as_removal(call, word))
    target = options.value("f", "file")
    creating = options.has("c", "create", "r", "u") or (
        call.args and "c" in known(call.args[0]).lstrip("-")[:6]
    )
    if target and target != "-" and creating:
        call.write(target, content + UNKNOWN)
        return ""
    return content + origins(call.stdin) + UNKNOWN


def _as_removal(call: Call, word: str) -> Call:
    return Call(call.machine, call.state, ["rm", "-rf", "--", word], "", call.span, (*call.via, call.name))


def _zip(call: Call) -> str:
    options = read(call.args, short="PtbniO", single=False)
    archive, *members = options.operands or [""]
    carried = SECRET if any(paths.secret(call.path(word)) for word in members) else ""
    if archive and archive != "-":
        call.write(archive, carried + UNKNOWN)
        return ""
    return carried + UNKNOWN


HANDLERS: dict[str, Handler] = {
    "cp": _cp,
    "copy": _cp,
    "install": _install,
    "ln": _link,
    "tee": _tee,
    "sponge": _sponge,
    "sed": _sed,
    "gsed": _sed,
    "truncate": _truncate,
    "dd": _dd,
    "dcfldd": _dd,
    "dc3dd": _dd,
    "patch": _patch,
    "vim": _editor,
    "vi": _editor,
    "nvim": _editor,
    "ex": _editor,
    "ed": _editor,
    "emacs": _editor,
    "export": _export,
    "declare": _export,
    "typeset": _export,
    "local": _export,
    "readonly": _export,
    "unset": _unset,
    "history": _history,
    "sort": _sort,
    "chpasswd": _accounts,
    "vipw": _accounts,
    "vigr": _accounts,
    "useradd": _accounts,
    "usermod": _accounts,
    "adduser": _accounts,
    "passwd": _accounts,
    "visudo": _accounts,
    "claude": _agent,
    "codex": _agent,
    "gemini": _agent,
    "cursor-agent": _agent,
    "copilot": _agent,
    "aider": _agent,
    "opencode": _agent,
    "qwen": _agent,
    "amp": _agent,
    "copperhead": _agent,
    "goose": _agent,
    "tar": _archive,
    "bsdtar": _archive,
    "gtar": _archive,
    "zip": _zip,
    "7z": _zip,
    "7za": _zip,
}
