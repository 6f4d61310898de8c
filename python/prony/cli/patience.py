"""How long a command may take for archives, which may be anybody's: CPU time, whatever it does with them.

>>> round(_allowed_s([1 << 20, 8 << 20]))
24
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from prony.core.deadline import cpu_deadline
from prony.core.errors import ArchiveError, UsageError
from prony.core.trees import walk
from prony.core.units import MIB

if TYPE_CHECKING:
    from prony.reading.study import StudyResults

_AT_LEAST_S = 9.0
_FOR_EACH_MIB_S = 2.0
_FREE_BYTES = 5 * MIB
_MOST_S = 24 * 3600.0
_OF_THE_USER = "PRONY_READING_S"

_P = ParamSpec("_P")
_R = TypeVar("_R")


def with_patience(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a command that gives up when its archives cost more CPU time than such archives do."""

    @wraps(command)
    def limited(*typed: _P.args, **options: _P.kwargs) -> _R:
        # Not what it writes: each further archive has its own time.
        values = (*typed, *(value for name, value in options.items() if not name.endswith("_to")))
        named = [Path(one) for value in values for one in _paths(value)]
        allowed_s = _of_the_user() or _allowed_s(_sizes(named))
        with cpu_deadline(allowed_s, lambda: _too_much(allowed_s)):
            return command(*typed, **options)

    return limited


def read_file(file: Path, *, force: bool = False) -> "StudyResults":
    """Return the results of an archive. ``force``: subjects whose pace was not steady enter verdicts.

    *Errors*: ArchiveError.
    """
    from prony.archive import open_archive
    from prony.reading.study import read_archive

    with open_archive(file) as archive:
        return read_archive(archive, takes_unsteady=force)


def _too_much(allowed_s: float) -> ArchiveError:
    return ArchiveError(
        f"it takes more than {allowed_s:.0f} s of CPU time, the limit for a file of its size",
        hint=f"if the archive is yours, allow more with the environment variable {_OF_THE_USER}",
    )


def _paths(value: object) -> Iterable[str | Path]:
    values = value if isinstance(value, list | tuple) else [value]
    return [one for one in values if isinstance(one, str | Path)]


def _of_the_user() -> float | None:
    """Return what the user allows; None: nothing is said.

    *Errors*: UsageError for what is no time.
    """
    typed = os.environ.get(_OF_THE_USER)
    if not typed:
        return None
    try:
        found = float(typed)
    except ValueError:
        found = math.nan
    if not 1.0 <= found <= _MOST_S:
        raise UsageError(f"`{_OF_THE_USER}={typed}`: expected seconds, 1 to {_MOST_S:.0f}")
    return found


def _sizes(named: Iterable[Path]) -> Iterator[int]:
    for path in named:
        with contextlib.suppress(OSError):
            yield from (file.stat().st_size for file in archives_below(path))


def archives_below(place: Path) -> list[Path]:
    """Return the archives in a folder and below, or what is no folder itself. *Errors*: OSError."""
    if not place.is_dir():
        return [place]
    return sorted(
        Path(folder, name) for folder, _, names in walk(place) for name in names if name.endswith(".prony")
    )


def _allowed_s(sizes: Iterable[int]) -> float:
    allowed = [_AT_LEAST_S + _FOR_EACH_MIB_S * max(0, size - _FREE_BYTES) / MIB for size in sizes]
    return max(sum(allowed), _AT_LEAST_S)
