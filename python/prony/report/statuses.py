"""The section of a load's report on the statuses of its replies: requests, bytes and latencies of each."""

from prony.analysis.latency import LatencySummary, LoadStatus
from prony.reading.load import LoadReading
from prony.report.document import Column, Entry, Footnotes, Paragraph, Section, Table, Tone
from prony.report.forms import byte_size, count, in_scale, percent
from prony.report.text import Figure, Name, Text, pointer, text
from prony.units import Scale, duration_scale

_PERCENTILES = ("50", "99")


def statuses_section(reading: LoadReading) -> Section:
    """Return the statuses; the times are those of the loop, of all complete replies."""
    notes, kind = Footnotes(), "response" if reading.recording.is_open else "service"
    times = [one.latency["all"][f"{kind}_ns"] for one in reading.statuses]
    medians = (one.percentiles["50"] for one in times if one is not None)
    scale = duration_scale(value for value in medians if value is not None)
    shown = (f"{name} {scale.unit}" for name in ("p50", "p99", "max"))
    titles = ("requests", "share", "errors", "bodies", *shown)
    columns = (Column("status", text=True), *(Column(title) for title in titles))
    rows = tuple(
        (*_counts(one, at), *_times(own, at + pointer("latency", "all", f"{kind}_ns"), scale, notes))
        for k, (one, own) in enumerate(zip(reading.statuses, times, strict=True))
        for at in [pointer("statuses", k)]
    )
    said = f"All statuses together are the whole. Latencies are {kind} times of complete replies."
    return Section("Statuses", (Paragraph(said, Tone.QUIET), Table(columns, rows), notes.notes()))


def _counts(one: LoadStatus, at: str) -> tuple[Entry, ...]:
    share: Text | str = "—"
    if one.share is not None:
        share = text("{}", Figure(one.share, percent, at + pointer("share")))
    errors = text("{}", Figure(one.errors, count, at + pointer("errors")))
    return (
        Entry(text("{}", Name(_NAMES.get(one.status, one.status)))),
        Entry(text("{}", Figure(one.requests, count, at + pointer("requests")))),
        Entry(share),
        Entry(errors, Tone.BAD if one.errors else Tone.PLAIN),
        Entry(text("{}", Figure(one.body_received, byte_size, at + pointer("body_received")))),
    )


_NAMES = {"none": "no whole reply", "others": "other statuses"}


_FEW = text("fewer than {} requests lie above it", Name("10"))
_NO_REPLY = "there was no whole reply"


def _times(found: LatencySummary | None, at: str, scale: Scale, notes: Footnotes) -> tuple[Entry, ...]:
    """Return p50, p99 and the longest, or why there is none."""
    if found is None:
        return (Entry(notes.marked("—", _NO_REPLY), Tone.QUIET),) * (len(_PERCENTILES) + 1)
    values = [(found.percentiles[name], pointer("percentiles", name)) for name in _PERCENTILES]
    values.append((found.max_ns, pointer("max")))
    return tuple(
        Entry(notes.marked("—", _FEW), Tone.QUIET)
        if value is None
        else Entry(text("{}", Figure(value, in_scale(scale), at + place)))
        for value, place in values
    )
