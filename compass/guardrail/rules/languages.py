"""Programs in languages that are not parsed: the handful of calls that delete, run, fork, write or send."""

import re
from collections.abc import Iterator

from compass.guardrail.machine import Call
from compass.guardrail.rules.erase import erase
from compass.guardrail.words import QUESTION, SECRET, STAR, UNKNOWN

_SOCKET = re.compile(r"(?i)\bsocket\b|TCPSocket|fsockopen|/inet/tcp|IO::Socket|net\.connect|net\.Socket")
_HANDED_ON = re.compile(
    r"(?i)dup2|pty\.spawn|STDIN\s*,|reopen|\bexec\b|subprocess|proc_open|spawn|popen|\bsystem\b|\.pipe\("
)
_SHELL_NAME = re.compile(r"(?i)/bin/(?:ba|da|z|k)?sh\b|cmd\.exe|\bsh\s+-i|powershell")


def remote_shell(call: Call, text: str) -> None:
    """The three parts of a reverse shell in one program: a socket, a shell, and one handed to the other."""
    if _SOCKET.search(text) and _HANDED_ON.search(text) and _SHELL_NAME.search(text):
        call.report("download-run", "remote-shell", "hands a shell to the network")


#: A string literal; its text is one of two groups.
QUOTED = r"""(?:"((?:[^"\\\n]|\\.){0,2000})"|'((?:[^'\\\n]|\\.){0,2000})')"""
_RUNS = re.compile(
    r"(?:\bsystem|\bexec|\bexecSync|\bshell_exec|\bpassthru|\bpopen|\bspawnSync|\bspawn|\bexecFile|\bexecFileSync|"
    r"\bos\.execute|\bio\.popen|\bproc_open|\bdo shell script|\bcapture2?e?|\bexecvp?)\s*\(?\s*"
    + QUOTED
    + r"(\s*,\s*[^;\n)]{0,400})?"
)
#: Shell wildcards as the marks that paths know.
GLOB = str.maketrans({"*": STAR, "?": QUESTION})
_BACKTICKS = re.compile(
    r"`([^`\n]{1,2000})`|(?:\bqx|%x)\s*(?:\(([^)\n]{1,2000})|\{([^}\n]{1,2000})|\[([^\]\n]{1,2000})|"
    r"/([^/\n]{1,2000})|\|([^|\n]{1,2000})|!([^!\n]{1,2000}))"
)
_TREES = re.compile(
    r"\b(?:rmtree|remove_tree|rm_rf|rm_r|rmSync|rmdirSync|rm|rimraf(?:Sync)?|removeSync|emptyDirSync|delete_tree|"
    r"remove_entry_secure|remove_dir|rmdir|removeRecursively|deleteDirectory|remove_all|RemoveAll|remove_dir_all|"
    r"Deno\.remove(?:Sync)?)\s*[(\[]*\s*\[?\s*" + QUOTED
)
_UNLINKS = re.compile(
    r"\b(?:unlink|unlinkSync|remove|File\.delete|Remove)\s*\(?\s*(?:glob\s*\(?\s*|<)?" + QUOTED
)
_ENDLESS = (
    r"(?:\b(?:while|until)\b\s*\(?\s*(?:1|true|!0|0|false|:)\s*\)?|\bfor\s*\(\s*;\s*;\s*\)|"
    r"\bloop\b|\bforever\b)"
)
_FORKS = re.compile(
    r"\b(?:pcntl_)?fork\b\s*(?:\(\s*\))?\s*(?:while|until)\b|\b(?:while|until)\b\s*\(?\s*(?:pcntl_)?fork\b|"
    + _ENDLESS
    + r"[^\n]{0,80}\b(?:(?:pcntl_)?fork\b|os\.fork\b|spawn\w*\s*\()|\bfork\b\s*;\s*redo|"
    r"\bfunction\s+(\w+)[^\n]{0,40}\{[^\n]{0,80}(?:spawn|fork|exec)\w*\([^\n]{0,80}\1\(\)|"
    r"spawn\w*\(\s*process\.(?:argv|execPath)[^\n]{0,200}(?:__filename|process\.argv)|\bfork\s*\(\s*__filename"
)
#: A loop that starts processes and does not wait.
BACKGROUND_LOOP = re.compile(
    r"while\s*\(?\s*(?:1|true)\s*\)?[^\n]{0,40}(?:os\.execute|system|exec|popen)\s*\([^\n]{0,200}&\s*['\"]"
)
_WRITES = re.compile(
    r"\b(?:writeFile(?:Sync)?|appendFile(?:Sync)?|createWriteStream|file_put_contents|File\.write|IO\.write|"
    r"truncate(?:Sync)?|Deno\.writeTextFile(?:Sync)?|set-content|out-file)\s*\(?\s*"
    + QUOTED
    + r"|\b(?:open|fopen|File\.open|File\.new)\s*\(?\s*(?:my\s+)?(?:\$?\w+\s*,\s*)?"
    + QUOTED
    + r"\s*,\s*['\"]?(?:[waWA+>]|r\+)"
    + r"|\bopen\s*\(?\s*(?:my\s+)?\$?\w+\s*,\s*['\"]\+?>{1,2}['\"]?\s*,?\s*['\"]?([^'\"\n)]{1,300})"
)
_MODES = re.compile(
    r"\bchmod(?:Sync)?\s*\(?\s*(?:(0[oO]?[0-7]{3,4})\s*,\s*"
    + QUOTED
    + r"|"
    + QUOTED
    + r"\s*,\s*(0[oO]?[0-7]{3,4}))"
)
_READS = re.compile(
    r"\b(?:readFile(?:Sync)?|file_get_contents|File\.read|IO\.read|fopen|open|slurp|require|get-content|gc)\s*\(?\s*"
    + QUOTED,
    re.I,
)
_NETWORK = re.compile(
    r"(?i)\bhttps?://|\bfetch\s*\(|\bhttps?\.(?:request|get|post)|Net::HTTP|LWP|IO::Socket|TCPSocket|curl_exec|fsockopen|"
    r"\bnet\.connect|socket\.tcp|URI\.open|/inet/tcp|axios|invoke-webrequest|invoke-restmethod|webclient"
)
_FETCHED_EVAL = re.compile(
    r"(?i)(?:\biex\b|invoke-expression)[^\n]{0,200}(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|downloadstring|webclient)|"
    r"(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|downloadstring)[^\n]{0,200}\|\s*(?:iex\b|invoke-expression)|"
    r"\beval\b[^\n]{0,120}(?:URI\.open|open\s*\(\s*['\"]https?|Net::HTTP|LWP::Simple|\bget\s*\(?\s*['\"]https?|file_get_contents\s*\(\s*"
    r"['\"]https?|fetch\()|fetch\([^\n]{0,200}\.text\(\)[^\n]{0,80}(?:eval|Function)|https?['\"]?\)?\.get\([^\n]{0,300}\beval\s*\("
)


def strings(found: re.Match[str], first: int = 1) -> str:
    """The first of a match's groups, from ``first`` on, that took part; empty when none did."""
    return next((group for group in found.groups()[first - 1 :] if group is not None), "")


def judge(call: Call, text: str) -> None:
    """Judge a program in a language that is not parsed: the calls that matter, by name."""
    code = _without_comments(text)
    remote_shell(call, code)
    if _FORKS.search(_without_strings(code)) or BACKGROUND_LOOP.search(code):
        call.report("fork-bomb", "loop", "forks in an endless loop")
    for found in each(_RUNS, code):
        command = unquote(found.group(1) if found.group(1) is not None else found.group(2) or "")
        rest = [unquote(a or b) for a, b in re.findall(QUOTED, found.group(3) or "")]
        if rest and " " not in command:
            call.run([command, *rest])
        else:
            call.shell(_home(command), "code")
    for found in each(_BACKTICKS, code):
        call.shell(strings(found), "code")
    for pattern, deep in ((_TREES, True), (_UNLINKS, False)):
        for found in each(pattern, code):
            path = _home(unquote(strings(found))).translate(GLOB)
            erase(call, path, recursive=deep, how="code")
    for found in each(_MODES, code):
        mode, path = found.group(1) or found.group(6), strings(found, 2)
        call.run(["chmod", mode.lower().replace("0o", "0"), _home(unquote(path))])
    for found in each(_WRITES, code):
        call.write(_home(unquote(strings(found))), UNKNOWN)
    if _FETCHED_EVAL.search(code):
        call.report("download-run", "remote-code", "evaluates text that was fetched over the network")
    if _NETWORK.search(code):
        carried = any(SECRET in call.read(_home(unquote(strings(found)))) for found in each(_READS, code))
        if carried or re.search(r"JSON\.stringify\(process\.env\)|ENV\.to_h|%ENV\b.{0,40}join", code):
            call.report("exfiltration", "upload", "sends a secret over the network")


def each(pattern: re.Pattern[str], code: str) -> Iterator[re.Match[str]]:
    """At most a hundred matches."""
    for number, found in enumerate(pattern.finditer(code)):
        if number >= 100:
            return
        yield found


def _home(path: str) -> str:
    return re.sub(
        r"^(?:~|\$HOME|#\{ENV\[.HOME.\]\}|\$\{process\.env\.HOME\}|\$ENV\{HOME\})(?=/|$)", "/home/user", path
    )


def unquote(text: str) -> str:
    """``text`` without its backslashes."""
    return re.sub(r"\\(.)", r"\1", text)


def _without_strings(code: str) -> str:
    return re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", '""', code)


def _without_comments(text: str) -> str:
    return re.sub(r"(?m)^\s*(?:#(?!include|!)|//).*$", "", text)
