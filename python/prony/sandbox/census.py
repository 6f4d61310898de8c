"""A list on disk of the supervisor's descendants, for subjects without a PID namespace.

If Prony and the supervisor are both killed, nobody would find daemons that left their session; so their
identities are written to a file. Standard library only: the supervisor imports it. Must not know what the
processes do.

>>> Census(None).take()
"""

import contextlib
import json
import os
import time
from pathlib import Path

from prony.sandbox.identity import Identity, descendants, identify

# Servers start their processes early; each look costs a few milliseconds of the generator's CPU.
_FIRST_S, _LONGEST_S = 0.2, 4.0


class Census:
    """Writes the supervisor's descendants to a file when they have changed; does nothing without a file."""

    def __init__(self, path: str | None) -> None:
        self._path = Path(path) if path else None
        self._known: list[Identity] = []
        self._pause_s = _FIRST_S
        self._next_s = 0.0

    def take(self) -> None:
        """Look for changes if it is time."""
        now_s = time.monotonic()
        if self._path is None or now_s < self._next_s:
            return
        self._next_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_S)
        found = []
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                found.append(identify(pid))
        if found != self._known:
            self._write(self._path, found)
            self._known = found

    def _write(self, path: Path, found: list[Identity]) -> None:
        # Not synced to the disk: the file matters only while the machine keeps running.
        new = path.with_name(path.name + ".new")
        with contextlib.suppress(OSError):
            new.write_text(json.dumps({"processes": {str(one.pid): list(one) for one in found}}))
            new.replace(path)
