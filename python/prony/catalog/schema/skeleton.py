"""A first entry for a user: `prony.d/NAME.toml`, with comments; it works without changes.

Must not know the command line.
"""

import re
from pathlib import Path

from prony.catalog.schema.loader import BUILT_IN_SERVERS, OWN_FOLDER, Catalog
from prony.errors import HostError, UsageError
from prony.model.subject import Interface

_TEXT = Path(__file__).parent / "skeleton.toml"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_NAME = 64


# Of each other interface the plainest entry that comes with Prony, to be changed.
_LIKE = {
    Interface.ASGI: "uvicorn",
    Interface.PSGI: "http-server-psgi",
    Interface.PHP: "uwsgi-php",
    Interface.NONE: "node-http",
}
_HEAD = """\
# A server for Prony: a copy of {like}'s entry, which works as it is.
# Change what differs, then try it:  prony servers --check {name}
# All keys: docs/reference/catalogue-format.md

name = "{name}"
"""


def skeleton(name: str, interface: Interface = Interface.WSGI) -> str:
    """Return the text of an entry called ``name``, which calls its app by ``interface``."""
    if interface is Interface.WSGI:
        return _TEXT.read_text(encoding="utf-8").replace("NAME", name)
    like = _LIKE[interface]
    _, _, rest = (BUILT_IN_SERVERS / f"{like}.toml").read_text(encoding="utf-8").partition("\n")
    return _HEAD.format(name=name, like=like) + rest


def write_skeleton(
    name: str, catalog: Catalog, folder: Path = OWN_FOLDER, interface: Interface = Interface.WSGI
) -> Path:
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
            new.write(skeleton(name, interface))
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
