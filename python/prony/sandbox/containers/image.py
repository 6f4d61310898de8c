"""The image of all containers: mount points only, without any program.

Must not know what is mounted when.

>>> image_name(b"x")
'prony-sandbox:2d711642b726'
"""

import contextlib
import hashlib
import io
import os
import tarfile
from pathlib import Path

from prony.errors import HostError
from prony.sandbox.containers.engine import ContainerEngine, working_engines

IMAGE = "prony-sandbox"
_FOLDERS = ("dev", "etc", "proc", "run", "sys", "usr", "var", "var/lib", "var/log")
_OPEN_FOLDERS = ("tmp", "var/tmp")
# On most systems these are links into /usr; where they are folders, they are mounted.
_LINKS = ("bin", "lib", "lib32", "lib64", "sbin")


def ensure_image(engine: ContainerEngine) -> str:
    """Return the name of the image; create it unless the engine has it.

    *Errors*: HostError.
    """
    content = containerfile()
    name = image_name(content)
    if not engine.ask("images", "--quiet", name):
        engine.ask("import", "-", name, given=content)
    return name


def remove_images() -> int:
    """Remove Prony's images from every engine that works, and return how many there were."""
    removed = 0
    for engine in working_engines():
        with contextlib.suppress(HostError):
            found = set(engine.ask("images", "--quiet", IMAGE).split())
            for one in sorted(found):
                engine.ask("rmi", "--force", one)
            removed += len(found)
    return removed


def image_name(content: bytes) -> str:
    """Return the name of the image with this content; other content gets another name."""
    return f"{IMAGE}:{hashlib.sha256(content).hexdigest()[:12]}"


def containerfile(top: Path = Path("/")) -> bytes:
    """Return the image's files as a tar archive, the same on the same system: no times, no owners."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in _FOLDERS:
            archive.addfile(_entry(name, tarfile.DIRTYPE, 0o755))
        for name in _OPEN_FOLDERS:
            archive.addfile(_entry(name, tarfile.DIRTYPE, 0o1777))
        for name in _LINKS:
            if (top / name).is_symlink():
                link = _entry(name, tarfile.SYMTYPE, 0o777)
                link.linkname = os.fspath((top / name).readlink())
                archive.addfile(link)
    return file.getvalue()


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    return entry
