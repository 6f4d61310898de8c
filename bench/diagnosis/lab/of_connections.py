"""Planted causes of connections: queues, keep-alive, ports, descriptors, packets.

Pure; each of these functions makes of a server and a severity the fault and its twin.
"""

from dataclasses import replace

from lab.cause import Harm, PlantedCause
from lab.servers import PlantedServer, ServerKind
from lab.setup import Pair, PlantedSide, closed, open_at
from prony.core.units import SECOND_NS
from prony.diagnosis.connections import (
    CLOSED_AFTER_EACH,
    CONNECTION_CAP,
    CONNECTS_FILL_CPU,
    STARVED,
    STARVED_BY_SLOTS,
)
from prony.diagnosis.delayed_replies import REPLIES_HELD_BACK
from prony.diagnosis.listen_queue import BACKLOG_CLIPPED, QUEUE_OVERFLOWED
from prony.diagnosis.used_up import (
    DESCRIPTORS_USED_UP,
    PORTS_KEPT_BY_EARLIER,
    SELECT_FULL,
    SERVER_WITHOUT_PORTS,
)
from prony.model.workload import Arrivals, OpenLoop

_LONG_QUEUE = 2048


def _setup(server: PlantedServer, page: str, number: int) -> PlantedSide:
    return PlantedSide(server.page(page, number), server.app, server.settings)


def _listen_queue(server: PlantedServer, connections: int) -> Pair:
    """A queue of 5, where each request comes over a connection of its own."""
    alike = replace(_setup(server, "work", 2000).on(closed(connections)), kept_open=False)
    return Pair(alike.using(backlog=_LONG_QUEUE), alike.using(backlog=5))


def _clipped_queue(server: PlantedServer, somaxconn: int) -> Pair:
    """A long queue is asked for, and the kernel of the trial's network gives a short one."""
    alike = _setup(server, "work", 2000).on(closed(150)).using(backlog=_LONG_QUEUE)
    alike = replace(alike, kept_open=False, sysctl={"net.core.somaxconn": str(_LONG_QUEUE)})
    return Pair(alike, replace(alike, sysctl={"net.core.somaxconn": str(somaxconn)}))


def _starvation(server: PlantedServer, connections: int) -> Pair:
    """Kept connections hold all of four workers; the twin's clients open one for each request."""
    alike = replace(_setup(server, "work", 1000), settings=server.with_slots(4)).on(closed(connections))
    return Pair(replace(alike, kept_open=False), alike)


def _closed_after_each(server: PlantedServer, connections: int) -> Pair:
    """A server whose setting turns keep-alive off, before clients that offer it; those that would fill the
    generator with new connections, at a rate that leaves it half of its CPU.
    """
    off, on = _KEEP_ALIVE[server.name]
    load = open_at(_RATE_FOR_EACH * connections) if server.name in _FAST else closed(connections)
    alike = _setup(server, "work", 20).on(load)
    return Pair(alike.using(**on), alike.using(**off))


_FAST, _RATE_FOR_EACH = ("go-net-http", "nginx-static"), 2000
_KEEP_ALIVE: dict[str, tuple[dict[str, int | str], dict[str, int | str]]] = {
    "node-http": ({"max_requests": 1}, {"max_requests": 0}),
    "go-net-http": ({"keep_alive": "false"}, {"keep_alive": "true"}),
    "nginx-static": ({"keep_alive": 0}, {"keep_alive": 75, "keep_alive_requests": 900_000_000}),
    "gunicorn-gthread": ({"keep_alive": 0}, {"keep_alive": 75}),
    "uwsgi": ({"http": "http-socket"}, {"http": "http11-socket", "processes": 4}),
    "starman": ({"keep_alive": "false"}, {"keep_alive": "true"}),
    "starlet-keep-alive": ({"max_keepalive_reqs": 1}, {"max_keepalive_reqs": 900_000}),
}


def _connection_cap(server: PlantedServer, cap: int) -> Pair:
    """A cap of open connections, below those that want to be kept."""
    alike = _setup(server, "work", 500).on(closed(100))
    return Pair(alike.using(connection_limit=1000), alike.using(connection_limit=cap))


def _descriptors(server: PlantedServer, limit: int) -> Pair:
    """Fewer open files than connections."""
    alike = replace(_setup(server, "work", 500), settings=server.with_slots(8)).on(closed(200))
    return Pair(alike, replace(alike, environment={"FAULTY_DESCRIPTORS": str(limit)}))


def _refused(server: PlantedServer, limit: int) -> Pair:
    """The same where a server accepts what is beyond them, and closes it at once: the others are as fast."""
    alike = _setup(server, "sleep", 20).on(closed(200))
    return Pair(alike, alike.using(descriptors=limit))


def _select(server: PlantedServer, connections: int) -> Pair:
    """select(2), which knows 1,024 descriptors."""
    alike = _setup(server, "work", 0).on(closed(connections))
    return Pair(alike.using(selector="epoll"), alike.using(selector="select"))


def _ports(server: PlantedServer, ports: int) -> Pair:
    """Each request opens a connection to another server, and closes it first; the twin keeps its own."""
    alike = replace(_calling(server), sysctl=_few(ports)).on(open_at(150, 40))
    return Pair(replace(alike, path=server.page("kept-call", 0)), alike)


def _frontend_ports(server: PlantedServer, ports: int) -> Pair:
    """A frontend that keeps one connection to the server, and closes all that it opens beside it; the twin
    keeps as many as there are clients. Arrivals at random: evenly spaced ones would take turns on the one.
    """
    alike = replace(_setup(server, "sleep", 50), settings=server.with_slots(32), sysctl=_few(ports))
    alike = alike.on(OpenLoop(150, Arrivals.POISSON, connections=40))
    kept, closing = ({"upstream_keep_alive": count} for count in (64, 1))
    return Pair(replace(alike, frontend_settings=kept), replace(alike, frontend_settings=closing))


def _carried_over(server: PlantedServer, left: int) -> Pair:
    """Of 200 ports earlier trials have left some in TIME_WAIT, towards the peer that the app asks too.

    Each request needs a port: 140 of them in all.
    """
    alike = replace(_calling(server), sysctl=_few(200), on_host=True).on(open_at(20, 10))
    return Pair(alike, replace(alike, carried=left))


def _calling(server: PlantedServer) -> PlantedSide:
    """Return a page that asks another server; no client offers to keep what is closed anyway."""
    kept = server.kind is not ServerKind.PREFORK
    return replace(_setup(server, "call", 0), settings=server.with_slots(4), kept_open=kept)


def _few(ports: int) -> dict[str, str]:
    """Return the settings of a kernel that has few ports, and uses none again before its minute is over."""
    return {"net.ipv4.ip_local_port_range": f"40000 {40000 + ports - 1}", "net.ipv4.tcp_tw_reuse": "0"}


def _nagle(server: PlantedServer, connections: int) -> Pair:
    """Head and body in two writes on a kept connection, without TCP_NODELAY."""
    name, (bad, good) = _NODELAY[server.name]
    alike = _setup(server, "work", 0).on(closed(connections))
    return Pair(alike.using(**{name: good}), alike.using(**{name: bad}))


_NODELAY: dict[str, tuple[str, tuple[str, str]]] = {
    "stdlib-http": ("nodelay", ("false", "true")),
    "java-httpserver": ("no_delay", ("false", "true")),
}

_QUEUES = (
    *("gunicorn", "uwsgi", "starman", "gunicorn-gthread", "waitress", "cheroot", "twisted"),
    *("uvicorn-quiet", "hypercorn", "tornado"),
)
_ONE_EACH = "a process has one connection at a time"
_AT_ONCE = "these write head and body at once, or set TCP_NODELAY"
_APPS = ("gunicorn-gthread", "waitress", "cheroot", "twisted")
_BEHIND_NGINX = ("gunicorn-gthread@nginx", "waitress@nginx", "cheroot@nginx", "uvicorn-quiet@nginx")

OF_CONNECTIONS = (
    PlantedCause(
        "listen-queue",
        "a listen queue of 5",
        "D01",
        frozenset((QUEUE_OVERFLOWED,)),
        Harm.TAIL,
        _QUEUES,
        {"many": 100, "more": 200},
        _listen_queue,
        window_ns=8 * SECOND_NS,
    ),
    PlantedCause(
        "clipped-queue",
        "a listen queue that the kernel cuts",
        "D03",
        frozenset((BACKLOG_CLIPPED,)),
        Harm.TAIL,
        ("gunicorn", "gunicorn-gthread", "waitress", "cheroot", "uvicorn-quiet"),
        {"short": 8, "less": 32},
        _clipped_queue,
        window_ns=8 * SECOND_NS,
    ),
    PlantedCause(
        "starvation",
        "kept connections that hold all workers",
        "D10",
        frozenset((STARVED, STARVED_BY_SLOTS)),
        Harm.FAILED,
        ("starman", "starlet-keep-alive", "uwsgi"),
        {"some": 20, "many": 60},
        _starvation,
        cannot={
            ServerKind.THREADS: "one of their threads watches all kept connections; a pool of 2016 that did "
            "not is in the museum",
            ServerKind.LOOP: "it works on all of its connections",
        },
    ),
    PlantedCause(
        "closed-after-each",
        "one request a connection",
        "D12",
        frozenset((CLOSED_AFTER_EACH, CONNECTS_FILL_CPU)),
        Harm.CPU,
        tuple(_KEEP_ALIVE),
        {"few": 4, "one": 1},
        _closed_after_each,
    ),
    PlantedCause(
        "connection-cap",
        "a cap of open connections",
        "D09",
        frozenset((CONNECTION_CAP,)),
        Harm.FAILED,
        ("waitress",),
        {"low": 20, "middle": 60},
        _connection_cap,
        cannot={
            ServerKind.PREFORK: "a process has one connection at a time: what is beyond them starves (D10)",
            ServerKind.LOOP: "these refuse what is beyond their cap, which shows as failed requests",
        },
    ),
    PlantedCause(
        "descriptors",
        "a limit of open files",
        "D08",
        frozenset((DESCRIPTORS_USED_UP,)),
        Harm.RATE,
        (*_APPS, "uvicorn-quiet", "tornado"),
        {"low": 64, "middle": 100, "high": 150},
        _descriptors,
        cannot={ServerKind.PREFORK: _ONE_EACH},
    ),
    PlantedCause(
        "descriptors-refused",
        "a limit of open files, beyond which connections are closed",
        "D08",
        frozenset((DESCRIPTORS_USED_UP,)),
        Harm.FAILED,
        ("node-pages",),
        {"low": 64, "middle": 100, "high": 150},
        _refused,
        cannot={
            ServerKind.PREFORK: _ONE_EACH,
            ServerKind.THREADS: "these leave such connections in their queue",
        },
    ),
    PlantedCause(
        "select",
        "select() and its 1,024 descriptors",
        "D08",
        frozenset((SELECT_FULL,)),
        Harm.FAILED,
        ("asyncio-http",),
        {"some": 1100, "many": 1500},
        _select,
        cannot={
            ServerKind.PREFORK: _ONE_EACH,
            ServerKind.THREADS: "these wait with epoll, or fill their queue before so many are open",
        },
    ),
    PlantedCause(
        "ports",
        "ports of the server exhausted",
        "D05",
        frozenset((SERVER_WITHOUT_PORTS,)),
        Harm.FAILED,
        (*_APPS, "gunicorn", "uvicorn-quiet"),
        {"few": 200, "more": 400},
        _ports,
    ),
    PlantedCause(
        "frontend-ports",
        "ports of a frontend exhausted",
        "D05",
        frozenset((SERVER_WITHOUT_PORTS,)),
        Harm.FAILED,
        _BEHIND_NGINX,
        {"few": 200, "more": 300},
        _frontend_ports,
        cannot={
            ServerKind.PREFORK: "these close first, or hold a worker for each connection of the frontend"
        },
    ),
    PlantedCause(
        "carried-over",
        "ports that earlier trials keep",
        "D06",
        frozenset((PORTS_KEPT_BY_EARLIER,)),
        Harm.FAILED,
        (*_APPS, "gunicorn", "uvicorn-quiet"),
        {"most": 180, "half": 120},
        _carried_over,
    ),
    PlantedCause(
        "nagle",
        "replies held back by Nagle's algorithm",
        "D30",
        frozenset((REPLIES_HELD_BACK,)),
        Harm.TAIL,
        tuple(_NODELAY),
        {"some": 8, "one": 1},
        _nagle,
        cannot=dict.fromkeys((ServerKind.PREFORK, ServerKind.LOOP), _AT_ONCE),
    ),
)
"""The causes, in the order of the table."""
