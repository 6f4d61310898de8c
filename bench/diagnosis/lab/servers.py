"""The servers on which faults are planted, by kind, and how each is asked for workers, threads and work.

Pure.

>>> SERVERS["gunicorn"].with_slots(3)
{'workers': 3}
>>> SERVERS["node-http"].page("work", 200)
'/'
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class ServerKind(StrEnum):
    """How a server works on several requests at a time."""

    PREFORK = "prefork"
    THREADS = "threads"
    LOOP = "event loop"


@dataclass(frozen=True, slots=True)
class PlantedServer:
    """A server of the catalogue. ``slots`` and ``processes``: its settings of how many requests it works on,
    and in how many processes; empty where it has none. ``app``: what it serves; a yardstick serves ``hello``,
    and has no page but that, unless it has ``own_pages``. ``settings``: with which it is measured.
    """

    name: str
    kind: ServerKind
    language: str
    slots: str = ""
    processes: str = ""
    app: str = "faulty"
    settings: Mapping[str, int | str] = field(default_factory=dict)
    own_pages: bool = False

    @property
    def has_pages(self) -> bool:
        """Whether it has a page for each fault."""
        return self.own_pages or self.app != "hello"

    def page(self, name: str, number: int) -> str:
        """Return the path of a page; a yardstick has one."""
        return f"/{name}?n={number}" if self.has_pages else "/"

    def with_slots(self, count: int) -> dict[str, int | str]:
        """Return the settings by which it works on so many requests at a time."""
        return {**self.settings, **({self.slots: count} if self.slots else {})}


_PREFORK, _THREADS, _LOOP = ServerKind.PREFORK, ServerKind.THREADS, ServerKind.LOOP
_QUIET: Mapping[str, int | str] = {"request_log": "false"}

_ALL = (
    PlantedServer("gunicorn", _PREFORK, "python", "workers", "workers"),
    PlantedServer("uwsgi", _PREFORK, "c", "processes", "processes", settings=_QUIET),
    PlantedServer("starman", _PREFORK, "perl", "workers", "workers", settings={"max_requests": 900_000}),
    PlantedServer(
        "starlet-keep-alive",
        _PREFORK,
        "perl",
        "max_workers",
        "max_workers",
        settings={"max_reqs_per_child": 900_000},
    ),
    PlantedServer("flup-prefork@nginx", _PREFORK, "python", "", ""),
    PlantedServer("gunicorn-gthread", _THREADS, "python", "threads", "workers"),
    PlantedServer("waitress", _THREADS, "python", "threads", settings={"connection_limit": 4096}),
    PlantedServer("cheroot", _THREADS, "python", "threads", settings={"backlog": 1024}),
    PlantedServer("twisted", _THREADS, "python", "threads", settings={"backlog": 1024}),
    PlantedServer("gunicorn-gthread@nginx", _THREADS, "python", "threads", "workers"),
    PlantedServer("waitress@nginx", _THREADS, "python", "threads", settings={"connection_limit": 4096}),
    PlantedServer("cheroot@nginx", _THREADS, "python", "threads", settings={"backlog": 1024}),
    PlantedServer("cherrypy-as-of-2016", _THREADS, "python", "threads", app="hello"),
    PlantedServer("java-httpserver", _THREADS, "java", app="hello"),
    PlantedServer("uvicorn-quiet", _LOOP, "python", "", "workers"),
    PlantedServer("uvicorn-quiet@nginx", _LOOP, "python", "", "workers"),
    PlantedServer("hypercorn", _LOOP, "python", "", "workers"),
    PlantedServer("tornado", _LOOP, "python", "", "processes"),
    PlantedServer("granian", _LOOP, "rust", "", "workers"),
    PlantedServer("node-http", _LOOP, "javascript", "", "workers", app="hello"),
    PlantedServer("node-pages", _LOOP, "javascript", "", "workers", app="hello", own_pages=True),
    PlantedServer("go-net-http", _LOOP, "go", app="hello"),
    PlantedServer("nginx-static", _LOOP, "c", "", "", app="hello"),
    PlantedServer("stdlib-http", _THREADS, "python"),
    PlantedServer("asyncio-http", _LOOP, "python"),
)

SERVERS: Mapping[str, PlantedServer] = MappingProxyType({one.name: one for one in _ALL})

CALIBRATED_ON = frozenset(
    ("gunicorn", "gunicorn-gthread", "uvicorn-quiet", "cheroot", "starman", "node-http", "stdlib-http")
)
"""Thresholds are set by what these servers show at the first severity of a cause; all else is held out."""

RULES_CHANGED_FOR = frozenset(
    (
        *("carried-over-gunicorn-half", "connection-cap-waitress-middle"),
        *("clipped-queue-cheroot-less", "clipped-queue-waitress-less", "clipped-queue-waitress-short"),
        *("cold-waitress-long", "cold-waitress-short", "fork-storm-node-pages-each"),
        *("descriptors-cheroot-middle", "descriptors-gunicorn-gthread-middle"),
        *("descriptors-refused-node-pages-low", "descriptors-refused-node-pages-middle"),
        *("memory-limit-waitress-low", "memory-limit-waitress-middle"),
        *("healthy-uwsgi-saturated", "neighbour-gunicorn-half"),
        *("neighbour-uvicorn-quiet-half", "neighbour-waitress-half"),
    )
)
"""Plants that were held out until they showed a rule to be wrong: what it finds of them now is no proof."""
