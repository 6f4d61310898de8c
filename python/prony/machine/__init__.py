"""This machine: its CPUs, its other facts, and whether it is fit to measure. Reads, never changes.

Each fact is a value, or ``{"missing": reason}``. Functions that turn a file's text into facts are pure, and
named ``parse_...`` or after what they return.

Facts from files: a value, or the reason why it is missing.

>>> read_fact(Path("/no/such/file"))
{'missing': 'cannot read `/no/such/file`: No such file or directory'}
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from prony.model.json_codec import Json

# A JSON value, or {"missing": reason}.
Fact = Any


def unread(reason: str) -> Json:
    """Return the stand-in for a value that could not be read."""
    return {"missing": reason}


def read_fact(path: Path, parse: Callable[[str], Fact] = str) -> Fact:
    """Return what ``parse`` makes of a file's stripped text, or the reason why that failed."""
    try:
        return parse(path.read_text(errors="replace").strip())
    except OSError as error:
        return unread(f"cannot read `{path}`: {error.strerror}")
    except (ValueError, IndexError, KeyError, StopIteration):
        return unread(f"`{path}` does not say")


def read_text(path: Path) -> str | None:
    """Return a file's text, stripped; None when it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def found_in(folder: Path, pattern: str) -> list[Path]:
    """Return what matches in a folder, sorted; nothing where it cannot be read."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def read_number(path: Path) -> int | None:
    """Return the number that a file holds; None when there is none."""
    text = read_text(path)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None
