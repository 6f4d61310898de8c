"""The image of all containers: mount points only, without any program.

Must not know what is mounted when.

>>> image_name(b"x")
'prony-sandbox:2d711642b726'

>>> limit_options(Limits(cpu_quota=1.5, pids=9))
['--cpus', '1.5', '--pids-limit', '9']
"""

import contextlib
import csv
import hashlib
import io
import os
import resource
import sys
import tarfile
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

import prony
from prony.errors import HostError
from prony.sandbox.cgroup.base import Limits
from prony.sandbox.containers.engine import LABEL, ContainerEngine, working_engines

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


# --- the options of an engine's ``run`` command -----------------------------------------------------------


_SYSTEM = ("/usr", "/etc", "/opt", "/bin", "/lib", "/lib32", "/lib64", "/sbin")
# Where root lacks CAP_SYS_RESOURCE, engines try to set a higher limit of processes than they may.
_MOST_PROCESSES = 32_768


def run_options(name: str, mark: str) -> list[str]:
    """Return the options that every container has."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = _MOST_PROCESSES if processes == resource.RLIM_INFINITY else min(processes, _MOST_PROCESSES)
    return [
        *("--interactive", "--rm", "--name", name, "--label", f"{LABEL}={mark}"),
        *("--env", "LANG=C.UTF-8", "--log-driver", "none"),
        *("--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={most}:{most}"),
    ]


def limit_options(limits: Limits) -> list[str]:
    """Return the options for a container's limits; without a limit of processes the option is left out."""
    options: list[str] = []
    if limits.cpus is not None:
        options += ["--cpuset-cpus", ",".join(map(str, limits.cpus))]
    if limits.cpu_quota is not None:
        options += ["--cpus", f"{limits.cpu_quota:g}"]
    if limits.memory_bytes is not None:
        # The limit of memory plus swap is the same: no swap.
        options += ["--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes)]
    return [*options, "--pids-limit", str(limits.pids or -1)]


def hiding_options(file: Path) -> list[str]:
    """Return the options that let ``file`` be empty in a container, if there is such a file."""
    if not file.is_file():
        return []
    return ["--mount", _csv(["type=bind", f"source={os.devnull}", f"target={file}", "readonly"])]


def mounts(read_only: Iterable[Path], writable: Iterable[Path] = ()) -> list[str]:
    """Return the options that mount the host's system, Prony and these folders at their usual paths."""
    own = [Path(prony.__file__).parent.parent, *map(Path, (sys.prefix, sys.base_prefix))]
    system = [Path(name) for name in _SYSTEM if Path(name).is_dir() and not Path(name).is_symlink()]
    shown = without_nested([*system, *own, *read_only])
    ways: list[tuple[Path, list[str]]] = [
        *((path, ["readonly"]) for path in shown),
        *((path, []) for path in writable),
    ]
    return [part for path, way in ways for part in ("--mount", _mount(path, way))]


def _mount(path: Path, way: Sequence[str]) -> str:
    """Return the value that mounts a folder at its own path."""
    return _csv(["type=bind", f"source={path}", f"target={path}", *way])


def _csv(parts: Sequence[str]) -> str:
    """Return the parts of a value in the engines' CSV format."""
    line = StringIO()
    csv.writer(line, lineterminator="").writerow(parts)
    return line.getvalue()


def without_nested(paths: Iterable[Path]) -> Sequence[Path]:
    """Return the paths, each once, without those inside another one.

    >>> [str(path) for path in without_nested([Path("/usr/lib"), Path("/usr"), Path("/usr")])]
    ['/usr']
    """
    found: list[Path] = []
    for path in sorted({Path(os.path.normpath(path)) for path in paths}, key=lambda one: len(one.parts)):
        if not any(path.is_relative_to(other) for other in found):
            found.append(path)
    return found
