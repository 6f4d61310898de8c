"""Starts a subject: first the namespaces, then the processes, until each has executed its command.

Runs in the supervisor. Standard library only.

>>> Started((7,), init_pid=None).report
-1

A layer over an app's folder: what a subject writes there goes into it, and with it away.

An overlay where the kernel allows one, else a copy in the folder's place. What anybody may read seems to
belong to the subject's user, as where the app is deployed; what only its owner may read stays closed. Runs
in the namespace's first process. Standard library only.

>>> Layer("/srv/shop", "/var/cache/x.layer", None, None).folder
'/srv/shop'
"""

import contextlib
import json
import os
import shutil
import socket
import stat
import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, NoReturn

from prony.core.trees import walk
from prony.sandbox import linux
from prony.sandbox.spawn import Process, SpawnOrder, become, report_failure

RELAY = ("127.0.0.1", 3128)
"""Where a build's network has Prony's relay."""

# What no server writes, and of which there may be very much.
_LEFT_OUT = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__"})
# About a second's work for each trial; whatever is beyond stays as it is, or the folder read-only.
_MOST_ENTRIES = 20_000
_MOST_COPIED_BYTES = 1 << 28


class Layer(NamedTuple):
    """A layer over ``folder``, kept in ``place``, which the subject cannot enter. ``uid`` and ``gid``: its
    user; null: the caller.
    """

    folder: str
    place: str
    uid: int | None
    gid: int | None


def cover(layer: Layer) -> None:
    """Cover the folder in the caller's own mount namespace.

    *Errors*: OSError when neither an overlay nor a copy can be made, nor the folder be made read-only.
    """
    is_closed = not Path(layer.folder).stat().st_mode & stat.S_IWUSR
    try:
        _overlay(layer)
    except OSError:
        if not _is_copied(layer.folder):
            linux.make_read_only([layer.folder])
            return
        _copy(layer)
    _give(layer, opened=is_closed)


def _overlay(layer: Layer) -> None:
    upper, work = Path(layer.place, "upper"), Path(layer.place, "work")
    for made in (upper, work):
        made.mkdir()
    # The covered folder has the mode of the layer's own.
    upper.chmod(Path(layer.folder).stat().st_mode & 0o7777 | 0o700)
    linux.mount_overlay(layer.folder, str(upper), str(work))


def _copy(layer: Layer) -> None:
    copy = Path(layer.place, "copy")
    shutil.copytree(layer.folder, copy, symlinks=True, ignore=_not_copied)
    linux.bind(str(copy), layer.folder)


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """Return what a copy leaves out, and what nobody can copy: pipes, sockets and devices."""
    left_out = _LEFT_OUT - {"node_modules", "venv", ".venv"}
    return {name for name in names if name in left_out or not _is_ordinary(os.path.join(folder, name))}  # noqa: PTH118


def _is_ordinary(path: str) -> bool:
    return stat.S_IFMT(os.lstat(path).st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


def _is_copied(folder: str) -> bool:
    """Return whether a folder is small enough to be copied for each trial."""
    left_bytes, left = _MOST_COPIED_BYTES, _MOST_ENTRIES
    try:
        for path, folders, names in walk(folder):
            left -= len(folders) + len(names)
            left_bytes -= sum(_bytes_of(os.path.join(path, name)) for name in names)  # noqa: PTH118
            if left < 0 or left_bytes < 0:
                return False
    except OSError:
        return False
    return True


def _bytes_of(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.lstat(path).st_size
    return 0


def _give(layer: Layer, *, opened: bool) -> None:
    """Let what anybody may read belong to the subject's user. In an overlay that copies no file's content.

    ``opened``: the folder was sealed, and its files become the owner's to write, as they were.
    """
    if (layer.uid is None or layer.gid is None) and not opened:
        return
    # What lies deeper than any app stays as it is.
    with contextlib.suppress(OSError):
        for path in islice(_entries(layer.folder), _MOST_ENTRIES):
            with contextlib.suppress(OSError):
                _give_one(layer, path, opened=opened)


def _give_one(layer: Layer, path: str, *, opened: bool) -> None:
    found = os.lstat(path)
    if not _is_open(found.st_mode):
        return
    if layer.uid is not None and layer.gid is not None and found.st_uid != layer.uid:
        os.lchown(path, layer.uid, layer.gid)
    if opened and not stat.S_ISLNK(found.st_mode):
        os.chmod(path, stat.S_IMODE(found.st_mode) | stat.S_IWUSR)  # noqa: PTH101


def _is_open(mode: int) -> bool:
    """Return whether anybody may read it: a layer must show a subject nothing that it could not read without.

    >>> [_is_open(mode) for mode in (0o100644, 0o100600, 0o040755, 0o040744, 0o120777)]
    [True, False, True, False, True]
    """
    wanted = 0o5 if stat.S_ISDIR(mode) else 0o4
    return mode & wanted == wanted


def _entries(folder: str) -> Iterator[str]:
    yield folder
    for path, folders, names in walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        yield from (os.path.join(path, name) for name in (*folders, *names))  # noqa: PTH118


# How the namespace's first process reports the end of a subject's process: its place in the order, its
# status.
_REPORT = struct.Struct("ii")


class Started:
    """A running subject, with PIDs in the supervisor's namespace.

    ``pids`` are its processes, in the sequence of the order. ``init_pid`` is the first process of its PID
    namespace; null without one.
    """

    def __init__(self, pids: Sequence[int], init_pid: int | None, report: int = -1) -> None:
        self.pids = tuple(pids)
        self.init_pid = init_pid
        self.report = report

    def collect(self, statuses: dict[int, int]) -> None:
        """Reap ended processes, and add their exit statuses by place in the order (negative: the signal)."""
        if self.init_pid is None:
            self._reap(statuses)
        else:
            self._read_report(statuses)

    def _reap(self, statuses: dict[int, int]) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] in self.pids:
                    statuses[self.pids.index(ended[0])] = os.waitstatus_to_exitcode(ended[1])

    def _read_report(self, statuses: dict[int, int]) -> None:
        if self.report < 0:
            return
        try:
            while data := os.read(self.report, _REPORT.size):
                place, status = _REPORT.unpack(data)
                statuses[place] = status
        except BlockingIOError:
            return
        os.close(self.report)
        self.report = -1
        # The namespace's first process was killed, and with it all the others.
        for place in range(len(self.pids)):
            statuses.setdefault(place, -9)


def start(order: SpawnOrder, log: int) -> Started | dict[str, str]:
    """Start the subject; return it, or ``step`` and ``reason`` of what failed."""
    try:
        if order.network_namespace:
            settings = linux.read_network_settings()
            linux.unshare(linux.NEW_NETWORK)
            linux.raise_loopback()
            if order.relay is not None:
                _hand_over_listener(order.relay)
            linux.write_network_settings(settings)
            refused = linux.write_network_settings(order.sysctl)
            if refused:
                return {
                    "step": f"set `{refused[0]}`",
                    "reason": "the kernel refuses it in a network of its own",
                }
        if order.pid_namespace:
            linux.unshare(linux.NEW_PIDS)
    except OSError as error:
        return {"step": "make namespaces", "reason": str(error)}
    failures, failures_end = os.pipe()
    started = (_start_namespace if order.pid_namespace else _start_here)(order, log, failures_end)
    os.close(failures_end)
    # Ends with exec, which closes the other end.
    with os.fdopen(failures, "rb") as said:
        failure = said.read()
    if not failure and started is not None:
        return started
    return dict(
        json.loads(failure or b'{"step": "start", "reason": "the first process of the namespace ended"}')
    )


def _hand_over_listener(relay: int) -> None:
    """Give Prony the socket at which a build finds it: nothing else is in the build's network."""
    with socket.create_server(RELAY) as listener, socket.socket(fileno=relay) as there:
        socket.send_fds(there, [b"r"], [listener.fileno()])


def _start_here(order: SpawnOrder, log: int, failures: int) -> Started:
    pids = []
    supervisor = os.getpid()
    for process in order.processes:
        pid = os.fork()
        if pid == 0:
            become(order, process, log, failures, supervisor)
        pids.append(pid)
    return Started(pids, None)


def _start_namespace(order: SpawnOrder, log: int, failures: int) -> Started | None:
    report, report_end = os.pipe()
    os.set_blocking(report, False)
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    here.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    pid = os.fork()
    if pid == 0:
        here.close()
        _run_init(order, log, failures, report_end, there)
    os.close(report_end)
    there.close()
    with here:
        pids = _receive_pids(here, len(order.processes))
    return Started(pids, pid, report) if pids else None


def _receive_pids(here: socket.socket, count: int) -> list[int]:
    """Return the senders' PIDs in this namespace: the kernel translates credentials between namespaces."""
    here.settimeout(10)
    pids = [0] * count
    for _ in range(count):
        try:
            place, ancillary, _, _ = here.recvmsg(1, socket.CMSG_SPACE(12))
        except OSError:
            return []
        if not place:
            return []
        for _, kind, data in ancillary:
            if kind == socket.SCM_CREDENTIALS:
                pids[place[0]] = int(struct.unpack("3i", data[:12])[0])
    return pids


def _run_init(order: SpawnOrder, log: int, failures: int, report: int, there: socket.socket) -> NoReturn:
    """Run as the first process of the namespace: start the subject, then reap until nothing is left."""
    pids: list[int] = []
    try:
        # It is killed with the supervisor, and the kernel then kills the whole namespace.
        linux.die_with_parent()
        processes = _mounted(order)
        for place, process in enumerate(processes):
            pid = os.fork()
            if pid == 0:
                there.send(bytes([place]))
                become(order, process, log, failures, 1)
            pids.append(pid)
    except BaseException as error:  # nothing may escape: this is a copy of the supervisor
        report_failure(failures, "make namespaces", error)
        os._exit(1)
    _step_back(order, keep=report)
    _reap_until_empty(pids, report)
    os._exit(0)


def _mounted(order: SpawnOrder) -> Sequence[Process]:
    """Give the namespace its own mounts; return what to start, with files that are still writable."""
    # By descriptors of before: where the groups' files are read-only, a subject cannot write them either.
    entered = [_with_open_groups(process) for process in order.processes]
    linux.own_mounts()
    if order.layer is not None:
        cover(Layer(order.layer["folder"], order.layer["place"], order.uid, order.gid))
    if order.network_namespace:
        # An app on the host's network may also exchange messages with programs there.
        linux.unshare(linux.NEW_EXCHANGES)
    linux.make_read_only(order.read_only, order.writable)
    if order.temporary is not None:
        linux.mount_own_temporary_folders(order.temporary, order.shown)
    linux.hide(order.hidden)
    linux.mount_own_proc()
    linux.mount_own_terminals()
    if order.network_namespace:
        # The same holds for memory.
        most = (size for size in (order.disk_bytes, order.memory_bytes) if size is not None)
        linux.mount_own_shared_memory(min(most, default=None))
    return entered


def _with_open_groups(process: Process) -> Process:
    opened = [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in process.join_paths]
    return process._replace(join_paths=[f"/proc/self/fd/{descriptor}" for descriptor in opened])


def _step_back(order: SpawnOrder, keep: int) -> None:
    os.closerange(0, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 19)
        os.sched_setaffinity(0, order.own_cpus)


def _reap_until_empty(pids: Sequence[int], report: int) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.wait()
            if pid in pids:
                os.write(report, _REPORT.pack(pids.index(pid), os.waitstatus_to_exitcode(status)))
