"""The report of one load run: rates, requests by kind, latencies, a histogram, and how far to trust the
generator.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prony.core.metrics import PERCENTILES
from prony.core.safe_text import escaped
from prony.core.units import Scale, duration_scale, format_duration, format_rate, nanoseconds
from prony.diagnosis.evidence import Affected
from prony.figures.account import KEPT_RATE, Carried, RequestClass
from prony.figures.latency import LatencySummary, LoadPart, nothing_measured, summary_of
from prony.figures.objective import ConditionResult
from prony.model.address import Wire
from prony.model.limit import Limited
from prony.model.recording import (
    Connections,
    ErrorSample,
    GeneratorName,
    Handshakes,
    RawLatencies,
    Recording,
    Streams,
    Target,
    Traffic,
)
from prony.model.workload import ClosedLoop, OpenLoop, Pacing
from prony.reading.load import KINDS, EndedSo, LatencyClass, LoadReading, StageReading
from prony.report.document import (
    Bars,
    Block,
    Column,
    Document,
    Entry,
    Footnotes,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
)
from prony.report.findings import verdict_words
from prony.report.forms import as_typed, byte_size, count, duration, in_metric, in_scale, percent
from prony.report.sections.generators import lost_words, machines_section
from prony.report.tables import PARTS, part_entries, status_entry
from prony.report.text import (
    EMPTY,
    Figure,
    Name,
    Part,
    Quote,
    Text,
    Words,
    counted,
    each_of,
    joined,
    pointer,
    text,
)
from prony.report.words import carried_words, ending_words

_SHOWN = ("p50", "p90", "p95", "p99", "p999", "p9999")


def load_document(reading: LoadReading) -> Document:
    """Return the report of one load run."""
    sections = [_head(reading), _account(reading), _latency(reading)]
    # The whole says it where all replies had one status.
    several = reading.statuses[1:]
    parts = (
        (reading.stages, _stages),
        (reading.paths, _paths),
        (reading.groups, _groups),
        (several, _statuses),
    )
    sections += [section(reading) for has, section in parts if has]
    if (tls := reading.recording.tls) is not None:
        sections.append(_tls(tls, is_verified=_is_verified(reading.recording)))
    if (streams := reading.recording.streams) is not None:
        sections.append(_streams(streams))
    if (histogram := _histogram(reading)) is not None:
        sections.append(histogram)
    if reading.recording.machines:
        sections.append(machines_section(reading.recording.machines))
    sections.append(Section("Generator", (Notes.of(_trust(reading)),)))
    return Document(_title(reading), tuple(sections))


def _title(reading: LoadReading) -> Text:
    spec = reading.recording.spec
    if spec is None or spec.target is None:
        return text("Load")
    address = _address(spec.target)
    if spec.workload is None:
        return text("Load on {}", address)
    return text("Load on {}: {}", address, Name(spec.workload.describe_request()))


def _address(target: Target) -> Text:
    """Return where the load went; without more it is HTTP over TCP."""
    wire = target.wire.kind
    version = target.wire.version
    own = [f"HTTP/{version}"] if version else [] if wire is Wire.HTTP else [_SPOKEN[wire]]
    names = [*own, *(["TLS"] if target.tls else [])]
    spoken = f" ({', '.join(names)})" if names else ""
    if target.socket == "unix":
        return text(f"unix:{{}}{spoken}", Quote(target.host, "/target/host"))
    name = Name(f"[{target.host}]" if ":" in target.host else target.host)
    place = text("{}:{}", name, Figure(target.port, as_typed, "/target/port"))
    if target.proxy is not None:
        server = Quote(target.proxy.authority, "/target/proxy/authority")
        return text(f"{{}} through the proxy {{}}{spoken}", server, place)
    return text(f"{{}}{spoken}", place)


_SPOKEN = {Wire.FASTCGI: "FastCGI", Wire.UWSGI: "uwsgi", Wire.SCGI: "SCGI", Wire.HTTP2: "HTTP/2"}
_OPEN = "requests are due whatever the server does; latency counts from when each was due."
_CLOSED = (
    "each connection waits for its reply, so the server sets the load. Latencies are those at saturation; "
    "for what users of a given load see, use --rate."
)


def _loop_words(reading: LoadReading) -> Text:
    if reading.recording.is_open:
        return text(f"Open loop{{}}: {_OPEN}", _asked(reading))
    return text(f"Closed loop{{}}: {_CLOSED}", _asked(reading))


def _asked(reading: LoadReading) -> Text:
    """Return the load that was asked for; empty where the generator does not say it."""
    spec = reading.recording.spec
    target = spec.target if spec else None
    match spec and spec.workload and spec.workload.loop:
        case OpenLoop(rate_per_s, arrivals, stages=stages) if stages:
            steps = counted(Figure(len(stages), as_typed, "/workload/loop/stages"), "stage")
            highest = Figure(rate_per_s, _general, "/workload/loop/rate_per_s")
            return text(", {} of up to {}/s {}", steps, highest, arrivals.value)
        case ClosedLoop(connections, stages) if stages:
            steps = counted(Figure(len(stages), as_typed, "/workload/loop/stages"), "stage")
            number = Figure(connections, as_typed, "/workload/loop/connections")
            return text(", {} of up to {}", steps, counted(number, "connection"))
        case OpenLoop(rate_per_s, arrivals):
            return text(
                ", {}/s {}", Figure(rate_per_s, _general, "/workload/loop/rate_per_s"), arrivals.value
            )
        case ClosedLoop(connections):
            number = Figure(connections, as_typed, "/workload/loop/connections")
            return text(", {}{}", counted(number, "connection"), _shared(target))
        case _:
            return EMPTY


def _shared(target: Target | None) -> Text:
    """Return how many requests a connection has at once; empty where it is one."""
    wire = target.wire if target else None
    if not wire or not wire.streams or wire.streams == 1:
        return EMPTY
    return text(" with {} each", counted(Figure(wire.streams, as_typed, "/target/wire/streams"), "stream"))


def _general(value: float) -> str:
    return f"{value:g}"


def _general_per_s(value: float) -> str:
    return f"{value:g}/s"


def _seconds(value_s: float) -> str:
    return format_duration(nanoseconds(value_s))


def _head(reading: LoadReading) -> Section:
    blocks: list[Block] = list(lost_words(reading.recording.machines))
    if reading.recording.generator.verdict.limited is not Limited.NO:
        affected = Affected.LATENCY if reading.keeps_rate else Affected.ALL
        words = verdict_words(reading.recording.generator.verdict, affected, "/generator/evidence")
        blocks.append(Paragraph(words, Tone.WARNING))
    blocks += [Paragraph(words, Tone.WARNING) for words in _short(reading)]
    blocks.append(Paragraph(_loop_words(reading), Tone.QUIET))
    if reading.recording.window.interrupted:
        blocks.append(Paragraph("Interrupted: the figures are of the time before.", Tone.WARNING))
    blocks += _lost(reading.recording.raw_latencies)
    blocks += [Paragraph(words, Tone.QUIET) for words in _economical(reading)]
    conditions = (_condition(one, pointer("fail_if", k)) for k, one in enumerate(reading.conditions))
    return Section("", (*blocks, _speed(reading), *conditions))


def _lost(raw: RawLatencies | None) -> Iterator[Paragraph]:
    if raw is None or not raw.lost:
        return
    lost = counted(Figure(raw.lost, count, "/raw_latencies/lost"), "request")
    reason = Quote(raw.error, "/raw_latencies/error") if raw.error else Name("the file was too slow")
    words = text("The file of raw latencies is not whole; missing: {} ({}).", lost, reason)
    yield Paragraph(words, Tone.WARNING)


def _condition(one: ConditionResult, at: str) -> Paragraph:
    condition = Quote(one.condition.text, at + pointer("condition"))
    value = None if one.value is None else Figure(one.value, in_metric(one.metric), at + pointer("value"))
    reason = Quote(one.reason, at + pointer("reason")) if one.reason else None
    known = joined([part for part in (value, reason) if part is not None])
    verdict, tone = _VERDICTS[one.holds]
    return Paragraph(text(f"{{}}: {verdict}: {{}}", condition, known), tone)


_VERDICTS = {
    True: ("fails, the condition holds", Tone.BAD),
    False: ("passes", Tone.GOOD),
    None: ("cannot be decided", Tone.WARNING),
}


def _short(reading: LoadReading) -> Iterator[Text]:
    """Yield that an open loop sent less than was due in its window, whoever held it back."""
    account, sent = reading.recording.account, reading.recording.generator.sent_in_window
    if reading.recording.is_open and account.scheduled and sent is not None and not reading.keeps_rate:
        yield text(
            "Short of the rate: {} requests were sent within the window, and {} were due.",
            Figure(sent, count, "/generator/sent_in_window"),
            Figure(account.scheduled, count, "/account/scheduled"),
        )


def _economical(reading: LoadReading) -> Iterator[Text]:
    """Yield what economical pacing adds to a response time."""
    lag = reading.send_lag
    if reading.recording.engine.pacing is not Pacing.ECONOMICAL or lag is None:
        return
    late = [
        text("{} at p{}", Figure(value, duration, f"/distributions/send_lag/percentiles/{name}"), Name(name))
        for name in ("50", "99")
        if (value := lag.percentiles[name]) is not None
    ]
    if late:
        yield text(
            "Economical pacing: requests went out late, by {}. Response times include that.", joined(late)
        )


def _speed(reading: LoadReading) -> Paragraph:
    names = ("ok_per_s", "attempted_per_s", "success_ratio")
    ok, attempted, success = (reading.rates[name] for name in names)
    if ok is None or attempted is None or success is None or reading.recording.window.duration_s is None:
        return Paragraph(_no_speed(reading), Tone.BAD)
    window = Figure(reading.recording.window.duration_s, _seconds, "/window/duration_s")
    asked = text(
        "{} {}, {} of {}",
        Figure(attempted, format_rate, "/rate/attempted_per_s"),
        "due" if reading.recording.is_open else "sent",
        Figure(success, percent, "/ratio/success"),
        "all requests" if _carried(reading) else "them",
    )
    if not ok and success:
        words = text("Nothing was answered as expected within the window of {}; {} after it", window, asked)
        return Paragraph(words, Tone.WARNING)
    answered = Figure(ok, format_rate, "/rate/ok_per_s")
    words = text("{} answered as expected in a window of {}; {} answered so", answered, window, asked)
    # The replies to the last requests of a window come after it; more than these is another matter.
    if ok < KEPT_RATE * attempted * success:
        return Paragraph(text("{}, some of them after the window", words), Tone.WARNING)
    return Paragraph(words, Tone.GOOD if success == 1 else Tone.WARNING)


def _no_speed(reading: LoadReading) -> Text:
    if not reading.requests_by_end.requests:
        return text("Nothing was sent.")
    return text(
        "{} of {} answered as expected; the window has no length, so there are no rates.",
        Figure(reading.requests_by_end.ok, count, "/requests/0/requests"),
        Figure(reading.requests_by_end.requests, count, "/all_requests"),
    )


def _carried(reading: LoadReading) -> Carried | None:
    """Return the requests that the window found open; None where there were none."""
    found = reading.requests_by_end.carried_in
    return found if found and found.requests else None


# --- requests by kind -------------------------------------------------------------------------------------


def _account(reading: LoadReading) -> Section:
    rows = tuple(_kind(one, pointer("requests", k)) for k, one in enumerate(reading.requests))
    blocks: list[Block] = [Table((Column("kind", text=True), Column("requests"), Column("share")), rows)]
    if carried := _carried(reading):
        requests = Figure(carried.requests, count, "/carried_in/requests")
        words = "{} of these requests were open when the window opened: {}"
        blocks.append(Paragraph(text(words, requests, carried_words(carried, "/carried_in")), Tone.QUIET))
    samples = {
        (sample.kind, sample.detail): _sample(sample, pointer("errors", k))
        for k, sample in reversed(tuple(enumerate(reading.recording.error_samples)))
    }
    if samples:
        blocks.append(Notes(tuple(("  |", samples[key]) for key in sorted(samples))))
    return Section("Requests", tuple(blocks))


def _sample(found: ErrorSample, at: str) -> Text:
    detail = Quote(found.detail, at + pointer("detail"))
    words = text("{}: {}", Name(ending_words(RequestClass(found.kind))), detail)
    if not found.received:
        return words
    # They come from a stranger, and may be anything.
    return text("{}: {}", words, Name(escaped(found.received.decode("utf-8", "backslashreplace"))))


def _kind(one: EndedSo, at: str) -> tuple[Entry, ...]:
    share: Part = "—" if one.share is None else Figure(one.share, percent, at + pointer("share"))
    return (
        Entry.of(Name(ending_words(one.ending)), Tone.PLAIN if one.ending == _OK else Tone.BAD),
        Entry.of(Figure(one.requests, count, at + pointer("requests"))),
        Entry.of(share),
    )


_OK = RequestClass("ok")


# --- latency ----------------------------------------------------------------------------------------------


def _missing(summary: LatencySummary, percentile: float, at: str) -> Text:
    first = summary.infinite_from
    if first is not None and percentile > first:
        figure = Figure(first, _four_digits, at + pointer("infinite_from"))
        return text("requests failed above p{}, which counts as infinite", figure)
    return text("fewer than {} requests lie above it", Name("10"))


def _four_digits(value: float) -> str:
    return f"{value:.4g}"


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the table of latencies, and where the JSON has its summary."""

    summary: LatencySummary
    population: str
    at: str
    scale: Scale
    notes: Footnotes

    def entry(self, value: float | None, percentile: float, *place: str) -> Entry:
        """Return a value, a lower bound of it, or a dash with its reason."""
        if value is None:
            return self.dash(_missing(self.summary, percentile, self.at))
        bound = self.summary.censored_from is not None and percentile > self.summary.censored_from
        figure = Figure(value, in_scale(self.scale), self.at + pointer(*place))
        return Entry(text("≥ {}" if bound else "{}", figure))

    def dash(self, reason: Words) -> Entry:
        """Return a dash with its reason."""
        return Entry(self.notes.marked("—", reason), Tone.QUIET)

    def middle_and_end(self) -> Iterator[Entry]:
        """Yield p50, p99 and maximum."""
        found = self.summary
        if found.min_ns is None:
            yield from [self.dash(nothing_measured(found, self.population))] * 3
            return
        for name in ("50", "99"):
            yield self.entry(found.percentiles[name], float(name), "percentiles", name)
        yield self.entry(found.max_ns, 100, "max")

    def entries(self) -> Iterator[Entry]:
        """Yield count, minimum, mean, percentiles and maximum."""
        found = self.summary
        yield Entry.of(Figure(found.count, count, self.at + pointer("count")))
        if found.min_ns is None:
            yield from [self.dash(nothing_measured(found, self.population))] * (len(_SHOWN) + 3)
            return
        yield Entry.of(Figure(found.min_ns, in_scale(self.scale), self.at + pointer("min")))
        # A mean holds the largest values too: it is a lower bound, or infinite, as soon as any is.
        yield self.entry(found.mean_ns, 100, "mean")
        for name in (PERCENTILES[shown] for shown in _SHOWN):
            yield self.entry(found.percentiles[name], float(name), "percentiles", name)
        yield self.entry(found.max_ns, 100, "max")


def _latency(reading: LoadReading) -> Section:
    notes = Footnotes()
    found = {
        (population, kind): summary
        for population, times in reading.latency.items()
        for kind in KINDS
        if (summary := times[f"{kind}_ns"]) is not None
    }
    scale = duration_scale(
        v for s in found.values() for v in (s.mean_ns, s.percentiles["50"]) if v is not None
    )
    failing = reading.requests_by_end.lost > 0
    words = {"ok": "valid replies", "all": "all requests"}
    rows = tuple(
        (Entry(f"{kind} time, {words[population]}"), *line.entries())
        for kind in KINDS
        for population in (("ok", "all") if failing else ("ok",))
        if (summary := found.get((population, kind))) is not None
        for line in [_Line(summary, population, pointer("latency", population, f"{kind}_ns"), scale, notes)]
    )
    columns = _latency_columns(scale)
    bound_at_ns = reading.recording.queue.bound_at_ns
    if bound_at_ns is None:
        return Section("Latency", (Table(columns, rows), notes.notes()))
    bound = Figure(bound_at_ns, duration, "/queue/bound_at_ns")
    label = text("An open loop until {} into the window, a closed one from then on.", bound)
    return Section("Latency", (Paragraph(label, Tone.WARNING), Table(columns, rows), notes.notes()))


def _latency_columns(scale: Scale) -> tuple[Column, ...]:
    titles = ("min", "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max")
    return (Column(scale.unit, text=True), Column("n"), *(Column(title) for title in titles))


def _is_verified(recording: Recording) -> bool:
    """Return whether the server's certificate was verified, as far as is known."""
    target = recording.spec.target if recording.spec else None
    return target is None or target.tls is None or target.tls.verify


def _tls(found: Handshakes, *, is_verified: bool) -> Section:
    notes = Footnotes()
    both = {"full": summary_of(found.full), "resumed": summary_of(found.resumed)}
    scale = duration_scale(one.mean_ns for one in both.values() if one.mean_ns is not None)
    rows = tuple(
        (Entry(f"handshakes, {kind}"), *_Line(one, "handshakes", f"/tls/{kind}", scale, notes).entries())
        for kind, one in both.items()
        if one.count or kind == "full"
    )
    blocks: list[Block] = [Paragraph(_agreed(found), Tone.QUIET)]
    if not is_verified:
        blocks.append(Paragraph("The server's certificate was not verified.", Tone.WARNING))
    if found.failed:
        failed = Figure(found.failed, count, "/tls/failed")
        blocks.append(Paragraph(text("{} failed", counted(failed, "handshake")), Tone.BAD))
    return Section("TLS", (*blocks, Table(_latency_columns(scale), rows), notes.notes()))


def _streams(found: Streams) -> Section:
    """Where valid replies spent their time, and what the server said of its streams."""
    notes = Footnotes()
    parts = {
        "schedule_wait": ("waiting for a connection", found.schedule_wait),
        "stream_wait": ("waiting for a stream", found.stream_wait),
        "wire": ("on the wire", found.wire),
    }
    known = {key: (words, summary_of(one)) for key, (words, one) in parts.items() if one is not None}
    scale = duration_scale(one.mean_ns for _, one in known.values() if one.mean_ns is not None)
    rows = tuple(
        (Entry(words), *_Line(one, "ok", pointer("streams", key), scale, notes).entries())
        for key, (words, one) in known.items()
    )
    blocks: list[Block] = [Paragraph(words, Tone.QUIET) for words in _said_of_streams(found)]
    return Section("Streams", (*blocks, Table(_latency_columns(scale), rows), notes.notes()))


def _said_of_streams(found: Streams) -> Iterator[Text]:
    if found.limit is not None:
        limit = Figure(found.limit, count, "/streams/limit")
        yield text("The server took no more than {} at once on a connection.", counted(limit, "stream"))
    for key, one, words in (
        ("goaways", "connection", "that the server announced to leave"),
        ("refused", "request", "that it had not looked at, and said so"),
        ("resets", "stream", "that it ended without a whole reply"),
    ):
        if number := getattr(found, key):
            yield text(f"{{}} {words}.", counted(Figure(number, count, pointer("streams", key)), one))


def _agreed(found: Handshakes) -> Text:
    """Return what was agreed on, with the number of connections where that differs."""
    parts = (
        ("{}", "protocols", found.protocols),
        ("{}", "ciphers", found.ciphers),
        ("key exchange by {}", "groups", found.groups),
        ("certificate with a key of {}", "keys", found.keys),
        ("{} within", "alpn", found.alpn),
    )
    return joined(text(words, _names(key, counts)) for words, key, counts in parts if counts)


def _names(key: str, counts: Mapping[str, int]) -> Text:
    if len(counts) == 1:
        return text("{}", *map(Name, counts))
    return joined(
        text("{} on {}", Name(name), Figure(number, count, pointer("tls", key, name)))
        for name, number in counts.items()
    )


def _stages(reading: LoadReading) -> Section:
    notes = Footnotes()
    medians = (one.all.percentiles["50"] for one in reading.stages)
    scale = duration_scale(value for value in medians if value is not None)
    rows = tuple(_stage(one, pointer("stages", k), scale, notes) for k, one in enumerate(reading.stages))
    table = _STAGE_TABLES[reading.stages[0].kind]
    titles = (*table.numbers, f"p50 {scale.unit}", f"p99 {scale.unit}", "errors")
    columns = (Column("from"), Column(table.size, text=True), *(Column(title) for title in titles))
    said = f"{table.words} Latencies are {reading.stages[0].kind} times of all."
    return Section("Stages", (Paragraph(said, Tone.QUIET), Table(columns, rows), notes.notes()))


@dataclass(frozen=True, slots=True)
class _StageTable:
    """What is said of the stages of one loop: the size of the load, its form and JSON keys, the numbers."""

    words: str
    size: str
    form: Callable[[float], str]
    keys: tuple[str, str]
    numbers: tuple[str, ...]


_STAGE_TABLES = {
    "response": _StageTable(
        "A request belongs to the stage in which it was due.",
        "rate",
        _general_per_s,
        ("from_per_s", "to_per_s"),
        ("scheduled", "sent", "ok"),
    ),
    "service": _StageTable(
        "A request belongs to the stage in which it was begun. A connection that is taken away ends its "
        "request first.",
        "connections",
        count,
        ("from_connections", "to_connections"),
        ("sent", "ok", "answered"),
    ),
}


def _stage(one: StageReading, at: str, scale: Scale, notes: Footnotes) -> tuple[Entry, ...]:
    figures, table = one.figures, _STAGE_TABLES[one.kind]
    line = _Line(one.all, "all", at + pointer(f"{one.kind}_ns", "all"), scale, notes)
    percentiles = (line.entry(one.all.percentiles[p], float(p), "percentiles", p) for p in ("50", "99"))
    numbers = {name: Figure(getattr(figures, name), count, at + pointer(name)) for name in _STAGE_COUNTS}
    numbers["answered"] = Figure(one.ok_per_s, format_rate, at + pointer("ok_per_s"))
    return (
        Entry.of(Figure(figures.begin_ns, duration, at + pointer("begin_ns"))),
        Entry(_stage_size(one, at)),
        *(Entry.of(numbers[name]) for name in table.numbers),
        *percentiles,
        Entry.of(Figure(one.errors, count, at + pointer("errors")), Tone.BAD if one.errors else Tone.PLAIN),
    )


_STAGE_COUNTS = ("scheduled", "sent", "ok")


def _stage_size(one: StageReading, at: str) -> Text:
    table = _STAGE_TABLES[one.kind]
    first, last = (
        Figure(size, table.form, at + pointer(key))
        for key, size in zip(table.keys, (one.begins_with, one.ends_with), strict=True)
    )
    return text("{}", first) if first.value == last.value else text("{} to {}", first, last)


def _paths(reading: LoadReading) -> Section:
    said = f"All paths together are the whole. Latencies are {reading.paths[0].kind} times of all."
    return _parts("paths", _named("paths", reading.paths), _rows("paths", reading.paths), said)


def _groups(reading: LoadReading) -> Section:
    groups, load = reading.groups, reading.workload
    delays = [
        Entry.of(Figure(one.delay_ns, duration, pointer("workload", "groups", k, "delay_ns")))
        for k, one in enumerate(load.groups if load else ())
    ]
    kind = groups[0].kind
    said = (
        f"All groups together are the whole. Latencies are {kind} times of all, with the delay of each group."
    )
    if kind == "service":
        said = f"{said} What is asked for is a share of the connections: who is far sends less."
    name, asked = _named("groups", groups).items()
    return _parts("groups", dict((name, (Column("delay"), delays), asked)), _rows("groups", groups), said)


def _statuses(reading: LoadReading) -> Section:
    kind = "response" if reading.recording.is_open else "service"
    said = f"All statuses together are the whole. Latencies are {kind} times of complete replies."
    rows = [
        _Part(
            part_entries(
                at, one.requests, one.share, one.errors, (one.body_received, pointer("body_received"))
            ),
            one.latency["all"][f"{kind}_ns"],
            at + pointer("latency", "all", f"{kind}_ns"),
        )
        for k, one in enumerate(reading.statuses)
        for at in [pointer("statuses", k)]
    ]
    names = [status_entry(one.status) for one in reading.statuses]
    return _parts("statuses", {Column("status", text=True): names}, rows, said)


@dataclass(frozen=True, slots=True)
class _Part:
    """A row of a table of parts, without its name. ``times`` null: it had no whole reply."""

    counts: tuple[Entry, ...]
    times: LatencySummary | None
    at: str

    def entries(self, scale: Scale, notes: Footnotes) -> Iterator[Entry]:
        """Yield what it has, and its latencies."""
        yield from self.counts
        if self.times is None:
            yield from [Entry(notes.marked("—", "there was no whole reply"), Tone.QUIET)] * 3
        else:
            yield from _Line(self.times, "all", self.at, scale, notes).middle_and_end()


def _named(key: str, parts: Sequence[LoadPart]) -> dict[Column, Sequence[Entry]]:
    """Return the first columns: names, and what was asked for."""
    at = [pointer(key, k) for k in range(len(parts))]
    names = [Entry.of(Quote(one.name, own + "/name")) for one, own in zip(parts, at, strict=True)]
    asked = [Entry.of(Figure(one.asked, percent, own + "/asked")) for one, own in zip(parts, at, strict=True)]
    return {Column(key.removesuffix("s"), text=True): names, Column("asked"): asked}


def _rows(key: str, parts: Sequence[LoadPart]) -> list[_Part]:
    return [
        _Part(
            part_entries(
                *(at, one.account.requests, one.share, one.account.lost),
                (one.bytes.body_received, pointer("bytes", "body_received")),
            ),
            one.all,
            at + pointer(f"{one.kind}_ns", "all"),
        )
        for k, one in enumerate(parts)
        for at in [pointer(key, k)]
    ]


def _parts(key: str, first: Mapping[Column, Sequence[Entry]], parts: Sequence[_Part], said: str) -> Section:
    """Return the requests, errors, bytes and latencies of each part of a load; ``first``: its columns."""
    notes = Footnotes()
    times = [one.times for one in parts if one.times is not None]
    medians = [value for one in times if (value := one.percentiles["50"]) is not None]
    scale = duration_scale(medians or [one.max_ns for one in times if one.max_ns is not None])
    rows = tuple((*own, *one.entries(scale, notes)) for one, *own in zip(parts, *first.values(), strict=True))
    titles = (*PARTS, *(f"{name} {scale.unit}" for name in ("p50", "p99", "max")))
    columns = (*first, *map(Column, titles))
    return Section(key.capitalize(), (Paragraph(said, Tone.QUIET), Table(columns, rows), notes.notes()))


def _histogram(reading: LoadReading) -> Section | None:
    spread = reading.spread
    if spread is None:
        return None
    middle = spread.classes[len(spread.classes) // 2]
    scale = duration_scale([middle.low_ns])
    rows = tuple(_bar(one, pointer("spread", "classes", k), scale) for k, one in enumerate(spread.classes))
    heading = f"{spread.kind.capitalize()} time of valid replies: requests by class"
    return Section(heading, (Bars(rows),))


def _bar(one: LatencyClass, at: str, scale: Scale) -> tuple[Text, Figure]:
    low, high = each_of(one, at, in_scale(scale), "low_ns", "high_ns")
    return text(f"{{}} to {{}} {scale.unit}", low, high), Figure(
        one.requests, count, at + pointer("requests")
    )


# --- trust ------------------------------------------------------------------------------------------------


def _trust(reading: LoadReading) -> Iterator[Text]:
    recording = reading.recording
    generator, residual = recording.generator, recording.little.residual
    yield _generator_words(recording.engine)
    if generator.cpu_ns_per_request is not None:
        yield _cost_words(generator.cpu_ns_per_request, generator.spin_share)
    lag = reading.send_lag
    if lag is not None and lag.max_ns is not None and (late := lag.percentiles["99"]) is not None:
        yield text(
            "send lag p99 {}, at most {}",
            Figure(late, duration, "/distributions/send_lag/percentiles/99"),
            Figure(lag.max_ns, duration, "/distributions/send_lag/max"),
        )
    if residual is not None:
        # Both sides come from the same stamps: what they prove is that no request was lost or counted twice.
        same = "the sum of all times in flight and the integral of requests in flight"
        yield text(f"bookkeeping: {same} differ by {{}}", Figure(residual, _residual, "/little/residual"))
    if recording.queue.limit is not None:
        yield text("at most {} requests in flight", Figure(recording.queue.limit, count, "/queue/limit"))
    yield from _connection_words(recording.connections)
    yield from _followed_words(recording.followed)
    yield from _traffic_words(recording.bytes)


def _residual(ratio: float) -> str:
    return f"{100 * ratio:+.2f} %"


def _cost_words(cpu_ns: float, spin_share: float | None) -> Text:
    cost = Figure(cpu_ns, duration, "/generator/cpu_ns_per_request")
    words = text("{} of the generator's CPU per request", cost)
    if spin_share is None:
        return words
    return text("{}, spinning {} of its time", words, Figure(spin_share, percent, "/generator/spin_share"))


def _generator_words(engine: GeneratorName) -> Text:
    name = " ".join(part for part in (engine.name, engine.version) if part)
    threads = engine.threads
    parts: list[Part | None] = [
        Name(name),
        Name(engine.driver) if engine.driver else None,
        counted(Figure(threads, as_typed, "/engine/threads"), "thread") if threads is not None else None,
        # A closed loop has no times to keep.
        f"{engine.pacing} pacing" if engine.pacing else None,
    ]
    return joined(part for part in parts if part)


def _connection_words(found: Connections) -> Iterator[Text]:
    if found.opened is None:
        return

    def number(name: str) -> Figure:
        return Figure(getattr(found, name), count, pointer("connections", name))

    words = text("{} connections opened", number("opened"))
    if found.reconnects is not None:
        words = text("{}, {} of them reconnects", words, number("reconnects"))
    if found.retried:
        words = text("{}, {} requests sent again", words, number("retried"))
    if found.requests_sent is not None:
        words = text("{}; {} requests sent in all, the warm-up included", words, number("requests_sent"))
    yield words
    if found.added is not None and found.taken_away is not None:
        moved = number("added"), number("taken_away")
        yield text("{} connections added by the stages, {} taken away after their request", *moved)
    if found.retired is not None:
        yield text("{} connections ended at the limit that was set for them", number("retired"))
    if found.by_address:
        yield text("connections by address: {}", joined(_by_address(found.by_address)))
    if found.surplus:
        yield text("{} connections brought bytes that no request had asked for", number("surplus"))


def _by_address(opened: Mapping[str, int]) -> Iterator[Text]:
    for address, connections in opened.items():
        place = pointer("connections", "by_address", address)
        yield text("{} {}", Name(address), Figure(connections, count, place))


def _followed_words(followed: Mapping[str, int]) -> Iterator[Text]:
    if followed:
        hops = (
            text("{} {}", status, Figure(hops, count, f"/followed/{status}"))
            for status, hops in followed.items()
        )
        yield text("redirects followed, beside the requests: {}", joined(hops))


def _traffic_words(found: Traffic) -> Iterator[Text]:
    if found.received is None:
        return
    words = text("{} received", Figure(found.received, byte_size, "/bytes/received"))
    if found.body_received is not None:
        bodies = Figure(found.body_received, byte_size, "/bytes/body_received")
        words = text("{}, {} of them bodies", words, bodies)
    yield words
