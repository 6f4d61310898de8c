"""Whole lines of what comes through a descriptor, and the JSON objects that they are. Standard library only.

>>> json_object(b'{"beat": true}')
{'beat': True}
"""

import json
import os
import selectors
from collections.abc import Iterator
from typing import Any

from prony.core.units import MIB


def json_object(line: bytes | str) -> dict[str, Any]:
    """Return the JSON object that a line is.

    *Errors*: ValueError for anything else.
    """
    try:
        found = json.loads(line)
    except RecursionError as error:
        raise ValueError("it has too many levels") from error
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found


class Lines:
    """Reads lines and blocks of bytes from a descriptor. ``ended``: nothing more comes. ``longest``: the most
    bytes of a line; null: any number.
    """

    def __init__(self, descriptor: int, longest: int | None = None) -> None:
        # Takes descriptors of any number, and needs none itself.
        self._comes = selectors.PollSelector()
        self._comes.register(descriptor, selectors.EVENT_READ)
        self._descriptor = descriptor
        self._rest, self._longest = bytearray(), longest
        self.ended = False

    def take(self, wait_s: float = 0.0) -> list[bytes]:
        """Return all lines that are whole, after waiting at most so long for more."""
        self._more(wait_s)
        end = self._rest.rfind(b"\n") + 1
        return self._cut(end).split(b"\n")[:-1]

    def line(self, silence_s: float | None = None) -> bytes | None:
        """Return the next line; None at the end, or when nothing comes for so long (None: however long).

        *Errors*: ValueError for one that is longer than allowed.
        """
        known = 0
        while (end := self._rest.find(b"\n", known)) < 0:
            known = len(self._rest)
            if self._longest is not None and known > self._longest:
                raise ValueError(f"a line of more than {self._longest} bytes")
            if not self._more(silence_s):
                return None
        return self._cut(end + 1)[:-1]

    def block(self, length: int, silence_s: float | None = None) -> bytes | None:
        """Return the next bytes; None when fewer come."""
        while len(self._rest) < length:
            if not self._more(silence_s):
                return None
        return self._cut(length)

    def pieces(self, length: int, silence_s: float | None = None) -> Iterator[bytes]:
        """Yield the next bytes as they come, of which there are fewer where the other side has ended."""
        while length and (self._rest or self._more(silence_s)):
            piece = self._cut(min(length, len(self._rest)))
            length -= len(piece)
            yield piece

    def _more(self, wait_s: float | None) -> bool:
        if self.ended or not self._comes.select(wait_s):
            return False
        data = os.read(self._descriptor, MIB)
        self._rest += data
        self.ended = not data
        return bool(data)

    def _cut(self, length: int) -> bytes:
        found = bytes(self._rest[:length])
        del self._rest[:length]
        return found
