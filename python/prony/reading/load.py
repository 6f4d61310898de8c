"""What a load run says, as values: what its report shows and its JSON holds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import exp, log

from prony.archive.codec import masked_load, masked_target
from prony.core.units import seconds
from prony.figures.account import Carried, RequestClass, Tally, keeps_rate, rates_of, tally
from prony.figures.latency import (
    EMPTY,
    LatencySummary,
    LoadPart,
    LoadStatus,
    Times,
    TimesOfKind,
    latency_summaries,
    load_groups,
    load_paths,
    load_statuses,
    of_kind,
    read_distribution,
    summarise,
    summary_of,
)
from prony.figures.objective import Condition, ConditionResult, judge_condition
from prony.model.json_codec import INLINE, at
from prony.model.limit import Limited
from prony.model.recording import ErrorSample, Recording, StageFigures, Target
from prony.model.shown import INTERNAL, shown, shown_as
from prony.model.workload import Workload

KINDS = ("response", "service")
"""From when a request was due, and from when it was sent."""
_MOST_CLASSES = 12


@dataclass(frozen=True, slots=True)
class EndedSo:
    """Requests that ended so; ``share``: of all requests, null where there were none."""

    ending: RequestClass = field(metadata=INTERNAL)
    requests: int
    share: float | None

    @shown_as("class")
    def key(self) -> str:
        """The class of the account; `bad_status 503` by status."""
        return self.ending.key


@dataclass(frozen=True, slots=True)
class LatencyClass:
    """How many valid replies took from ``low_ns`` to less than ``high_ns``."""

    low_ns: int
    high_ns: int
    requests: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Valid replies by their ``kind`` of time: `response` in an open loop, `service` in a closed one."""

    kind: str = field(metadata=INTERNAL)
    classes: tuple[LatencyClass, ...]

    @shown
    def of(self) -> str:
        """Which time it is: `response_ns` in an open loop, `service_ns` in a closed one."""
        return f"{self.kind}_ns"


@dataclass(frozen=True, slots=True)
class StageReading:
    """A stage with the size of the load at its beginning and its end: requests per second, in a closed loop
    connections.

    Of the requests that were due or begun in it the rate of valid replies, and summaries of their times of
    one ``kind``, as in a `Spread`: of valid replies, and of all requests.
    """

    figures: StageFigures = field(metadata=INLINE)
    kind: str = field(metadata=INTERNAL)
    begins_with: float = field(metadata=INTERNAL)
    ends_with: float = field(metadata=INTERNAL)
    ok_per_s: float
    ok: LatencySummary = field(metadata=INTERNAL)
    all: LatencySummary = field(metadata=INTERNAL)

    @shown
    def errors(self) -> int:
        """All but `ok`."""
        return self.figures.scheduled - self.figures.ok

    @shown_as("")
    def times(self) -> TimesOfKind:
        """Return its times."""
        return of_kind(self.kind, self.ok, self.all)


@dataclass(frozen=True, slots=True)
class LoadReading:
    """A Recording with what is calculated from it: each distribution has its summary."""

    recording: Recording = field(metadata=INLINE)
    keeps_rate: bool = field(metadata=INTERNAL)
    """Whether an open loop sent in time what was due."""
    rates: Mapping[str, float | None] = field(metadata=INTERNAL)
    requests_by_end: Tally = field(metadata=INTERNAL)
    """All requests, those that the window found open too."""
    latency: Mapping[str, Mapping[str, LatencySummary | None]]
    """Of valid replies (`ok`), and of `all` requests: a failed one counts as infinite, an unanswered one at
    its age. `response_ns` is from the moment that each was due, null in a closed loop; `service_ns` from the
    moment that it was sent. What was never sent has no service time: an open loop leaves it out; in a closed
    loop, what failed is infinite.
    """
    requests: tuple[EndedSo, ...]
    """How all requests ended, those answered as expected first, then the others, most first."""
    spread: Spread | None
    """Valid replies by their latency; null without any."""
    stages: tuple[StageReading, ...]
    """Of a load with `--stages`."""
    paths: tuple[LoadPart, ...] = ()
    """Of a mix, each path; else empty."""
    statuses: tuple[LoadStatus, ...] = ()
    """By the status of their reply; empty where the generator does not report them."""
    groups: tuple[LoadPart, ...] = ()
    """Of a load with `--groups`; else empty."""
    conditions: tuple[ConditionResult, ...] = field(default=(), metadata=at("fail_if"))

    @property
    def send_lag(self) -> LatencySummary | None:
        """The generator's own lateness; None in a closed loop."""
        times = self.recording.distributions.send_lag
        return None if times is None else summary_of(times)

    @shown
    def target(self) -> Target | None:
        """Where the load went; None where the generator does not say so."""
        spec = self.recording.spec
        return None if spec is None or spec.target is None else masked_target(spec.target)

    @shown
    def workload(self) -> Workload | None:
        """What was asked for, without the values of secret headers; None likewise."""
        spec = self.recording.spec
        load = None if spec is None else spec.workload
        return None if load is None else masked_load(load)

    @shown
    def errors(self) -> tuple[ErrorSample, ...]:
        """Samples of requests that failed, the first of each class."""
        return self.recording.error_samples

    @shown
    def all_requests(self) -> int:
        """Those scheduled in the window and those carried into it."""
        return self.requests_by_end.requests

    @shown
    def carried_in(self) -> Carried | None:
        """Those that were open when the window opened; None where the generator does not report them."""
        return self.requests_by_end.carried_in

    @shown
    def lost_machines(self) -> int:
        """How many of `machines` are not in the account."""
        return sum(one.lost is not None for one in self.recording.machines)

    @shown
    def rate(self) -> Mapping[str, float | None]:
        """`ok_per_s`: answered in the window, `attempted_per_s`: scheduled in it, `error_per_s`: all without
        a valid reply, each / the window's length.
        """
        return {name: self.rates[name] for name in ("ok_per_s", "attempted_per_s", "error_per_s")}

    @shown
    def ratio(self) -> Mapping[str, float | None]:
        """`success` and `error` of all requests; None where nothing was sent."""
        return {name: self.rates[f"{name}_ratio"] for name in ("success", "error")}


def read_load(recording: Recording, conditions: Sequence[Condition] = ()) -> LoadReading:
    """Return what a load run says, and whether each of ``conditions`` holds."""
    account, summaries = tally(recording.account), latency_summaries(recording)
    is_limited = recording.generator.verdict.limited is not Limited.NO
    return LoadReading(
        recording=recording,
        keeps_rate=keeps_rate(recording),
        rates=rates_of(recording),
        requests_by_end=account,
        latency={of: {f"{kind}_ns": summaries[of, kind] for kind in KINDS} for of in ("ok", "all")},
        requests=tuple(_requests(account)),
        spread=_spread(recording),
        stages=tuple(_stage(one, _kind(recording)) for one in recording.stages),
        paths=load_paths(recording),
        statuses=load_statuses(recording),
        groups=load_groups(recording),
        conditions=tuple(judge_condition(one, recording, is_limited=is_limited) for one in conditions),
    )


def _kind(recording: Recording) -> str:
    return "response" if recording.is_open else "service"


def _stage(figures: StageFigures, kind: str) -> StageReading:
    is_open = kind == "response"
    first = figures.from_per_s if is_open else figures.from_connections
    last = figures.to_per_s if is_open else figures.to_connections
    ok = figures.ok_response if is_open else figures.ok_service
    censored = figures.censored_response if is_open else figures.censored_service
    # A summary merges into the histogram of its first.
    times, own = read_distribution(ok) or EMPTY, read_distribution(ok) or EMPTY
    unanswered = read_distribution(censored) or EMPTY
    return StageReading(
        figures=figures,
        kind=kind,
        begins_with=first or 0,
        ends_with=last or 0,
        ok_per_s=figures.ok / seconds(figures.duration_ns),
        ok=summarise(own),
        all=summarise(times, unanswered, figures.failed),
    )


def _requests(found: Tally) -> Iterator[EndedSo]:
    kinds = sorted(found.failed.items(), key=lambda kind: (-kind[1], kind[0].key))
    for ending, count in ((RequestClass("ok"), found.ok), *kinds):
        yield EndedSo(ending, count, count / found.requests if found.requests else None)


def _spread(recording: Recording) -> Spread | None:
    times = recording.distributions
    found = read_distribution(times.ok_response if recording.is_open else times.ok_service)
    if found is None or not found.count:
        return None
    return Spread(_kind(recording), tuple(_classes(found)))


def _classes(times: Times) -> Iterator[LatencyClass]:
    if times.histogram is None or times.min_ns is None or times.max_ns is None:
        return
    edges = _edges(times.min_ns, times.max_ns)
    below = 0
    for low, high in pairwise(edges):
        upto = times.count if high == edges[-1] else times.histogram.count_below(high)
        yield LatencyClass(low, high, upto - below)
        below = upto


def _edges(low: int, high: int) -> list[int]:
    """Return at most 13 bounds from below ``low`` to above ``high``, evenly spaced by ratio: latencies span
    decades.
    """
    low, high = max(low, 1), max(high, 2)
    steps = _MOST_CLASSES if high > 1.2 * low else 1
    ratio = log((high + 1) / low) / steps
    return [round(low * exp(ratio * step)) for step in range(steps)] + [high + 1]
