"""Planted causes of workers, threads and what they wait for.

Pure; each of these functions makes of a server and a severity the fault and its twin.
"""

from dataclasses import replace

from lab.cause import Harm, PlantedCause
from lab.servers import PlantedServer, ServerKind
from lab.setup import Pair, PlantedSide, closed, open_at
from prony.core.units import MILLISECOND_NS, SECOND_NS
from prony.diagnosis.cpu_time import ONE_CORE_FULL, ONE_THREAD_FULL
from prony.diagnosis.few_at_a_time import ONE_AT_A_TIME
from prony.diagnosis.memory import MEMORY_GREW
from prony.diagnosis.started_under_load import FORKED_FOR_EACH, POOL_GREW, RESTARTED
from prony.diagnosis.uneven_work import UNEVEN_CONNECTIONS, UNEVEN_WORKERS
from prony.diagnosis.unlike_production import DEBUGGING, STILL_COLD
from prony.diagnosis.waiting import DISK_WAITED, DOWNSTREAM_BUSY, LOCK_HELD, SLOTS_BUSY

_SLOTS = 8


def _setup(server: PlantedServer, page: str, number: int, slots: int = _SLOTS) -> PlantedSide:
    """Return a page on so many workers or threads, under a load that keeps them busy."""
    return PlantedSide(server.page(page, number), server.app, server.with_slots(slots)).on(closed(3 * _SLOTS))


def _quiet(setup: PlantedSide, server: PlantedServer) -> PlantedSide:
    """Return it with a connection for each request where workers hold kept ones."""
    return replace(setup, kept_open=server.kind is not ServerKind.PREFORK)


def _lock(server: PlantedServer, ms: int) -> Pair:
    """A lock that is held while it sleeps; the twin sleeps without it."""
    return Pair(
        _quiet(_setup(server, "sleep", ms), server).on(closed(_SLOTS)),
        _quiet(_setup(server, "lock", ms), server).on(closed(3 * _SLOTS)),
    )


def _asleep(server: PlantedServer, ms: int) -> Pair:
    """Four workers or threads that sleep, and more clients; the twin has a thread for each."""
    alike = _quiet(_setup(server, "sleep", ms), server)
    return Pair(
        replace(alike, settings=server.with_slots(3 * _SLOTS + 2)),
        replace(alike, settings=server.with_slots(4)),
    )


def _computing(server: PlantedServer, threads: int) -> Pair:
    """Threads of the server's process that compute all the time: each request waits for CPython's lock."""
    slots = server.with_slots(_SLOTS) if server.slots != server.processes else server.with_slots(1)
    alike = PlantedSide(server.page("work", 200), server.app, slots, shares_cpus=True)
    alike = _quiet(alike, server).on(open_at(40))
    return Pair(alike, replace(alike, environment={"FAULTY_COMPUTING": str(threads)}))


def _several_cores(server: PlantedServer, page_us: int, per_s: int) -> PlantedSide:
    asked = PlantedSide(server.page("work", page_us), server.app, server.settings, shares_cpus=True)
    return _quiet(asked, server).on(open_at(per_s))


def _one_core(server: PlantedServer, share: int) -> Pair:
    """More than one core's work for one process; the twin has two. ``share``: per cent of a core."""
    alike = _several_cores(server, 8000, share * 5 // 4)
    slots = {server.slots: 8} if server.slots and server.slots != server.processes else {}
    alike = replace(alike, settings={**alike.settings, **slots})
    return Pair(alike.using(**{server.processes: 2}), alike.using(**{server.processes: 1}))


def _uneven(server: PlantedServer, connections: int) -> Pair:
    """Two workers of which one came late, so that the other took all connections, and keeps them."""
    alike = _several_cores(server, 5000, 1).using(**{server.processes: 2}).on(closed(connections))
    alike = replace(alike, environment={"FAULTY_LATE": "2"}, warmup_ns=3 * SECOND_NS)
    return Pair(replace(alike, kept_open=False), replace(alike, kept_open=True))


def _uneven_sleepers(server: PlantedServer, connections: int) -> Pair:
    """The same where each request sleeps: no CPU shows it. Each worker has eight threads."""
    alike = PlantedSide(server.page("sleep", 100), server.app, server.with_slots(_SLOTS))
    alike = alike.using(**{server.processes: 2}).on(closed(connections))
    alike = replace(alike, environment={"FAULTY_LATE": "2"}, warmup_ns=3 * SECOND_NS)
    return Pair(replace(alike, kept_open=False), replace(alike, kept_open=True))


def _log(server: PlantedServer, lines: int) -> Pair:
    """Each request's lines go to the disk before its reply."""
    return Pair(
        _quiet(_setup(server, "log", 0, 4), server).on(open_at(20)),
        _quiet(_setup(server, "log", lines, 4), server),
    )


def _database(server: PlantedServer, ms: int) -> Pair:
    """A pool of one connection to PostgreSQL; the twin has one for each thread."""
    alike = replace(_setup(server, "query", ms), app="faulty-database")
    return Pair(
        replace(alike, environment={"FAULTY_POOL": "16"}).on(closed(_SLOTS)),
        replace(alike, environment={"FAULTY_POOL": "1"}),
    )


def _leak(server: PlantedServer, kib: int) -> Pair:
    """Memory of each request that is never given back."""
    alike = _quiet(_setup(server, "leak", 0, 2), server).on(open_at(100))
    return Pair(alike, replace(alike, path=server.page("leak", kib)))


def _fork(server: PlantedServer, _: int) -> Pair:
    """A program that is started for each request."""
    alike = _quiet(_setup(server, "work", 200, 2), server).on(closed(4))
    return Pair(alike, replace(alike, path=server.page("fork", 0)))


def _churn(server: PlantedServer, requests: int) -> Pair:
    """Workers that end after some requests; the twin's live."""
    name = "max_reqs_per_child" if server.name.startswith("starlet") else "max_requests"
    alike = (
        replace(_setup(server, "work", 500, 2), kept_open=False).on(closed(8)).using(**{server.processes: 2})
    )
    return Pair(alike.using(**{name: 900_000}), alike.using(**{name: requests}))


def _cold(server: PlantedServer, ms: int) -> Pair:
    """A server that is slow in its first seconds; the twin is warmed up for longer."""
    alike = _quiet(_setup(server, "cold", ms, 1), server).on(closed(4))
    long = ms * MILLISECOND_NS + 2 * SECOND_NS
    return Pair(replace(alike, warmup_ns=long), replace(alike, warmup_ns=SECOND_NS // 2))


def _lazy(server: PlantedServer, connections: int) -> Pair:
    """A pool that grows only when it is asked for; the twin has all of it from the start."""
    load = closed(connections)
    alike = PlantedSide("/sleep?n=20", "faulty", {"max_children": connections}, warmup_ns=0).on(load)
    return Pair(
        replace(alike.using(min_spare=connections - 1, max_spare=connections), warmup_ns=3 * SECOND_NS),
        alike.using(min_spare=1, max_spare=2),
    )


def _debug(server: PlantedServer, _: int) -> Pair:
    """The runtime's development mode, by its environment."""
    alike = _quiet(_setup(server, "work", 20, 1), server).on(closed(8))
    return Pair(alike, replace(alike, environment={"PYTHONDEVMODE": "1", "PYTHONASYNCIODEBUG": "1"}))


_ONE_CONNECTION = "a worker has one connection, and takes the next when it is free"
_ANY_NUMBER = "it works on any number of requests at a time"
_POOLS = ("gunicorn-gthread", "waitress", "cheroot", "twisted")
_WORKERS = ("gunicorn", "uwsgi", "starman")

OF_WORKERS = (
    PlantedCause(
        "lock",
        "a lock that all threads want",
        "D16",
        frozenset((LOCK_HELD,)),
        Harm.RATE,
        _POOLS,
        {"long": 20, "short": 8},
        _lock,
        cannot={
            ServerKind.PREFORK: "a process works on one request: nobody else wants its locks",
            ServerKind.LOOP: "its handlers take turns on one thread: who holds a lock stops all others",
        },
    ),
    PlantedCause(
        "gil-convoy",
        "threads that compute and keep CPython's lock",
        "D13",
        frozenset((ONE_CORE_FULL, ONE_THREAD_FULL)),
        Harm.TAIL,
        (*_POOLS, "gunicorn", "uvicorn-quiet", "tornado"),
        {"four": 4, "two": 2},
        _computing,
    ),
    PlantedCause(
        "asleep",
        "all workers and threads asleep",
        "D17",
        frozenset((SLOTS_BUSY,)),
        Harm.RATE,
        (*_POOLS, *_WORKERS),
        {"long": 50, "longer": 150},
        _asleep,
        cannot={ServerKind.LOOP: _ANY_NUMBER},
    ),
    PlantedCause(
        "one-core",
        "one process, more work than a core does",
        "D13",
        frozenset((ONE_CORE_FULL, ONE_THREAD_FULL)),
        Harm.TAIL,
        ("gunicorn", "gunicorn-gthread", "uvicorn-quiet", "hypercorn", "tornado", "node-pages"),
        {"more": 130, "most": 145},
        _one_core,
    ),
    PlantedCause(
        "uneven-workers",
        "connections that stick to one worker",
        "D18",
        frozenset((UNEVEN_WORKERS,)),
        Harm.RATE,
        ("uvicorn-quiet", "hypercorn", "granian", "gunicorn-gthread"),
        {"few": 8, "some": 16},
        _uneven,
        cannot={ServerKind.PREFORK: _ONE_CONNECTION},
    ),
    PlantedCause(
        "uneven-sleepers",
        "connections that stick to one worker, which waits",
        "D18",
        frozenset((UNEVEN_CONNECTIONS, UNEVEN_WORKERS)),
        Harm.RATE,
        ("gunicorn-gthread",),
        {"few": 12, "some": 16},
        _uneven_sleepers,
        cannot={
            ServerKind.PREFORK: _ONE_CONNECTION,
            ServerKind.LOOP: _ANY_NUMBER,
        },
    ),
    PlantedCause(
        "slow-log",
        "a log on the disk, line by line",
        "D34",
        frozenset((DISK_WAITED,)),
        Harm.TAIL,
        (*_WORKERS, "gunicorn-gthread", "waitress", "cheroot", "uvicorn-quiet", "node-pages"),
        {"lines": 8, "more": 24},
        _log,
    ),
    PlantedCause(
        "database-pool",
        "a pool of one connection to PostgreSQL",
        "D35",
        frozenset((DOWNSTREAM_BUSY, ONE_AT_A_TIME)),
        Harm.RATE,
        ("gunicorn-gthread", "waitress", "cheroot"),
        {"slow": 20, "quick": 8},
        _database,
        cannot={
            ServerKind.PREFORK: "a process asks over a connection of its own",
            ServerKind.LOOP: "it waits for all of its connections at once: the rule sees no pool there",
        },
    ),
    PlantedCause(
        "leak",
        "memory that grows with each request",
        "D21",
        frozenset((MEMORY_GREW,)),
        Harm.MEMORY,
        (*_WORKERS, "gunicorn-gthread", "waitress", "uvicorn-quiet", "node-pages"),
        {"much": 128, "some": 48},
        _leak,
    ),
    PlantedCause(
        "fork-storm",
        "a program started for each request",
        "D42",
        frozenset((FORKED_FOR_EACH,)),
        Harm.RATE,
        (*_WORKERS, "gunicorn-gthread", "waitress", "uvicorn-quiet", "node-pages"),
        {"each": 1},
        _fork,
    ),
    PlantedCause(
        "churn",
        "workers that end after some requests",
        "D22",
        frozenset((RESTARTED,)),
        Harm.RATE,
        ("gunicorn", "starman", "starlet-keep-alive", "gunicorn-gthread"),
        {"often": 200, "less": 400},
        _churn,
        cannot={ServerKind.LOOP: "these have no setting that ends a worker by its requests"},
    ),
    PlantedCause(
        "cold",
        "a server that is still warming up",
        "D40",
        frozenset((STILL_COLD,)),
        Harm.RATE,
        ("gunicorn", "gunicorn-gthread", "waitress", "uvicorn-quiet", "node-pages"),
        {"long": 4000, "short": 3000},
        _cold,
        window_ns=8 * SECOND_NS,
    ),
    PlantedCause(
        "lazy-start",
        "a pool that is still growing",
        "D37",
        frozenset((POOL_GREW,)),
        Harm.RATE,
        ("flup-prefork@nginx",),
        {"many": 24, "some": 12},
        _lazy,
        window_ns=4 * SECOND_NS,
        cannot={
            ServerKind.THREADS: "it is about processes: a thread starts within a millisecond",
            ServerKind.LOOP: "it has no pool that grows",
        },
    ),
    PlantedCause(
        "debug",
        "the runtime's development mode",
        "D33",
        frozenset((DEBUGGING,)),
        Harm.CPU,
        ("uvicorn-quiet", "hypercorn", "gunicorn", "waitress", "tornado"),
        {"on": 1},
        _debug,
    ),
)
"""The causes, in the order of the table."""
