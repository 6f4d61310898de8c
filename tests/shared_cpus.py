"""A closed loop whose generator runs on its server's two CPUs, and the same with one CPU more: what the bound
says that the server can have lost, and what it lost.

The kernel is a queue of who is ready, each for a slice of time. Costs are exponential; the kernel's own work
for a request makes the server's requests dearer where both share CPUs, as on loopback.
"""

import heapq
from collections import deque
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from golden import build
from prony.figures.summary import figures, summarise_cell
from prony.model.observation import Phase, ProcessRow
from prony.model.sandbox import Placement

SLICES_S = (0.0001, 0.003)
CPUS, MORE = 2, 1.3
"""What a server loses for each second of the generator beside it."""
MEAN = "service_ok_mean"


@dataclass(frozen=True)
class Server:
    """Workers that each serve one request at a time: seconds of CPU, then of waiting; with ``lock`` one of
    them computes at a time.
    """

    workers: int
    cpu_s: float
    wait_s: float = 0.0
    lock: bool = False


@dataclass(frozen=True)
class Ran:
    """Replies a second, their mean latency, and the CPU that server and generator used, 1 for a CPU."""

    per_s: float
    mean_s: float
    server: float
    generator: float


class Kernel:
    """Tasks that are ready run on the first free CPU, a slice at a time."""

    def __init__(self, cpus, slice_s, events):
        self.free, self.slice_s, self.events = cpus, slice_s, events
        self.ready, self.used = deque(), {"server": 0.0, "generator": 0.0}

    def run(self, owner, work_s, then):
        self.ready.append([owner, work_s, then])
        self._start()

    def _start(self):
        while self.free and self.ready:
            self.free -= 1
            task = self.ready.popleft()
            length = min(self.slice_s, task[1])
            self.events.after(length, lambda task=task, length=length: self._ended(task, length))

    def _ended(self, task, length):
        self.free += 1
        self.used[task[0]] += length
        task[1] -= length
        if task[1] > 1e-12:
            self.ready.append(task)
        else:
            task[2]()
        self._start()


class Events:
    """What happens when, in seconds."""

    def __init__(self):
        self.now, self._heap, self._number = 0.0, [], count()

    def after(self, delay_s, then):
        heapq.heappush(self._heap, (self.now + delay_s, next(self._number), then))

    def until(self, end_s):
        while self._heap and self._heap[0][0] < end_s:
            self.now, _, then = heapq.heappop(self._heap)
            then()


class Threads:
    """So many run at once; others wait for their turn."""

    def __init__(self, number):
        self.free, self.waiting = number, deque()

    def enter(self, then):
        if self.free:
            self.free -= 1
            then()
        else:
            self.waiting.append(then)

    def leave(self):
        if self.waiting:
            self.waiting.popleft()()
        else:
            self.free += 1


def run(server, generator_s, connections, slice_s, *, beside, length_s=10.0, seed=1):
    """Return what a closed loop showed; ``beside``: the generator is on the server's CPUs."""
    rng, events = np.random.default_rng(seed), Events()
    cpus = Kernel(CPUS, slice_s, events)
    own = cpus if beside else Kernel(1, slice_s, events)
    workers, lock = Threads(server.workers), Threads(1 if server.lock else server.workers)
    generator, latencies = Threads(1), []
    dearer_s = (MORE - 1) * generator_s if beside else 0.0

    def send():
        sent_s = events.now
        workers.enter(lambda: lock.enter(lambda: compute(sent_s)))

    def compute(sent_s):
        def computed():
            lock.leave()
            events.after(server.wait_s * rng.exponential(), lambda: replied(sent_s))

        cpus.run("server", server.cpu_s * rng.exponential() + dearer_s, computed)

    def replied(sent_s):
        workers.leave()
        generator.enter(lambda: take(sent_s))

    def take(sent_s):
        latencies.append(events.now - sent_s)

        def taken():
            generator.leave()
            send()

        own.run("generator", generator_s * rng.exponential(), taken)

    for _ in range(connections):
        generator.enter(lambda: own.run("generator", generator_s, lambda: (generator.leave(), send())))
    events.until(length_s)
    used = {name: cpus.used[name] + (0.0 if own is cpus else own.used[name]) for name in cpus.used}
    return Ran(
        len(latencies) / length_s,
        float(np.mean(latencies)),
        used["server"] / length_s,
        used["generator"] / length_s,
    )


def summary_of(ran, server, connections):
    """Return the cell of five trials that measured this beside its generator."""
    load = build.Workload(build.ClosedLoop(connections), build.DurationStop(build.SECOND))
    cell = build.Cell(1, build.subject("one+x"), load)
    trial = build.trial(cell, 0, 0, [round(1e9 * ran.mean_s)] * round(ran.per_s))
    rows = [
        ProcessRow(7, 1, "worker", "server", round(ran.server * k * 1e9), 0, 1, 1, server.workers)
        for k in (0, 1)
    ]
    trial = replace(
        trial,
        samples=tuple(
            build.Sample(k * build.SECOND, Phase.WINDOW, (row,), 0, 0, 0) for k, row in enumerate(rows)
        ),
        counters={
            "subject.cpu_ns": round(ran.server * 1e9),
            "prony.cpu_ns": round(ran.generator * 1e9),
            "generator.taken_ns": round(MORE * ran.generator * 1e9),
        },
        placement=Placement((0, 1), (1,), shared=True),
    )
    return summarise_cell(cell, [figures(replace(trial, block=block)) for block in range(5)])


def bounds(server, generator_s, connections, slice_s, length_s=10.0):
    """Return for throughput, mean latency and CPU by which factor it is truly better, or more, without the
    generator on its CPUs, and by which at most it is said to be.
    """
    beside, apart = (
        run(server, generator_s, connections, slice_s, beside=one, length_s=length_s) for one in (True, False)
    )
    cell = summary_of(beside, server, connections)
    return (
        (apart.per_s / beside.per_s, cell.reach("ok_per_s")),
        (beside.mean_s / apart.mean_s, cell.reach(MEAN)),
        (apart.server / beside.server, cell.reach("cpu_percent")),
    )
