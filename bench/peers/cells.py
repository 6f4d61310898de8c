"""The loads under which generators are compared."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatch

from prony.core.units import KIB, MIB, format_bytes


class Measure(StrEnum):
    """What is measured of a run."""

    # CPU time for a request, in a window within the run.
    WINDOW = "window"
    # CPU time of the whole process for a request, start and end included.
    PROCESS = "process"
    # From the start of the command to the first byte of its first request.
    FIRST = "first"


@dataclass(frozen=True)
class Cell:
    """One load of one server.

    ``rate``: requests a second of an open loop; null: a closed loop. Sizes are in bytes.
    """

    name: str
    group: str
    server: str = "nginx"
    connections: int = 100
    streams: int = 1
    rate: int | None = None
    keep_alive: bool = True
    reply_bytes: int = 128
    upload_bytes: int = 0
    tls: bool = False
    http2: bool = False
    measure: Measure = Measure.WINDOW

    @property
    def in_flight(self) -> int:
        """The most requests at once."""
        return self.connections * self.streams

    @property
    def words(self) -> str:
        """What it is, beside its group."""
        lanes = f"{self.connections:,} connection{'' if self.connections == 1 else 's'}"
        if self.http2:
            lanes = f"{self.connections} x {self.streams}"
        size = self.upload_bytes or self.reply_bytes
        sized = f"{format_bytes(size)}, " if size >= KIB else ""
        secured = "new connections, " if self.tls and not self.keep_alive else ""
        return f"{sized}{secured}{lanes}, {self.server}"


def _cells() -> Sequence[Cell]:
    sizes = (10, 100, 1_000, 10_000)
    closed = [Cell(f"closed-{count}", "Closed loop", connections=count) for count in sizes]
    whole = Cell("process", "Whole process", measure=Measure.PROCESS)
    return (
        *closed,
        *(replace(cell, name=f"{cell.name}@reference", server="reference") for cell in closed),
        Cell("open-2k", "2,000 requests a second", rate=2_000),
        Cell("open-10k", "10,000 requests a second", rate=10_000),
        Cell("open-10k@reference", "10,000 requests a second", rate=10_000, server="reference"),
        Cell("connect", "A connection for each request", connections=10, keep_alive=False),
        Cell("body-64k", "Bodies of replies", connections=10, reply_bytes=64 * KIB),
        Cell("body-10m", "Bodies of replies", connections=10, reply_bytes=10 * MIB),
        Cell("upload-64k", "Uploads", "reference", 10, upload_bytes=64 * KIB),
        Cell("upload-10m", "Uploads", "reference", 10, upload_bytes=10 * MIB),
        Cell("tls", "TLS 1.3", tls=True),
        Cell("tls-connect", "TLS 1.3", connections=10, keep_alive=False, tls=True),
        Cell("h2-10x10", "HTTP/2", connections=10, streams=10, http2=True),
        Cell("h2-100x1", "HTTP/2", http2=True),
        Cell("h2-tls-10x10", "HTTP/2 over TLS 1.3", connections=10, streams=10, http2=True, tls=True),
        Cell("h2-tls-100x1", "HTTP/2 over TLS 1.3", http2=True, tls=True),
        whole,
        replace(whole, name="process@reference", server="reference"),
        Cell("first", "First request", "a listener", 1, measure=Measure.FIRST),
    )


CELLS = _cells()


def chosen(patterns: Sequence[str]) -> Sequence[Cell]:
    """Return the cells whose names fit one of the patterns.

    *Errors*: ValueError, when one fits none.
    """
    unknown = [pattern for pattern in patterns if not any(fnmatch(cell.name, pattern) for cell in CELLS)]
    if unknown:
        names = ", ".join(cell.name for cell in CELLS)
        raise ValueError(f"no cell is called `{unknown[0]}`\n\nhint: there are {names}")
    return [cell for cell in CELLS if any(fnmatch(cell.name, pattern) for pattern in patterns)]
