"""The line of this process in the process list, which every user of the machine can read.

>>> overwrite_words(["no such word"])
"""

import contextlib
import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

# proc_pid_stat(5): where the arguments begin, behind the name in brackets, which ends at the last `)`.
_ARG_START = 48 - 3


def overwrite_words(secrets: Iterable[str]) -> None:
    """Overwrite words of the command line where the kernel reads it; where that cannot be, do nothing."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = Path("/proc/self/cmdline").read_bytes()
        start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[_ARG_START])
        if start and ctypes.string_at(start, len(line)) == line:
            for place, length in _places(line, secrets):
                ctypes.memset(start + place, ord("x"), length)


def _places(line: bytes, secrets: Iterable[str]) -> Iterable[tuple[int, int]]:
    for secret in map(os.fsencode, secrets):
        place = line.find(secret) if secret else -1
        while place >= 0:
            yield place, len(secret)
            place = line.find(secret, place + len(secret))
