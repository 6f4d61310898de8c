"""Who is below the supervisor, on disk, where no PID namespace holds them together.

If Prony and the supervisor are both killed, daemons that left their session would be nobody's; so they are
written down by identity. Standard library only, for it is imported by the supervisor. Must not know what the
processes do.

>>> Census(None).take()
"""

import contextlib
import json
import os
import time
from pathlib import Path

from prony.sandbox.identity import Identity, descendants, identify

__all__ = ["Census"]

# Servers start their processes early; a look costs some milliseconds of the generator's CPU.
_FIRST_S, _LONGEST_S = 0.2, 4.0


class Census:
    """Writes the supervisor's descendants to a file when they have changed; without a file, nothing."""

    def __init__(self, path: str | None) -> None:
        self._path = Path(path) if path else None
        self._known: list[Identity] = []
        self._pause_s = _FIRST_S
        self._next_s = 0.0

    def take(self) -> None:
        """Look if it is time to."""
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
        # Not forced to the disk: it matters only if the machine lives on.
        new = path.with_name(path.name + ".new")
        with contextlib.suppress(OSError):
            new.write_text(json.dumps({"processes": {str(one.pid): list(one) for one in found}}))
            new.replace(path)
