"""The museum: cases that users reported in public, rebuilt from their own text. No threshold was set on them.

The twin of each has the cure that the thread names. Pure.
"""

from collections.abc import Callable
from dataclasses import replace

from prony.diagnosis import Symptom
from prony.faults.cause import Harm, PlanPart, PlantedCause
from prony.faults.servers import PlantedServer
from prony.faults.setup import Pair, PlantedSide, closed
from prony.units import SECOND_NS

__all__ = ["MUSEUM"]


def _on_the_loop(server: PlantedServer, clients: int) -> Pair:
    """The app runs on the event loop: one request at a time. Cure: an executor."""
    alike = PlantedSide(server.page("sleep", 50)).on(closed(clients))
    return Pair(alike.using(threads=clients), alike)


def _pool_of_eight(server: PlantedServer, clients: int) -> Pair:
    """Fifty requests of a second each for a pool of 8 threads; here of half a second. Cure: as many
    threads.
    """
    alike = PlantedSide(server.page("sleep", 500)).on(closed(clients))
    return Pair(alike.using(threads=clients), alike.using(threads=8))


def _ten_with_keep_alive(server: PlantedServer, clients: int) -> Pair:
    """`ab -c 10 -k` against five workers: 1 to 30 requests a second. Cure: --disable-keepalive, 370."""
    alike = PlantedSide(server.page("work", 2000)).on(closed(clients))
    return Pair(replace(alike.using(keep_alive="false"), kept_open=False), alike)


def _counts_connections(server: PlantedServer, clients: int) -> Pair:
    """Workers outlive their `--max-requests`, which counts connections, and so keep what the app leaks. Cure:
    connections that end.
    """
    alike = PlantedSide(server.page("leak", 128), settings={"workers": 2, "max_requests": 100}).on(
        closed(clients)
    )
    return Pair(replace(alike, kept_open=False), alike)


def _queue_of_a_hundred(server: PlantedServer, clients: int) -> Pair:
    """Eight processes that are stalled, and `listen queue ... full (101/100)`. Cure: a longer queue."""
    alike = PlantedSide(
        server.page("sleep", 300), settings={**server.settings, "processes": 8}, kept_open=False
    )
    return Pair(alike.on(closed(clients)).using(backlog=1024), alike.on(closed(clients)).using(backlog=100))


def _case(  # noqa: PLR0913, PLR0917 - what a case is
    name: str,
    title: str,
    rule: str,
    kind: Symptom,
    harm: Harm,
    server: str,
    clients: int,
    pair: Callable[[PlantedServer, int], Pair],
) -> PlantedCause:
    return PlantedCause(
        name,
        title,
        rule,
        frozenset((kind,)),
        harm,
        (server,),
        {"as-reported": clients},
        pair,
        8 * SECOND_NS,
        PlanPart.MUSEUM,
    )


_SLOTS, _STARVED = Symptom.SLOTS_BUSY, Symptom.STARVED_BY_SLOTS

MUSEUM = (
    _case(
        "museum-tornado-1075",
        "tornadoweb/tornado 1075",
        "D17",
        _SLOTS,
        Harm.RATE,
        "tornado",
        20,
        _on_the_loop,
    ),
    _case(
        "museum-tornado-3299",
        "tornadoweb/tornado 3299",
        "D17",
        _SLOTS,
        Harm.RATE,
        "tornado",
        50,
        _pool_of_eight,
    ),
    _case(
        "museum-starman-6",
        "miyagawa/Starman 6",
        "D10",
        _STARVED,
        Harm.FAILED,
        "starman",
        10,
        _ten_with_keep_alive,
    ),
    _case(
        "museum-starman-124",
        "miyagawa/Starman 124",
        "D21",
        Symptom.MEMORY_GREW,
        Harm.MEMORY,
        "starman",
        2,
        _counts_connections,
    ),
    _case(
        "museum-uwsgi-2444",
        "unbit/uwsgi 2444",
        "D01",
        Symptom.QUEUE_OVERFLOWED,
        Harm.TAIL,
        "uwsgi",
        200,
        _queue_of_a_hundred,
    ),
)
"""The cases, each named after its thread."""
