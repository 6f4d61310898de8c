"""The report of one load run: rates, requests by kind, latencies, a histogram, and how far to trust the
generator.
"""

from collections.abc import Iterator
from math import exp, log

from prony.analysis.distribution import Distribution, read_distribution
from prony.analysis.latency import LatencySummary, latency_summaries, nothing_measured, summarise
from prony.analysis.rates import rates, window_s
from prony.analysis.summary import flat_account
from prony.archive.limits import decode_limit
from prony.metrics import PERCENTILES
from prony.model import Json
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


def _title(recording: Json) -> str:
    spec = recording.get("spec") or {}
    target, request = spec.get("target") or {}, (spec.get("workload") or {}).get("request") or {}
    host, port = target.get("host"), target.get("port")
    if not host or not port:
        return "Load"
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    asked = " ".join(request[key] for key in ("method", "path") if request.get(key))
    return f"Load on {address}: {asked}" if asked else f"Load on {address}"


def _loop_words(recording: Json) -> str:
    loop = ((recording.get("spec") or {}).get("workload") or {}).get("loop") or {}
    connections = loop.get("connections")
    if recording["loop"] == "open":
        rate, arrivals = loop.get("rate_per_s"), loop.get("arrivals")
        asked = f", {rate:g}/s {arrivals}" if rate else ""
        how = "requests are due whatever the server does; latency counts from when each was due."
        return f"Open loop{asked}: {how}"
    count = f", {connections} connection{'s' if connections != 1 else ''}" if connections else ""
    return (
        f"Closed loop{count}: each connection waits for its reply, so the server sets the load. Latencies "
        "are those at saturation; for what users of a given load see, use --rate."
    )


def _head(recording: Json) -> Section:
    length_s = window_s(recording)
    blocks: list[Block] = [Paragraph(_loop_words(recording), Tone.QUIET)]
    if recording["window"].get("interrupted"):
        blocks.append(Paragraph("Interrupted: the figures are of the time before.", Tone.WARNING))
    if (limit := decode_limit(recording["generator"])) is not None:
        meaning = "throughput may be higher, and latency lower, than shown."
        text = f"The generator may have been the limit ({limit_words(limit, '')}): {meaning}"
        blocks.append(Paragraph(text, Tone.WARNING))
    found = rates(recording)
    ok, attempted, success = (found[name] for name in ("ok_per_s", "attempted_per_s", "success_ratio"))
    if ok is None or attempted is None or success is None or length_s is None:
        due = recording["account"]["scheduled"]
        right = f"{format_count(recording['account']['ok'])} of {format_count(due)} answered as expected"
        text = f"{right}; the window has no length, so there are no rates." if due else "Nothing was sent."
        return Section("", (*blocks, Paragraph(text, Tone.BAD)))
    shares = f"{format_rate(ok)} answered as expected in a window of {format_duration(nanoseconds(length_s))}"
    text = f"{shares}; {format_rate(attempted)} sent or due, {format_percent(success)} of them answered so"
    return Section("", (*blocks, Paragraph(text, Tone.GOOD if success == 1 else Tone.WARNING)))


# --- requests by kind -------------------------------------------------------------------------------------


def _account(recording: Json) -> Section:
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
    samples = recording.get("error_samples") or []
    texts = dict.fromkeys(f"{class_words(sample['class'])}: {sample['detail']}" for sample in samples)
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


def _latency(recording: Json) -> Section:
    notes = Footnotes()
    found = {key: summary for key, summary in latency_summaries(recording).items() if summary is not None}
    scale = duration_scale(
        v for s in found.values() for v in (s.mean_ns, s.percentiles["50"]) if v is not None
    )
    failing = recording["account"]["scheduled"] > recording["account"]["ok"]
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


def _bars(distribution: Distribution) -> Iterator[tuple[str, int, str]]:
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


def _histogram(recording: Json) -> Section | None:
    kind = "response" if recording["loop"] == "open" else "service"
    distribution = read_distribution(recording["distributions"].get(f"ok_{kind}"))
    if distribution is None or not distribution.count:
        return None
    words = f"{kind.capitalize()} time of valid replies: requests by class"
    return Section(words, (Bars(tuple(_bars(distribution))),))


# --- trust ------------------------------------------------------------------------------------------------


def _trust(recording: Json) -> Iterator[str]:
    engine, generator = recording["engine"], recording["generator"]
    threads = engine.get("threads")
    name = " ".join(str(engine[key]) for key in ("name", "version") if engine.get(key))
    plural = "s" if threads != 1 else ""
    parts = (
        name,
        engine.get("driver"),
        f"{threads} thread{plural}" if threads is not None else None,
        # A closed loop has no times to keep.
        f"{pacing} pacing" if (pacing := engine.get("pacing")) else None,
    )
    yield ", ".join(str(part) for part in parts if part)
    cpu_ns, spin = generator.get("cpu_ns_per_request"), generator.get("spin_share")
    if cpu_ns is not None:
        waited = "" if spin is None else f", spinning {format_percent(spin)} of its time"
        yield f"{format_duration(cpu_ns)} of the generator's CPU per request{waited}"
    lag = read_distribution(recording["distributions"].get("send_lag"))
    if lag is not None and lag.count and (late := summarise(lag).percentiles["99"]) is not None:
        yield f"send lag p99 {format_duration(late)}, at most {format_duration(lag.max_ns or 0)}"
    little = (recording.get("little") or {}).get("residual")
    if little is not None:
        # Both sides come from the same stamps: what they prove is that no request was lost or counted twice.
        same = "the sum of all times in flight and the integral of requests in flight"
        yield f"bookkeeping: {same} differ by {100 * little:+.2f} %"
    connections, size = recording.get("connections") or {}, recording.get("bytes") or {}
    if connections.get("opened") is not None:
        retried = connections.get("retried") or 0
        again = f", {format_count(retried)} requests sent again" if retried else ""
        reconnects = format_count(connections.get("reconnects") or 0)
        opened = format_count(connections["opened"])
        yield f"{opened} connections opened, {reconnects} of them reconnects{again}"
    if size.get("received") is not None:
        body = format_bytes(size["body_received"])
        yield f"{format_bytes(size['received'])} received, {body} of them bodies"


def load_document(recording: Json) -> Document:
    """Return the report of one load run."""
    sections = [_head(recording), _account(recording), _latency(recording)]
    if (histogram := _histogram(recording)) is not None:
        sections.append(histogram)
    sections.append(Section("Generator", (Notes(tuple(("", line) for line in _trust(recording))),)))
    return Document(_title(recording), tuple(sections))
