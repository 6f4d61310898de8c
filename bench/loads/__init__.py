"""What benches of the load engine share: a server of known delays, and a load."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prony.figures.latency import read_distribution
from prony.model.recording import Distribution

MS, SECOND_NS = 1_000_000, 1_000_000_000
SERVER_CPU, GENERATOR_CPU = 0, max(os.sched_getaffinity(0))

_SERVE = """
import sys
from prony._engine import ReferenceServer
with ReferenceServer(sys.argv[1]) as server:
    print(server.port, flush=True)
    for _ in sys.stdin:
        print(server.counts(), flush=True)
"""


class Served:
    """A reference server in a process of its own: its ``port``, its ``pid``, and what it did so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin and process.stdout, "they are pipes"
        self._asked, self._answers = process.stdin, process.stdout
        self.pid = process.pid
        self.port = int(self._answers.readline())

    def counts(self) -> Mapping[str, int]:
        """Return its counts."""
        self._asked.write("counts\n")
        self._asked.flush()
        found: Mapping[str, int] = json.loads(self._answers.readline())
        return found

    def close(self) -> None:
        """Let it end."""
        self._asked.close()


@contextmanager
def reference(**config: Any) -> Iterator[int]:
    """Run the reference server in a process and on a CPU of its own within the block; yield its port."""
    with served(**config) as server:
        yield server.port


@contextmanager
def served(**config: Any) -> Iterator[Served]:
    """Do as `reference`; yield the server."""
    text = json.dumps({"cpus": [SERVER_CPU], **config})
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE, text], stdin=pipe, stdout=pipe, text=True
    ) as process:
        server = Served(process)
        yield server
        server.close()


def closed(connections: int) -> Mapping[str, Any]:
    """Return a closed loop."""
    return {"kind": "closed", "connections": connections}


def open_loop(rate_per_s: float, connections: int = 1024) -> Mapping[str, Any]:
    """Return an open loop with constant gaps."""
    loop = {"kind": "open", "arrivals": "constant", "seed": 1}
    return {**loop, "rate_per_s": rate_per_s, "connections": connections}


def spec(port: int, loop: Mapping[str, Any], *, window_ns: int, **more: Any) -> Mapping[str, Any]:
    """Return the specification of a load on the generator's CPU. ``more``: `warmup_ns`, `timeout_ns`,
    `keep_alive`, `host`, and what stands at the top.
    """
    take = more.pop
    workload = {
        "loop": loop,
        "stop": {"kind": "duration", "duration_ns": window_ns},
        "warmup_ns": take("warmup_ns", 100 * MS),
        "timeout_ns": take("timeout_ns", 5 * SECOND_NS),
        "grace_ns": take("grace_ns", SECOND_NS // 2),
        "request": {
            **{"method": "GET", "path": "/", "headers": [], "body": None},
            "keep_alive": take("keep_alive", True),
        },
        "expect": {"status": None, "body": None},
    }
    target = {"host": take("host", "127.0.0.1"), "port": port}
    usual = {"threads": 1, "cpus": [GENERATOR_CPU], "pacing": "precise"}
    return {"target": target, "workload": workload, **usual, **more}


def quantile_ns(found: Distribution | None, percentile: float) -> float:
    """Return a percentile (0 to 100) of times; NaN where there are none."""
    times = read_distribution(found)
    if times is None or times.histogram is None:
        return float("nan")
    return float(times.histogram.value_at_quantile(percentile / 100))
