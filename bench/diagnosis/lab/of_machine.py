"""Planted causes outside of the server's own settings: limits, loads, other programs, wrong replies.

Pure; each of these functions makes of a server and a severity the fault and its twin.
"""

from dataclasses import replace

from lab.cause import Harm, PlantedCause
from lab.servers import PlantedServer, ServerKind
from lab.setup import NeighbourOf, Pair, PlantedSide, closed, open_at
from prony.core.units import MIB, SECOND_NS
from prony.diagnosis.cpu_time import THROTTLED
from prony.diagnosis.machine import OTHERS_RAN
from prony.diagnosis.memory import KILLED_FOR_MEMORY, WAITED_FOR_MEMORY
from prony.diagnosis.overload import OVERLOADED
from prony.diagnosis.rules import PRECEDENCE
from prony.diagnosis.uneven_work import UNEQUAL_WORK
from prony.diagnosis.wrong_replies import WRONG_REPLIES


def _setup(server: PlantedServer, page: str, number: int) -> PlantedSide:
    kept = server.kind is not ServerKind.PREFORK
    return PlantedSide(server.page(page, number), server.app, server.with_slots(4), kept_open=kept)


def _quota(server: PlantedServer, percent: int) -> Pair:
    """A quota of CPU."""
    alike = _setup(server, "work", 1000).on(closed(8))
    return Pair(alike, replace(alike, cpu_quota=percent / 100))


def _memory(server: PlantedServer, mib: int) -> Pair:
    """A limit of memory below what the app keeps; the twin has twice what it needs."""
    alike = replace(_setup(server, "hoard", mib + 200).on(closed(4)), warmup_ns=3 * SECOND_NS)
    return Pair(replace(alike, memory_bytes=(2 * mib + 1200) * MIB), replace(alike, memory_bytes=mib * MIB))


def _pressure(server: PlantedServer, mib: int) -> Pair:
    """A limit of memory that leaves no room for the file that the app reads; nothing is killed for it. The
    twin has room for all of it: each of four processes has a file of its own, a gigabyte in all.
    """
    alike = replace(_setup(server, "reread", 256).on(closed(4)), warmup_ns=4 * SECOND_NS)
    return Pair(replace(alike, memory_bytes=2048 * MIB), replace(alike, memory_bytes=mib * MIB))


def _larger(server: PlantedServer, kib: int) -> Pair:
    """Replies of so many kilobytes, beside a twin whose replies are a line."""
    alike = replace(_setup(server, "sized", 0), settings=server.with_slots(2)).on(closed(2))
    return Pair(alike, replace(alike, path=server.page("sized", kib)))


def _overload(server: PlantedServer, percent: int) -> Pair:
    """More asked than a CPU can do: 100 requests a second, of 10 ms each."""
    alike = _setup(server, "work", 10_000)
    return Pair(alike.on(open_at(40)), alike.on(open_at(percent)))


def _wrong(server: PlantedServer, every: int) -> Pair:
    """One reply of so many is a failure."""
    alike = _setup(server, "work", 200).on(closed(4))
    return Pair(alike, replace(alike, path=server.page("wrong", every)))


def _small_generator(server: PlantedServer, connections: int) -> Pair:
    """A generator that may have few requests in flight."""
    alike = _setup(server, "sleep", 20)
    return Pair(alike.on(open_at(120)), alike.on(open_at(120, connections)))


def _neighbour(server: PlantedServer, percent: int) -> Pair:
    """Another program on the server's CPU."""
    alike = _setup(server, "work", 500).on(closed(8))
    return Pair(alike, replace(alike, neighbour=percent / 100))


def _busy_generator(server: PlantedServer, percent: int) -> Pair:
    """Another program on the generator's CPU."""
    alike = _setup(server, "work", 50).on(closed(8))
    return Pair(alike, replace(alike, neighbour=percent / 100, neighbour_of=NeighbourOf.GENERATOR))


def _healthy(server: PlantedServer, percent: int) -> Pair:
    """Nothing: at a share of what it can do, and twice as much, or as much as it can."""
    alike = replace(_setup(server, "work", 2000), kept_open=server.name not in _CLOSING)
    at = alike.on(open_at(4.0 * percent))
    return Pair(at, alike.on(open_at(8.0 * percent)) if percent < _SATURATED else alike.on(closed(4)))


# These hold a worker for each kept connection, or close each.
_CLOSING = frozenset(("gunicorn", "uwsgi", "starman", "starlet-keep-alive"))
_SATURATED = 50

_GENERATOR = frozenset(kind for kind in PRECEDENCE if kind.is_of_generator)
_WITH_APPS = (
    *("gunicorn", "starman", "gunicorn-gthread", "waitress", "cheroot", "uvicorn-quiet", "tornado"),
    "node-pages",
)

OF_MACHINE = (
    PlantedCause(
        "quota",
        "a quota of CPU",
        "D14",
        frozenset((THROTTLED,)),
        Harm.RATE,
        ("gunicorn", "waitress", "uvicorn-quiet", "starman", "node-http", "go-net-http", "nginx-static"),
        {"low": 30, "middle": 60},
        _quota,
    ),
    PlantedCause(
        "memory-limit",
        "a limit of memory",
        "D19",
        frozenset((KILLED_FOR_MEMORY,)),
        Harm.FAILED,
        ("gunicorn-gthread", "waitress", "starman", "uvicorn-quiet", "tornado"),
        {"low": 96, "middle": 160},
        _memory,
    ),
    PlantedCause(
        "memory-pressure",
        "memory that is taken back from what it reads",
        "D20",
        frozenset((WAITED_FOR_MEMORY,)),
        Harm.RATE,
        ("gunicorn", "gunicorn-gthread", "waitress", "uvicorn-quiet"),
        {"low": 128, "middle": 160},
        _pressure,
    ),
    PlantedCause(
        "unequal-work",
        "replies that are larger than those of the twin",
        "D32",
        frozenset((UNEQUAL_WORK,)),
        Harm.CPU,
        ("gunicorn", "starman", "gunicorn-gthread", "waitress", "uvicorn-quiet", "hypercorn", "node-pages"),
        {"much": 256, "some": 64},
        _larger,
    ),
    PlantedCause(
        "overload",
        "more asked than it can do",
        "D41",
        frozenset((OVERLOADED,)),
        Harm.TAIL,
        _WITH_APPS,
        {"half-more": 150, "twice": 200},
        _overload,
    ),
    PlantedCause(
        "wrong-replies",
        "wrong replies",
        "D31",
        frozenset((WRONG_REPLIES,)),
        Harm.FAILED,
        _WITH_APPS,
        {"tenth": 10, "few": 40},
        _wrong,
    ),
    PlantedCause(
        "small-generator",
        "a generator with too few connections",
        "D23",
        _GENERATOR,
        Harm.TAIL,
        ("gunicorn", "gunicorn-gthread", "waitress", "cheroot", "uvicorn-quiet", "hypercorn"),
        {"one": 1, "two": 2},
        _small_generator,
    ),
    PlantedCause(
        "busy-generator",
        "another program on the generator's CPU",
        "D23",
        _GENERATOR,
        Harm.TAIL,
        ("gunicorn", "uvicorn-quiet", "node-http", "waitress"),
        {"most": 80, "half": 50},
        _busy_generator,
    ),
    PlantedCause(
        "neighbour",
        "another program on the server's CPU",
        "D28",
        frozenset((OTHERS_RAN,)),
        Harm.RATE,
        ("gunicorn", "uvicorn-quiet", "waitress", "node-http", "starman"),
        {"most": 80, "half": 50},
        _neighbour,
    ),
    PlantedCause(
        "healthy",
        "nothing, from idle to saturation",
        "",
        frozenset(),
        Harm.RATE,
        (*_WITH_APPS, "uwsgi", "twisted", "hypercorn", "node-http", "go-net-http", "nginx-static"),
        {"idle": 2, "quarter": 12, "saturated": 50},
        _healthy,
    ),
)
"""The causes, in the order of the table."""
