"""The settings worth trying: from what one request costs to a dozen candidates.

A server works on W workers x T threads requests at once. Of a request that needs the CPU for D and waits for
W0, `cpus` CPUs carry at most cpus / D requests/s, and so many slots at most W x T / (D + W0): both meet where
W x T is cpus x (1 + W0 / D). What lies near that is tried, and the documented settings always.

>>> cost = Cost(cpu_s=0.001, wait_s=0.019, worker_bytes=30e6)
>>> slots_needed(cost, cpus=2)
40.0
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import log2

_THREADS = (1, 2, 4, 8, 16)
# Threads of an app that hardly waits only share one lock; two to four show what else they change, such as
# connections that are kept.
_LITTLE_WAITING = 0.1
_FEW_THREADS = 4
MOST = 12
"""The most candidates of a first race, all servers together, unless manuals name more."""
# Of each server, of those near to what is needed: with one alone a wrong guess of the waiting finds nothing.
_LEAST_NEAR = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server with its numbers of workers and threads; null: it has no such setting, or decides itself."""

    server: str
    workers: int | None = None
    threads: int | None = None

    @property
    def slots(self) -> float:
        """How many requests it works on at once, as far as that is known."""
        return float((self.workers or 1) * (self.threads or 1))

    def filled(self, default: "Candidate") -> "Candidate":
        """Return it with the numbers of ``default`` where it has none."""
        workers = default.workers if self.workers is None else self.workers
        return replace(
            self, workers=workers, threads=default.threads if self.threads is None else self.threads
        )

    @property
    def words(self) -> str:
        """Its name in reports."""
        kinds = {"worker": self.workers, "thread": self.threads}
        shown = [f"{count} {kind}{'s' if count != 1 else ''}" for kind, count in kinds.items() if count]
        return ", ".join((self.server, *shown))


@dataclass(frozen=True, slots=True)
class Knobs:
    """What can be turned on a server: the names of its settings (empty: none), and their largest values.

    ``default``: the server as it starts where nothing is set. ``presets``: other documented settings of it.
    ``held_workers``, ``held_threads``: numbers that are not turned; null: all are tried.
    """

    default: Candidate
    workers: str = ""
    threads: str = ""
    most_workers: int = 512
    most_threads: int = 512
    presets: tuple[Candidate, ...] = ()
    held_workers: int | None = None
    held_threads: int | None = None

    @property
    def server(self) -> str:
        """Its name."""
        return self.default.server

    def allows(self, one: Candidate) -> bool:
        """Return whether a candidate has the numbers that are held."""
        pairs = ((self.held_workers, one.workers), (self.held_threads, one.threads))
        return all(held in (None, count) for held, count in pairs)

    def holding(self, names: Collection[str], one: Candidate) -> "Knobs":
        """Return them with numbers of a candidate held: of ``names``, workers or threads, what it has."""
        workers = (one.workers or 1) if "workers" in names and self.workers else None
        threads = one.threads if "threads" in names and self.threads else None
        default = Candidate(self.server, workers, threads).filled(self.default)
        return replace(self, default=default, held_workers=workers, held_threads=threads)

    def settings(self, one: Candidate) -> dict[str, int]:
        """Return the settings of a candidate by their names."""
        named = ((self.workers, one.workers), (self.threads, one.threads))
        return {key: value for key, value in named if key and value is not None}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one request costs at a light load, and the memory of one worker."""

    cpu_s: float
    wait_s: float
    worker_bytes: float


@dataclass(frozen=True, slots=True)
class Machine:
    """What the server may use: CPUs, bytes of memory, and connections to a database, of which each worker or
    thread may hold one; null: no limit.
    """

    cpus: float
    memory_bytes: float | None = None
    connections: int | None = None


def slots_needed(cost: Cost, cpus: float) -> float:
    """Return how many requests must be worked on at once to fill the CPUs."""
    return cpus * (1 + max(0.0, cost.wait_s) / max(cost.cpu_s, 1e-7))


def documented(knobs: Knobs, machine: Machine) -> tuple[Candidate, ...]:
    """Return what manuals advise: the default, presets, and of workers 2n + 1."""
    advised = (replace(knobs.default, workers=2 * whole(machine.cpus) + 1),) if knobs.workers else ()
    return tuple(one for one in (knobs.default, *knobs.presets, *advised) if knobs.allows(one))


def whole(cpus: float) -> int:
    """Return a number of CPUs for settings that count them: half a CPU is one."""
    return max(1, round(cpus))


def first_candidates(
    knobs: Sequence[Knobs], costs: dict[str, Cost], machine: Machine, always: Sequence[Candidate], most: int
) -> tuple[Candidate, ...]:
    """Return the candidates of the first race: ``always``, what is documented, and the nearest to what is
    needed, all in all about ``most``. ``costs``: by server; a server without is tried as documented.
    """
    share = min(MOST, most) // len(knobs)
    found: list[Candidate] = list(always)
    for one in knobs:
        cost = costs.get(one.server)
        kept = [*documented(one, machine)]
        if cost is not None:
            near = (
                candidate
                for candidate in _nearest(one, cost, machine)
                if candidate not in kept and _fits(candidate, cost, machine)
            )
            kept += islice(near, max(_LEAST_NEAR, share - len(set(kept))))
        found += [candidate for candidate in kept if candidate in always or _fits(candidate, cost, machine)]
    return tuple(dict.fromkeys(found))


def _nearest(knobs: Knobs, cost: Cost, machine: Machine) -> Iterator[Candidate]:
    """Yield the grid of a server: of each number of workers the best threads first, nearest to what is
    needed; then the second best of each.
    """
    needed = slots_needed(cost, machine.cpus)
    threads = _threads(knobs, cost)

    def distance(one: Candidate) -> tuple[bool, float]:
        # Too few slots carry less in proportion; too many only cost memory and switches.
        return one.slots < 0.9 * needed, abs(log2(one.slots / needed))

    by_workers = [
        sorted((replace(knobs.default, workers=w, threads=t) for t in threads), key=distance)
        for w in _workers(knobs, machine)
    ]
    for place in range(len(threads)):
        yield from sorted((own[place] for own in by_workers), key=distance)


def _workers(knobs: Knobs, machine: Machine) -> tuple[int | None, ...]:
    if knobs.held_workers is not None:
        return (knobs.held_workers,)
    n = whole(machine.cpus)
    counts = sorted({1, n, n + 1, 2 * n, 2 * n + 1, 4 * n})
    return tuple(one for one in counts if one <= knobs.most_workers) if knobs.workers else (None,)


def _threads(knobs: Knobs, cost: Cost) -> tuple[int | None, ...]:
    if not knobs.threads or knobs.held_threads is not None:
        return (knobs.held_threads,)
    is_busy = cost.wait_s < _LITTLE_WAITING * cost.cpu_s
    most = min(knobs.most_threads, _FEW_THREADS if is_busy else _THREADS[-1])
    return tuple(one for one in _THREADS if one <= most)


def _fits(one: Candidate, cost: Cost | None, machine: Machine) -> bool:
    limit = machine.memory_bytes
    if machine.connections is not None and one.slots > machine.connections:
        return False
    return limit is None or cost is None or (one.workers or 1) * cost.worker_bytes <= limit


def neighbours(one: Candidate, knobs: Knobs, cost: Cost | None, machine: Machine) -> tuple[Candidate, ...]:
    """Return what is one step away: a worker more or less, twice or half the threads."""
    found: Iterable[Candidate] = (
        *(replace(one, workers=(one.workers or 1) + step) for step in (1, -1) if knobs.workers),
        *(replace(one, threads=round((one.threads or 1) * by)) for by in (2, 0.5) if knobs.threads),
    )
    return tuple(
        near
        for near in found
        if near != one
        and (near.workers is None or 1 <= near.workers <= knobs.most_workers)
        and (near.threads is None or 1 <= near.threads <= knobs.most_threads)
        and knobs.allows(near)
        and _fits(near, cost, machine)
    )
