"""Starts a subject: first the namespaces, then the processes, until each has executed its command.

Runs in the supervisor. Standard library only. Must not know commands or events.

>>> Started((7,), init_pid=None).report
-1
"""

import contextlib
import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import NoReturn

from prony.sandbox import linux
from prony.sandbox.layer import Layer, cover
from prony.sandbox.spawn import Process, SpawnOrder, become, report_failure

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
    if order.network_namespace:
        # The same holds for memory.
        linux.mount_own_shared_memory(order.disk_bytes)
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
