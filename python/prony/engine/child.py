"""The generator of one trial, as a process of its own in the subject's network.

`prony.engine.child_process` starts it. A line of JSON on stdin for each run, ``{"spec": ..., "seat": ...}``,
with one seat for all; ``requests``: null, or the descriptor of an open file with the requests. On stdout the
engine's events as lines of JSON, then ``{"event": "recording", "recording": ...}``, or at last ``{"event":
"error", "kind": ..., "message": ...}``. The end of stdin, SIGTERM and SIGINT cancel the run.

>>> main.__name__
'main'
"""

import json
import sys
from typing import NoReturn

from prony.engine.seat import cancel_at_end_of_stdin, run_cancellable, say_line, take_seat


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
