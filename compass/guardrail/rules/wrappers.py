"""Commands that run the command in their own words: privilege, environment and time wrappers, xargs, su."""

import re
from collections.abc import Sequence

from compass.guardrail.machine import Call, Handler
from compass.guardrail.options import read
from compass.guardrail.rules.forms import FORMS
from compass.guardrail.words import SECRET, UNKNOWN, known


def _wrapper(call: Call) -> str:  # noqa: PLR0912
    form = FORMS[call.name]
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


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(FORMS, _wrapper),
    "env": _env,
    **dict.fromkeys(["busybox", "toybox"], _busybox),
    **dict.fromkeys(["su", "runuser", "sg"], _su),
    **dict.fromkeys(["xargs", "gxargs"], _xargs),
    **dict.fromkeys(["npm", "yarn", "pnpm"], _package_run),
    "cmd": _cmd,
    "gdb": _gdb,
    **dict.fromkeys([":", "true", "false", "test", "["], _find_none),
}
