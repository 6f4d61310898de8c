"""The live line of a load, from the engine's progress events: rate, latency, errors, time left.

>>> workload = Workload(ClosedLoop(10), DurationStop(10 * SECOND_NS))
>>> counts = {"ok": 2500, "failed": 3, "in_flight": 10, "queued": 0, "last_second": None}
>>> line = LoadLine(workload)
>>> line.show({"phase": "window", "elapsed_ns": 2 * SECOND_NS, **counts})
'window ━━╌╌╌╌╌╌╌╌ 8.00 s left  2,500 ok  3 failed  10 in flight'
>>> line.show({"phase": "window", "elapsed_ns": 3 * SECOND_NS, **counts | {"ok": 3700}})
'window ━━━╌╌╌╌╌╌╌ 7.00 s left  1,200 /s  3,700 ok  3 failed  10 in flight'
"""

from collections import deque
from collections.abc import Iterator

from prony.model.shapes import Json
from prony.model.workload import ClosedLoop, CountStop, DurationStop, Workload
from prony.units import SECOND_NS, format_count, format_duration, format_rate

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
