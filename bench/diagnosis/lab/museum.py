"""The museum: cases that users reported in public, rebuilt from their own text. No threshold was set on them.

The twin of each has the cure that the thread names. Pure.
"""

from collections.abc import Callable
from dataclasses import replace

from lab.cause import Harm, PlanPart, PlantedCause
from lab.servers import PlantedServer
from lab.setup import Pair, PlantedSide, closed
from prony.core.units import MIB, SECOND_NS
from prony.diagnosis.connections import CLOSED_AFTER_EACH, STARVED_BY_SLOTS
from prony.diagnosis.delayed_replies import REPLIES_HELD_BACK
from prony.diagnosis.kinds import Symptom
from prony.diagnosis.listen_queue import QUEUE_OVERFLOWED
from prony.diagnosis.memory import KILLED_FOR_MEMORY, MEMORY_GREW
from prony.diagnosis.started_under_load import RESTARTED
from prony.diagnosis.waiting import SLOTS_BUSY


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


def _more_kept_than_threads(server: PlantedServer, clients: int) -> Pair:
    """More kept connections than threads: the others wait in the server's own queue. Cure: more threads."""
    alike = PlantedSide(server.page("hello", 0), server.app).on(closed(clients))
    return Pair(alike.using(threads=clients), alike.using(threads=5))


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
    """Eight processes that are stalled, and `listen queue ... full (101/100)`. Cure: no more clients than
    that.
    """
    settings = {**server.settings, "processes": 8, "backlog": 100}
    alike = PlantedSide(server.page("sleep", 300), settings=settings, kept_open=False)
    return Pair(alike.on(closed(8)), alike.on(closed(clients)))


def _several_workers(server: PlantedServer, clients: int) -> Pair:
    """With `--workers` each request on a kept connection but the first takes 43 ms more. Cure: one worker."""
    settings = {**server.settings, "loop": "asyncio"}
    alike = PlantedSide(server.page("work", 0), settings=settings).on(closed(clients))
    return Pair(alike.using(workers=1), alike.using(workers=2))


def _no_keep_alive(server: PlantedServer, clients: int) -> Pair:
    """`--http-socket` closes each connection. Cure: `--http11-socket`."""
    alike = PlantedSide(server.page("work", 20), settings=server.with_slots(clients)).on(closed(clients))
    return Pair(alike.using(http="http11-socket"), alike.using(http="http-socket"))


def _killed_for_time(server: PlantedServer, clients: int) -> Pair:
    """`WORKER TIMEOUT`, and then `was sent SIGKILL! Perhaps out of memory?`: it was not. Cure: more time.

    A page of 0.9 s of work, which takes four times as long when all workers share a CPU.
    """
    alike = PlantedSide(server.page("work", 900_000), settings=server.with_slots(clients), kept_open=False)
    return Pair(alike.on(closed(clients)).using(timeout=30), alike.on(closed(clients)).using(timeout=2))


def _silently_killed(server: PlantedServer, clients: int) -> Pair:
    """A list that grows in a container of 500 MB: only `Booting worker` is logged. Cure: enough memory."""
    alike = PlantedSide(server.page("hoard", 700), kept_open=False, warmup_ns=3 * SECOND_NS)
    alike = alike.on(closed(clients))
    return Pair(replace(alike, memory_bytes=2000 * MIB), replace(alike, memory_bytes=500 * MIB))


def _usual_pool(server: PlantedServer, clients: int) -> Pair:
    """A WSGI app in the reactor's pool, of 10 threads at most. Cure: a pool of its own, of the right size."""
    alike = PlantedSide(server.page("sleep", 100)).on(closed(clients))
    return Pair(alike.using(threads=clients), alike.using(threads=10))


def _four_by_four(server: PlantedServer, clients: int) -> Pair:
    """Requests are dropped, and neither CPU nor memory is the limit. Cure: 2 x 32 threads, not 4 x 4."""
    alike = PlantedSide(server.page("sleep", 100)).on(closed(clients))
    return Pair(alike.using(workers=2, threads=32), alike.using(workers=4, threads=4))


def _slow_backend(server: PlantedServer, clients: int) -> Pair:
    """A page that waits 200 ms for another server, on two workers of one thread. Cure: five threads each."""
    alike = PlantedSide(server.page("sleep", 200)).on(closed(clients))
    return Pair(alike.using(workers=2, threads=5), alike.using(workers=2, threads=1))


def _case(  # noqa: PLR0913, PLR0917 - what a case is
    thread: str,
    rule: str,
    kind: Symptom,
    harm: Harm,
    server: str,
    clients: int,
    pair: Callable[[PlantedServer, int], Pair],
) -> PlantedCause:
    """Return the case of a thread, such as ``tornadoweb/tornado 1075``."""
    return PlantedCause(
        f"museum-{thread.rpartition('/')[2].lower().replace(' ', '-')}",
        thread,
        rule,
        frozenset((kind,)),
        harm,
        (server,),
        {"as-reported": clients},
        pair,
        8 * SECOND_NS,
        PlanPart.MUSEUM,
    )


_SLOTS, _GTHREAD = SLOTS_BUSY, "gunicorn-gthread"

MUSEUM = (
    _case("tornadoweb/tornado 1075", "D17", _SLOTS, Harm.RATE, "tornado", 20, _on_the_loop),
    _case("tornadoweb/tornado 3299", "D17", _SLOTS, Harm.RATE, "tornado", 50, _pool_of_eight),
    _case("crossbario/crossbar 236", "D17", _SLOTS, Harm.RATE, "twisted", 50, _usual_pool),
    _case("all-of-us/raw-data-repository 2417", "D17", _SLOTS, Harm.RATE, _GTHREAD, 60, _four_by_four),
    _case("heroku/python-getting-started 242", "D17", _SLOTS, Harm.RATE, _GTHREAD, 10, _slow_backend),
    _case(
        *("cherrypy/cheroot 91", "D10", STARVED_BY_SLOTS, Harm.FAILED),
        *("cherrypy-as-of-2016", 10, _more_kept_than_threads),
    ),
    _case(
        *("miyagawa/Starman 6", "D10", STARVED_BY_SLOTS, Harm.FAILED),
        *("starman", 10, _ten_with_keep_alive),
    ),
    _case(
        *("miyagawa/Starman 124", "D21", MEMORY_GREW, Harm.MEMORY),
        *("starman", 2, _counts_connections),
    ),
    _case(
        *("unbit/uwsgi 2444", "D01", QUEUE_OVERFLOWED, Harm.TAIL),
        *("uwsgi", 200, _queue_of_a_hundred),
    ),
    _case("unbit/uwsgi 1097", "D12", CLOSED_AFTER_EACH, Harm.CPU, "uwsgi", 4, _no_keep_alive),
    _case(
        *("Kludex/uvicorn 3149", "D30", REPLIES_HELD_BACK, Harm.TAIL),
        *("uvicorn-quiet", 1, _several_workers),
    ),
    _case(
        *("benoitc/gunicorn 2215", "D19", KILLED_FOR_MEMORY, Harm.FAILED),
        *("gunicorn", 1, _silently_killed),
    ),
    _case(
        *("open-runtimes/open-runtimes 330", "D22", RESTARTED, Harm.FAILED),
        *("gunicorn", 4, _killed_for_time),
    ),
)
"""The cases, each named after its thread."""
