"""What a load run says, as values: what its report shows and its JSON holds.

Must not know words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import exp, log

from prony.analysis.account import RequestClass, Tally, tally
from prony.analysis.distribution import EMPTY, Times, read_distribution
from prony.analysis.latency import LatencySummary, latency_summaries, summarise
from prony.analysis.load_condition import ConditionResult, LoadCondition, judge_condition
from prony.analysis.paths import LoadPath, load_paths
from prony.analysis.rates import keeps_rate, rates_of, window_s
from prony.model.limit import GeneratorVerdict, Limited
from prony.model.recording import Handshakes, Recording, StageFigures, Streams
from prony.model.shapes import at
from prony.model.shown import INTERNAL, shown, shown_as
from prony.reading.recorded import OfKind, Recorded, of_kind, recorded, summary_of
from prony.units import seconds

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
class StageCounts:
    """The requests that were due in a stage, in a closed loop begun."""

    begin_ns: int
    """From the opening of the window."""
    duration_ns: int
    from_per_s: float | None
    to_per_s: float | None
    from_connections: int | None
    to_connections: int | None
    scheduled: int
    sent: int
    ok: int
    failed: int
    """Those without a latency."""
    errors: int
    """All but `ok`."""


@dataclass(frozen=True, slots=True)
class StageReading:
    """A stage with the size of the load at its beginning and its end: requests per second, in a closed loop
    connections.

    Of the requests that were due or begun in it the rate of valid replies, and summaries of their times of
    one ``kind``, as in a `Spread`: of valid replies, and of all requests.
    """

    figures: StageFigures = field(metadata=INTERNAL)
    kind: str = field(metadata=INTERNAL)
    begins_with: float = field(metadata=INTERNAL)
    ends_with: float = field(metadata=INTERNAL)
    ok_per_s: float
    ok: LatencySummary = field(metadata=INTERNAL)
    all: LatencySummary = field(metadata=INTERNAL)

    @shown_as("")
    def counts(self) -> StageCounts:
        """Return its ends, and what became of its requests."""
        found = self.figures
        ends = found.from_per_s, found.to_per_s, found.from_connections, found.to_connections
        counts = found.scheduled, found.sent, found.ok, found.failed
        return StageCounts(found.begin_ns, found.duration_ns, *ends, *counts, found.scheduled - found.ok)

    @shown_as("")
    def times(self) -> OfKind:
        """Return its times."""
        return of_kind(self.kind, self.ok, self.all)


@dataclass(frozen=True, slots=True)
class AgreedOn:
    """How many handshakes failed, and connections by what was agreed on."""

    failed: int
    protocols: Mapping[str, int]
    ciphers: Mapping[str, int]
    groups: Mapping[str, int]
    keys: Mapping[str, int]
    alpn: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TlsReading:
    """The TLS of a load with the summaries of its handshakes, full and ``resumed``; ``verified``: whether the
    server's certificate was, null where the generator does not say so.
    """

    figures: Handshakes = field(metadata=INTERNAL)
    verified: bool | None
    full: LatencySummary = field(metadata=at("full_ns"))
    resumed: LatencySummary = field(metadata=at("resumed_ns"))

    @shown_as("")
    def agreed(self) -> AgreedOn:
        """Return the connections by what was agreed on."""
        one = self.figures
        return AgreedOn(one.failed, one.protocols, one.ciphers, one.groups, one.keys, one.alpn)


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """What a server did with the streams of its connections, as in the Recording."""

    goaways: int
    refused: int
    resets: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class StreamsReading:
    """The streams of a load, with the summaries of the parts of its latencies; ``schedule_wait`` is null in a
    closed loop.
    """

    figures: Streams = field(metadata=INTERNAL)
    schedule_wait: LatencySummary | None = field(metadata=at("schedule_wait_ns"))
    """Null in a closed loop."""
    stream_wait: LatencySummary = field(metadata=at("stream_wait_ns"))
    wire: LatencySummary = field(metadata=at("wire_ns"))

    @shown_as("")
    def counts(self) -> StreamCounts:
        """Return what the server did with streams."""
        one = self.figures
        return StreamCounts(one.goaways, one.refused, one.resets, one.limit)


@dataclass(frozen=True, slots=True)
class LoadReading:
    """A Recording with what is calculated from it.

    ``latency``: by population and kind, such as ("ok", "response"). ``account``: all requests, those that the
    window found open too. ``requests``: those that were answered as expected, then the others, most first.
    ``verdict``: whether the generator set the figures; ``keeps_rate``: whether an open loop sent in time what
    was due. ``conditions``: those that were asked for.
    """

    recording: Recording = field(metadata=INTERNAL)
    verdict: GeneratorVerdict = field(metadata=INTERNAL)
    keeps_rate: bool = field(metadata=INTERNAL)
    window_s: float | None = field(metadata=INTERNAL)
    rates: Mapping[str, float | None] = field(metadata=INTERNAL)
    latency: Mapping[tuple[str, str], LatencySummary | None] = field(metadata=INTERNAL)
    send_lag: LatencySummary | None = field(metadata=INTERNAL)
    connect: LatencySummary | None = field(metadata=INTERNAL)
    account: Tally = field(metadata=INTERNAL)
    requests: tuple[EndedSo, ...]
    """How all requests ended, those answered as expected first, then the others, most first."""
    spread: Spread | None
    """Valid replies by their latency; null without any."""
    stages: tuple[StageReading, ...]
    """Of a load with `--stages`."""
    paths: tuple[LoadPath, ...] = field(default=(), metadata=INTERNAL)
    tls: TlsReading | None = None
    """Of a load with TLS; else null."""
    streams: StreamsReading | None = None
    """Of a load by HTTP/2; else null."""
    conditions: tuple[ConditionResult, ...] = field(default=(), metadata=at("fail_if"))

    @shown_as("")
    def recorded(self) -> Recorded:
        """Return what the Recording itself says."""
        return recorded(self.recording, self.paths)


def read_load(recording: Recording, conditions: Sequence[LoadCondition] = ()) -> LoadReading:
    """Return what a load run says, and whether each of ``conditions`` holds."""
    times, account = recording.distributions, tally(recording.account)
    verdict = recording.generator.verdict
    is_limited = verdict.limited is not Limited.NO
    return LoadReading(
        recording=recording,
        verdict=verdict,
        keeps_rate=keeps_rate(recording),
        window_s=window_s(recording),
        rates=rates_of(recording),
        latency=latency_summaries(recording),
        send_lag=summary_of(times.send_lag),
        connect=summary_of(times.connect),
        account=account,
        requests=tuple(_requests(account)),
        spread=_spread(recording),
        stages=tuple(_stage(one, _kind(recording)) for one in recording.stages),
        paths=load_paths(recording),
        tls=_tls(recording),
        streams=_streams(recording.streams),
        conditions=tuple(judge_condition(one, recording, is_limited=is_limited) for one in conditions),
    )


def _tls(recording: Recording) -> TlsReading | None:
    found, spec = recording.tls, recording.spec
    if found is None:
        return None
    asked = spec.target.tls if spec and spec.target else None
    full, resumed = (read_distribution(times) or EMPTY for times in (found.full, found.resumed))
    return TlsReading(found, asked.verify if asked else None, summarise(full), summarise(resumed))


def _streams(found: Streams | None) -> StreamsReading | None:
    if found is None:
        return None
    stream_wait, wire = (read_distribution(times) or EMPTY for times in (found.stream_wait, found.wire))
    return StreamsReading(found, summary_of(found.schedule_wait), summarise(stream_wait), summarise(wire))


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
