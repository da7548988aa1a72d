"""Commands that only pass text on: what they print is computed as far as it is known, so a later shell can
read it."""

import base64
import binascii
import codecs
import re
import zlib
from collections.abc import Callable

from compass.guardrail import paths
from compass.guardrail.machine import Call, Handler, positional
from compass.guardrail.options import read
from compass.guardrail.words import DECODED, REMOTE, SECRET, STAR, UNKNOWN, known, origins, unescape

#: Longest text that is decoded or unpacked.
_LONGEST = 65_536


def _echo(call: Call) -> str:
    words = call.args
    escapes = newline = False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        escapes |= "e" in words[0]
        newline |= "n" in words[0]
        words = words[1:]
    text = " ".join(words)
    return (unescape(text) if escapes else text) + ("" if newline else "\n")


def _printf(call: Call) -> str:
    words = call.args
    if words[:1] == ["-v"] and len(words) > 2:
        call.state.values[known(words[1])] = _formatted(words[2], words[3:])
        return ""
    if words[:1] == ["--"]:
        words = words[1:]
    return _formatted(words[0], words[1:]) if words else ""


def _formatted(pattern: str, values: list[str]) -> str:
    """``printf`` for strings and numbers; the format is reused while values are left."""
    pattern = unescape(pattern)
    slots = len(re.findall(r"%(?!%)[-+ #0\d.*]*[a-zA-Z]", pattern))
    out: list[str] = []
    values = values[:200]
    rounds = 1 if not slots or not values else -(-len(values) // slots)
    supply = iter(values)

    def fill(found: re.Match[str]) -> str:
        if found.group() == "%%":
            return "%"
        value = next(supply, "")
        match found.group(1):
            case "b":
                return unescape(value)
            case "c":
                return value[:1]
            case "x" | "o" | "d" | "i" | "u":
                return value if value else "0"
            case _:
                return value

    for _ in range(rounds):
        out.append(re.sub(r"%%|%[-+ #0\d.*]*([a-zA-Z])", fill, pattern))
    return "".join(out)


def _cat(call: Call) -> str:
    operands = read(call.args).operands
    parts = (
        [call.stdin if word == "-" else call.read(word) for word in operands] if operands else [call.stdin]
    )
    text = "".join(parts)
    return text if call.name != "tac" else "\n".join(reversed(text.splitlines()))


def _decoding(decode: Callable[[bytes], bytes], flags: tuple[str, ...]) -> Handler:
    """A rule for base64 and its kin: with a decoding flag the text is decoded, else only its origin
    passes."""

    def rule(call: Call) -> str:
        options = read(
            call.args,
            short="wib",
            long=("wrap", "input", "output", "break"),
            flags=("decode", "ignore-garbage"),
        )
        source = (
            call.read(options.operands[0]) if options.operands and options.operands[0] != "-" else call.stdin
        )
        if not options.has(*flags):
            return origins(source) + UNKNOWN
        return _decoded(source, decode)

    return rule


def _decoded(source: str, decode: Callable[[bytes], bytes]) -> str:
    marks = origins(source)
    text = known(source)
    if UNKNOWN in text or len(text) > _LONGEST:
        return marks + DECODED + UNKNOWN
    try:
        data = decode(re.sub(r"\s+", "", text).encode("latin-1"))
    except (ValueError, binascii.Error, UnicodeEncodeError):
        return marks + DECODED + UNKNOWN
    return marks + DECODED + data[:_LONGEST].decode("latin-1")


def _b64(data: bytes) -> bytes:
    return base64.b64decode(data + b"=" * (-len(data) % 4))


def _b32(data: bytes) -> bytes:
    return base64.b32decode(data + b"=" * (-len(data) % 8))


def _unhex(data: bytes) -> bytes:
    return binascii.unhexlify(re.sub(rb"(?i)0x|\\x|[^0-9a-f]", b"", data))


def _xxd(call: Call) -> str:
    words = [known(word) for word in call.args]
    if any(re.fullmatch(r"-(?:r|revert|rp|pr|ps?r)", word) for word in words):
        return _decoded(call.stdin, _unhex)
    operands = read(call.args, short="lscgo").operands
    return origins(call.read(operands[0]) if operands else call.stdin) + UNKNOWN


def _openssl(call: Call) -> str:
    words = [known(word) for word in call.args]
    options = read(call.args[1:], long=("in", "out", "k", "pass", "K", "iv", "connect"), single=True)
    source = call.read(options.value("in") or "") if options.value("in") else call.stdin
    if words[:1] in (["s_client"], ["s_server"]):
        if SECRET in call.stdin:
            call.report("exfiltration", "network", "sends a secret over the network")
        return REMOTE + UNKNOWN
    target = options.value("out")
    decoding = options.has("d") and words[:1] in (["enc"], ["base64"], ["aes-256-cbc"])
    output = (
        _decoded(source, _b64) if options.has("base64", "a") or words[:1] == ["base64"] else DECODED + UNKNOWN
    )
    output = output if decoding else origins(source) + UNKNOWN
    if target:
        call.write(target, output)
        return ""
    return output


def _unpack(call: Call) -> str:
    """gunzip, zcat, xz -d: what they unpack keeps its origin; a known gzip text is unpacked."""
    options = read(call.args, short="SbT", long=("suffix", "threads"))
    source = call.read(options.operands[0]) if options.operands else call.stdin
    unpacks = (
        call.name.startswith("un") or call.name.endswith(("cat", "unzip")) or options.has("d", "decompress")
    )
    if not unpacks:
        return origins(source) + UNKNOWN
    body = source.rpartition(DECODED)[2]
    if DECODED in source and UNKNOWN not in body:
        try:
            data = zlib.decompressobj(47).decompress(body.encode("latin-1"), _LONGEST)
            return origins(source) + data.decode("latin-1")
        except (zlib.error, UnicodeEncodeError):
            pass
    return (origins(source) or DECODED) + UNKNOWN


def _rev(call: Call) -> str:
    operands = read(call.args).operands
    text = call.read(operands[0]) if operands else call.stdin
    return origins(text) + DECODED + "\n".join(line[::-1] for line in known(text).splitlines())


def _tr(call: Call) -> str:
    options = read(call.args)
    sets = [_characters(known(word)) for word in options.operands]
    text = call.stdin
    if options.has("d", "delete") and sets:
        return "".join(char for char in text if char not in sets[0])
    if len(sets) == 2 and sets[1]:
        table = {ord(a): b for a, b in zip(sets[0], sets[1].ljust(len(sets[0]), sets[1][-1]), strict=False)}
        moved = text.translate(table)
        shifts = sum(
            a.isalnum() and b.isalnum() and a.lower() != b.lower() for a, b in zip(*sets, strict=False)
        )
        return (DECODED if shifts > 10 else "") + moved
    return text


def _characters(text: str) -> str:
    """A ``tr`` set written out."""
    text = unescape(text)
    for name, members in {"upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "lower": "abcdefghijklmnopqrstuvwxyz",
                          "digit": "0123456789", "space": " \t\n\r\v\f", "blank": " \t"}.items():  # fmt: skip
        text = text.replace(f"[:{name}:]", members)

    def span(found: re.Match[str]) -> str:
        low, high = ord(found.group(1)), ord(found.group(2))
        return "".join(map(chr, range(low, min(high, low + 300) + 1)))

    return re.sub(r"(.)-(.)", span, text, flags=re.S)[:1_000]


def _rot13(call: Call) -> str:
    return DECODED + codecs.encode(call.stdin, "rot13")


def _same(call: Call) -> str:
    """head, tail, uniq, grep and so on: what comes out is part of what went in."""
    options = read(
        call.args, short="nceABCmfdst", long=("lines", "bytes", "regexp", "file", "max-count", "context")
    )
    operands = options.operands
    if call.name in ("grep", "egrep", "fgrep", "rg", "ag", "ack"):
        operands = operands[1:] if not options.has("e", "f", "regexp", "file") else operands
        text = "".join(call.read(word) for word in operands) if operands else call.stdin
        quiet = options.has("q", "quiet", "silent", "c", "count", "l")
        return "" if quiet else text
    return "".join(call.read(word) for word in operands) if operands else call.stdin


def _derived(call: Call) -> str:
    """Filters whose output is not followed: only its origin passes."""
    operands = read(call.args).operands
    return origins(call.stdin + "".join(call.read(word) for word in operands)) + UNKNOWN


def _digest(call: Call) -> str:
    del call
    return UNKNOWN


def _environment(call: Call) -> str:
    """printenv and ``set`` print the environment, keys and tokens included."""
    operands = read(call.args).operands
    if call.name == "set":
        if call.args[:1] == ["--"] or operands:
            positional(call.state.values, call.args[1:] if call.args[0] == "--" else operands)
        return SECRET + UNKNOWN if not call.args else ""
    if operands:
        return "".join(call.state.values.get(known(name)) for name in operands[:20])
    return SECRET + UNKNOWN


def _read_builtin(call: Call) -> str:
    options = read(call.args, short="adeinNpstu")
    names = [known(name) for name in options.operands] or ["REPLY"]
    line = call.stdin.split("\n", 1)[0] if call.stdin else UNKNOWN
    values = line.split(None, len(names) - 1) if line.strip() else []
    for number, name in enumerate(names):
        call.state.values[name] = (
            values[number].rstrip() if number < len(values) else UNKNOWN if not values else ""
        )
    return ""


def _mapfile(call: Call) -> str:
    for name in read(call.args, short="dnOsuCc").operands[:1]:
        call.state.values[known(name)] = call.stdin.strip()
    return ""


def _cd(call: Call) -> str:
    operands = read(call.args).operands
    target = operands[0] if operands else "~"
    home = call.state.values.get("HOME")
    found = paths.normalise(home if target == "~" else target, call.state.cwd)
    call.state.cwd = found if found.startswith("/") and UNKNOWN not in found else None
    if call.state.cwd:
        call.state.values["PWD"] = call.state.cwd
    else:
        call.state.values.pop("PWD", None)
    return ""


def _pwd(call: Call) -> str:
    return call.state.cwd or UNKNOWN


def _which(call: Call) -> str:
    operands = read(call.args).operands
    return f"/usr/bin/{known(operands[0]).rsplit('/', 1)[-1]}" if operands else UNKNOWN


def _whoami(call: Call) -> str:
    del call
    return "user"


def _seq(call: Call) -> str:
    del call
    return UNKNOWN


def _list(call: Call) -> str:
    """``ls`` prints names; of a directory that matters, everything in it."""
    operands = read(call.args, short="ITw").operands
    return (
        "".join(
            f"{word.rstrip('/')}/{STAR}\n" if word.startswith(("/", "~")) else UNKNOWN for word in operands
        )
        or UNKNOWN
    )


def _path_filter(call: Call) -> str:
    """dirname, basename, realpath and readlink of a known path."""
    options = read(call.args, short="s", long=("suffix", "relative-to"))
    if not options.operands:
        return UNKNOWN
    word = options.operands[0]
    if call.name == "dirname":
        return word.rstrip("/").rpartition("/")[0] or ("/" if word.startswith("/") else ".")
    if call.name == "basename":
        return word.rstrip("/").rpartition("/")[2]
    return call.path(word)


def _gpg(call: Call) -> str:
    words = " ".join(known(word) for word in call.args)
    if "export-secret" in words:
        return SECRET + UNKNOWN
    if re.search(r"(?:^|\s)(?:-d|--decrypt)\b", words):
        return DECODED + UNKNOWN
    return origins(call.stdin) + UNKNOWN


def _secret_printer(call: Call) -> str:
    """Password managers and cloud tools that print a secret."""
    words = " ".join(known(word) for word in call.args)
    patterns = {
        "pass": r"^(?:show|[\w/]+$)",
        "security": r"find-(?:generic|internet)-password",
        "aws": r"get-secret-value|get-session",
        "kubectl": r"get\s+secrets?",
        "vault": r"^(?:read|kv get)",
        "op": r"^(?:read|item get)",
        "gcloud": r"print-access-token",
        "gh": r"^auth token",
        "docker": r"^$",
        "secret-tool": r"^lookup",
        "ssh-add": r"^$",
    }
    return (SECRET if re.search(patterns.get(call.name, "$^"), words) else "") + UNKNOWN


HANDLERS: dict[str, Handler] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tac": _cat,
    "bat": _cat,
    "zcat": _unpack,
    "base64": _decoding(_b64, ("d", "D", "decode")),
    "base32": _decoding(_b32, ("d", "D", "decode")),
    "basenc": _decoding(_b64, ("d", "decode")),
    "xxd": _xxd,
    "uudecode": lambda _: DECODED + UNKNOWN,
    "openssl": _openssl,
    "gunzip": _unpack,
    "gzip": _unpack,
    "bunzip2": _unpack,
    "bzip2": _unpack,
    "unxz": _unpack,
    "xz": _unpack,
    "xzcat": _unpack,
    "bzcat": _unpack,
    "zstd": _unpack,
    "unzstd": _unpack,
    "zstdcat": _unpack,
    "lz4": _unpack,
    "lz4cat": _unpack,
    "brotli": _unpack,
    "rev": _rev,
    "tr": _tr,
    "rot13": _rot13,
    "head": _same,
    "tail": _same,
    "uniq": _same,
    "grep": _same,
    "egrep": _same,
    "fgrep": _same,
    "rg": _same,
    "ag": _same,
    "ack": _same,
    "less": _same,
    "more": _same,
    "fold": _same,
    "iconv": _same,
    "dos2unix": _same,
    "unix2dos": _same,
    "pv": _same,
    "column": _same,
    "expand": _same,
    "envsubst": _same,
    "strings": _same,
    "shuf": _same,
    "nl": _same,
    "cut": _derived,
    "jq": _derived,
    "yq": _derived,
    "od": _derived,
    "hexdump": _derived,
    "paste": _derived,
    "join": _derived,
    "diff": _derived,
    "split": _derived,
    "fmt": _derived,
    "recode": _derived,
    "base58": _derived,
    "uuencode": _derived,
    "age": _derived,
    "wc": _digest,
    "md5sum": _digest,
    "sha1sum": _digest,
    "sha256sum": _digest,
    "sha512sum": _digest,
    "shasum": _digest,
    "cksum": _digest,
    "b2sum": _digest,
    "date": _digest,
    "printenv": _environment,
    "set": _environment,
    "read": _read_builtin,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "cd": _cd,
    "pushd": _cd,
    "chdir": _cd,
    "pwd": _pwd,
    "which": _which,
    "type": _which,
    "whoami": _whoami,
    "seq": _seq,
    "ls": _list,
    "dirname": _path_filter,
    "basename": _path_filter,
    "realpath": _path_filter,
    "readlink": _path_filter,
    "gpg": _gpg,
    "gpg2": _gpg,
    "pass": _secret_printer,
    "security": _secret_printer,
    "kubectl": _secret_printer,
    "vault": _secret_printer,
    "op": _secret_printer,
    "gcloud": _secret_printer,
    "secret-tool": _secret_printer,
    "<": lambda _: "",
}
