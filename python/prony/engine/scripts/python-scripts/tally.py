"""The order to a script, and its counts: shared by all four scripts, which differ in how they send
requests.
"""

import base64
import json
import sys
import time
from collections import Counter


class Order:
    """The load. ``open_ns`` and ``close_ns`` bound the window, once ``start`` was called."""

    def __init__(self, file):
        with open(file) as told:
            order = json.load(told)
        self.method, self.url, self.headers = order["method"], order["url"], order["headers"]
        self.body = base64.b64decode(order["body"]) if order["body"] else None
        self.keep_alive = order["keep_alive"]
        self.workers, self.processes = order["workers"], order["processes"]
        self.warmup_s, self.duration_s, self.timeout_s = (
            order[name] / 1e9 for name in ("warmup_ns", "duration_ns", "timeout_ns")
        )
        self.status = order["expect_status"]
        self.expected = base64.b64decode(order["expect_body"]) if order["expect_body"] is not None else None
        self.as_printed = order["as_printed"]


class Tally:
    """Counts the requests that begin in the window, and those that end in it."""

    def __init__(self, order, open_ns):
        self.order = order
        self.open_ns = open_ns
        self.close_ns = open_ns + round(order.duration_s * 1e9)
        self.classes, self.statuses, self.microseconds = Counter(), Counter(), Counter()
        self.completed = {"ok": 0, "failed": 0}
        self.sum_ns = self.max_ns = self.body_bytes = 0
        self.min_ns = None

    def goes_on(self):
        return time.monotonic_ns() < self.close_ns

    def reply(self, begun_ns, status, body):
        """Count a whole reply; None: its body was not read."""
        wanted = self.order.status
        good = status == wanted if wanted else 200 <= status < 400
        if not good:
            self._end(begun_ns, "bad_status", status)
        elif body is not None and self.order.expected not in (None, body):
            self._end(begun_ns, "failed_validation")
        else:
            self._end(begun_ns, "ok")
            self.body_bytes += len(body or b"")

    def failure(self, begun_ns, kind):
        """Count a request without a whole reply."""
        self._end(begun_ns, kind)

    def _end(self, begun_ns, kind, status=None):
        ended_ns = time.monotonic_ns()
        if self.open_ns <= ended_ns < self.close_ns:
            self.completed["ok" if kind == "ok" else "failed"] += 1
        if not self.open_ns <= begun_ns < self.close_ns:
            return
        self.classes[kind] += 1
        if status is not None:
            self.statuses[status] += 1
        if kind == "ok":
            took_ns = ended_ns - begun_ns
            self.microseconds[took_ns // 1000] += 1
            self.sum_ns += took_ns
            self.max_ns = max(self.max_ns, took_ns)
            self.min_ns = took_ns if self.min_ns is None else min(self.min_ns, took_ns)

    def add(self, other):
        """Add what another worker counted."""
        self.classes += other.classes
        self.statuses += other.statuses
        self.microseconds += other.microseconds
        self.completed = {name: self.completed[name] + other.completed[name] for name in self.completed}
        self.sum_ns += other.sum_ns
        self.max_ns = max(self.max_ns, other.max_ns)
        known = [value for value in (self.min_ns, other.min_ns) if value is not None]
        self.min_ns = min(known, default=None)
        self.body_bytes += other.body_bytes

    def result(self):
        """Print all of it as one line."""
        said = {name: value for name, value in vars(self).items() if name != "order"}
        print("prony " + json.dumps(said), flush=True)


def say_window(order, open_ns):
    """Print an event when the window opens and when it closes; meant for a thread of its own."""
    for event, at_ns in (("window_open", open_ns), ("window_close", open_ns + round(order.duration_s * 1e9))):
        time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)
        print(json.dumps({"event": event, "monotonic_ns": time.monotonic_ns()}), flush=True)


def merged(tallies):
    """Return the sum of what the workers counted.

    As printed, each says how many requests it made, and all together their rate: failures count too.
    """
    first, *others = tallies
    if first.order.as_printed:
        counts = [sum(one.classes.values()) for one in tallies]
        print(f"workers: {len(counts)}, {min(counts)} to {max(counts)} requests each")
        print(f"qps: {sum(counts) / first.order.duration_s:.1f}")
    for other in others:
        first.add(other)
    return first


def read_order():
    return Order(sys.argv[1])
