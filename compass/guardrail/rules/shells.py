"""Text that a shell runs: ``sh -c``, its input, scripts, ``eval``, ``source``, traps and aliases."""

import re
from collections.abc import Sequence

from compass.guardrail import paths
from compass.guardrail.machine import Call, Handler, positional
from compass.guardrail.rules.interpreters import program
from compass.guardrail.words import DECODED, REMOTE, UNKNOWN, known, plain


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
    **dict.fromkeys(_SHELLS, _shell),
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "alias": _alias,
}
