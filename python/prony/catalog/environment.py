"""Environments: what a server, frontend or service needs to run around an app, had or built, in parallel.

For Python servers that is a virtual environment, locked and cached; for the system's own programs, where
they are. Must not know how servers are started. `build` does the work for one environment.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from time import monotonic
from typing import TYPE_CHECKING, Literal

from prony.catalog.entry import ProcessEntry
from prony.runas import RunAs

if TYPE_CHECKING:
    from prony.catalog.build import Builder

__all__ = [
    "Environment",
    "EnvironmentProgress",
    "EnvironmentRequest",
    "Unavailable",
    "prepare",
]

# How often progress is looked for: quick enough for the eye, and a Ctrl-C is seen as soon.
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """One environment that is wanted; ``key`` names it to the caller.

    ``app_requirements``: what the app needs, as requirement strings; ``requirements_file``: the same as the
    user's ``requirements.txt`` or ``pyproject.toml``. ``python``: the user's own environment (its folder or
    its interpreter), taken as it stands. ``app_folder`` and ``app_digest``: the app, where what is built
    reads it.
    """

    key: str
    server: ProcessEntry
    app_requirements: tuple[str, ...] | None = None
    requirements_file: Path | None = None
    python: Path | None = None
    app_folder: Path | None = None
    app_digest: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that works.

    ``version`` is the server's, ``interpreter`` what it runs on, such as ``CPython 3.11.2``; null or empty:
    not told. ``python`` is the interpreter and ``bin`` the folder of the programs of a virtual environment,
    null without one; ``packages`` maps normal names to versions, ``lock_digest`` is the SHA-256 of the lock
    (empty for a user's own environment). ``programs``: where the system's programs are, by their names in
    the entry; ``build``: the folder with what was built; ``prony``: that with Prony's own compiled part.
    """

    key: str
    version: str | None
    interpreter: str = ""
    python: Path | None = None
    bin: Path | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    lock_digest: str = ""
    programs: Mapping[str, Path] = field(default_factory=dict)
    build: Path | None = None
    prony: Path | None = None

    @property
    def places(self) -> Mapping[str, str]:
        """What placeholders stand for: ``python``, ``bin``, ``build``, ``prony`` and the programs."""
        own = {
            "python": self.python,
            "bin": self.bin,
            "build": self.build,
            "prony": self.prony,
            **self.programs,
        }
        return {name: str(path) for name, path in own.items() if path is not None}

    @property
    def shown_places(self) -> Mapping[str, str]:
        """Those of them that a person's own command has too: where the system's programs are."""
        build = {"build": str(self.build)} if self.build else {}
        return {**build, **{name: str(path) for name, path in self.programs.items()}}


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
