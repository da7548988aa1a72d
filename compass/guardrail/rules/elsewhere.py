"""Commands that run elsewhere or later: other hosts, containers, terminals, timed jobs."""

import re

from compass.guardrail.machine import Call, Handler, State
from compass.guardrail.options import Options, read
from compass.guardrail.words import REMOTE, SECRET, UNKNOWN, known, plain


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


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(["ssh", "autossh", "mosh", "dbclient"], _ssh),
    **dict.fromkeys(["docker", "podman", "nerdctl", "docker-compose"], _docker),
    **dict.fromkeys(["at", "batch", "crontab"], _later),
    **dict.fromkeys(["screen", "tmux", "xterm"], _multiplexer),
}
