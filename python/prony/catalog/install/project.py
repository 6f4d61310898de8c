"""An app's folder as packages are built from it: the folder itself, or a copy that whoever builds can read.

Must not know what is built.

>>> project_state(["six==1.17.0"], Path("/srv"))[:8]
'e3b0c442'
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prony.catalog.install.access import first_unreadable
from prony.catalog.schema.apps import SKIPPED
from prony.runas import RunAs
from prony.trees import walk
from prony.units import GIB

# Beyond it the copy takes longer than anybody waits.
_MOST_BYTES = GIB


def project_state(lines: Iterable[str], folder: Path) -> str:
    """Return a digest of the folders that the lines of a lock name: of each file's path, size and time."""
    digest = hashlib.sha256()
    for path in filter(None, (_path_in(line, folder) for line in lines)):
        for file in _files(path):
            found = file.lstat()
            digest.update(f"{file}\0{found.st_size}\0{found.st_mtime_ns}\n".encode(errors="replace"))
    return digest.hexdigest()


def readable_project(folder: Path, user: RunAs, copy: Path) -> Path:
    """Return ``folder``, or ``copy`` with its files if ``user`` cannot enter it: those that anybody may read.

    *Errors*: OSError; ValueError when it is too large.
    """
    if first_unreadable(folder, user) is None:
        return folder
    total = 0
    for file in _files(folder):
        found = file.lstat()
        if not stat.S_ISREG(found.st_mode) or not found.st_mode & stat.S_IROTH:
            continue
        total += found.st_size
        if total > _MOST_BYTES:
            raise ValueError(
                f"`{folder}` is too large to copy, and `{user.name}`, who builds, cannot enter it"
            )
        target = copy / file.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target, follow_symlinks=False)
    return copy


def _path_in(line: str, folder: Path) -> Path | None:
    """Return what a line of a lock names on this machine; null: a package, or something elsewhere.

    >>> _path_in("-e ./mine", Path("/srv")), _path_in("mine @ file:///opt/mine", Path("/srv"))
    (PosixPath('/srv/mine'), PosixPath('/opt/mine'))
    >>> _path_in("mine @ file:mine.zip --hash=sha256:0", Path("/srv")), _path_in("six==1.17.0", Path("/srv"))
    (PosixPath('/srv/mine.zip'), None)
    """
    name = line.removeprefix("-e ").partition(" @ ")[2] or line.removeprefix("-e ")
    word = name.partition(" ")[0].partition("#")[0].replace("${PROJECT_ROOT}", str(folder))
    if word.startswith("file:"):
        word = unquote(urlsplit(word).path)
    return None if "==" in word or "://" in word else Path(os.path.normpath(folder / word))


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for inner, folders, names in walk(path):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield from (Path(inner, name) for name in sorted(names))
