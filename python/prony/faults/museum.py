"""The museum: cases that users reported in public, rebuilt from their own text. No threshold was set on them.

The twin of each has the cure that the thread names. Pure.
"""

from collections.abc import Callable
from dataclasses import replace

from prony.diagnosis import Symptom
from prony.faults.cause import Harm, PlanPart, PlantedCause
from prony.faults.servers import PlantedServer
from prony.faults.setup import Pair, PlantedSide, closed
from prony.units import MIB, SECOND_NS

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
    """Eight processes that are stalled, and `listen queue ... full (101/100)`. Cure: no more clients than
    that.
    """
    settings = {**server.settings, "processes": 8, "backlog": 100}
    alike = PlantedSide(server.page("sleep", 300), settings=settings, kept_open=False)
    return Pair(alike.on(closed(8)), alike.on(closed(clients)))


def _on_asyncio(server: PlantedServer, clients: int) -> Pair:
    """Kept connections are slower than new ones, by asyncio's loop. Cure: uvloop."""
    alike = PlantedSide(server.page("sleep", 5)).on(closed(clients))
    return Pair(alike.using(worker_class="uvloop"), alike.using(worker_class="asyncio"))


def _several_workers(server: PlantedServer, clients: int) -> Pair:
    """With `--workers` each request on a kept connection but the first takes 43 ms more. Cure: one worker."""
    alike = PlantedSide(server.page("work", 0), settings=server.settings).on(closed(clients))
    return Pair(alike.using(workers=1), alike.using(workers=2))


def _no_keep_alive(server: PlantedServer, clients: int) -> Pair:
    """`--http-socket` closes each connection. Cure: `--http11-socket`."""
    alike = PlantedSide(server.page("work", 20), settings=server.with_slots(clients)).on(closed(clients))
    return Pair(alike.using(http="http11-socket"), alike.using(http="http-socket"))


def _router(server: PlantedServer, clients: int) -> Pair:
    """The router answers one request of a kept connection, and does not close it: wrk waits, and counts
    nothing. Cure: `--http-keepalive`.
    """
    alike = PlantedSide(server.page("work", 20), settings=server.with_slots(2)).on(closed(clients))
    return Pair(alike.using(http="router-keepalive"), alike.using(http="router"))


def _unevenly_loaded(server: PlantedServer, clients: int) -> Pair:
    """Workers that share a listener are loaded unevenly. Cure: connections that are spread; here new ones."""
    alike = PlantedSide(server.page("work", 5000), settings={"workers": 2}, shares_cpus=True)
    return Pair(replace(alike, kept_open=False).on(closed(clients)), alike.on(closed(clients)))


def _killed_for_time(server: PlantedServer, clients: int) -> Pair:
    """`WORKER TIMEOUT`, and then `was sent SIGKILL! Perhaps out of memory?`: it was not. Cure: more time."""
    alike = PlantedSide(server.page("sleep", 2500), settings=server.with_slots(clients), kept_open=False)
    return Pair(alike.on(closed(clients)).using(timeout=30), alike.on(closed(clients)).using(timeout=1))


def _silently_killed(server: PlantedServer, clients: int) -> Pair:
    """A list that grows in a container of 500 MB: only `Booting worker` is logged. Cure: enough memory."""
    alike = PlantedSide(server.page("hoard", 700), kept_open=False, warmup_ns=3 * SECOND_NS)
    alike = alike.on(closed(clients))
    return Pair(replace(alike, memory_bytes=2000 * MIB), replace(alike, memory_bytes=500 * MIB))


def _usual_pool(server: PlantedServer, clients: int) -> Pair:
    """A WSGI app in the reactor's pool, of 10 threads at most. Cure: a pool of its own, of the right size."""
    alike = PlantedSide(server.page("sleep", 100)).on(closed(clients))
    return Pair(alike.using(threads=clients), alike.using(threads=10))


def _no_ports(server: PlantedServer, clients: int) -> Pair:
    """A connection for each request, until the machine has no port to send from. Cure: ports."""
    few = {"net.ipv4.ip_local_port_range": "40000 40999", "net.ipv4.tcp_tw_reuse": "0"}
    many = {**few, "net.ipv4.ip_local_port_range": "1024 65535"}
    alike = PlantedSide(server.page("work", 500), kept_open=False).on(closed(clients))
    return Pair(replace(alike, sysctl=many), replace(alike, sysctl=few))


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


_SLOTS, _HELD_BACK = Symptom.SLOTS_BUSY, Symptom.REPLIES_HELD_BACK
_NO_PORTS = Symptom.GENERATOR_WITHOUT_PORTS

MUSEUM = (
    _case("tornadoweb/tornado 1075", "D17", _SLOTS, Harm.RATE, "tornado", 20, _on_the_loop),
    _case("tornadoweb/tornado 3299", "D17", _SLOTS, Harm.RATE, "tornado", 50, _pool_of_eight),
    _case("crossbario/crossbar 236", "D17", _SLOTS, Harm.RATE, "twisted", 50, _usual_pool),
    _case(
        *("miyagawa/Starman 6", "D10", Symptom.STARVED_BY_SLOTS, Harm.FAILED),
        *("starman", 10, _ten_with_keep_alive),
    ),
    _case(
        *("miyagawa/Starman 124", "D21", Symptom.MEMORY_GREW, Harm.MEMORY),
        *("starman", 2, _counts_connections),
    ),
    _case(
        *("unbit/uwsgi 2444", "D01", Symptom.QUEUE_OVERFLOWED, Harm.TAIL),
        *("uwsgi", 200, _queue_of_a_hundred),
    ),
    _case("unbit/uwsgi 1097", "D12", Symptom.CLOSED_AFTER_EACH, Harm.CPU, "uwsgi", 4, _no_keep_alive),
    _case("pgjones/hypercorn 64", "D30", _HELD_BACK, Harm.TAIL, "hypercorn", 1, _on_asyncio),
    _case("Kludex/uvicorn 3149", "D30", _HELD_BACK, Harm.TAIL, "uvicorn-quiet", 1, _several_workers),
    _case(
        *("emmett-framework/granian 849", "D18", Symptom.UNEVEN_WORKERS, Harm.RATE),
        *("granian", 8, _unevenly_loaded),
    ),
    _case(
        *("benoitc/gunicorn 2215", "D19", Symptom.KILLED_FOR_MEMORY, Harm.FAILED),
        *("gunicorn", 1, _silently_killed),
    ),
    _case(
        *("open-runtimes/open-runtimes 330", "D22", Symptom.RESTARTED, Harm.FAILED),
        *("gunicorn", 4, _killed_for_time),
    ),
    _case(
        *("six-servers one request a connection", "D11", Symptom.SILENT_AFTER_ONE, Harm.FAILED),
        *("uwsgi", 20, _router),
    ),
    _case("six-servers no connection opened", "D23", _NO_PORTS, Harm.FAILED, "bjoern", 20, _no_ports),
)
"""The cases, each named after its thread; two are of the published raw data of six WSGI servers."""
