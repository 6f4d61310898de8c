"""The progress of one load, on standard error: live on a terminal, elsewhere a line every ten seconds.

It must cost little, because it runs on the generator's CPUs: four updates a second. It must not know
studies: to import what they need takes longer than the rest of a load's start.
"""

import sys
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from prony.cli.load_line import LoadLine
from prony.cli.talk import say
from prony.escapes import escaped, escaped_lines
from prony.model.shapes import Json
from prony.model.workload import Workload
from prony.units import format_count

if TYPE_CHECKING:
    from rich.live import Live

REFRESH_PER_S = 4
SAY_EVERY_S = 10.0


def _live() -> "Live":
    # Only terminals need it, and its import takes a fifteenth of a load's start.
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False, markup=False)
    return Live(console=console, refresh_per_second=REFRESH_PER_S, transient=True)


class LiveLine:
    """One line that is rewritten in place, on standard error; none where that is not a terminal."""

    def __init__(self) -> None:
        self._live = _live() if sys.stderr.isatty() else None

    @property
    def is_live(self) -> bool:
        """Whether anybody sees the line."""
        return self._live is not None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, line: str) -> None:
        """Put this in place of the line."""
        if self._live:
            from rich.text import Text

            self._live.update(Text(escaped(line), no_wrap=True, overflow="ellipsis"))

    def note(self, text: str) -> None:
        """Print what stays, above the line."""
        if not self._live:
            say(text)
            return
        from rich.text import Text

        self._live.console.print(Text(escaped_lines(text)), soft_wrap=True)


class LoadProgress:
    """The progress of one load: time left, rate, latency, counts; ``where``: what stands before them."""

    def __init__(self, workload: Workload, where: str = "") -> None:
        self._words = LoadLine(workload)
        self._where = where
        self._line = LiveLine()
        self._said_s = monotonic()

    def __enter__(self) -> Self:
        self._line.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.__exit__(kind, error, trace)

    def on_event(self, event: Json) -> None:
        """Show a progress event of the engine, and say first what this machine does not allow."""
        match event["event"]:
            case "progress":
                self._show(self._where + self._words.show(event))
            case "waiting":
                # Interpreters, ssh, handshakes: many seconds in which nothing else would be seen.
                count = event["generators"]
                self._line.show("waiting for the generators" + (f" to start: {count}" if count else ""))
            case "started" if (words := short_of(event)) is not None:
                self._line.note(words)

    def _show(self, line: str) -> None:
        self._line.show(line)
        # Who waits for a job of CI without a word ends it.
        if not self._line.is_live and monotonic() - self._said_s >= SAY_EVERY_S:
            self._said_s = monotonic()
            say(line)


_BOUNDS = {
    "descriptors": "by its file descriptors",
    "ports": "by its ports",
    "memory": "by its free memory",
}


def short_of(event: Json) -> str | None:
    """Return in words how many connections this machine allows, where a run may need more; null: enough.

    >>> short_of({"limit": {"connections": 9, "by": "asked"}, "machine": {"connections": 5, "by": "ports"}})
    'this machine allows 5 connections (by its ports), fewer than asked for: 9; the others fail'
    """
    limit, machine = event.get("limit"), event.get("machine")
    if limit is None or machine is None:
        return None
    most = f"this machine allows {format_count(machine['connections'])} connections"
    most = f"{most} ({_BOUNDS[machine['by']]})"
    if limit["by"] == "asked" and limit["connections"] > machine["connections"]:
        return f"{most}, fewer than asked for: {format_count(limit['connections'])}; the others fail"
    if limit["by"] in _BOUNDS:
        return f"{most}, fewer than rate x time-out: if the server stalls, requests will wait for each other"
    return None
