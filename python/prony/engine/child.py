"""The generator of one trial, as a process of its own beside the subject.

``python -m prony.engine.child``. One line of JSON on stdin, ``{"spec": ..., "seat": ...}``; on stdout the
engine's events as lines of JSON, then ``{"event": "recording", "recording": ...}`` or ``{"event": "error",
"kind": ..., "message": ...}``. The end of stdin, SIGTERM and SIGINT cancel the run. Must not know trials.

>>> _error("usage", "no rate")
{'event': 'error', 'kind': 'usage', 'message': 'no rate'}
"""

import contextlib
import json
import os
import resource
import signal
import sys
import threading
from typing import NoReturn

from prony.model import Json
from prony.sandbox import linux

__all__ = ["main"]


def main() -> int:
    """Take a seat, run, and say what came of it."""
    parent = os.getppid()
    _handle_signals()
    try:
        # Everything is imported before the user changes: the new one may not be able to read Prony's own
        # files.
        from prony import _engine

        order = json.loads(sys.stdin.buffer.readline())
        _take_seat(order["seat"], parent)
        threading.Thread(target=_cancel_at_end_of_stdin, daemon=True).start()
        recording = _engine.run(json.dumps(order["spec"]), lambda event: _say_line(event.encode()))
        _say_line(b'{"event":"recording","recording":' + recording.encode() + b"}")
    except KeyboardInterrupt:
        return _fail("cancelled", "the run was cancelled")
    except Exception as error:  # the border of a process: what is not said here is lost
        return _fail(type(error).__name__, str(error))
    return 0


def _handle_signals() -> None:
    def cancel(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, cancel)
    signal.signal(signal.SIGINT, cancel)


def _take_seat(seat: Json, parent: int) -> None:
    """Enter the subject's network, its CPUs and its user, in the order in which rights are lost."""
    if seat["network_namespace"] is not None:
        linux.enter_network(seat["network_namespace"])
    os.sched_setaffinity(0, seat["cpus"])
    if seat["nice"] or os.getpriority(os.PRIO_PROCESS, 0) > 0:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, seat["nice"])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if seat["uid"] is not None:
        os.setgroups(seat["groups"] or [seat["gid"]])
        os.setresgid(seat["gid"], seat["gid"], seat["gid"])
        os.setresuid(seat["uid"], seat["uid"], seat["uid"])
    linux.forbid_new_privileges()
    linux.die_with_parent()
    if os.getppid() != parent:
        raise KeyboardInterrupt


def _cancel_at_end_of_stdin() -> None:
    # Below Python's buffer, which a thread must not hold when the process ends.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _say_line(line: bytes) -> None:
    data = line + b"\n"
    while data:
        data = data[os.write(1, data) :]


def _fail(kind: str, message: str) -> int:
    with contextlib.suppress(OSError):
        _say_line(json.dumps(_error(kind, message)).encode())
    return 1


def _error(kind: str, message: str) -> Json:
    return {"event": "error", "kind": kind, "message": message}


if __name__ == "__main__":
    sys.exit(main())
