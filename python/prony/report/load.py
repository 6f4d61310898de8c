"""The report of one load run: rates, requests by kind, latencies, a histogram, and how far to trust the
generator.
"""

from collections.abc import Iterator
from math import exp, log

from prony.analysis.distribution import Times, read_distribution
from prony.analysis.latency import LatencySummary, latency_summaries, nothing_measured, summarise
from prony.analysis.rates import rates_of, window_s
from prony.analysis.summary import flat_account
from prony.archive.limits import decode_limit
from prony.metrics import PERCENTILES
from prony.model import ClosedLoop, OpenLoop
from prony.model.recording import Connections, GeneratorName, Recording, Traffic
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
from prony.report.findings import limit_words
from prony.report.words import class_words
from prony.units import (
    Scale,
    duration_scale,
    format_bytes,
    format_count,
    format_duration,
    format_in,
    format_percent,
    format_rate,
    nanoseconds,
)

__all__ = ["load_document"]

_SHOWN = ("p50", "p90", "p95", "p99", "p999", "p9999")
_MOST_BARS = 12
_MOST_SAMPLES = 3


def _title(recording: Recording) -> str:
    spec = recording.spec
    if spec is None or spec.target is None or not spec.target.port:
        return "Load"
    host, port = spec.target.host, spec.target.port
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    request = spec.workload and spec.workload.request
    return f"Load on {address}: {request.method} {request.path}" if request else f"Load on {address}"


def _loop_words(recording: Recording) -> str:
    match recording.spec and recording.spec.workload and recording.spec.workload.loop:
        case OpenLoop(rate_per_s, arrivals):
            asked = f", {rate_per_s:g}/s {arrivals}"
        case ClosedLoop(connections):
            asked = f", {connections} connection{'s' if connections != 1 else ''}"
        case _:
            asked = ""
    if recording.is_open:
        how = "requests are due whatever the server does; latency counts from when each was due."
        return f"Open loop{asked}: {how}"
    return (
        f"Closed loop{asked}: each connection waits for its reply, so the server sets the load. Latencies "
        "are those at saturation; for what users of a given load see, use --rate."
    )


def _head(recording: Recording) -> Section:
    length_s = window_s(recording)
    blocks: list[Block] = [Paragraph(_loop_words(recording), Tone.QUIET)]
    if recording.window.interrupted:
        blocks.append(Paragraph("Interrupted: the figures are of the time before.", Tone.WARNING))
    if (limit := decode_limit(recording.generator)) is not None:
        meaning = "throughput may be higher, and latency lower, than shown."
        text = f"The generator may have been the limit ({limit_words(limit, '')}): {meaning}"
        blocks.append(Paragraph(text, Tone.WARNING))
    found = rates_of(recording)
    ok, attempted, success = (found[name] for name in ("ok_per_s", "attempted_per_s", "success_ratio"))
    if ok is None or attempted is None or success is None or length_s is None:
        due = recording.account.scheduled
        right = f"{format_count(recording.account.ok)} of {format_count(due)} answered as expected"
        text = f"{right}; the window has no length, so there are no rates." if due else "Nothing was sent."
        return Section("", (*blocks, Paragraph(text, Tone.BAD)))
    shares = f"{format_rate(ok)} answered as expected in a window of {format_duration(nanoseconds(length_s))}"
    text = f"{shares}; {format_rate(attempted)} sent or due, {format_percent(success)} of them answered so"
    return Section("", (*blocks, Paragraph(text, Tone.GOOD if success == 1 else Tone.WARNING)))


# --- requests by kind -------------------------------------------------------------------------------------


def _account(recording: Recording) -> Section:
    account = flat_account(recording)
    scheduled = account.pop("scheduled", 0)
    kinds = sorted(account.items(), key=lambda kind: (kind[0] != "ok", -kind[1], kind[0]))
    rows = tuple(
        (
            Entry(class_words(name), Tone.PLAIN if name == "ok" else Tone.BAD),
            Entry(format_count(count)),
            Entry(format_percent(count / scheduled) if scheduled else "—"),
        )
        for name, count in kinds
    )
    blocks: list[Block] = [Table((Column("kind", text=True), Column("requests"), Column("share")), rows)]
    samples = recording.error_samples
    texts = dict.fromkeys(f"{class_words(sample.kind)}: {sample.detail}" for sample in samples)
    if texts:
        blocks.append(Notes(tuple(("  |", text) for text in list(texts)[:_MOST_SAMPLES])))
    return Section("Requests", tuple(blocks))


# --- latency ----------------------------------------------------------------------------------------------


def _missing(summary: LatencySummary, percentile: float) -> str:
    if summary.infinite_from is not None and percentile > summary.infinite_from:
        return f"requests failed above p{summary.infinite_from:.4g}, which counts as infinite"
    return "fewer than 10 requests lie above it"


def _value(
    summary: LatencySummary, value: float | None, percentile: float, scale: Scale, notes: Footnotes
) -> Entry:
    if value is None:
        return Entry(f"—{notes.mark(_missing(summary, percentile))}", Tone.QUIET)
    bound = summary.censored_from is not None and percentile > summary.censored_from
    return Entry(f"≥ {format_in(value, scale)}" if bound else format_in(value, scale))


def _row(
    label: str, population: str, summary: LatencySummary, scale: Scale, notes: Footnotes
) -> tuple[Entry, ...]:
    if summary.min_ns is None:
        dash = Entry(f"—{notes.mark(nothing_measured(summary, population))}", Tone.QUIET)
        return Entry(label), Entry(format_count(summary.count)), *[dash] * (len(_SHOWN) + 3)
    values = {PERCENTILES[name]: summary.percentiles[PERCENTILES[name]] for name in _SHOWN}
    return (
        Entry(label),
        Entry(format_count(summary.count)),
        Entry(format_in(summary.min_ns, scale)),
        # A mean holds the largest values too: it is a lower bound, or infinite, as soon as any is.
        _value(summary, summary.mean_ns, 100, scale, notes),
        *(_value(summary, value, float(name), scale, notes) for name, value in values.items()),
        _value(summary, summary.max_ns, 100, scale, notes),
    )


def _latency(recording: Recording) -> Section:
    notes = Footnotes()
    found = {key: summary for key, summary in latency_summaries(recording).items() if summary is not None}
    scale = duration_scale(
        v for s in found.values() for v in (s.mean_ns, s.percentiles["50"]) if v is not None
    )
    failing = recording.account.scheduled > recording.account.ok
    words = {"ok": "valid replies", "all": "all requests"}
    rows = tuple(
        _row(f"{kind} time, {words[population]}", population, found[population, kind], scale, notes)
        for kind in ("response", "service")
        for population in (("ok", "all") if failing else ("ok",))
        if (population, kind) in found
    )
    titles = ("min", "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max")
    columns = (Column(scale.unit, text=True), Column("n"), *(Column(title) for title in titles))
    return Section("Latency", (Table(columns, rows), notes.notes()))


def _edges(low: int, high: int) -> list[int]:
    """Return at most 13 bounds from below ``low`` to above ``high``, evenly spaced by ratio: latencies span
    decades.
    """
    low, high = max(low, 1), max(high, 2)
    steps = _MOST_BARS if high > 1.2 * low else 1
    ratio = log((high + 1) / low) / steps
    return [round(low * exp(ratio * step)) for step in range(steps)] + [high + 1]


def _bars(distribution: Times) -> Iterator[tuple[str, int, str]]:
    if distribution.histogram is None or distribution.min_ns is None or distribution.max_ns is None:
        return
    edges = _edges(distribution.min_ns, distribution.max_ns)
    scale = duration_scale([edges[len(edges) // 2]])
    below = 0
    for index, edge in enumerate(edges[1:]):
        last = index == len(edges) - 2
        upto = distribution.count if last else distribution.histogram.count_below(edge)
        label = f"{format_in(edges[index], scale)} to {format_in(edge, scale)} {scale.unit}"
        yield label, upto - below, ""
        below = upto


def _histogram(recording: Recording) -> Section | None:
    times = recording.distributions
    kind = "response" if recording.is_open else "service"
    distribution = read_distribution(times.ok_response if recording.is_open else times.ok_service)
    if distribution is None or not distribution.count:
        return None
    words = f"{kind.capitalize()} time of valid replies: requests by class"
    return Section(words, (Bars(tuple(_bars(distribution))),))


# --- trust ------------------------------------------------------------------------------------------------


def _trust(recording: Recording) -> Iterator[str]:
    generator, residual = recording.generator, recording.little.residual
    yield _generator_words(recording.engine)
    if generator.cpu_ns_per_request is not None:
        spin = generator.spin_share
        waited = "" if spin is None else f", spinning {format_percent(spin)} of its time"
        yield f"{format_duration(generator.cpu_ns_per_request)} of the generator's CPU per request{waited}"
    lag = read_distribution(recording.distributions.send_lag)
    if lag is not None and lag.count and (late := summarise(lag).percentiles["99"]) is not None:
        yield f"send lag p99 {format_duration(late)}, at most {format_duration(lag.max_ns or 0)}"
    if residual is not None:
        # Both sides come from the same stamps: what they prove is that no request was lost or counted twice.
        same = "the sum of all times in flight and the integral of requests in flight"
        yield f"bookkeeping: {same} differ by {100 * residual:+.2f} %"
    yield from _connection_words(recording.connections)
    yield from _traffic_words(recording.bytes)


def _generator_words(engine: GeneratorName) -> str:
    plural = "s" if engine.threads != 1 else ""
    parts = (
        " ".join(part for part in (engine.name, engine.version) if part),
        engine.driver,
        f"{engine.threads} thread{plural}" if engine.threads is not None else None,
        # A closed loop has no times to keep.
        f"{engine.pacing} pacing" if engine.pacing else None,
    )
    return ", ".join(part for part in parts if part)


def _connection_words(found: Connections) -> Iterator[str]:
    if found.opened is None:
        return
    again = f", {format_count(found.retried)} requests sent again" if found.retried else ""
    reconnects = format_count(found.reconnects or 0)
    yield f"{format_count(found.opened)} connections opened, {reconnects} of them reconnects{again}"


def _traffic_words(found: Traffic) -> Iterator[str]:
    if found.received is not None:
        body = format_bytes(found.body_received or 0)
        yield f"{format_bytes(found.received)} received, {body} of them bodies"


def load_document(recording: Recording) -> Document:
    """Return the report of one load run."""
    sections = [_head(recording), _account(recording), _latency(recording)]
    if (histogram := _histogram(recording)) is not None:
        sections.append(histogram)
    sections.append(Section("Generator", (Notes(tuple(("", line) for line in _trust(recording))),)))
    return Document(_title(recording), tuple(sections))
