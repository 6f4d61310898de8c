"""Two faults in one server at once: the one that hurts more is to be named first.

Each double is two plants: both faults beside a twin that lacks the one, and beside a twin that lacks the
other. What hurts more is measured: the fault whose twin is better by more. Pure.

>>> len({double.name for double in DOUBLES}) == len(DOUBLES) >= 10
True
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lab.cause import Harm, PlanPart, Plant, PlantedCause
from lab.servers import SERVERS, PlantedServer
from lab.setup import Pair, PlantedSide, closed
from prony.core.units import SECOND_NS
from prony.diagnosis.cpu_time import THROTTLED
from prony.diagnosis.few_at_a_time import ONE_AT_A_TIME
from prony.diagnosis.kinds import Symptom
from prony.diagnosis.listen_queue import QUEUE_OVERFLOWED
from prony.diagnosis.machine import OTHERS_RAN
from prony.diagnosis.waiting import DOWNSTREAM_BUSY, LOCK_HELD, SLOTS_BUSY

_Change = Callable[[PlantedSide, PlantedServer], PlantedSide]
_CLIENTS = 24
_LEVEL = "both"


@dataclass(frozen=True, slots=True)
class Double:
    """Two faults in one server. ``first`` and ``second``: both, beside a twin without the fault so named."""

    name: str
    first: Plant
    second: Plant


@dataclass(frozen=True, slots=True)
class _Fault:
    """A fault as a change of a side, and what its twin has instead."""

    name: str
    rule: str
    named: frozenset[Symptom]
    sick: _Change
    well: _Change


def _same(side: PlantedSide, _: PlantedServer) -> PlantedSide:
    return side


def _slots(count: int) -> _Change:
    return lambda side, server: replace(side, settings={**side.settings, **server.with_slots(count)})


def _page(name: str, number: int) -> _Change:
    return lambda side, server: replace(side, path=server.page(name, number))


def _fault(name: str, rule: str, kind: Symptom, sick: _Change, well: _Change = _same) -> _Fault:
    return _Fault(name, rule, frozenset((kind,)), sick, well)


_QUOTA = _fault("quota", "D14", THROTTLED, lambda side, _: replace(side, cpu_quota=0.2))
_NEIGHBOUR = _fault("neighbour", "D28", OTHERS_RAN, lambda side, _: replace(side, neighbour=0.8))
_FEW_SLOTS = _fault("asleep", "D17", SLOTS_BUSY, _slots(4), _slots(_CLIENTS + 2))
_LOCK = _fault("lock", "D16", LOCK_HELD, _page("lock", 20), _page("sleep", 20))
_POOL = _Fault(
    "pool",
    "D35",
    frozenset((DOWNSTREAM_BUSY, ONE_AT_A_TIME)),
    lambda side, _: replace(side, environment={"FAULTY_POOL": "1"}),
    lambda side, _: replace(side, environment={"FAULTY_POOL": "32"}),
)
_SHORT_QUEUE = _fault(
    "queue",
    "D01",
    QUEUE_OVERFLOWED,
    lambda side, _: side.using(backlog=5),
    lambda side, _: side.using(backlog=2048),
)


def _asks(page: str, number: int, *, kept: bool = True, clients: int = _CLIENTS) -> _Change:
    def asked(side: PlantedSide, server: PlantedServer) -> PlantedSide:
        return replace(side.on(closed(clients)), path=server.page(page, number), kept_open=kept)

    return asked


def _double(  # noqa: PLR0913, PLR0917 - what a double is
    server: PlantedServer, harm: Harm, asks: _Change, first: _Fault, second: _Fault, app: str = ""
) -> Double:
    """Return two faults in one server, under a load that ``asks`` for a page."""
    plain = asks(PlantedSide("/", app or server.app, server.with_slots(8)), server)
    both = second.sick(first.sick(plain, server), server)
    twins = (
        (first, second.sick(first.well(plain, server), server)),
        (second, second.well(first.sick(plain, server), server)),
    )
    name = f"both-{first.name}-and-{second.name}"
    plants = (
        _without(f"{name}-without-{cured.name}", harm, server, cured, Pair(twin, both))
        for cured, twin in twins
    )
    return Double(f"{name}-{server.name}", *plants)


def _without(name: str, harm: Harm, server: PlantedServer, cured: _Fault, pair: Pair) -> Plant:
    cause = PlantedCause(
        name,
        name.replace("-", " "),
        cured.rule,
        cured.named,
        harm,
        (server.name,),
        {_LEVEL: 1},
        lambda _server, _level: pair,
        6 * SECOND_NS,
        PlanPart.DOUBLE,
    )
    return Plant(cause, server, _LEVEL)


def _doubles() -> Iterator[Double]:
    sleeps, works = _asks("sleep", 50), _asks("work", 1000)
    for name in ("gunicorn-gthread", "waitress"):
        yield _double(SERVERS[name], Harm.RATE, sleeps, _FEW_SLOTS, _QUOTA)
        yield _double(SERVERS[name], Harm.RATE, _asks("query", 20), _POOL, _FEW_SLOTS, "faulty-database")
    for name in ("waitress", "cheroot"):
        yield _double(SERVERS[name], Harm.RATE, _asks("lock", 20), _LOCK, _FEW_SLOTS)
    for name in ("cheroot", "twisted"):
        yield _double(SERVERS[name], Harm.RATE, sleeps, _FEW_SLOTS, _NEIGHBOUR)
    for name in ("tornado", "uvicorn-quiet"):
        yield _double(SERVERS[name], Harm.RATE, works, _QUOTA, _NEIGHBOUR)
    for name in ("gunicorn", "uwsgi"):
        asks = _asks("work", 2000, kept=False, clients=100)
        yield _double(SERVERS[name], Harm.TAIL, asks, _SHORT_QUEUE, _QUOTA)
        yield _double(SERVERS[name], Harm.TAIL, asks, _SHORT_QUEUE, _NEIGHBOUR)


DOUBLES = tuple(_doubles())
"""Every pair of faults that is planted."""
