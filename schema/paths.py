"""Paths and names as reversible, harmless text.

File names that an agent chose may hold any byte but NUL and ``/``. Inside Python they are ``str`` with
``surrogateescape`` (as ``os.fsdecode`` gives); in JSON, in git trees and in folder names they are
percent-encoded element by element, which no two names share.
"""

from urllib.parse import quote, unquote_to_bytes

_SAFE = "+,=@^ "


def encode_element(element: str, safe: str = _SAFE) -> str:
    """Percent-encode one path element. ``.`` and ``..`` and a leading ``.git`` become inert too.

    So does the tilde, which Python holds for safe: git takes ``git~1`` for ``.git``, and from 2.48 on refuses
    it. Older evidence holds plain tildes, and decodes alike.
    """
    text = quote(element.encode("utf-8", "surrogateescape"), safe=safe).replace("~", "%7E")
    if text.startswith(".") and (text in {".", ".."} or text.lower().startswith(".git")):
        text = "%2E" + text[1:]
    return text


def encode_path(path: str) -> str:
    """Percent-encode a tree-relative POSIX path, keeping its slashes."""
    return "/".join(encode_element(part) for part in path.split("/"))


def decode_path(text: str) -> str:
    """Invert :func:`encode_path`."""
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")


def encode_name(name: str) -> str:
    """A model or task id as a folder name: reversible, and the same on case-blind file systems.

    Upper-case letters are written as ``^`` and the lower-case letter, so that two ids never share a folder
    where the file system folds case.
    """
    return "".join(
        f"^{c.lower()}" if c.isascii() and c.isupper() else encode_element(c, safe="") for c in name
    )


def decode_name(text: str) -> str:
    """Invert :func:`encode_name`."""
    out: list[str] = []
    parts = text.split("^")
    out.append(parts[0])
    for part in parts[1:]:
        out.append(part[:1].upper() + part[1:])
    return decode_path("".join(out))
