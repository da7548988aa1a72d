"""Commands that run other commands: privilege, environment, time and place wrappers, shells, eval, xargs,
ssh, docker."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compass.guardrail import paths
from compass.guardrail.machine import Call, Handler, State, positional
from compass.guardrail.options import Options, read
from compass.guardrail.rules.code import program
from compass.guardrail.words import DECODED, REMOTE, SECRET, UNKNOWN, known, plain


@dataclass(frozen=True, slots=True)
class _Form:
    """How a wrapper's own words end: options with values, operands before the command, leading
    assignments."""

    short: str = ""
    long: tuple[str, ...] = ()
    operands: int = 0
    assignments: bool = False


_FORMS = {
    "sudo": _Form(
        "ugphCrtTUDR",
        (
            "user",
            "group",
            "prompt",
            "host",
            "close-from",
            "role",
            "type",
            "other-user",
            "chdir",
            "chroot",
            "command-timeout",
        ),
        assignments=True,
    ),
    "doas": _Form("uC"),
    "nohup": _Form(),
    "setsid": _Form(),
    "nice": _Form("n", ("adjustment",)),
    "ionice": _Form("cnpPu", ("class", "classdata", "pid")),
    "chrt": _Form("pTPD", operands=1),
    "taskset": _Form("", operands=1),
    "timeout": _Form("ks", ("kill-after", "signal"), operands=1),
    "gtimeout": _Form("ks", ("kill-after", "signal"), operands=1),
    "stdbuf": _Form("ioe", ("input", "output", "error")),
    "unbuffer": _Form(),
    "command": _Form(),
    "builtin": _Form(),
    "exec": _Form("a"),
    "time": _Form("fo", ("format", "output")),
    "gtime": _Form("fo", ("format", "output")),
    "chroot": _Form("", ("userspec", "groups"), operands=1),
    "fakeroot": _Form("lsib"),
    "proot": _Form("rbwqk"),
    "eatmydata": _Form(),
    "torify": _Form(),
    "torsocks": _Form(),
    "proxychains": _Form("f"),
    "proxychains4": _Form("f"),
    "caffeinate": _Form("tw"),
    "strace": _Form("eopPsaIbEuX"),
    "ltrace": _Form("eopsaulnxF"),
    "unshare": _Form("SGRw", ("map-user", "root", "wd", "setuid")),
    "nsenter": _Form("tSGrw", ("target", "setuid", "setgid", "root", "wd")),
    "setpriv": _Form("", ("reuid", "regid", "groups", "inh-caps", "bounding-set", "ambient-caps")),
    "runcon": _Form("turl", operands=1),
    "systemd-run": _Form(
        "puHMtE",
        (
            "unit",
            "property",
            "uid",
            "gid",
            "nice",
            "working-directory",
            "setenv",
            "on-active",
            "on-calendar",
            "description",
            "slice",
            "machine",
        ),
    ),
    "systemd-inhibit": _Form("", ("what", "who", "why", "mode")),
    "firejail": _Form(),
    "bwrap": _Form(),
    "pkexec": _Form("", ("user",)),
    "flock": _Form("wE", ("timeout", "wait", "conflict-exit-code"), operands=1),
    "watch": _Form("nq", ("interval", "equexit")),
    "xvfb-run": _Form("enfs", ("error-file", "server-num", "auth-file", "server-args")),
    "dbus-run-session": _Form(),
    "prlimit": _Form("p"),
    "numactl": _Form("CmNiplw"),
    "cpulimit": _Form("lpe"),
    "catchsegv": _Form(),
    "rlwrap": _Form("acCDfHlOpsStw"),
    "start-stop-daemon": _Form(
        "xnupsRcgdNPIk", ("exec", "startas", "name", "user", "pidfile", "chuid", "chdir")
    ),
    "chpst": _Form("ueUbcdflmnopr"),
    "setuidgid": _Form("", operands=1),
    "gosu": _Form("", operands=1),
    "su-exec": _Form("", operands=1),
    "setarch": _Form("", operands=1),
    "linux32": _Form(),
    "linux64": _Form(),
    "faketime": _Form("fm", operands=1),
    "perf": _Form("eo", operands=1),
    "valgrind": _Form(),
    "gdb": _Form("xp"),
    "entr": _Form(),
    "parallel": _Form("jNLnSaIdCkPs", ("jobs", "arg-file", "delay", "colsep")),
    "winpty": _Form(),
    "tsocks": _Form(),
    "daemonize": _Form("acelopu"),
    "dtach": _Form("AcenNrpz"),
    "ld.so": _Form("", ("library-path",)),
    "ld-linux-x86-64.so.2": _Form("", ("library-path",)),
    "direnv": _Form("", operands=2),
    "poetry": _Form("", operands=1),
    "uv": _Form("", operands=1),
    "pipenv": _Form("", operands=1),
    "npx": _Form("pc", ("package", "call")),
    "bunx": _Form(),
    "hyperfine": _Form("wrmMnPi", ("warmup", "runs")),
    "script": _Form("cTBEIOmo", ("command",)),
    "nocache": _Form(),
    "sem": _Form("jn"),
    "ts": _Form(),
    "schroot": _Form("cdup", ("chroot", "directory", "user")),
    "mise": _Form("", operands=1),
}


def _wrapper(call: Call) -> str:  # noqa: PLR0912
    form = _FORMS[call.name]
    options = read(call.args, short=form.short, long=form.long, permute=False)
    if call.name == "sudo" and options.has("l", "list", "v", "k", "V", "h"):
        return UNKNOWN
    if call.name == "sudo" and options.has("e", "edit"):
        for word in options.operands:
            call.write(word, UNKNOWN)
        return ""
    if call.name == "command" and options.has("v", "V"):
        return f"/usr/bin/{known(options.operands[0])}" if options.operands else UNKNOWN
    for text in options.all("command", "call") + (
        options.all("c") if call.name in ("script", "npx", "flock") else []
    ):
        return call.shell(text, call.name)
    words = options.operands
    if form.assignments:
        words = _assignments(call, words)
    words = words[form.operands :]
    if call.name == "sudo" and options.has("i", "s", "login", "shell") and not words:
        return call.shell(call.stdin, "sudo -s")
    if call.name == "start-stop-daemon":
        words = [*options.all("x", "exec", "startas"), *words]
    while words and known(words[0]) == "--":
        words = words[1:]
    if not words:
        return call.stdin or UNKNOWN
    if call.name in ("watch", "sem", "parallel") and len(words) == 1:
        return call.shell(words[0], call.name)
    if call.name == "parallel":
        return _parallel(call, words)
    if call.name == "flock" and known(words[0]) == "-c" and len(words) > 1:
        return call.shell(words[1], "flock -c")
    return call.run(words, call.name)


def _assignments(call: Call, words: Sequence[str]) -> list[str]:
    """Leading ``NAME=value`` words, as sudo and env take them."""
    at = 0
    while at < len(words) and re.match(r"[A-Za-z_]\w*=", words[at]):
        call.machine.handlers["export"](
            Call(call.machine, call.state, ["export", words[at]], "", call.span, call.via)
        )
        at += 1
    return list(words[at:])


def _parallel(call: Call, words: list[str]) -> str:
    joined = " ".join(words)
    for marker in (" ::: ", " :::+ ", " :::: "):
        if marker in joined:
            template, _, values = joined.partition(marker)
            for value in values.split()[:8]:
                call.shell(
                    template.replace("{}", value) if "{}" in template else f"{template} {value}", "parallel"
                )
            return UNKNOWN
    for line in call.stdin.splitlines()[:8] or [UNKNOWN]:
        call.shell(joined.replace("{}", line) if "{}" in joined else f"{joined} {line}", "parallel")
    return UNKNOWN


def _env(call: Call) -> str:
    options = read(
        call.args,
        short="uCSP",
        long=("unset", "chdir", "split-string"),
        flags=("ignore-environment", "null", "debug"),
        permute=False,
    )
    for text in options.all("S", "split-string"):
        # The rest of the words follow what -S was split into.
        return call.shell(text + " " + " ".join(map(_requote, options.operands)), "env -S")
    words = _assignments(call, options.operands)
    if not words:
        return UNKNOWN if options.has("i", "ignore-environment") else SECRET + UNKNOWN
    return call.run(words, "env")


def _requote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _busybox(call: Call) -> str:
    words = call.args
    return call.run(words, call.name) if words and not words[0].startswith("-") else UNKNOWN


# --- Shells
# -----------------------------------------------------------------------------------------------------


def _shell(call: Call) -> str:  # noqa: PLR0912
    words = call.args
    text: str | None = None
    at = 0
    reads_input = False
    while at < len(words) and words[at][:1] in "-+" and len(words[at]) > 1:
        word = known(words[at])
        at += 1
        if word == "--":
            break
        if word.startswith("--"):
            if word in ("--rcfile", "--init-file"):
                at += 1
            elif word in ("--command",):
                text = words[at] if at < len(words) else ""
                at += 1
            elif word in ("--version", "--help"):
                return UNKNOWN
            continue
        letters = word[1:]
        if "n" in letters and word[0] == "-" and "c" not in letters:
            return UNKNOWN
        if "n" in letters and word[0] == "-":
            return UNKNOWN
        reads_input |= "s" in letters
        if letters[-1:] in ("o", "O"):
            at += 1
        if "c" in letters:
            while at < len(words) and re.match(r"[-+]\w", words[at]):
                if words[at] == "-n":
                    return UNKNOWN
                at += 2 if words[at] in ("-o", "+o", "-O", "+O") else 1
            text = words[at] if at < len(words) else ""
            at += 1
    rest = words[at:]
    if rest and known(rest[0]) == "-" and text is None:
        rest = rest[1:]
    if text is not None:
        return _inside(call, text, rest, f"{call.name} -c", call.stdin)
    if not rest or reads_input:
        return _inside(call, call.stdin, ["", *rest], f"{call.name} (input)", "")
    script = rest[0]
    if script.startswith("/dev/fd/63") and REMOTE in script:
        call.report(
            "download-run", "remote-code", f"has {call.name} run text that was fetched over the network"
        )
        return UNKNOWN
    if known(script) in ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"):
        return _inside(call, call.stdin, ["", *rest[1:]], f"{call.name} (input)", "")
    return _inside(call, call.read(script), rest, f"{call.name} {plain(script)}", call.stdin)


def _inside(call: Call, text: str, args: Sequence[str], via: str, stdin: str) -> str:
    """Run shell text in a child shell with its positional parameters."""
    if REMOTE in text and not known(text).strip(" \n" + UNKNOWN):
        call.report(
            "download-run", "remote-code", f"has {call.name} run text that was fetched over the network"
        )
        return REMOTE + UNKNOWN
    inner = call.state.subshell()
    if args[1:]:
        positional(inner.values, list(args[1:]))
    if args and args[0]:
        inner.values["0"] = args[0]
    return call.shell(text, via, stdin, inner)


def _eval(call: Call) -> str:
    text = " ".join(call.args)
    if REMOTE in text and not known(text).strip(" \n" + UNKNOWN):
        call.report("download-run", "remote-code", "evaluates text that was fetched over the network")
        return UNKNOWN
    return call.shell(text, "eval", call.stdin)


def _source(call: Call) -> str:
    if not call.args:
        return ""
    script = call.args[0]
    if script.startswith("/dev/fd/63") and REMOTE in script:
        call.report("download-run", "remote-code", "sources text that was fetched over the network")
        return ""
    if known(script) == "/dev/stdin":
        return call.shell(call.stdin, "source")
    text = call.read(script)
    if REMOTE in text and not known(text).strip(" \n" + UNKNOWN):
        call.report("download-run", "remote-code", "sources a file that was fetched over the network")
        return ""
    return (
        call.shell(text, "source")
        if text.replace(UNKNOWN, "") and paths.secret(call.path(script)) is None
        else UNKNOWN
    )


def _trap(call: Call) -> str:
    operands = [word for word in call.args if word not in ("-l", "-p", "--")]
    if len(operands) > 1 and operands[0] not in ("", "-"):
        call.shell(operands[0], "trap")
    return ""


def _alias(call: Call) -> str:
    for word in call.args:
        name, equals, text = word.partition("=")
        if equals:
            call.shell(text, f"alias {plain(name)}")
    return ""


def _su(call: Call) -> str:
    options = read(
        call.args, short="cgGsw", long=("command", "shell", "group", "session-command"), permute=True
    )
    for text in options.all("c", "command", "session-command"):
        return call.shell(text, call.name)
    if call.name == "runuser" and options.has("u"):
        return call.run(options.operands[1:], call.name) if len(options.operands) > 1 else UNKNOWN
    if call.name == "sg" and len(options.operands) > 1:
        return call.shell(options.operands[-1], "sg")
    return call.shell(call.stdin, call.name) if call.stdin else UNKNOWN


def _xargs(call: Call) -> str:
    options = read(
        call.args,
        short="adEeILlnPsi",
        long=(
            "arg-file",
            "delimiter",
            "eof",
            "replace",
            "max-lines",
            "max-args",
            "max-procs",
            "max-chars",
            "process-slot-var",
        ),
        flags=("null", "no-run-if-empty", "verbose", "interactive", "exit", "show-limits"),
        permute=False,
    )
    command = options.operands or ["echo"]
    source = call.read(options.value("a", "arg-file") or "") if options.has("a", "arg-file") else call.stdin
    marker = options.value("I", "replace") or ("{}" if options.has("i", "I", "replace") else None)
    separators = (
        "\0" if options.has("0", "null") else "\n" if marker or options.has("d", "delimiter") else None
    )
    items = [
        item.strip("\n")
        for item in source.replace("\0", "\n").split("\n" if separators else None)
        if item.strip()
    ]
    if not items:
        return call.run(command, "xargs", stdin="")
    if marker:
        for item in items[:8]:
            call.run([word.replace(marker, item) for word in command], "xargs", stdin="")
        return UNKNOWN
    inner = [_unescaped(item) if not separators else item for item in items[:40]]
    return call.run([*command, *inner], "xargs", stdin="")


def _unescaped(item: str) -> str:
    return re.sub(r"[\"']", "", re.sub(r"\\(.)", r"\1", item))


# --- Elsewhere: other hosts, containers, later times
# ------------------------------------------------------------


def _ssh(call: Call) -> str:
    options = read(call.args, short="bcDEeFIiJLlmOopQRSWwB", permute=False)
    for setting in options.all("o"):
        found = re.match(r"(?i)(?:proxycommand|localcommand)[= ]\s*(.+)", known(setting))
        if found:
            call.shell(found.group(1), "ssh ProxyCommand")
    words = options.operands[1:]
    host = options.operands[0] if options.operands else ""
    remote = call.machine.state(None)
    if words:
        call.shell(" ".join(words), "ssh", call.stdin, remote)
    if SECRET in call.stdin or SECRET in " ".join(words):
        call.report("exfiltration", "network", f"sends a secret to {plain(host)}")
    elif call.stdin and not words:
        call.shell(call.stdin, "ssh", "", remote)
    return REMOTE + UNKNOWN if words else UNKNOWN


_DOCKER_VALUES = [
    "volume",
    "mount",
    "name",
    "env",
    "env-file",
    "user",
    "workdir",
    "network",
    "entrypoint",
    "publish",
    "label",
    "memory",
    "cpus",
    "device",
    "cap-add",
    "cap-drop",
    "security-opt",
    "add-host",
    "dns",
    "hostname",
    "ulimit",
    "pids-limit",
    "platform",
    "runtime",
    "shm-size",
    "tmpfs",
    "volumes-from",
    "log-driver",
    "log-opt",
    "pull",
    "restart",
    "gpus",
    "ipc",
    "pid",
    "userns",
    "cgroup-parent",
    "expose",
    "link",
    "mac-address",
    "stop-signal",
    "isolation",
    "file",
    "project-name",
    "context",
    "host",
]


def _docker(call: Call) -> str:
    """A container's own files do not matter; what it mounts from the host does."""
    words = call.args
    top = read(
        words,
        short="cHlf",
        long=("config", "context", "host", "log-level", "file", "project-name"),
        permute=False,
    )
    verbs = [known(word) for word in top.operands]
    if verbs[:1] in (["container"], ["compose"]):
        top = read(top.operands[1:], short="fp", long=("file", "project-name", "profile"), permute=False)
        verbs = [known(word) for word in top.operands]
    if verbs[:1] not in (["run"], ["exec"], ["create"]):
        return UNKNOWN
    options = read(top.operands[1:], short="vewupnhlmac", long=_DOCKER_VALUES, permute=False)
    inner = options.operands[1:]
    mounts = _mounts(call, options)
    state = State(type(call.state.values)(call.state.values), {}, {}, mounts=tuple(mounts))
    entry = options.value("entrypoint")
    argv = [entry, *inner] if entry else inner
    if not argv:
        return UNKNOWN
    here = Call(call.machine, state, list(argv), call.stdin, call.span, (*call.via, "container"), call.raw)
    return call.machine.dispatch(here)


def _mounts(call: Call, options: Options) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for value in options.all("v", "volume"):
        parts = value.split(":")
        if len(parts) > 1 and parts[0].startswith(("/", "~", ".")) and "ro" not in parts[2:]:
            found.append((parts[1], call.path(parts[0])))
    for value in options.all("mount"):
        fields = dict(part.split("=", 1) for part in value.split(",") if "=" in part)
        source, target = fields.get("source", fields.get("src")), fields.get("target", fields.get("dst"))
        if source and target and fields.get("type", "bind") == "bind":
            found.append((target, call.path(source)))
    if options.has("privileged") or options.has("device"):
        found.append(("/dev", "/dev"))
    return sorted(found, key=lambda pair: -len(pair[0]))


def _later(call: Call) -> str:
    """at and batch run their input later; crontab installs lines."""
    options = read(call.args, short="fqtu")
    text = call.read(options.value("f") or "") if options.has("f") else call.stdin
    if call.name == "crontab":
        if options.operands and options.operands[0] != "-":
            text = call.read(options.operands[0])
        for line in text.splitlines()[:200]:
            found = re.match(r"\s*(?:@\w+|(?:\S+\s+){5})(.+)", line)
            if found:
                call.shell(found.group(1), "crontab")
        return ""
    call.shell(text, call.name)
    return ""


def _multiplexer(call: Call) -> str:
    """screen, tmux and terminals: words after their options are commands, or text typed into one."""
    options = read(call.args, short="ScxnteFLfshX", permute=False)
    words = options.operands
    if call.name == "tmux":
        verb, rest = (known(words[0]), words[1:]) if words else ("", [])
        inner = read(rest, short="tsnceFxy", permute=False).operands
        if verb in (
            "new",
            "new-session",
            "neww",
            "new-window",
            "split-window",
            "splitw",
            "run",
            "run-shell",
            "respawn-pane",
            "display-popup",
            "popup",
            "send-keys",
            "send",
        ):
            inner = [word for word in inner if known(word) not in ("Enter", "C-m")]
            return call.shell(" ".join(inner), "tmux") if inner else UNKNOWN
        return UNKNOWN
    return call.run(words, call.name) if words else UNKNOWN


def _package_run(call: Call) -> str:
    """npm, yarn and pnpm: only ``exec`` and ``-c`` run a given command."""
    words = [known(word) for word in call.args]
    if words[:1] in (["exec"], ["x"], ["dlx"]):
        options = read(call.args[1:], short="pc", long=("package", "call"), permute=False)
        for text in options.all("c", "call"):
            return call.shell(text, f"{call.name} exec")
        if options.operands:
            return call.run(options.operands, f"{call.name} exec")
    return UNKNOWN


def _cmd(call: Call) -> str:
    words = call.args
    for index, word in enumerate(words):
        if known(word).lower() in ("/c", "/k"):
            call.run(words[index + 1 :], "cmd /c")
            return UNKNOWN
    return UNKNOWN


def _gdb(call: Call) -> str:
    options = read(call.args, short="xp", long=("ex", "eval-command", "args"), single=True, permute=False)
    for text in options.all("ex", "eval-command"):
        found = re.match(r"\s*(?:!|shell\s+)(.+)", text)
        if found:
            call.shell(found.group(1), "gdb")
    return call.run(options.all("args") + options.operands, "gdb") if options.has("args") else UNKNOWN


def _find_none(call: Call) -> str:
    del call
    return ""


def fallback(call: Call) -> str:
    """A command that no rule knows: a script written or fetched earlier in the line, perhaps."""
    word = call.argv[0]
    written = call.state.files.get(call.path(word))
    if written is None and "/" not in known(word):
        name = known(word)
        places = (
            f"/usr/local/bin/{name}",
            f"/usr/bin/{name}",
            f"/bin/{name}",
            f"/home/user/.local/bin/{name}",
            f"/home/user/bin/{name}",
        )
        written = next((call.state.files[place] for place in places if place in call.state.files), None)
    if written is None:
        return UNKNOWN
    if REMOTE in written:
        call.report("download-run", "remote-code", f"runs {plain(word)}, which was fetched over the network")
        return UNKNOWN
    if DECODED in written and "/" in known(word):
        call.report("download-run", "decoded", f"runs {plain(word)}, which was decoded on the spot")
    if "/" in known(word):
        shebang = re.match(r"#!\s*(\S+)(?:\s+(\S+))?", written)
        name = (shebang.group(2) or shebang.group(1)).rsplit("/", 1)[-1] if shebang else "sh"
        if re.search(r"python|perl|ruby|node|php", name):
            program(call, written, "python" if "python" in name else name)
        else:
            _inside(call, written, call.argv, f"script {plain(word)}", call.stdin)
    return UNKNOWN


_SHELLS = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "ash",
    "rbash",
    "mksh",
    "pdksh",
    "ksh93",
    "oksh",
    "yash",
    "fish",
    "csh",
    "tcsh",
    "posh",
    "hush",
    "xonsh",
    "nu",
    "elvish",
]

HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_FORMS, _wrapper),
    **dict.fromkeys(_SHELLS, _shell),
    "env": _env,
    "busybox": _busybox,
    "toybox": _busybox,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "alias": _alias,
    "su": _su,
    "runuser": _su,
    "sg": _su,
    "xargs": _xargs,
    "gxargs": _xargs,
    "ssh": _ssh,
    "autossh": _ssh,
    "mosh": _ssh,
    "dbclient": _ssh,
    "docker": _docker,
    "podman": _docker,
    "nerdctl": _docker,
    "docker-compose": _docker,
    "at": _later,
    "batch": _later,
    "crontab": _later,
    "screen": _multiplexer,
    "tmux": _multiplexer,
    "xterm": _multiplexer,
    "npm": _package_run,
    "yarn": _package_run,
    "pnpm": _package_run,
    "cmd": _cmd,
    "gdb": _gdb,
    ":": _find_none,
    "true": _find_none,
    "false": _find_none,
    "test": _find_none,
    "[": _find_none,
}
