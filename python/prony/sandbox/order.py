"""The order to a supervisor, and its answers, for any kind of sandbox.

>>> not_started({"step": "set limits", "reason": "no"}, "nobody").message
'the server could not be started: cannot set limits: no'

A launch's files, in the trial's folder.

>>> write_files.__name__
'write_files'
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from prony.core.errors import FailureStage, HostError, SubjectError
from prony.core.users import RunAs, generator_for, own_folder
from prony.model.json_codec import Json
from prony.model.launch import Launch
from prony.model.sandbox import EngineSeat, Placement
from prony.sandbox.choice import disk_bytes, disk_files
from prony.sandbox.identity import Identity, identify
from prony.sandbox.journal import generator_folder, layer_folder
from prony.sandbox.spawn import BASE_ENVIRONMENT

_READABLE, _SECRET = 0o644, 0o400
_NOTHING: Mapping[str, str] = MappingProxyType({})


def write_files(
    folder: Path, files: Mapping[str, str], user: RunAs, secrets: Mapping[str, str] = _NOTHING
) -> None:
    """Create ``folder`` with these files, named relative to it; ``user`` can read but not change them.
    ``secrets``: files that belong to ``user``, and that nobody else can read.

    *Errors*: SubjectError for a name outside of the folder; HostError when it cannot be written.
    """
    folders = {folder}
    for name, text in {**files, **secrets}.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise SubjectError(f"the file `{name}` lies outside the trial's folder")
        folders |= {one for one in path.parents if one.is_relative_to(folder)}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_anew(path, text, user if name in secrets else None)
        except OSError as error:
            raise HostError(f"cannot write `{path}`: {error.strerror}") from error
    # The owner changes when everything is written, inner files first: as long as a folder belongs to Prony,
    # no one else can replace a file with a link, and Prony may be root.
    for one in sorted(folders, key=lambda one: -len(one.parts)):
        own_folder(one, user)


def _write_anew(path: Path, text: str, owner: RunAs | None) -> None:
    """Write a file; with an ``owner`` it is a secret, from its first byte on."""
    # An existing folder may belong to the subject: do not follow a link in it.
    path.unlink(missing_ok=True)
    mode = _READABLE if owner is None else _SECRET
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, mode)
        if owner is not None and owner.drop:
            os.fchown(descriptor, owner.uid, owner.gid)
        file.write(text)


# If allowed: other work on the generator's CPUs, including Prony's own, then waits for the generator.
_GENERATOR_NICE = -10
# Whose groups they are may write them, and so undo their limits.
_GROUPS = Path("/sys/fs/cgroup")
_SOCKETS = Path("/proc/net/unix")
_TEMPORARY = re.compile(r"(?<![^\s:='\"])(/(?:var/)?tmp/[^/\s:'\"]+)")
_HOMES = Path("/home")
_PATH = re.compile(r"(?<![^\s:='\"])/[^\s:'\"]+")
_MOST_ARCHIVES = 100
FolderOf = Callable[[str], Path]


def write_folders(launch: Launch, folder_of: FolderOf, user: RunAs) -> None:
    """Create the folders of a subject's processes, with their files.

    *Errors*: HostError, SubjectError.
    """
    # The server's folder contains the others: its owner changes last, and root creates nothing in it later.
    for process in sorted(launch.processes, key=lambda one: one.name == launch.name):
        write_files(folder_of(process.name), process.files, user, process.secrets)


def make_order(
    launch: Launch,
    placement: Placement,
    user: RunAs,
    folder_of: FolderOf,
    join_paths: Callable[[str], Sequence[str]],
) -> Json:
    """Return the order for a subject in the supervisor's namespaces.

    ``join_paths`` returns, for a process's name, the files by which it enters its control group.
    """
    folder = folder_of(launch.name)
    return {
        "processes": [
            _process(one, user, folder_of(one.name), join_paths(one.name)) for one in launch.processes
        ],
        "uid": user.uid if user.drop else None,
        "gid": user.gid if user.drop else None,
        "groups": list(user.groups()) if user.drop else None,
        "cpus": list(placement.server_cpus),
        "own_cpus": list(placement.generator_cpus),
        "network_namespace": False,
        "pid_namespace": False,
        "census": None,
        "watched": [str(folder)],
        "disk_bytes": disk_bytes(folder),
        "disk_files": disk_files(folder),
    }


def files_order(launch: Launch, user: RunAs, folder: Path, *, isolated: bool, hidden: Path | None) -> Json:
    """Return the part of an order that says which files a subject in a mount namespace may write.

    ``isolated``: only its own folder, ``folder``. Else all that its user may write, as a user's own app may
    have to, but not what Prony keeps. /tmp is its own, in ``folder``, with what it names of the machine's;
    not isolated, with the Unix sockets there too, for a database may have one. What it writes into an app's
    folder in which it works goes into a layer. ``hidden``: the archive; it does not see those beside it, nor
    the generator's folder, nor, isolated, homes that others may enter, unless it needs something there.
    """
    generators = own_folder(generator_folder(folder), generator_for(user), 0o700)
    unseen = [generators, *archives_beside(hidden), *(_homes(launch, user) if isolated else ())]
    own: Json = {"writable": [str(folder)], "hidden": [str(one) for one in unseen]}
    own |= layer_order(launch.folder, folder, own["hidden"], own["writable"])
    own["read_only"] = ["/"] if isolated else [str(one) for one in (user.cache, _GROUPS) if one.is_dir()]
    sockets = [] if isolated else [_SOCKETS.read_text(errors="replace")]
    if own.get("layer", {}).get("folder") in ("/tmp", "/var/tmp"):  # noqa: S108 - the app lies there
        return own
    return own | temporary_order(folder, [*_named(launch, user), *sockets])


def temporary_order(folder: Path, named: Sequence[str]) -> Json:
    """Return the part of an order that gives a process a /tmp of its own, in ``folder``, with what ``named``
    names of the machine's.
    """
    temporary = folder / ".tmp"
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)
    return {"temporary": str(temporary), "shown": named_temporary(named)}


def layer_order(
    covered: str | Path | None, folder: Path, unseen: Sequence[str], writable: Sequence[str]
) -> Json:
    """Return the part of an order that covers the folder in which a process works, if its own, ``folder``,
    does not lie in that.

    The layer itself is not seen, as ``unseen`` is not.
    """
    if covered is None or folder.resolve().is_relative_to(Path(covered).resolve()):
        return {}
    place = layer_folder(folder)
    place.mkdir(mode=0o700, exist_ok=True)
    return {
        "layer": {"folder": str(covered), "place": str(place)},
        "hidden": [*unseen, str(place)],
        "writable": [*writable, str(covered)],
        "watched": [*writable, str(place)],
    }


def archives_beside(archive: Path | None) -> list[Path]:
    """Return an archive and the others in its folder, which a subject could read where anybody may."""
    return sorted({archive, *islice(archive.parent.glob("*.prony"), _MOST_ARCHIVES)}) if archive else []


def _homes(launch: Launch, user: RunAs) -> list[Path]:
    """Return the homes that others may enter, but for those in which something lies that a subject needs."""
    needed = [Path(found).resolve() for text in _named(launch, user) for found in _PATH.findall(text)]
    # A program of a virtual environment is run by an interpreter that may lie elsewhere.
    needed += [(path.parent / "python").resolve() for path in needed if path.parent.name == "bin"]
    homes = (one for one in _HOMES.glob("*") if one.is_dir() and one.stat().st_mode & stat.S_IXOTH)
    return [one for one in homes if not any(path.is_relative_to(one.resolve()) for path in needed)]


def _named(launch: Launch, user: RunAs) -> list[str]:
    named = [str(user.cache)]
    for process in launch.processes:
        named += [*process.command, *process.before, *process.environment.values(), process.folder or ""]
    return named


def named_temporary(texts: Sequence[str]) -> list[str]:
    """Return the entries of /tmp and /var/tmp that any of ``texts`` names."""
    return sorted({found for text in texts for found in _TEMPORARY.findall(text)})


def _process(launch: Launch, user: RunAs, folder: Path, join_paths: Sequence[str]) -> Json:
    own = {"HOME": str(folder), "USER": user.name}
    return {
        "name": launch.name,
        "command": list(launch.command),
        "environment": {**BASE_ENVIRONMENT, **own, **launch.environment},
        "folder": launch.folder or str(folder),
        "join_paths": list(join_paths),
        "before": list(launch.before),
    }


def not_started(failed: Json, user: str) -> SubjectError:
    """Return the error for a subject that could not be started, with the supervisor's reason."""
    step, reason = failed["step"], failed["reason"]
    out_of_reach = f"set the environment variable PRONY_CACHE to a folder that `{user}` can reach"
    return SubjectError(
        f"the server could not be started: cannot {step}: {reason}",
        hint=out_of_reach if step.startswith("enter the folder") else None,
        stage=FailureStage.START,
    )


def make_seat(pid: int, placement: Placement, user: RunAs, *, isolated: bool, folder: Path) -> EngineSeat:
    """Return the generator's seat; ``isolated``: in the network of the process ``pid``.

    ``folder``: the trial's. The generator runs as another user than the subject, if Prony may choose, and
    writes into a folder that only this user can enter: a subject must not write its own result.
    """
    sender = generator_for(user)
    own = own_folder(generator_folder(folder), sender, 0o700)
    return EngineSeat(
        cpus=placement.generator_cpus,
        network_namespace=f"/proc/{pid}/ns/net" if isolated else None,
        uid=sender.uid if sender.drop else None,
        gid=sender.gid if sender.drop else None,
        groups=(sender.gid,) if sender.drop else None,
        nice=_GENERATOR_NICE if os.geteuid() == 0 else 0,
        # Files of a killed generator are removed with the trial, or by the next Prony.
        folder=str(own),
    )


def identities(started: Json) -> dict[str, Identity]:
    """Return the identities of a started subject's processes, by role, including the supervisor."""
    found = {}
    roles = {"supervisor": started["network_pid"], **started["pids"], "tree": started["tree_pid"]}
    for role, pid in roles.items():
        # It may already have ended: then there is nothing to record.
        with contextlib.suppress(ProcessLookupError):
            found[role] = identify(int(pid))
    return found
