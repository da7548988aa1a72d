"""Interpreters: which of their words are programs, in which language, and who judges those."""

import re

from compass.guardrail.machine import Call, Handler
from compass.guardrail.options import read
from compass.guardrail.rules import languages, python
from compass.guardrail.rules.languages import BACKGROUND_LOOP, QUOTED, each, strings, unquote
from compass.guardrail.words import DECODED, REMOTE, UNKNOWN, known, origins

#: Longest program that is looked at; the rest of it is not.
_LONGEST = 65_536


def program(call: Call, text: str, language: str) -> None:
    """Judge a program's text that is about to run."""
    if REMOTE in text and known(text).strip(" \n" + UNKNOWN) == "":
        call.report("download-run", "remote-code", f"feeds {language} text that was fetched over the network")
        return
    if origins(text) and DECODED in text:
        call.report("download-run", "decoded", f"feeds {language} a program that is decoded on the spot")
    text = known(text)[:_LONGEST]
    inner = Call(call.machine, call.state, call.argv, call.stdin, call.span, (*call.via, language), call.raw)
    if language == "python":
        python.judge(inner, text)
    else:
        languages.judge(inner, text)


_CODE_OPTIONS = {
    "python": ("c", "cmWXQ"),
    "perl": ("eE", "eEImMiDFlx0"),
    "ruby": ("e", "eIrCEFKTWx"),
    "node": ("ep", "eprC"),
    "php": ("rBER", "rBERcdfFStz"),
    "lua": ("e", "el"),
    "osascript": ("e", "el"),
    "pwsh": ("", ""),
    "R": ("e", "ef"),
    "tclsh": ("", ""),
    "expect": ("c", "cfd"),
    "groovy": ("e", "ecDi"),
    "scala": ("e", "e"),
    "julia": ("eE", "eELJptH"),
    "guile": ("c", "clsLex"),
    "elixir": ("e", "er"),
    "erl": ("", ""),
    "deno": ("", ""),
    "bun": ("e", "er"),
}
_LONG_CODE = ("eval", "print", "run", "command", "execute", "expression", "encodedcommand", "code")


def _language(name: str) -> str:
    base = re.sub(r"[\d.]+$", "", name)
    aliases = {
        "pypy": "python",
        "python": "python",
        "nodejs": "node",
        "rscript": "R",
        "luajit": "lua",
        "powershell": "pwsh",
        "irb": "ruby",
        "ipython": "python",
        "jruby": "ruby",
        "bunx": "bun",
    }
    return aliases.get(base.lower(), base)


def _interpreter(call: Call) -> str:
    language = _language(call.name)
    wanted, letters = _CODE_OPTIONS.get(language, ("e", "e"))
    if language == "pwsh":
        return _powershell(call)
    if language == "deno":
        return _deno(call)
    options = read(call.args, short=letters, long=_LONG_CODE, permute=False)
    codes = [value for letter in wanted for value in options.all(letter)] + options.all(*_LONG_CODE)
    if (
        language == "perl"
        and any(re.match(r"-\w*i", known(word)) for word in call.args[:3])
        and options.has("p", "e")
    ):
        for word in options.operands:
            call.write(word, UNKNOWN)
    if codes:
        for code in codes:
            program(call, code, language)
        return origins("".join(codes)) + UNKNOWN
    if language == "python" and options.has("m"):
        return UNKNOWN
    if (language in ("ruby", "perl", "node") and options.has("c", "check")) or (
        language == "php" and options.has("l")
    ):
        return UNKNOWN  # only the syntax is checked
    script = options.operands[0] if options.operands else "-"
    if REMOTE in script and not script.startswith("/dev/fd"):
        call.report("download-run", "remote-code", f"runs {language} text that was fetched over the network")
    text = call.stdin if script in ("-", "/dev/stdin") else call.read(script)
    if text:
        program(call, text, language)
    return UNKNOWN


def _powershell(call: Call) -> str:
    words = [known(word) for word in call.args]
    for index, word in enumerate(words):
        lowered = word.lower()
        if (
            lowered.startswith("-")
            and len(lowered) > 1
            and "encodedcommand".startswith(lowered[1:])
            and lowered != "-e"
        ):
            call.report("download-run", "decoded", "runs PowerShell that is decoded on the spot")
        if lowered in ("-c", "-command", "/c", "-e") and index + 1 < len(words):
            code = " ".join(words[index + 1 :])
            program(call, code, "pwsh")
            call.shell(code.replace("\\", "\\\\"), "pwsh")
    if not words or words == ["-"]:
        program(call, call.stdin, "pwsh")
    return UNKNOWN


def _deno(call: Call) -> str:
    words = [known(word) for word in call.args]
    if words[:1] == ["eval"] and len(words) > 1:
        program(call, words[-1], "deno")
    elif words[:1] == ["run"] and any(re.match(r"https?://", word) for word in words):
        call.report("download-run", "remote-code", "runs a program straight from the network")
    return UNKNOWN


def _awk(call: Call) -> str:
    options = read(call.args, short="fFviE", long=("file", "field-separator", "assign"), permute=False)
    operands = options.operands
    text = call.read(options.value("f", "file") or "") if options.has("f", "file") else (operands or [""])[0]
    files = operands if options.has("f", "file") else operands[1:]
    if BACKGROUND_LOOP.search(text):
        call.report("fork-bomb", "loop", "starts processes in an endless loop without waiting")
    for found in each(re.compile(r"\bsystem\s*\(\s*" + QUOTED), text):
        call.shell(unquote(strings(found)), "awk system")
    for found in each(re.compile(QUOTED + r"\s*\|\s*getline|\|\s*" + QUOTED), text):
        call.shell(unquote(strings(found)), "awk pipe")
    for found in each(re.compile(r">>?\s*" + QUOTED), text):
        call.write(unquote(strings(found)), UNKNOWN)
    if options.value("i") == "inplace":
        for word in files:
            call.write(word, UNKNOWN)
    content = "".join(call.read(word) for word in files) or call.stdin
    if re.search(r"print\s+\|\s*\"(?:ba|da|z)?sh\"", text):
        call.shell(content, "awk pipe")
    return origins(content) + UNKNOWN


def _compile(call: Call) -> str:
    """A C program on the input or in a file written just before, whose text forks for ever."""
    text = call.stdin + "".join(call.read(word) for word in read(call.args, short="oxIlLD").operands)
    target = read(call.args, short="oxIlLD").value("o") or "a.out"
    if re.search(
        r"(?:while\s*\(\s*(?:1|true)\s*\)|for\s*\(\s*;\s*;\s*\))\s*\{?\s*(?:\w+\s*=\s*)?fork\s*\(", text
    ):
        call.report("fork-bomb", "loop", "compiles a program that forks in an endless loop")
    if REMOTE in text:
        call.state.files[call.path(target)] = REMOTE + UNKNOWN
    return UNKNOWN


_PYTHONS = [
    f"python{version}" for version in ("", "2", "3", *(f"3.{minor}" for minor in range(6, 16)), "2.7")
]

HANDLERS: dict[str, Handler] = {
    **dict.fromkeys([*_PYTHONS, "pypy", "pypy3", "ipython", "ipython3"], _interpreter),
    **dict.fromkeys(
        [
            "perl",
            "perl5",
            "ruby",
            "jruby",
            "irb",
            "node",
            "nodejs",
            "bun",
            "php",
            "php7",
            "php8",
            "lua",
            "lua5.3",
            "lua5.4",
            "luajit",
            "osascript",
            "pwsh",
            "powershell",
            "R",
            "Rscript",
            "rscript",
            "tclsh",
            "expect",
            "groovy",
            "scala",
            "julia",
            "guile",
            "elixir",
            "deno",
        ],
        _interpreter,
    ),
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
    "gcc": _compile,
    "cc": _compile,
    "clang": _compile,
    "tcc": _compile,
    "g++": _compile,
}
