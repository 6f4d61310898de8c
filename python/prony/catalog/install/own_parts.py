"""Prony's own compiled part in a place where servers can load it: the reference server needs it.

It is a copy in the cache: the user of the servers may not be able to read the package itself. Must not know
what it is used for.
"""

import hashlib
import shutil
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

from prony.runas import RunAs

__all__ = ["own_parts"]


def own_parts(user: RunAs) -> Path:
    """Return a folder from which any CPython that Prony supports imports `prony._engine`, as ``user``.

    *Errors*: OSError when the cache cannot be written.
    """
    files = _files()
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    target = user.cache / "parts" / f"prony-{digest[:16]}"
    if not target.is_dir():
        _copy(files, target)
    return target


def _files() -> tuple[Path, ...]:
    package, engine = find_spec("prony"), find_spec("prony._engine")
    assert package and package.origin and engine and engine.origin, "they are what runs"
    return Path(package.origin), Path(engine.origin)


def _copy(files: tuple[Path, ...], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.parent.chmod(0o755)
    # Renamed when complete: an interrupted copy is never mistaken for a complete one.
    draft = Path(mkdtemp(prefix=".draft-", dir=target.parent))
    (draft / "prony").mkdir()
    for file in files:
        shutil.copyfile(file, draft / "prony" / file.name)
    for path in [draft, *draft.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    try:
        draft.rename(target)
    except OSError:  # another process was first
        shutil.rmtree(draft)
