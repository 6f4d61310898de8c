"""Where each subject saturates: the knee of its throughput over connections or rates."""

from collections.abc import Iterator

from prony.analysis.knee import Point, Saturation
from prony.reading.saturation import Curve
from prony.reading.study import Reading
from prony.report.document import Column, Entry, Paragraph, Section, Table, Tone
from prony.report.forms import in_metric, load_number
from prony.report.sections.grid import over_words
from prony.report.text import Figure, Name, pointer, text

_MEANING = Paragraph(
    text(
        "Knee: the smallest load with at least {} of the subject's highest throughput; in brackets "
        "a smaller load that may be the knee.",
        Name("95 %"),
    ),
    Tone.QUIET,
)


def saturations(reading: Reading) -> Iterator[Section]:
    """Yield a table for the loads that differ in one quantity only, where they make a curve."""
    for k, curve in enumerate(reading.curves):
        if curve.subjects:
            heading = f"Saturation, over {over_words(curve.groups[0])}"
            yield Section(heading, (_table(curve, pointer("curves", k)), _MEANING))


def _table(curve: Curve, at: str) -> Table:
    titles = ("knee", "throughput there", "p99 there", "highest throughput", "at")
    rows = tuple(
        _row(curve, name, found, at + pointer("subjects", name)) for name, found in curve.subjects.items()
    )
    return Table((Column("subject", text=True), *(Column(title) for title in titles)), rows)


def _row(curve: Curve, name: str, found: Saturation, at: str) -> tuple[Entry, ...]:
    knee, highest = at + pointer("knee"), at + pointer("highest")
    tail = Entry("—")
    if found.knee.latency_ns is not None:
        latency = Figure(found.knee.latency_ns, in_metric(curve.latency), knee + pointer("latency_ns"))
        tail = Entry(text("{}", latency))
    return (
        Entry(text("{}", Name(name))),
        _knee(found, at),
        Entry(text("{}", _speed(found.knee, knee))),
        tail,
        Entry(text("{}", _speed(found.highest, highest))),
        Entry(text("{}", _load(found.highest, highest))),
    )


def _speed(point: Point, at: str) -> Figure:
    return Figure(point.throughput, in_metric("ok_per_s"), at + pointer("throughput"))


def _load(point: Point, at: str) -> Figure:
    return Figure(point.load, load_number, at + pointer("load"))


def _knee(found: Saturation, at: str) -> Entry:
    knee = _load(found.knee, at + pointer("knee"))
    if not found.saturated:
        return Entry(text("not up to {}", knee), Tone.QUIET)
    if found.earliest.load < found.knee.load:
        earliest = _load(found.earliest, at + pointer("earliest"))
        return Entry(text("{} ({})", knee, earliest), Tone.STRONG)
    return Entry(text("{}", knee), Tone.STRONG)
