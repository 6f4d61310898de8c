"""A first entry for a user: `prony.d/NAME.toml`, with comments; it works without changes.

Must not know the command line.
"""

import re
from pathlib import Path

from prony.catalog.schema.loader import OWN_FOLDER, Catalog
from prony.errors import HostError, UsageError

_TEXT = Path(__file__).parent / "skeleton.toml"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_NAME = 64


def skeleton(name: str) -> str:
    """Return the text of an entry called ``name``."""
    return _TEXT.read_text(encoding="utf-8").replace("NAME", name)


def write_skeleton(name: str, catalog: Catalog, folder: Path = OWN_FOLDER) -> Path:
    """Write the entry ``name`` into ``folder`` and return its file.

    *Errors*: UsageError for an invalid name, or one that a server or a file already has; HostError when it
    cannot be written.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise UsageError(
            f"`--new {name}`: expected a name of small letters, digits and single hyphens, "
            f"at most {_LONGEST_NAME} characters"
        )
    if _is_taken(name, catalog):
        raise UsageError(f"`--new {name}`: a server of that name exists; expected a new name")
    file = folder / f"{name}.toml"
    try:
        folder.mkdir(exist_ok=True)
        with file.open("x", encoding="utf-8") as new:
            new.write(skeleton(name))
    except FileExistsError:
        raise UsageError(f"`{file}` already exists; expected a new name") from None
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror}") from error
    return file


def _is_taken(name: str, catalog: Catalog) -> bool:
    try:
        catalog.find(name)
    except UsageError:
        return False
    return True
