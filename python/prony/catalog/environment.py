"""Virtual environments: one for each server and app, locked, cached, built in parallel as an ordinary user.

Must not know how servers are started. `build` does the work for one environment.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from time import monotonic
from typing import TYPE_CHECKING, Literal

from prony.catalog.entry import ServerEntry
from prony.runas import RunAs

if TYPE_CHECKING:
    from prony.catalog.build import Builder

__all__ = [
    "Environment",
    "EnvironmentProgress",
    "EnvironmentRequest",
    "Unavailable",
    "prepare",
    "server_version",
]

# How often progress is looked for: quick enough for the eye, and a Ctrl-C is seen as soon.
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """One environment that is wanted; ``key`` names it to the caller.

    ``app_requirements``: what the app needs, as requirement strings; ``requirements_file``: the same as the
    user's ``requirements.txt`` or ``pyproject.toml``. ``python``: the user's own environment (its folder or
    its interpreter), taken as it stands.
    """

    key: str
    server: ServerEntry
    app_requirements: tuple[str, ...] | None = None
    requirements_file: Path | None = None
    python: Path | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that works: ``python`` is its interpreter, ``bin`` the folder of its programs.

    ``packages`` maps normal names to versions, ``interpreter`` is such as ``CPython 3.11.2``, ``lock_digest``
    the SHA-256 of the lock (empty for a user's own environment).
    """

    key: str
    python: Path
    bin: Path
    packages: Mapping[str, str]
    interpreter: str
    lock_digest: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """An environment that cannot be had: why, in a sentence, and the last lines of what was tried."""

    key: str
    reason: str
    log: str


@dataclass(frozen=True, slots=True)
class EnvironmentProgress:
    """What has become of one request, ``seconds`` after it was begun."""

    key: str
    state: Literal["queued", "building", "ready", "failed"]
    seconds: float = 0.0


def prepare(
    requests: Sequence[EnvironmentRequest],
    user: RunAs,
    on_progress: Callable[[EnvironmentProgress], None],
    jobs: int = 1,
) -> Mapping[str, Environment | Unavailable]:
    """Return the environment of every request, by its key: from the cache, or built now, ``jobs`` at a time.

    ``on_progress`` is called in the calling thread. Interrupted, all builds are killed and none is later
    taken for whole.

    *Errors*: HostError when there is no uv, no interpreter or no writable cache; a single environment that
    cannot be had is no error but `Unavailable`.
    """
    from prony.catalog.build import Builder

    builder = Builder(user)
    waiting: Queue[EnvironmentProgress] = Queue()
    executor = ThreadPoolExecutor(max_workers=max(1, jobs), thread_name_prefix="environment")
    try:
        for request in requests:
            on_progress(EnvironmentProgress(request.key, "queued"))
        futures = {
            request.key: executor.submit(_prepare_one, builder, request, waiting) for request in requests
        }
        _report(futures, waiting, on_progress)
        return {key: future.result() for key, future in futures.items()}
    finally:
        builder.end()
        executor.shutdown(wait=True, cancel_futures=True)


def server_version(server: ServerEntry, environment: Environment) -> str | None:
    """Return the version of the server's package, the first that it requires; none: the interpreter's."""
    if not server.install.requirements:
        return environment.interpreter
    name = re.split(r"[^A-Za-z0-9._-]", server.install.requirements[0], maxsplit=1)[0]
    return environment.packages.get(re.sub(r"[-_.]+", "-", name).lower())


def _prepare_one(
    builder: "Builder", request: EnvironmentRequest, progress: Queue[EnvironmentProgress]
) -> Environment | Unavailable:
    start = monotonic()
    found = builder.environment(
        request,
        on_build=lambda: progress.put(EnvironmentProgress(request.key, "building", monotonic() - start)),
    )
    state: Literal["ready", "failed"] = "ready" if isinstance(found, Environment) else "failed"
    progress.put(EnvironmentProgress(request.key, state, monotonic() - start))
    return found


def _report(
    futures: Mapping[str, Future[Environment | Unavailable]],
    progress: Queue[EnvironmentProgress],
    on_progress: Callable[[EnvironmentProgress], None],
) -> None:
    while not all(future.done() for future in futures.values()) or not progress.empty():
        try:
            on_progress(progress.get(timeout=_POLL_S))
        except Empty:
            continue
