"""Builds environments in parallel, and reports their progress. `build` does the work for one of them."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from time import monotonic
from typing import Literal

from prony.catalog.install.build import Builder
from prony.catalog.install.environment import Environment, EnvironmentRequest, Unavailable
from prony.catalog.install.seal import sealed_copy
from prony.catalog.schema.apps import app_files, is_built_in
from prony.core.errors import HostError, UsageError
from prony.core.trees import walk
from prony.core.users import RunAs, first_unreadable, refuse_open_cache
from prony.model.subject import App

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


# --- where servers can read an app ------------------------------------------------------------------------


def materialise_app(app: App, user: RunAs) -> Path:
    """Return a folder with the app that ``user`` can read: for a built-in app a copy, else the app's own.

    *Errors*: UsageError when ``user`` cannot read the app's own folder; HostError when the cache cannot be
    written.
    """
    folder = Path(app.folder)
    if is_built_in(app):
        return _copied(folder, app.digest, user)
    blocked = first_unreadable(folder, user) or _first_closed_file(folder, user)
    if blocked is None:
        return folder
    raise UsageError(
        f"servers run as the user `{user.name}`, who cannot read `{folder}` (no access to `{blocked}`)",
        hint="move the app to a folder that this user can read, or choose another user with `--run-as`",
    )


def _first_closed_file(folder: Path, user: RunAs) -> Path | None:
    if not user.drop:
        return None
    return next((file for file in app_files(folder) if first_unreadable(file, user)), None)


def _copy(folder: Path, draft: Path) -> None:
    for parent, folders, names in walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        place = draft / Path(parent).relative_to(folder)
        place.mkdir(exist_ok=True)
        for name in names:
            shutil.copy(Path(parent, name), place)


def _copied(folder: Path, digest: str, user: RunAs) -> Path:
    target = user.cache / "apps" / f"{folder.name}-{digest[:16]}"
    try:
        return sealed_copy(target, lambda draft: _copy(folder, draft))
    except (OSError, shutil.Error) as error:
        raise HostError(
            f"cannot copy the app `{folder.name}` to `{target}`: {error.strerror or error}",
            hint="choose another place with the environment variable PRONY_CACHE",
        ) from error
