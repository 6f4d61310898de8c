"""The start of a subject: the namespaces first, then the process, seen to have executed its command.

Runs in the supervisor. Standard library only. Must not know commands or events.

>>> Started(main_pid=7, init_pid=None).report
-1
"""

import contextlib
import json
import os
import socket
import struct
from typing import NoReturn

from prony.sandbox import linux
from prony.sandbox.spawn import Order, become, report_failure

__all__ = ["Started", "start"]


class Started:
    """A subject that runs, in the supervisor's numbers.

    ``init_pid`` is the first process of its PID namespace, null without one.
    """

    def __init__(self, main_pid: int, init_pid: int | None, report: int = -1) -> None:
        self.main_pid = main_pid
        self.init_pid = init_pid
        self.report = report

    def collect(self, status: int | None) -> int | None:
        """Reap what ended, and return the main process's status (negative: the signal), null: it runs."""
        return self._read_report(status) if self.init_pid is not None else self._reap(status)

    def _reap(self, status: int | None) -> int | None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.main_pid:
                    status = os.waitstatus_to_exitcode(ended[1])
        return status

    def _read_report(self, status: int | None) -> int | None:
        if self.report < 0:
            return status
        try:
            data = os.read(self.report, 4)
        except BlockingIOError:
            return status
        os.close(self.report)
        self.report = -1
        # No report: the namespace's first process was killed, and with it all others.
        return int(struct.unpack("i", data)[0]) if data else -9


def start(order: Order, log: int) -> Started | dict[str, str]:
    """Start the subject; return it, or ``step`` and ``reason`` of what failed."""
    try:
        if order.network_namespace:
            settings = linux.read_network_settings()
            linux.unshare(linux.NEW_NETWORK)
            linux.raise_loopback()
            linux.write_network_settings(settings)
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


def _start_here(order: Order, log: int, failures: int) -> Started:
    pid = os.fork()
    if pid == 0:
        become(order, log, failures)
    return Started(pid, None)


def _start_namespace(order: Order, log: int, failures: int) -> Started | None:
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
        main_pid = _receive_pid(here)
    return Started(main_pid, pid, report) if main_pid else None


def _receive_pid(here: socket.socket) -> int:
    """Return the sender's number as seen from here: the kernel translates credentials between namespaces."""
    here.settimeout(10)
    try:
        _, ancillary, _, _ = here.recvmsg(1, socket.CMSG_SPACE(12))
    except OSError:
        return 0
    for _, kind, data in ancillary:
        if kind == socket.SCM_CREDENTIALS:
            return int(struct.unpack("3i", data[:12])[0])
    return 0


def _run_init(order: Order, log: int, failures: int, report: int, there: socket.socket) -> NoReturn:
    """Be the first process of the namespace: start the subject, then reap until nothing is left."""
    try:
        # Killed with the supervisor; and with this process the kernel kills the whole namespace.
        linux.die_with_parent()
        linux.mount_own_proc()
        main_pid = os.fork()
    except BaseException as error:  # nothing may escape: this is a copy of the supervisor
        report_failure(failures, "make namespaces", error)
        os._exit(1)
    if main_pid == 0:
        there.send(b".")
        become(order, log, failures)
    _step_back(order, keep=report)
    _reap_until_empty(main_pid, report)
    os._exit(0)


def _step_back(order: Order, keep: int) -> None:
    os.closerange(0, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 19)
        os.sched_setaffinity(0, order.own_cpus)


def _reap_until_empty(main_pid: int, report: int) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.wait()
            if pid == main_pid:
                os.write(report, struct.pack("i", os.waitstatus_to_exitcode(status)))
                os.close(report)
