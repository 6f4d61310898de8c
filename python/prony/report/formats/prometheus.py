"""A load as metrics of Prometheus: its text format, for the textfile collector of its node exporter.

Base units, counters that end in ``_total``, and few series: what a server or a user may invent (statuses,
paths) is counted together beyond a bound.

*Source*: Prometheus, "Exposition formats" (text format 0.0.4) and "Metric and label naming".

>>> print(exposition([MetricFamily("up", "gauge", "Is it?", [MetricSample({"of": 'a"b'}, 1)])]), end="")
# HELP prony_load_up Is it?
# TYPE prony_load_up gauge
prony_load_up{of="a\\"b"} 1
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prony.core.safe_text import plain
from prony.core.units import SECOND_NS, seconds
from prony.figures.account import tally
from prony.figures.latency import Times, read_distribution
from prony.model.limit import Limited
from prony.model.recording import Account, Distribution, Recording

_PREFIX = "prony_load_"
_MOST_STATUSES, _MOST_PATHS, _LONGEST_PATH = 16, 20, 200
_OTHERS = "others"
# Powers of ten and their steps, from what a server on this machine takes to a usual time-out.
_BOUNDS_NS = tuple(round(step * 10**decade * SECOND_NS) for decade in range(-4, 2) for step in (1, 2.5, 5))


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One value with its labels; ``suffix``: what follows the name of its family."""

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """The samples of one metric; ``name`` without the prefix that all have."""

    name: str
    kind: str
    help: str
    samples: Sequence[MetricSample]


def exposition(families: Iterable[MetricFamily]) -> str:
    """Return families in Prometheus's text format; those without a sample are left out."""
    return "".join(line for one in families if one.samples for line in _lines(one))


def _lines(family: MetricFamily) -> Iterator[str]:
    name = _PREFIX + family.name
    yield f"# HELP {name} {family.help}\n"
    yield f"# TYPE {name} {family.kind}\n"
    for sample in family.samples:
        pairs = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.labels.items())
        labels = f"{{{pairs}}}" if pairs else ""
        yield f"{name}{sample.suffix}{labels} {sample.value!r}\n"


def _escaped(value: str) -> str:
    """Return a label's value; control characters of a stranger's path do not get through."""
    return plain(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# --- while it runs ----------------------------------------------------------------------------------------


def progress_metrics(event: Mapping[str, Any], *, is_running: bool = True) -> str:
    """Return the metrics of a progress event of the engine: those that are known before the end."""
    return exposition(_so_far(event, is_running=is_running))


def _so_far(event: Mapping[str, Any], *, is_running: bool) -> Iterator[MetricFamily]:
    yield _gauge("running", "1 while the load runs, 0 when it has ended.", int(is_running))
    ended = [MetricSample({"result": key}, int(event[key])) for key in ("ok", "failed")]
    yield MetricFamily(
        "ended_requests_total", "counter", "Requests that ended since the window opened.", ended
    )
    yield _gauge("in_flight_requests", "Requests that are sent and have not ended.", int(event["in_flight"]))
    yield _gauge("queued_requests", "Requests that are due and not sent.", int(event["queued"]))
    if (last := event.get("last_second")) is not None:
        words = "How long valid replies of the last whole second took."
        yield MetricFamily("last_second_time_seconds", "gauge", words, list(_quantiles(last)))


def _quantiles(last: Mapping[str, Any]) -> Iterator[MetricSample]:
    for quantile, key in (("0.5", "p50_ns"), ("0.99", "p99_ns"), ("1", "max_ns")):
        if last[key] is not None:
            yield MetricSample({"quantile": quantile}, int(last[key]) / SECOND_NS)


def _gauge(name: str, words: str, value: float) -> MetricFamily:
    return MetricFamily(name, "gauge", words, [MetricSample({}, value)])


# --- when it has ended ------------------------------------------------------------------------------------


def ended_metrics(recording: Recording) -> str:
    """Return the metrics of a load that has ended: those of its progress, and the whole account."""
    return exposition(_of_load(recording))


def _of_load(recording: Recording) -> Iterator[MetricFamily]:
    ended, times = tally(recording.account), recording.distributions
    counts = {"ok": ended.ok, "failed": ended.lost, "in_flight": 0, "queued": 0}
    yield from _so_far(counts, is_running=False)
    yield from _moments(recording)
    yield MetricFamily(
        "requests_total",
        "counter",
        "Requests by their end and the status of their reply.",
        _by_end(recording),
    )
    yield from _bytes(recording)
    yield from _histogram("response", "from when each was due", times.ok_response)
    yield from _histogram("service", "from when each was sent", times.ok_service)
    yield MetricFamily("path_requests_total", "counter", "Requests of a mix by path.", _by_path(recording))
    by_group = [
        MetricSample({"group": one.name, "result": result}, number)
        for one in recording.groups
        for result, number in _results(one.account).items()
    ]
    yield MetricFamily("group_requests_total", "counter", "Requests by group of users.", by_group)
    limited = int(recording.generator.verdict.limited is not Limited.NO)
    yield _gauge("generator_limited", "1 if the generator may have been the limit.", limited)


def _moments(recording: Recording) -> Iterator[MetricFamily]:
    window = recording.window
    if window.open_unix_ns is not None:
        opened = seconds(window.open_unix_ns)
        yield _gauge("window_start_timestamp_seconds", "When the window opened, in Unix time.", opened)
    if window.duration_s is not None:
        yield _gauge("window_seconds", "The length of the window.", window.duration_s)


def _by_end(recording: Recording) -> list[MetricSample]:
    """Return requests by class and status: those of all statuses and classes are all requests."""
    found, account = tally(recording.account), recording.account
    counts = Counter({("ok", status): n for status, n in account.valid_by_status.items()})
    # Generators that report no statuses.
    counts["ok", ""] = found.ok - counts.total()
    for ending, number in found.failed.items():
        counts[ending.name, ending.status or ""] += number
    kept = {status for status, _ in _by_status(counts).most_common(_MOST_STATUSES)}
    shown: Counter[tuple[str, str]] = Counter()
    for (name, status), number in counts.items():
        shown[name, status if not status or status in kept else _OTHERS] += number
    return [
        MetricSample({"class": name, "status": status}, number)
        for (name, status), number in sorted(shown.items())
        if number
    ]


def _by_status(counts: Counter[tuple[str, str]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (_, status), number in counts.items():
        if status:
            found[status] += number
    return found


def _bytes(recording: Recording) -> Iterator[MetricFamily]:
    moved = recording.bytes
    for name, words, value in (
        ("sent", "Bytes of requests.", moved.sent),
        ("received", "Bytes of replies.", moved.received),
        ("body_received", "Bytes of the bodies of replies.", moved.body_received),
    ):
        if value is not None:
            yield MetricFamily(f"{name}_bytes_total", "counter", words, [MetricSample({}, value)])


def _histogram(kind: str, since: str, found: Distribution | None) -> Iterator[MetricFamily]:
    times = read_distribution(found)
    if times is not None:
        words = f"How long valid replies took, {since}."
        yield MetricFamily(f"{kind}_time_seconds", "histogram", words, list(_buckets(times)))


def _buckets(times: Times) -> Iterator[MetricSample]:
    """Yield cumulative counts: of times of at most each bound, to the 0.1 % of the histogram."""
    for bound_ns in _BOUNDS_NS:
        yield MetricSample({"le": repr(bound_ns / SECOND_NS)}, _count_to(times, bound_ns), "_bucket")
    yield MetricSample({"le": "+Inf"}, times.count, "_bucket")
    yield MetricSample({}, (times.sum_ns or 0) / SECOND_NS, "_sum")
    yield MetricSample({}, times.count, "_count")


def _count_to(times: Times, bound_ns: int) -> int:
    if times.histogram is None or times.max_ns is None or times.max_ns <= bound_ns:
        return times.count
    # No class of the histogram is wider than that: a time that is the bound is counted.
    return times.histogram.count_below(bound_ns + (bound_ns >> 10))


def _by_path(recording: Recording) -> list[MetricSample]:
    shown: Counter[tuple[str, str]] = Counter()
    for place, one in enumerate(recording.paths):
        is_apart = place < _MOST_PATHS and len(one.path) <= _LONGEST_PATH
        for result, number in _results(one.account).items():
            shown[one.path if is_apart else _OTHERS, result] += number
    return [
        MetricSample({"path": path, "result": result}, number) for (path, result), number in shown.items()
    ]


def _results(account: Account) -> Mapping[str, int]:
    found = tally(account)
    return {"ok": found.ok, "failed": found.lost}
