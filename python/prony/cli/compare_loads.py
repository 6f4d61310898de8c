"""``prony compare`` of saved loads: a file of ``prony load --json`` a side, or a folder of them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.core.errors import UsageError
from prony.core.units import MIB

if TYPE_CHECKING:
    from prony.figures.load_pairs import SavedLoad, SavedLoads
    from prony.figures.versus import Versus

# A load of a day has 86,400 seconds of some hundred bytes each; read as JSON it takes ten times as much.
_MOST_BYTES = 64 * MIB
_ARCHIVE = b"SQLite format 3\0"
_HINT = "prony load URL --json FILE saves a load; prony compare --help has examples"


def are_saved_loads(path: Path) -> bool:
    """Return whether this is a folder with such files, or a file that is no archive but begins as JSON."""
    if path.is_dir():
        return any(path.glob("*.json"))
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            head = file.read(len(_ARCHIVE))
    except OSError:
        return False  # what reads archives says what is wrong with it
    return head != _ARCHIVE and head.lstrip()[:1] == b"{"


def compared_saved_loads(first: Path, second: Path, *, force: bool) -> "Versus":
    """Return the comparison of two sides of saved loads.

    *Errors*: UsageError for a file that is none, and, without ``force``, for loads that differ.
    """
    from prony.figures.load_pairs import compare_saved_loads

    sides = _side(first), _side(second)
    differ = tuple(dict.fromkeys(_differences(sides)))
    if differ and not force:
        raise UsageError(
            f"`{first}` and `{second}` cannot be compared, because their loads differ: {'; '.join(differ)}",
            hint="load both alike, or add --force and read the result with care",
        )
    return compare_saved_loads(*sides, differ)


def _differences(sides: Sequence["SavedLoads"]) -> Iterator[str]:
    from prony.figures.load_pairs import differing_loads

    every = [load for side in sides for load in side.loads.values()]
    for one in every[1:]:
        yield from differing_loads(every[0], one)


def _side(path: Path) -> "SavedLoads":
    from prony.figures.load_pairs import SavedLoads

    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return SavedLoads(str(path), {str(file): _load(file) for file in files})


def _load(file: Path) -> "SavedLoad":
    from prony.figures.load_pairs import decode_saved_load

    try:
        if not file.is_file():
            raise ValueError("it is no file")
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError("it is too large for one")
        return decode_saved_load(json.loads(file.read_bytes()))
    except OSError as error:
        raise UsageError(f"cannot read `{file}`: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"`{file}` is no saved load: {error}", hint=_HINT) from None
