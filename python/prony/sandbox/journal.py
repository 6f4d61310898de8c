"""A record on disk of what Prony runs, so that the next Prony can stop what a killed one left.

One folder for each running Prony, ``<cache>/run/<run-id>/``, with its identity in ``owner.json`` and a lock
on it for as long as it runs; next to each trial's folder there is a record of the processes. Processes are
killed by identity, never by name.

>>> Remains(run="x").processes_ended
0
"""

import contextlib
import fcntl
import json
import os
import secrets
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from prony.core.errors import HostError, explained
from prony.core.trees import remove_tree
from prony.core.users import RunAs, make_passable, own_folder
from prony.model.json_codec import Json
from prony.sandbox.identity import (
    Identity,
    boot_id,
    descendants,
    end_process,
    identify,
    identities_of,
    pid_namespace,
)

_OWNER = "owner.json"
_SUFFIX = ".journal"
_SUPERVISOR_S = 5.0


@dataclass(frozen=True, slots=True)
class Remains:
    """What a killed Prony left, and what was done about it.

    ``kept`` is the reason why its folder still exists.
    """

    run: str
    processes_ended: int = 0
    kept: str | None = None


class RunFolder:
    """The folder of a running Prony. As a context manager it removes the folder on exit."""

    def __init__(self, folder: Path, user: RunAs, lock: int) -> None:
        self.folder = folder
        self._user = user
        self._lock = lock

    @property
    def id(self) -> str:
        """The run's name, unique on this machine."""
        return self.folder.name

    def trial_folder(self, name: str) -> Path:
        """Create the folder of one trial, writable by its subject, and return it."""
        return own_folder(self.folder / name, self._user)

    def remove_trial_folder(self, name: str) -> None:
        """Remove a trial's folder; a study of hundreds of trials would fill the disk."""
        own = self.folder / name
        for folder in (own, generator_folder(own), layer_folder(own)):
            _remove_quietly(folder)

    def close(self) -> None:
        """Remove the folder and release the lock."""
        _remove_quietly(self.folder)
        with contextlib.suppress(OSError):
            os.close(self._lock)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def open_run(user: RunAs) -> RunFolder:
    """Create the folder of this Prony and lock it until this process ends.

    *Errors*: HostError when it cannot be created.
    """
    # The subject's user owns only the trials' folders: with a writable record it could make Prony kill other
    # processes.
    parent = user.cache / "run"
    folder = parent / f"{os.getpid()}-{secrets.token_hex(4)}"
    try:
        make_passable(folder)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        # Wait for the lock: another Prony that looks for remains may hold it for a moment.
        fcntl.flock(lock, fcntl.LOCK_EX)
        _write(folder / _OWNER, {"owner": list(identify(os.getpid())), "pid_namespace": pid_namespace()})
    except OSError as error:
        raise HostError(
            f"cannot create the folder `{folder}`: {error.strerror}",
            hint="choose another place with the environment variable PRONY_CACHE",
        ) from error
    return RunFolder(folder, user, lock)


def record(trial_folder: Path, processes: dict[str, Identity]) -> None:
    """Write which processes a trial has, so that the record survives a crash."""
    _write(_record_of(trial_folder), {"processes": {role: list(one) for role, one in processes.items()}})


def forget(trial_folder: Path) -> int:
    """Remove a trial's record; return how many processes of it still ran, and were killed.

    Without a PID namespace those of a supervisor that was killed run on.
    """
    killed = 0
    for record in (_record_of(trial_folder), census_of(trial_folder)):
        killed += _end_trial(record) if record.exists() else 0
        record.unlink(missing_ok=True)
    return killed


def census_of(trial_folder: Path) -> Path:
    """Return the file in which a trial's supervisor lists its descendants, without a PID namespace."""
    return trial_folder.with_name(trial_folder.name + ".census" + _SUFFIX)


def generator_folder(trial_folder: Path) -> Path:
    """Return the folder in which a trial's generator writes, beside the subject's."""
    return trial_folder.with_name(trial_folder.name + ".generator")


def layer_folder(trial_folder: Path) -> Path:
    """Return the folder of what a trial's subject writes into its app's, beside the subject's own."""
    return trial_folder.with_name(trial_folder.name + ".layer")


def _remove_quietly(folder: Path) -> None:
    """Remove what can be removed: the next start of a Prony tries the rest, and says what is left."""
    with contextlib.suppress(OSError):
        remove_tree(folder)


@explained("cannot look for what a killed Prony has left")
def clear_remains(user: RunAs) -> list[Remains]:
    """Kill the processes that dead Pronys left, remove their folders, and return what was done.

    A folder of another user, or of a Prony that still runs (also in another container), is left alone.
    """
    parent = user.cache / "run"
    if not parent.is_dir() or not _is_ours(parent):
        return []
    found = (_clear_run(folder) for folder in sorted(parent.iterdir()))
    return [remains for remains in found if remains is not None]


def _clear_run(folder: Path) -> Remains | None:
    if not _is_ours(folder):
        return None
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _clear_locked(folder)
    except BlockingIOError:
        return None
    finally:
        os.close(lock)


def _clear_locked(folder: Path) -> Remains | None:
    owner = _read(folder / _OWNER)
    if owner is None:
        # Neither lock nor owner: its Prony was killed between the two steps, or is between them now. It is
        # empty, so nothing runs; the folder of a running Prony would be new.
        return None if _is_young(folder) else _remove(folder, 0)
    if Identity(*owner["owner"]).is_alive():
        return None
    if owner["owner"][2] != boot_id():
        return _remove(folder, 0)
    if owner["pid_namespace"] != pid_namespace():
        return Remains(folder.name, kept="its processes are in another container")
    return _remove(folder, sum(_end_trial(path) for path in sorted(folder.glob(f"*{_SUFFIX}"))))


def _end_trial(path: Path) -> int:
    """Kill the processes of one record and their descendants, and return how many there were."""
    content = _read(path) if _is_ours(path, folder=False) else None
    recorded = [Identity(*one) for one in content["processes"].values()] if content else []
    _wait_for_supervisor(content)
    # Descendants first: once its parent is gone, a process is no longer a descendant of a recorded one.
    living = (one for one in recorded if one.is_alive())
    doomed = [one for root in living for one in (*identities_of(descendants(root.pid)), root)]
    return sum(end_process(one) for one in doomed)


def _wait_for_supervisor(content: Json | None) -> None:
    """Let a supervisor finish: it notices that its Prony is gone and, unlike others, kills without gaps."""
    known = content["processes"].get("supervisor") if content else None
    deadline_s = time.monotonic() + _SUPERVISOR_S
    while known and Identity(*known).is_alive() and time.monotonic() < deadline_s:
        time.sleep(0.02)


def _remove(folder: Path, ended: int) -> Remains:
    try:
        remove_tree(folder)
    except OSError as error:
        return Remains(folder.name, ended, kept=f"cannot remove `{error.filename}`: {error.strerror}")
    return Remains(folder.name, ended)


def _is_ours(path: Path, folder: bool = True) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return found.st_uid == os.geteuid() and (stat.S_ISDIR if folder else stat.S_ISREG)(found.st_mode)


def _is_young(folder: Path) -> bool:
    return abs(time.time() - folder.stat().st_mtime) < 60


def _record_of(trial_folder: Path) -> Path:
    return trial_folder.with_name(trial_folder.name + _SUFFIX)


def _read(path: Path) -> Json | None:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _write(path: Path, content: Json) -> None:
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(json.dumps(content).encode())
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
