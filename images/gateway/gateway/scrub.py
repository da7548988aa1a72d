"""Taking the key out of what a provider says: some repeat what they were given. Does no I/O."""

from __future__ import annotations

SHOWN = b"[key]"


class Scrub:
    """Feed a text in any portions; what comes out, joined, is the text without the key."""

    def __init__(self, key: str | None) -> None:
        self._key = key.encode() if key else b""
        self._tail = b""

    def whole(self, text: bytes) -> bytes:
        """A text that is all there."""
        return text.replace(self._key, SHOWN) if self._key else text

    def feed(self, portion: bytes) -> bytes:
        """As much as is certain: an end that the key may go on from is held back."""
        text = self.whole(self._tail + portion)
        held = next(
            (size for size in range(min(len(self._key) - 1, len(text)), 0, -1) if self._starts(text, size)), 0
        )
        self._tail = text[len(text) - held :]
        return text[: len(text) - held]

    def rest(self) -> bytes:
        """What is held back, once nothing more comes."""
        tail, self._tail = self._tail, b""
        return tail

    def _starts(self, text: bytes, size: int) -> bool:
        return self._key.startswith(text[len(text) - size :])
