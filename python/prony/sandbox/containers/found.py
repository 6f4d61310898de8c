"""The engine that works on this machine: found once, by running a container.

Must not know subjects.

>>> find_engine.__name__
'find_engine'
"""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from prony.errors import HostError
from prony.model.sandbox import LimitState
from prony.sandbox.cgroup.base import LimitName, Limits
from prony.sandbox.cgroup.files import own_mark
from prony.sandbox.cgroup.probe import Done, probe_limit, run_python
from prony.sandbox.choice import Absent
from prony.sandbox.containers.engine import ContainerEngine, working_engines
from prony.sandbox.containers.image import ensure_image, limit_options, mounts, run_options
from prony.temporary import temporary_folder

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
