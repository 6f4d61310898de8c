"""One container engine by its command line: found by running a container, called, and limited; and the image
of all containers: mount points, without any program.

A container has the same programs as any other sandbox: the environments of the catalogue's entries and the
host's system, mounted read-only at their usual paths. So a comparison of sandboxes compares only sandboxes.

>>> ContainerEngine("/usr/local/bin/docker").name, image_name(b"x")
('docker', 'prony-sandbox:2d711642b726')
>>> limit_options(Limits(cpu_quota=1.5, pids=9))
['--cpus', '1.5', '--pids-limit', '9']
"""

import contextlib
import csv
import hashlib
import io
import os
import resource
import secrets
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from io import StringIO
from pathlib import Path

import prony
from prony.core.errors import HostError
from prony.core.temporary import temporary_folder
from prony.model.sandbox import LimitState
from prony.sandbox.cgroup.files import own_mark
from prony.sandbox.cgroup.probe import Done, probe_limit, run_python
from prony.sandbox.cgroup.types import LimitName, Limits
from prony.sandbox.choice import Absent

_PROGRAMS = ("docker", "podman")
_TIMEOUT_S = 60.0
# The label of Prony's containers; its value is the mark of the Prony that created them.
LABEL = "prony"


@dataclass(frozen=True, slots=True)
class ContainerEngine:
    """A container engine. ``program``: where its command is."""

    program: str

    @property
    def name(self) -> str:
        """Its name: ``docker`` or ``podman``."""
        return Path(self.program).name

    def ask(self, *arguments: str, given: bytes | None = None) -> str:
        """Return what a command of the engine prints; ``given`` is its input.

        *Errors*: HostError with the last line of its output.
        """
        try:
            done = subprocess.run(
                [self.program, *arguments],
                input=given or b"",
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HostError(f"`{self.name} {arguments[0]}`: {error}") from error
        if done.returncode:
            raise HostError(f"`{self.name} {arguments[0]}`: {_last_line(done.stderr)}")
        return done.stdout.decode().strip()

    def containers(self) -> dict[str, str]:
        """Return the marks of all containers of any Prony, by container id.

        *Errors*: HostError.
        """
        found = self.ask("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL}").split()
        template = f'{{{{index .Config.Labels "{LABEL}"}}}}'
        marks = {}
        for one in found:
            # It may have ended in the meantime.
            with contextlib.suppress(HostError):
                marks[one] = self.ask("inspect", "--format", template, one)
        return marks

    def remove(self, container: str) -> str | None:
        """Kill a container and remove it; return None when it is gone, else why not."""
        try:
            self.ask("rm", "--force", "--volumes", container)
        except HostError as error:
            # No such container: that is the goal.
            return None if "no such container" in error.message.lower() else error.message
        return None


def working_engines() -> Iterator[ContainerEngine]:
    """Yield the engines whose commands are on PATH; they may not work."""
    for name in _PROGRAMS:
        program = shutil.which(name)
        if program is not None:
            yield ContainerEngine(program)


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("Error: ").removeprefix("docker: ") if lines else "it failed silently"


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


# --- the engine that works on this machine ----------------------------------------------------------------


_PYTHON = (sys.executable, "-I", "-S")


@dataclass(frozen=True, slots=True)
class FoundEngine:
    """An engine that runs containers on this machine, and their common image."""

    engine: ContainerEngine
    image: str

    def command(
        self, name: str, options: Sequence[str], read_only: Sequence[Path] = (), writable: Sequence[Path] = ()
    ) -> list[str]:
        """Return the start of a command that runs a program in a container of this name."""
        own = run_options(name, str(own_mark()))
        return [self.engine.program, "run", *own, *options, *mounts(read_only, writable), self.image]


@cache
def find_engine() -> FoundEngine | Absent:
    """Return the first engine that runs a container, or why none does; tested once."""
    if os.geteuid() != 0:
        return Absent("only root can put the generator into a container's network", "sudo prony …")
    reasons = []
    for engine in working_engines():
        try:
            found = FoundEngine(engine, ensure_image(engine))
            _run(found, ["--network", "none", "--pids-limit", "64"], ["-c", "print(1)"])
        except (HostError, ValueError, OSError) as error:
            reasons.append(error.message if isinstance(error, HostError) else f"{engine.name}: {error}")
        else:
            return found
    return Absent("; ".join(reasons) or "neither `docker` nor `podman` is on PATH")


def usable_engine() -> FoundEngine:
    """Return the engine.

    *Errors*: HostError when there is none.
    """
    found = find_engine()
    if isinstance(found, Absent):
        raise HostError(f"containers are not available: {found.reason}", found.hint)
    return found


def limit_states(limits: Sequence[LimitName]) -> Mapping[LimitName, LimitState]:
    """Return for each of these limits whether it holds in a container on this machine; tested once.

    *Errors*: HostError when there is no engine.
    """
    return {limit: _limit_state(limit) for limit in limits}


@cache
def _limit_state(limit: LimitName) -> LimitState:
    return probe_limit(limit, partial(_run_limited, usable_engine()))


def _run_limited(found: FoundEngine, limits: Limits, script: list[str]) -> Done:
    return _run(found, ["--network", "none", *limit_options(limits)], script)


def _run(found: FoundEngine, options: list[str], script: list[str]) -> Done:
    name = f"prony-probe-{secrets.token_hex(4)}"
    # Podman's monitor leaves a file in its working directory when the kernel kills because memory ran out.
    with temporary_folder("probe") as folder:
        try:
            return run_python([*found.command(name, options), *_PYTHON, *script], folder=str(folder))
        finally:
            found.engine.remove(name)
