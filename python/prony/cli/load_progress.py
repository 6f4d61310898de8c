"""The progress of one load, on standard error: live on a terminal, elsewhere a line every ten seconds.

It must cost little, because it runs on the generator's CPUs: four updates a second. It must not know
studies: to import what they need takes longer than the rest of a load's start.

The live line of a load, from the engine's progress events: rate, latency, errors, time left.

>>> workload = Workload(ClosedLoop(10), DurationStop(10 * SECOND_NS))
>>> counts = {"ok": 2500, "failed": 3, "in_flight": 10, "queued": 0, "last_second": None}
>>> line = LoadLine(workload)
>>> line.show({"phase": "window", "elapsed_ns": 2 * SECOND_NS, **counts})
'window ━━╌╌╌╌╌╌╌╌ 8.00 s left  2,500 ok  3 failed  10 in flight'
>>> line.show({"phase": "window", "elapsed_ns": 3 * SECOND_NS, **counts | {"ok": 3700}})
'window ━━━╌╌╌╌╌╌╌ 7.00 s left  1,200 /s  3,700 ok  3 failed  10 in flight'

``prony load --prometheus FILE``: the metrics of a load, in a file that is replaced while it runs.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from prony.cli.options import check_output, write_output
from prony.cli.talk import say
from prony.core.errors import UsageError
from prony.core.safe_text import escaped, escaped_lines
from prony.core.units import SECOND_NS, format_count, format_duration, format_rate
from prony.model.json_codec import Json
from prony.model.workload import ClosedLoop, CountStop, DurationStop, Workload

if TYPE_CHECKING:
    from rich.live import Live

    from prony.model.recording import Recording

_BAR_WIDTH = 10
# The rate is that of about the last second: four events, and the one before them.
_EVENTS = 5


def progress_bar(share: float, width: int) -> str:
    """Return a bar of ``width`` characters, filled by ``share``.

    >>> progress_bar(0.5, 4)
    '━━╌╌'
    """
    full = round(max(0.0, min(1.0, share)) * width)
    return "━" * full + "╌" * (width - full)


class LoadLine:
    """Makes a line of each progress event; keeps the last ones, since a rate takes two."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._seen: deque[tuple[int, int]] = deque(maxlen=_EVENTS)
        self._phase = ""

    def show(self, event: Json) -> str:
        """Return the line for an event."""
        phase = str(event["phase"])
        if phase != self._phase:
            self._phase = phase
            self._seen.clear()
        self._seen.append((int(event["elapsed_ns"]), int(event["ok"])))
        if phase == "opening":
            return self._opening(event)
        share, left = self._progress(phase, int(event["elapsed_ns"]), int(event["ok"] + event["failed"]))
        head = f"{phase:6} {progress_bar(share, _BAR_WIDTH)} {left}"
        return "  ".join([head, *self._rate(), *_latencies(event.get("last_second")), *_counts(event)])

    def _opening(self, event: Json) -> str:
        connected, wanted = int(event["connected"]), self._opened_first()
        bar = progress_bar(connected / max(1, wanted), _BAR_WIDTH)
        open_now = f"{format_count(connected)} of {format_count(wanted)} connections open"
        return f"opening {bar} {format_duration(event['elapsed_ns'])}  {open_now}"

    def _opened_first(self) -> int:
        """Return the connections before the window: only closed loops open them first."""
        match self._workload.loop:
            case ClosedLoop(stages=[first, *_]):
                return first.from_connections
            case ClosedLoop(connections):
                return connections
            case _:
                return 0

    def _progress(self, phase: str, elapsed_ns: int, ended: int) -> tuple[float, str]:
        """Return how much is done, and the time left; of a count it is estimated from the rate so far."""
        whole_ns = self._whole_ns(phase)
        if whole_ns:
            return elapsed_ns / whole_ns, _left(whole_ns - elapsed_ns)
        match self._workload.stop:
            case CountStop(requests) if phase == "window":
                left_ns = elapsed_ns * (requests - ended) / ended if ended else None
                return ended / requests, "" if left_ns is None else f"about {_left(left_ns)}"
        return 1.0, format_duration(elapsed_ns)

    def _whole_ns(self, phase: str) -> int | None:
        match phase, self._workload.stop:
            case "window", DurationStop(duration_ns):
                return duration_ns
            case "warmup", _:
                return self._workload.warmup_ns
        return None

    def _rate(self) -> Iterator[str]:
        (from_ns, before), (to_ns, now) = self._seen[0], self._seen[-1]
        # Nothing of the warm-up is counted.
        if to_ns > from_ns and self._phase != "warmup":
            yield format_rate((now - before) * SECOND_NS / (to_ns - from_ns))


def _left(left_ns: float) -> str:
    return f"{format_duration(max(0.0, left_ns))} left"


def _latencies(last: Json | None) -> Iterator[str]:
    """Yield percentiles of the last second; its longest where too few requests lie above the p99."""
    if last is None:
        return
    yield f"p50 {format_duration(last['p50_ns'])}"
    if last["p99_ns"] is not None:
        yield f"p99 {format_duration(last['p99_ns'])}"
    else:
        yield f"max {format_duration(last['max_ns'])}"


def _counts(event: Json) -> Iterator[str]:
    words = {"ok": "ok", "failed": "failed", "in_flight": "in flight", "queued": "queued"}
    for key, word in words.items():
        if event[key] or key != "queued":
            yield f"{format_count(event[key])} {word}"


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

    def __exit__(self, *_: object) -> None:
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

    def __exit__(self, *_: object) -> None:
        self._line.__exit__()

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
    """Return in words how many connections this machine allows, where a run may need more; None: enough.

    >>> short_of({"limit": {"connections": 9, "by": "asked"}, "machine": {"connections": 5, "by": "ports"}})
    'this machine allows 5 connections (by its ports), fewer than asked for: 9; the others fail'
    """
    limit, machine = event.get("limit"), event.get("machine")
    if limit is None or machine is None or machine["by"] not in _BOUNDS:
        return None
    most = f"this machine allows {format_count(machine['connections'])} connections"
    most = f"{most} ({_BOUNDS[machine['by']]})"
    if limit["by"] == "asked" and limit["connections"] > machine["connections"]:
        return f"{most}, fewer than asked for: {format_count(limit['connections'])}; the others fail"
    if limit["by"] in _BOUNDS:
        return f"{most}, fewer than rate x time-out: if the server stalls, requests will wait for each other"
    return None


# --- metrics in a file ------------------------------------------------------------------------------------


# Prometheus asks every 15 s or less often, as it is usually set.
_EVERY_S = 5.0


def check_prometheus(path: Path | None) -> None:
    """Refuse what cannot be replaced by a file again and again. *Errors*: UsageError."""
    if path is None:
        return
    check_output(str(path))
    if path.exists() and not path.is_file():
        raise UsageError(f"`--prometheus {path}` is a device or a pipe; expected a file, to be replaced")


class PrometheusFile:
    """The file of metrics; null where none is asked for. A load goes on when it cannot be written.

    A load that ends with an error leaves a file that does not say that it runs.
    """

    def __init__(self, path: Path | None, now_s: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._now_s = now_s
        self._written_s: float | None = None
        self._last: Json | None = None
        self._said: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._last is not None:
            self._show(self._last, is_running=False)

    def on_event(self, event: Json) -> None:
        """Write what a progress event says, unless that was done a moment ago."""
        if self._path is None or event["event"] != "progress":
            return
        self._last, now_s = event, self._now_s()
        if self._written_s is None or now_s - self._written_s >= _EVERY_S:
            self._written_s = now_s
            self._show(event, is_running=True)

    def finish(self, recording: "Recording") -> None:
        """Write the whole load. *Errors*: UsageError for a file that cannot be written."""
        if self._path is not None:
            from prony.report.formats.prometheus import ended_metrics

            self._write(ended_metrics(recording))

    def _show(self, event: Json, *, is_running: bool) -> None:
        from prony.report.formats.prometheus import progress_metrics

        try:
            self._write(progress_metrics(event, is_running=is_running))
        except UsageError as error:
            if str(error) != self._said:
                self._said = str(error)
                say(self._said)

    def _write(self, text: str) -> None:
        write_output(text.rstrip("\n"), str(self._path))
