"""Units of systemd that this machine has for an app's folder: read as files, and never started.

>>> installed_units(Path("/no/such/folder"), {}.get)
[]
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.catalog.discover.sources import Written
from prony.catalog.discover.units import command_of_unit
from prony.core.trees import content
from prony.core.units import MIB

if TYPE_CHECKING:
    from prony.catalog.discover.sources import Read

# *Source*: systemd.unit(5), Unit File Load Path: what an administrator or a user has put there.
_OF_SYSTEM = (Path("/etc/systemd/system"), Path("/usr/local/lib/systemd/system"))
_OF_USERS = (Path("/etc/systemd/user"), Path("/usr/local/lib/systemd/user"))
_LARGEST_BYTES = MIB


def installed_units(folder: Path, read: "Read") -> list[Written]:
    """Return what the units of the machine start that work in ``folder``, below it, or with a file of it.
    ``read``: of that folder.
    """
    here = os.path.realpath(folder)
    if here == "/" or not folder.is_dir():
        return []
    texts = (pair for folders, home in _managers() for pair in _texts(folders, home))
    commands = (command_of_unit(read, path, text) for path, text in texts)
    spelled = dict.fromkeys((here, str(folder.absolute())))
    return [placed for one in commands if one and (placed := _placed(one, list(spelled)))]


def _managers() -> Iterator[tuple[Sequence[Path], str]]:
    """Yield where the system's units lie, then its user's, those that count first; and what `%h` is there."""
    home = os.path.expanduser(f"~{os.environ.get('SUDO_USER', '')}")  # noqa: PTH111 - it may be nobody's
    yield _OF_SYSTEM, "/root"
    yield (Path(home, ".config/systemd/user"), *_OF_USERS), home


def _texts(folders: Sequence[Path], home: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each unit, with what is dropped in behind it.

    *Source*: systemd.unit(5): of two units of one name the first folder's counts; of drop-ins all do, in the
    order of their names.
    """
    for name in sorted({name for folder in folders for name in _names(folder) if name.endswith(".service")}):
        unit = next(folder / name for folder in folders if os.path.lexists(folder / name))
        dropped = [one / more for one in (folder / f"{name}.d" for folder in folders) for more in _names(one)]
        more = sorted((one for one in dropped if one.suffix == ".conf"), key=lambda one: one.name)
        try:
            read = [content(one, _LARGEST_BYTES).decode(errors="replace") for one in (unit, *more)]
        except OSError:
            # What runs is not known without all of it.
            continue
        said = f" with {' and '.join(one.name for one in more)}" if more else ""
        yield f"{unit}{said}", "\n".join(read).replace("%h", home)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _placed(written: Written, spelled: Sequence[str]) -> Written | None:
    """Return a unit's command as one of the folder that is ``spelled`` so; None: it is none of it."""
    here, base = spelled[0], written.base
    copies = tuple((one, ".") for one in spelled)
    if (place := _below(here, base)) is not None:
        return replace(written, place=place, copies=copies)
    # Relative names are of another folder then.
    is_above = base not in ("", "/") and _below(base, here) is not None
    if is_above or not any(re.search(rf"(?<![\w./-]){re.escape(one)}/", written.text) for one in spelled):
        return None
    elsewhere = () if base in ("", "/") else (f"`WorkingDirectory={base}`",)
    return replace(written, base=here, copies=copies, remarks=(*written.remarks, *elsewhere))


def _below(outer: str, inner: str) -> str | None:
    """Return the path of a folder in another one; empty: it is that one; None: it lies elsewhere."""
    outer, real = os.path.realpath(outer), os.path.realpath(inner)
    is_there = inner.startswith("/") and os.path.isdir(real)  # noqa: PTH112
    if not is_there or not f"{real}/".startswith(f"{outer}/"):
        return None
    return real[len(outer) + 1 :]
