"""Tar streams as an engine writes them, for tests."""

import io
import tarfile
from collections.abc import Callable, Iterator

Change = Callable[[tarfile.TarInfo], None]


def entry(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """One tar entry below ``workspace/``."""
    info = tarfile.TarInfo(f"workspace/{name}" if name else "workspace")
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def stream(*entries: tuple[tarfile.TarInfo, bytes], chunk: int = 1000) -> Iterator[bytes]:
    """The entries as a chunked tar stream, the workspace folder first."""
    out = io.BytesIO()
    root = tarfile.TarInfo("workspace/")
    root.type = tarfile.DIRTYPE
    with tarfile.open(fileobj=out, mode="w", errors="surrogateescape") as tar:
        for info, data in ((root, b""), *entries):
            tar.addfile(info, io.BytesIO(data) if info.isreg() else None)
    whole = out.getvalue()
    yield from (whole[at : at + chunk] for at in range(0, len(whole), chunk))
