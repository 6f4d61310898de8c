"""The generator of one trial, as a process of its own in the subject's network.

`prony.engine.child_process` starts it. A line of JSON on stdin for each run, ``{"spec": ..., "seat": ...}``,
with one seat for all; ``requests``: null, or the descriptor of an open file with the requests. On stdout the
engine's events as lines of JSON, then ``{"event": "recording", "recording": ...}``, or at last ``{"event":
"error", "kind": ..., "message": ...}``. The end of stdin, SIGTERM and SIGINT cancel the run.

>>> main.__name__
'main'

What every generator's process does before it opens a socket: it takes its seat and reports errors.

>>> error_event("usage", "no rate")
{'event': 'error', 'kind': 'usage', 'message': 'no rate'}
"""

import contextlib
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import NoReturn

from prony.model.json_codec import Json
from prony.sandbox import linux
from prony.sandbox.linux import join


def main() -> int:
    """Take the seat, run each order, and write its result."""
    return run_cancellable(_run_orders)


def _run_orders(parent: int) -> NoReturn:
    # Everything is imported before the user changes: the new user may not be able to read Prony's files.
    from prony import _engine

    order = json.loads(sys.stdin.buffer.readline())
    take_seat(order["seat"], parent)
    orders = cancel_at_end_of_stdin()
    while True:
        spec, requests = json.dumps(order["spec"]), order.get("requests")
        recording = _engine.run(spec, lambda event: say_line(event.encode()), None, requests)
        say_line(b'{"event":"recording","recording":' + recording.encode() + b"}")
        order = json.loads(orders.get())


# --- what every generator's process does before it opens a socket -----------------------------------------


def run_cancellable(work: Callable[[int], None]) -> int:
    """Do the work of a generator's process, which SIGTERM and SIGINT cancel, and return its exit status.

    An error is its last event. ``work`` gets the process that started this one.
    """
    parent = os.getppid()
    signal.signal(signal.SIGTERM, _cancel)
    signal.signal(signal.SIGINT, _cancel)
    try:
        work(parent)
    except KeyboardInterrupt:
        return _fail("cancelled", "the run was cancelled")
    except Exception as error:  # the border of a process: an error not reported here is lost
        return _fail(type(error).__name__, str(error))
    return 0


def _cancel(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _fail(kind: str, message: str) -> int:
    with contextlib.suppress(OSError):
        say_event(error_event(kind, message))
    return 1


def take_seat(seat: Json, parent: int) -> None:
    """Enter the seat's groups, network, CPUs and user, in the order that the privileges demand.

    *Errors*: OSError; KeyboardInterrupt when ``parent``, which started this process, is gone.
    """
    join(seat["joins"])
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


def cancel_at_end_of_stdin() -> "SimpleQueue[bytes]":
    """In a thread: send SIGTERM to this process when its parent closes the pipe or is gone; return the lines
    that come until then.
    """
    lines: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read_to_end, args=(lines,), daemon=True).start()
    return lines


def _read_to_end(lines: "SimpleQueue[bytes]") -> None:
    # Reads below Python's buffer: a thread must not hold its lock when the process ends.
    rest = b""
    while data := os.read(0, 65_536):
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            lines.put(line)
    os.kill(os.getpid(), signal.SIGTERM)


def say_line(line: bytes) -> None:
    """Write a line to stdout, whole."""
    data = line + b"\n"
    while data:
        data = data[os.write(1, data) :]


def say_event(event: Json) -> None:
    """Write an event to stdout."""
    say_line(json.dumps(event).encode())


def error_event(kind: str, message: str) -> Json:
    """Return the event that ends a run without a recording."""
    return {"event": "error", "kind": kind, "message": message}
