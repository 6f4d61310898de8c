"""Keeps a bounded part of a subject's output: its first and its last bytes.

Imports little: the supervisor imports it. Must not know processes.

>>> ring = Ring(head_bytes=4, tail_bytes=4)
>>> ring.add(b"abcdefghijkl")
>>> ring.text()
('abcd\\n[... 4 bytes left out ...]\\nijkl', True)
"""

from prony.units import KIB


class Ring:
    """Keeps the head and the tail of a stream, whatever its length."""

    def __init__(self, head_bytes: int = 64 * KIB, tail_bytes: int = 256 * KIB) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Append data."""
        room = self._head_bytes - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        # Cut only at twice the size: then each byte is moved at most once.
        if len(self._tail) > 2 * self._tail_bytes:
            self._cut()

    def text(self) -> tuple[str, bool]:
        """Return the text, with a mark where bytes are left out, and whether any are."""
        self._cut()
        mark = f"\n[... {self._dropped} bytes left out ...]\n".encode() if self._dropped else b""
        return (self._head + mark + self._tail).decode(errors="replace"), self._dropped > 0

    def _cut(self) -> None:
        excess = len(self._tail) - self._tail_bytes
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess
