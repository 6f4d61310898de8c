"""Prony's own compiled part in a place where servers can load it: the reference server needs it.

It is a copy in the cache: the user of the servers may not be able to read the package itself. Must not know
what it is used for.
"""

import hashlib
import shutil
from importlib.util import find_spec
from pathlib import Path

from prony.catalog.install.sealed import sealed_copy
from prony.runas import RunAs


def own_parts(user: RunAs) -> Path:
    """Return a folder from which any CPython that Prony supports imports `prony._engine`, as ``user``.

    *Errors*: OSError when the cache cannot be written.
    """
    files = _files()
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    target = user.cache / "parts" / f"prony-{digest[:16]}"
    return sealed_copy(target, lambda draft: _copy(files, draft / "prony"))


def _files() -> tuple[Path, ...]:
    package, engine = find_spec("prony"), find_spec("prony._engine")
    assert package and package.origin and engine and engine.origin, "they are what runs"
    return Path(package.origin), Path(engine.origin)


def _copy(files: tuple[Path, ...], target: Path) -> None:
    target.mkdir()
    for file in files:
        shutil.copyfile(file, target / file.name)
