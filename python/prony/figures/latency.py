"""Latency of a trial, always over two populations: `ok` (valid replies) and `all` (every request).

A failed request has no latency; to leave it out would flatter the server that fails. In `all` it counts as
infinite, and a request that got no answer counts at its age, which is a lower bound (it is right-censored).
A request that the window found open is in `all` with its whole latency or age, and not in `ok`, which is of
the window's own requests. A request that was never sent has no service time: an open loop has response times
for that; a closed loop knows no other time, and there it is infinite, or unanswered, like any other.

*Source*: G. Tene, "How NOT to Measure Latency" (2013), on omitted requests; J. P. Klein and M. L.
Moeschberger, "Survival Analysis" (2003), section 3.2, on right-censoring.

The paths of a mix in one load.

The histogram itself is the engine's; ``Histogram`` says what is used of it.

>>> load_paths(None)
()
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Protocol, Self

from prony.core.errors import ArchiveError
from prony.core.metrics import PERCENTILES
from prony.figures.account import Tally, failed, sent_and_failed, tally
from prony.model.json_codec import INLINE, at
from prony.model.recording import (
    Distribution,
    GroupFigures,
    PathFigures,
    Recording,
    StatusFigures,
    Traffic,
)
from prony.model.shown import INTERNAL, shown_as


class Histogram(Protocol):
    """An HdrHistogram of nanoseconds with three significant digits."""

    def merge(self, other: Self) -> None:
        """Add all values of ``other``."""

    def value_at_quantile(self, quantile: float) -> int:
        """Return the value of rank ceil(quantile x count)."""

    def count_below(self, value: int) -> int:
        """Return how many values are below ``value``, to the histogram's precision."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Times:
    """A distribution whose histogram can be asked. *Units*: nanoseconds. Empty: count 0, the rest null."""

    count: int
    min_ns: int | None = None
    max_ns: int | None = None
    sum_ns: int | None = None
    histogram: Histogram | None = None


EMPTY = Times(0)


def decode_histogram(data: bytes) -> Histogram:
    """Return the histogram that ``data`` encodes (HdrHistogram V2, deflate).

    *Errors*: ArchiveError when it is none: only data of an archive can be damaged. The check is here and
    not in the archive's reader, because it costs a millisecond for each, and few are ever used.
    """
    from prony._engine import EngineError
    from prony._engine import Histogram as EngineHistogram

    try:
        decoded: Histogram = EngineHistogram.decode(data)
    except EngineError as error:
        raise ArchiveError(f"a histogram in the archive cannot be read: {error}") from error
    return decoded


def read_distribution(found: Distribution | None) -> Times | None:
    """Return a Recording's distribution; None where the Recording has none (response time in a closed
    loop).
    """
    if found is None:
        return None
    if found.histogram is None:
        return EMPTY
    return Times(found.count, found.min_ns, found.max_ns, found.sum_ns, decode_histogram(found.histogram))


# With fewer values above it, a handful of requests decide a percentile.
_LEAST_ABOVE = 10
_ALL = tuple(PERCENTILES.values())


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """The figures of one population. *Units*: nanoseconds; percentiles by name ("99.9").

    ``censored_from``: the percentile from which values are lower bounds (mean and max are then lower bounds
    too). ``infinite_from``: the percentile from which requests failed; values at or beyond it are null.
    Both null if none.
    """

    count: int
    min_ns: int | None = field(metadata=at("min"))
    mean_ns: float | None = field(metadata=at("mean"))
    max_ns: int | None = field(metadata=at("max"))
    percentiles: dict[str, int | None]
    censored_from: float | None = None
    infinite_from: float | None = None


@dataclass(frozen=True, slots=True)
class Populations:
    """Times of valid replies, and of all requests."""

    ok: LatencySummary
    all: LatencySummary


@dataclass(frozen=True, slots=True)
class TimesOfKind:
    """Times of the kind that the load has: response times in an open loop, service times in a closed one."""

    response_ns: Populations | None
    """Null in a closed loop."""
    service_ns: Populations | None
    """Null in an open loop."""


def of_kind(kind: str, ok: LatencySummary, every: LatencySummary) -> TimesOfKind:
    """Return the times of a load of one ``kind``: `response` or `service`."""
    times = Populations(ok, every)
    return TimesOfKind(times, None) if kind == "response" else TimesOfKind(None, times)


def _merged(ok: Times, others: Times) -> Histogram | None:
    if ok.histogram is None:
        return others.histogram
    if others.histogram is None:
        return ok.histogram
    # Decoding makes a new histogram each time, so the merge changes nothing that others read.
    ok.histogram.merge(others.histogram)
    return ok.histogram


def _joined(own: Times, carried: Times) -> Times:
    """Return both as one; the histogram of ``own`` is merged into."""
    if not carried.count:
        return own
    if not own.count:
        return carried
    return Times(
        own.count + carried.count,
        min(own.min_ns or 0, carried.min_ns or 0),
        max(own.max_ns or 0, carried.max_ns or 0),
        (own.sum_ns or 0) + (carried.sum_ns or 0),
        _merged(own, carried),
    )


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole


def _censored_from(ok: Times, censored: Times, total: int) -> float | None:
    if censored.count == 0 or censored.min_ns is None:
        return None
    below = ok.histogram.count_below(censored.min_ns) if ok.histogram is not None else 0
    return _percent(min(below, ok.count), total)


@cache
def _share(percentile: str) -> tuple[int, int]:
    """Return a percentile as a part of a whole."""
    return (Fraction(percentile) / 100).as_integer_ratio()


def _value_at(percentile: str, finite: int, total: int, histogram: Histogram | None) -> int | None:
    part, whole = _share(percentile)
    # Upwards, in whole numbers: nothing is rounded.
    rank = max(1, -(-part * total // whole))
    if histogram is None or total * (whole - part) < _LEAST_ABOVE * whole or rank > finite:
        return None
    # Half a rank less: the histogram rounds quantile x count up, and floating point must not push it to
    # rank + 1.
    return histogram.value_at_quantile((rank - 0.5) / finite)


def summarise(
    ok: Times, censored: Times = EMPTY, failed: int = 0, percentiles: Collection[str] = _ALL
) -> LatencySummary:
    """Return the summary of ``ok`` values, ``censored`` ones at their age, and ``failed`` infinite ones.
    ``percentiles``: those that are taken, by name.

    The histogram of ``ok`` is merged into.

    *Definition*: with n = ok + censored + failed, percentile p is the value of rank ceil(p n / 100); None
    when n (1 - p/100) < 10 or when that rank is a failed request. Values never leave [min, max], which are
    exact. Mean and max are None when a request failed.
    *Assumptions*: values within the histogram's precision (3 significant digits) of the least censored age
    count as exact or as lower bounds alike.
    """
    finite, total = ok.count + censored.count, ok.count + censored.count + failed
    lows = [part.min_ns for part in (ok, censored) if part.min_ns is not None]
    highs = [part.max_ns for part in (ok, censored) if part.max_ns is not None]
    if not finite or not lows or not highs:
        nothing = dict.fromkeys(percentiles, None)
        return LatencySummary(total, None, None, None, dict(nothing), None, 0.0 if failed else None)
    low, high = min(lows), max(highs)
    censored_from = _censored_from(ok, censored, total)
    histogram = _merged(ok, censored)
    values = {p: _value_at(p, finite, total, histogram) for p in percentiles}
    return LatencySummary(
        count=total,
        min_ns=low,
        mean_ns=None if failed else ((ok.sum_ns or 0) + (censored.sum_ns or 0)) / total,
        max_ns=None if failed else high,
        percentiles={p: None if value is None else min(max(value, low), high) for p, value in values.items()},
        censored_from=censored_from,
        infinite_from=_percent(finite, total) if failed else None,
    )


def summary_of(found: Distribution) -> LatencySummary:
    """Return the summary of times of which none failed."""
    return summarise(read_distribution(found) or EMPTY)


def nothing_measured(summary: LatencySummary, population: str) -> str:
    """Return why a summary without values has none; ``population`` is `ok` or `all`."""
    if population == "ok":
        return "no request was answered as expected"
    return (
        "all requests failed, which counts as infinite"
        if summary.count
        else "all requests failed before they were sent"
    )


def latency_summaries(
    recording: Recording, percentiles: Collection[str] = _ALL
) -> dict[tuple[str, str], LatencySummary | None]:
    """Return the summaries by (population, kind), such as ("ok", "response"); response is None in a closed
    loop, where "all" service times are those of every request, and not only of those that were sent.
    ``percentiles``: those that are taken, by name.
    """
    times, account = recording.distributions, recording.account
    lost = sent_and_failed(account) if recording.is_open else failed(account)
    found: dict[tuple[str, str], LatencySummary | None] = {}
    response = (times.ok_response, times.carried_in_response, times.censored_response, failed(account))
    service = (times.ok_service, times.carried_in_service, times.censored_service, lost)
    for kind, (valid, carried, unanswered, broken) in {"response": response, "service": service}.items():
        ok = None if valid is None else _summaries((valid, carried, unanswered), broken, percentiles)
        found["ok", kind], found["all", kind] = ok or (None, None)
    return found


def path_summaries(part: PathFigures | GroupFigures) -> dict[str, LatencySummary]:
    """Return the summaries of one path of a mix, or of one group of users, by population: of its response
    times in an open loop, of its service times in a closed one.
    """
    times = part.times
    kind = "response" if "ok_response" in times else "service"
    valid, carried, unanswered = (times.get(f"{name}_{kind}") for name in ("ok", "carried_in", "censored"))
    ok, every = _summaries((valid, carried, unanswered), failed(part.account), _ALL)
    return {"ok": ok, "all": every}


_Parts = tuple[Distribution | None, Distribution | None, Distribution | None]


def _summaries(
    parts: _Parts, broken: int, percentiles: Collection[str]
) -> tuple[LatencySummary, LatencySummary]:
    """Return the summaries of valid replies and of all requests; ``parts``: the times of valid replies, of
    those that were carried in, and of the unanswered.
    """
    valid, carried, unanswered = (read_distribution(one) or EMPTY for one in parts)
    ok = summarise(valid, percentiles=percentiles)
    return ok, summarise(_joined(valid, carried), unanswered, broken, percentiles)


@dataclass(frozen=True, slots=True)
class LoadPart:
    """A path of a load's mix, or one of its groups of users: its requests, and its times of one ``kind``,
    `response` in an open loop, `service` in a closed one. Those of a group have its delay.
    """

    name: str
    """The path, or the name of the group."""
    weight: float
    asked: float
    """The share that its weight asks for."""
    share: float | None
    """Of all requests; null where there were none."""
    account: Tally = field(metadata=INLINE)
    bytes: Traffic
    kind: str = field(metadata=INTERNAL)
    ok: LatencySummary = field(metadata=INTERNAL)
    all: LatencySummary = field(metadata=INTERNAL)
    connections: int | None = None
    """Of a group: exactly so many in a closed loop, at most in an open one."""

    @shown_as("")
    def times(self) -> TimesOfKind:
        """Return its times."""
        return of_kind(self.kind, self.ok, self.all)


def load_paths(recording: Recording | None) -> tuple[LoadPart, ...]:
    """Return the paths of a load's mix, in its order; none where it has none."""
    if recording is None:
        return ()
    return _parts(recording, [(one.path, one.weight) for one in recording.paths], recording.paths)


def load_groups(recording: Recording | None) -> tuple[LoadPart, ...]:
    """Return the groups of users of a load, in its order; none where all are alike."""
    load = recording.spec.workload if recording is not None and recording.spec else None
    if recording is None or load is None:
        return ()
    found = _parts(recording, [(one.name, one.weight) for one in load.groups], recording.groups)
    return tuple(
        replace(part, connections=one.connections) for part, one in zip(found, recording.groups, strict=True)
    )


def _parts(
    recording: Recording,
    asked: Sequence[tuple[str, float]],
    each: Sequence[PathFigures | GroupFigures],
) -> tuple[LoadPart, ...]:
    """Return the parts of a load; ``asked``: their names and weights."""
    weights, whole = sum(weight for _, weight in asked), tally(recording.account).requests
    kind = "response" if recording.is_open else "service"
    return tuple(
        LoadPart(
            name=name,
            weight=weight,
            asked=weight / weights,
            share=account.requests / whole if whole else None,
            account=account,
            bytes=one.bytes,
            kind=kind,
            ok=times["ok"],
            all=times["all"],
        )
        for (name, weight), one in zip(asked, each, strict=False)
        for account, times in [(tally(one.account), path_summaries(one))]
    )


@dataclass(frozen=True, slots=True)
class LoadStatus:
    """The requests of one status, those that were carried in too, and the bytes of the bodies of the others.

    All statuses together are the load.
    """

    status: str
    """A code; `others`, where there are too many to keep apart; `none`: no complete reply."""
    requests: int
    errors: int
    """All but `ok`."""
    share: float | None
    """Of all requests; null where there were none."""
    body_received: int
    latency: Mapping[str, Mapping[str, LatencySummary | None]]
    """Of valid replies (`ok`), and of `all` complete replies, of this status alone: their `response_ns`, null
    in a closed loop, and `service_ns`.
    """


def load_statuses(recording: Recording | None) -> tuple[LoadStatus, ...]:
    """Return the statuses of a load by their code; none where the generator does not report them."""
    if recording is None:
        return ()
    whole = tally(recording.account).requests
    return tuple(_status(name, one, whole) for name, one in sorted(recording.statuses.items()))


def _status(name: str, one: StatusFigures, whole: int) -> LoadStatus:
    requests = one.requests + one.carried_in
    response = _of_replies(one.ok_response, one.carried_in_response, one.other_response)
    service = _of_replies(one.ok_service, one.carried_in_service, one.other_service)
    return LoadStatus(
        status=name,
        requests=requests,
        errors=requests - one.ok - one.carried_in_ok,
        share=requests / whole if whole else None,
        body_received=one.body_received,
        latency={of: {"response_ns": response[of], "service_ns": service[of]} for of in ("ok", "all")},
    )


def _of_replies(
    valid: Distribution | None, carried: Distribution | None, other: Distribution | None
) -> dict[str, LatencySummary | None]:
    """Return the summaries of valid replies, and of all; None where there are none."""
    own, more, bad = (read_distribution(one) or EMPTY for one in (valid, carried, other))
    # A summary merges into the histogram of its first, so the first is taken before.
    ok = summarise(own) if own.count else None
    every = _joined(_joined(own, more), bad)
    return {"ok": ok, "all": summarise(every) if every.count else None}
