"""The network: what comes in (marked, so that running it shows) and secrets going out."""

import re

from compass.guardrail import paths
from compass.guardrail.machine import Call, Handler
from compass.guardrail.options import Options, read
from compass.guardrail.rules import curl_options
from compass.guardrail.words import REMOTE, SECRET, UNKNOWN, known, plain

_LOCAL = re.compile(
    r"(?i)^(?:\w+://)?(?:[^/@]*@)?(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0|unix:|host\.docker)"
)
#: Headers whose business is to carry a credential to the service asked.
_CREDENTIAL_HEADER = re.compile(r"(?i)(?:proxy-)?authorization\s*:|[\w-]*(?:token|key)\s*:|x-auth-\w+\s*:")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")


def _sends(call: Call, value: str, where: str, target: str) -> None:
    """Report ``value`` leaving for ``target`` if it carries a secret that does not belong there."""
    if SECRET not in value or _LOCAL.match(known(target)) or _own_token(call, target):
        return
    call.report("exfiltration", where, f"sends a secret to {plain(target) or 'the network'}")


def _own_token(call: Call, target: str) -> bool:
    """Whether every secret variable named is the target's own (``$SLACK_TOKEN`` to slack's host)."""
    names = [name for name in _VARIABLE.findall(call.raw) if name.isupper()]
    host = re.sub(r"^\w+://", "", plain(target)).split("/")[0].lower()
    if not names or "$(" in call.raw or "`" in call.raw:
        return False
    vendors = [name.lower().split("_")[0] for name in names if re.search(r"TOKEN|KEY|SECRET|PASS|CRED", name)]
    generic = {
        "api",
        "token",
        "auth",
        "access",
        "secret",
        "password",
        "my",
        "app",
        "ci",
        "service",
        "bot",
        "db",
    }
    return bool(vendors) and all(vendor in host or vendor in generic for vendor in vendors)


def _file_argument(call: Call, value: str, *, bare: bool = False) -> str:
    """The content that ``@file``, ``name=@file`` or ``name=<file`` sends."""
    found = re.search(r"(?:^|=)[@<](.+)$", value, re.S) if not bare else re.match(r"(.+)$", value, re.S)
    if not found:
        return value
    name = found.group(1).split(";")[0]
    return call.stdin if name == "-" else call.read(name)


def _urls(words: list[str]) -> list[str]:
    return [
        word
        for word in words
        if "." in word or "/" in word or ":" in word or UNKNOWN in word or SECRET in word
    ]


def _base(url: str) -> str:
    """The file name a download gets from its address."""
    return re.sub(r"[?#].*$", "", known(url)).rstrip("/").rsplit("/", 1)[-1] or "index.html"


def _curl(call: Call) -> str:
    options = read(call.args, short=curl_options.SHORT, long=curl_options.LONG, flags=curl_options.FLAGS)
    urls = options.operands + options.all("url", "expand-url")
    target = urls[0] if urls else ""
    for value in options.all(
        "d", "data", "data-binary", "data-urlencode", "data-ascii", "json", "expand-data"
    ):
        _sends(call, _file_argument(call, value), "upload", target)
    for value in options.all("F", "form"):
        _sends(call, _file_argument(call, value), "upload", target)
    for value in options.all(
        "data-raw", "form-string", "url-query", "A", "user-agent", "e", "referer", "b", "cookie"
    ):
        _sends(call, value, "upload", target)
    for value in options.all("T", "upload-file"):
        _sends(call, call.stdin if value in ("-", ".") else call.read(value), "upload", target)
    for url in urls:
        _sends(call, url, "address", url)
    for value in options.all("H", "header"):
        if not _CREDENTIAL_HEADER.match(value):
            _sends(call, _file_argument(call, value), "header", target)
    return _fetched(
        call, options, urls, options.all("o", "output", "expand-output"), options.has("O", "remote-name")
    )


def _fetched(call: Call, options: Options, urls: list[str], outputs: list[str], named: bool) -> str:
    """Where the download lands; what is left for the pipe."""
    if not urls or options.has("I", "head", "help", "version", "spider"):
        return UNKNOWN
    content = UNKNOWN if all(_local_file(url) for url in urls) else REMOTE + UNKNOWN
    folder = options.value("output-dir")
    for output in outputs:
        if output != "-":
            call.write(f"{folder}/{output}" if folder and not output.startswith("/") else output, content)
    if named or options.has("remote-name-all"):
        for url in urls:
            call.write(f"{folder}/{_base(url)}" if folder else _base(url), content)
        return UNKNOWN
    if outputs and "-" not in outputs and "/dev/stdout" not in outputs:
        return UNKNOWN
    return content


def _local_file(url: str) -> bool:
    return known(url).startswith("file:")


def _wget(call: Call) -> str:
    options = read(
        call.args,
        short="OoaeitTwQPUlADRIXBg",
        long=(
            "output-document",
            "post-file",
            "post-data",
            "body-file",
            "body-data",
            "directory-prefix",
            "header",
            "user",
            "password",
            "input-file",
            "output-file",
            "append-output",
            "execute",
            "tries",
            "timeout",
            "user-agent",
            "method",
            "quota",
            "limit-rate",
            "wait",
            "referer",
            "use-askpass",
            "level",
            "accept",
            "reject",
            "domains",
        ),
        flags=(
            "quiet",
            "continue",
            "no-check-certificate",
            "spider",
            "recursive",
            "mirror",
            "no-verbose",
            "show-progress",
            "timestamping",
            "content-disposition",
            "help",
            "version",
        ),
    )
    for word in options.all("use-askpass"):
        call.shell(word, "wget --use-askpass")
    urls = options.operands
    target = urls[0] if urls else ""
    for value in options.all("post-file", "body-file"):
        _sends(call, call.read(value), "upload", target)
    for value in options.all("post-data", "body-data", "user-agent", "referer"):
        _sends(call, value, "upload", target)
    for url in urls:
        _sends(call, url, "address", url)
    outputs = options.all("O", "output-document")
    # ``-qO-`` and ``-O -`` print; without -O the address names the file.
    if outputs:
        return _fetched(call, options, urls, outputs, named=False)
    folder = options.value("P", "directory-prefix")
    if folder:
        options.values["output-dir"] = [folder]
    return _fetched(call, options, urls, [], named=True)


def _downloader(output: str, *, prints: bool) -> Handler:
    """Plainer downloaders: ``output`` are the letters of their output option."""

    def rule(call: Call) -> str:
        options = read(
            call.args,
            short=output + "dsxjk",
            long=("out", "output", "dir", "download", "body", "output-document"),
        )
        urls = _urls(options.operands)
        for url in options.operands:
            _sends(call, _file_argument(call, url), "upload", urls[0] if urls else "")
        _sends(call, call.stdin, "upload", urls[0] if urls else "")
        outputs = options.all(*output, "out", "output", "output-document")
        return _fetched(call, options, urls, outputs, named=not prints and not outputs)

    return rule


def _netcat(call: Call) -> str:
    options = read(
        call.args,
        short="pswqiIOTXxePcGg",
        long=("exec", "sh-exec", "source-port", "wait", "proxy", "lua-exec"),
    )
    host = options.operands[0] if options.operands else ""
    for program in options.all("e", "exec", "c", "sh-exec"):
        if re.search(
            r"(?:^|/|\s)(?:ba|da|z|k|c|tc|fi|pwsh|power)?sh(?:ell)?\b|cmd(?:\.exe)?$|python|perl",
            known(program),
        ):
            call.report(
                "download-run", "remote-shell", f"hands a shell to {plain(host) or 'whoever connects'}"
            )
    _sends(call, call.stdin, "network", host)
    return REMOTE + UNKNOWN


def _socat(call: Call) -> str:
    words = [known(word) for word in call.args]
    joined = " ".join(words)
    network = re.search(r"(?i)\b(?:tcp|udp|openssl|ssl|sctp)\d?(?:-connect|-listen)?:", joined)
    if network and re.search(r"(?i)\b(?:exec|system|shell):", joined):
        call.report("download-run", "remote-shell", "hands a program to the network")
    if network:
        for word in call.args:
            found = re.match(r"(?i)(?:file|open|gopen|fd):([^,]+)", known(word))
            if found:
                _sends(call, call.read(found.group(1)), "network", joined)
        _sends(call, call.stdin, "network", joined)
        return REMOTE + UNKNOWN
    return UNKNOWN


_REMOTE_PLACE = re.compile(
    r"(?:[\w.\-]+@)?[\w.\-\[\]:]+:(?!\\)|(?:scp|sftp|rsync|ftp|s3|gs|az|r2|dav|davs|https?)://|\w[\w-]*:$"
)


def _scp(call: Call) -> str:
    options = read(call.args, short="cDFiJlopPSX")
    words = options.operands
    if len(words) < 2:
        if call.name == "sftp":
            _sends(
                call,
                "".join(
                    call.read(name) for name in re.findall(r"^\s*put\s+(?:-\w+\s+)*(\S+)", call.stdin, re.M)
                ),
                "copy",
                words[0] if words else "",
            )
        return UNKNOWN
    *sources, target = words
    if _REMOTE_PLACE.match(known(target)):
        for source in sources:
            _sends(call, _tree(call, source), "copy", target)
    else:
        for source in sources:
            if _REMOTE_PLACE.match(known(source)):
                call.write(
                    target.rstrip("/") + "/" + _base(source) if target.endswith(("/", ".")) else target,
                    REMOTE + UNKNOWN,
                )
    return UNKNOWN


def _tree(call: Call, word: str) -> str:
    """What copying ``word`` with all below it carries."""
    path = call.path(word)
    return SECRET + UNKNOWN if paths.secret(path) else call.read(word)


def _cloud(*verbs: str) -> Handler:
    """Cloud storage tools: what a copying verb is given leaves the machine."""

    def rule(call: Call) -> str:
        words = call.args
        plainly = [known(word) for word in words]
        if plainly[:2] == ["configure", "set"] and "secret" in " ".join(plainly[2:3]):
            call.report("secret-write", "file", "writes a secret key into the cloud tool's credentials")
        if not any(verb in plainly for verb in verbs):
            return SECRET + UNKNOWN if "get-secret-value" in plainly else UNKNOWN
        operands = read(words).operands
        if len(operands) > 1 and _REMOTE_PLACE.match(known(operands[-1])):
            for word in operands[:-1]:
                content = call.stdin if word == "-" else _tree(call, word)
                _sends(call, content, "copy", operands[-1])
        return UNKNOWN

    return rule


def _mail(call: Call) -> str:
    options = read(call.args, short="sacbrqASHtf", long=("attach", "subject"))
    target = options.operands[-1] if options.operands else "mail"
    _sends(call, call.stdin, "mail", target)
    for attached in options.all("a", "A", "attach"):
        _sends(call, call.read(attached), "mail", target)
    return UNKNOWN


def _lookup(call: Call) -> str:
    """Names that are looked up or pinged carry data to whoever answers for the domain."""
    for word in call.args:
        _sends(call, word, "dns", word.replace(SECRET, ""))
    return UNKNOWN


def _publish(call: Call) -> str:
    """Chat, paste and tunnel tools that send their input or files away."""
    _sends(call, call.stdin, "publish", call.name)
    for word in read(call.args).operands:
        _sends(call, _tree(call, word) if "." in word or "/" in word else word, "publish", call.name)
    return UNKNOWN


def _powershell_fetch(call: Call) -> str:
    options = read(
        call.args, long=("OutFile", "outfile", "Uri", "uri", "Body", "InFile", "Method"), single=True
    )
    for value in options.all("InFile"):
        _sends(call, call.read(value), "upload", options.value("Uri", "uri") or "")
    output = options.value("OutFile", "outfile")
    if output:
        call.write(output, REMOTE + UNKNOWN)
        return UNKNOWN
    return REMOTE + UNKNOWN


HANDLERS: dict[str, Handler] = {
    "curl": _curl,
    "curlie": _curl,
    "wget": _wget,
    "wget2": _wget,
    "fetch": _downloader("o", prints=False),
    "aria2c": _downloader("o", prints=False),
    "axel": _downloader("o", prints=False),
    "http": _downloader("o", prints=True),
    "https": _downloader("o", prints=True),
    "xh": _downloader("o", prints=True),
    "httpie": _downloader("o", prints=True),
    "lynx": _downloader("", prints=True),
    "w3m": _downloader("", prints=True),
    "links": _downloader("", prints=True),
    "elinks": _downloader("", prints=True),
    "GET": _downloader("", prints=True),
    "lwp-request": _downloader("", prints=True),
    "lwp-download": _downloader("", prints=False),
    "nc": _netcat,
    "ncat": _netcat,
    "netcat": _netcat,
    "nc.openbsd": _netcat,
    "nc.traditional": _netcat,
    "telnet": _netcat,
    "socat": _socat,
    "scp": _scp,
    "sftp": _scp,
    "pscp": _scp,
    "aws": _cloud("cp", "sync", "mv", "put-object"),
    "s3cmd": _cloud("put", "sync"),
    "gsutil": _cloud("cp", "rsync", "mv"),
    "rclone": _cloud("copy", "sync", "copyto", "move", "rcat"),
    "mc": _cloud("cp", "mirror", "pipe"),
    "az": _cloud("upload"),
    "azcopy": _cloud("copy", "cp", "sync"),
    "mail": _mail,
    "mailx": _mail,
    "sendmail": _mail,
    "mutt": _mail,
    "msmtp": _mail,
    "swaks": _mail,
    "dig": _lookup,
    "nslookup": _lookup,
    "host": _lookup,
    "ping": _lookup,
    "drill": _lookup,
    "kdig": _lookup,
    "getent": _lookup,
    "traceroute": _lookup,
    "resolvectl": _lookup,
    "ftp": _scp,
    "tftp": _publish,
    "lftp": _publish,
    "ncftpput": _publish,
    "croc": _publish,
    "wormhole": _publish,
    "pastebinit": _publish,
    "transfer": _publish,
    "telegram-send": _publish,
    "magic-wormhole": _publish,
    "nc6": _netcat,
    "invoke-webrequest": _powershell_fetch,
    "iwr": _powershell_fetch,
    "invoke-restmethod": _powershell_fetch,
    "irm": _powershell_fetch,
}
