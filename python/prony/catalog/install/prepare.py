"""Builds environments in parallel, and reports their progress. `build` does the work for one of them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, Queue
from time import monotonic
from typing import Literal

from prony.catalog.install.access import refuse_open_cache
from prony.catalog.install.build import Builder
from prony.catalog.install.environment import Environment, EnvironmentRequest, Unavailable
from prony.runas import RunAs

# How often to poll: fast enough for the eye and for Ctrl-C.
_POLL_S = 0.1


# Source: Python's developer guide, Status of Python versions: 3.9 ended in October 2025.
_MAINTAINED = (3, 10)


@dataclass(frozen=True, slots=True)
class EnvironmentProgress:
    """The state of one request, ``seconds`` after it was started.

    ``why``: why it is built again, if it is. ``unmaintained``: the CPython for which it is
    built, if nobody maintains that any more.
    """

    key: str
    state: Literal["queued", "building", "ready", "failed"]
    seconds: float = 0.0
    why: str = ""
    unmaintained: str = ""


def prepare(
    requests: Sequence[EnvironmentRequest],
    user: RunAs,
    on_progress: Callable[[EnvironmentProgress], None],
    jobs: int = 1,
) -> Mapping[str, Environment | Unavailable]:
    """Return the environment of every request, by its key: from the cache, or built now, ``jobs`` at a time.

    ``on_progress`` is called in the calling thread. An interruption kills all builds, and none of them is
    later mistaken for complete.

    *Errors*: HostError when there is no uv, no interpreter, no writable cache, or one that who
    runs servers can change. A single unavailable
    environment is not an error but returned as `Unavailable`.
    """
    refuse_open_cache(user)
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
    builder: Builder, request: EnvironmentRequest, progress: Queue[EnvironmentProgress]
) -> Environment | Unavailable:
    start = monotonic()
    found = builder.environment(
        request,
        on_build=lambda why: progress.put(
            EnvironmentProgress(request.key, "building", monotonic() - start, why, _unmaintained(request))
        ),
    )
    state: Literal["ready", "failed"] = "ready" if isinstance(found, Environment) else "failed"
    progress.put(EnvironmentProgress(request.key, state, monotonic() - start))
    return found


def _unmaintained(request: EnvironmentRequest) -> str:
    python = getattr(request.server.install, "python", None) or ""
    return python if python and tuple(map(int, python.split("."))) < _MAINTAINED else ""


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
