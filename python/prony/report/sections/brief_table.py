"""The one table of the short report: each subject's figure, its ratio to the best, and what it costs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from prony.core.metrics import METRICS
from prony.core.units import Scale
from prony.figures.missing import Missing
from prony.figures.summary import Estimate, means
from prony.reading.brief import Brief, Otherwise, Ranked, Ratio
from prony.report.document import Block, Column, Entry, Paragraph, Span, Table, Tone
from prony.report.forms import count, digits, in_scale, mean_alone, metric_scale, of_percent
from prony.report.text import EMPTY, Figure, Name, Text, counted, each_of, joined, pointer, text
from prony.report.words import bound_sign

_MOST_ROWS = 12
_TITLES = {
    "ok_per_s": "ok/s",
    "generator_ok_per_cpu_s": "ok/CPU-s",
    "response_ok_p99": "p99",
    "service_ok_p99": "p99",
    "response_ok_p95": "p95",
    "response_ok_p50": "p50",
    "response_ok_mean": "mean",
    "service_ok_mean": "mean",
    "cpu_ns_per_request": "CPU",
    "generator_cpu_ns_per_request": "CPU",
}
# Their titles have the unit.
_RATES = ("ok_per_s", "generator_ok_per_cpu_s")


def brief_table(brief: Brief) -> Iterator[Block]:
    """Yield the table of a short answer and what its columns are."""
    rows = brief.rows[:_MOST_ROWS]
    if not has_table(brief):
        yield Paragraph("No trial counts.", Tone.BAD)
        return
    makers, app = list(_columns(brief, rows)), shared_app(brief)
    whose = "generator" if brief.group.of_generators else "subject"
    table = Table(
        (Column(whose, text=True), *(column for column, _ in makers)),
        tuple((_name(row, app), *(make(row, _at(k)) for _, make in makers)) for k, row in enumerate(rows)),
        in_one=True,
        spans=tuple(_span(brief, row, _at(k)) for k, row in enumerate(rows)),
    )
    yield table
    if len(brief.rows) > len(rows):
        # It counts what is not shown: no value of the report.
        more = Name(str(len(brief.rows) - len(rows)))
        yield Paragraph(text("{} more subjects: in the full report", more), Tone.QUIET)
    yield Paragraph(_legend(brief), Tone.QUIET)


def has_table(brief: Brief) -> bool:
    """Return whether anything was answered that a table can show."""
    return any(row.cell.has_figures for row in brief.rows)


def _at(place: int) -> str:
    return pointer("answer", "subjects", place)


def _to(brief: Brief) -> str:
    """Return what ratios are to: nobody leads without a verdict over several sessions."""
    found = brief.group.answer
    return "to the first" if found.by_session and not found.decided else "to the best"


Maker = Callable[[Ranked, str], Entry]


def _columns(brief: Brief, rows: Sequence[Ranked]) -> Iterator[tuple[Column, Maker]]:
    measures = brief.measures
    yield _measured(measures.primary, "primary", rows, mean_alone)
    if any(row.ratio for row in rows):
        yield Column(_to(brief)), _ratio
    if measures.latency and means(row.cell.seen(measures.latency) for row in rows):
        yield _measured(measures.latency, "latency", rows, mean_alone)
    yield Column("err %"), _errors
    if _shows_cpu(brief):
        yield _measured(measures.cpu, "cpu", rows, mean_alone)
    if brief.beside:
        yield from _beside(brief, brief.beside, rows)
    yield _measured(measures.memory, "memory", rows, mean_alone)
    if any(row.letters for row in rows):
        yield Column("tie", text=True), _letters
    if any(row.cell.void for row in rows):
        yield Column("void", text=True), _void


def _shows_cpu(brief: Brief) -> bool:
    """Return whether there is room for CPU: not where the mean separates those that CPU does not."""
    return brief.beside is None or brief.beside.metric == brief.measures.cpu


def _beside(brief: Brief, found: Otherwise, rows: Iterable[Ranked]) -> Iterator[tuple[Column, Maker]]:
    """Yield the letters of the measure that separates those that share the first place, after its figures."""
    if not _shows_cpu(brief):
        column, make = _measured(found.metric, found.metric, rows, mean_alone)
        yield column, lambda row, _: make(row, pointer("groups", brief.place, "cells", row.place, "metrics"))
    yield Column(f"{_TITLES[found.metric]} tie", text=True), partial(_letters_beside, found.letters)


Form = Callable[[Estimate, Scale, str], Text]


def _measured(metric: str, place: str, rows: Iterable[Ranked], form: Form) -> tuple[Column, Maker]:
    scale = metric_scale(metric, means(row.cell.seen(metric) for row in rows))
    title = _TITLES.get(metric, "")
    unit = "" if metric in _RATES else scale.unit
    words = Column(" ".join(part for part in (title, unit) if part))
    return words, partial(_figure, metric=metric, place=place, scale=scale, form=form)


def _figure(row: Ranked, at: str, *, metric: str, place: str, scale: Scale, form: Form) -> Entry:  # noqa: PLR0913
    value = row.cell.seen(metric)
    if not isinstance(value, Estimate):
        return Entry("—", Tone.QUIET)
    is_void = isinstance(row.value(metric), Missing)
    of = at + (pointer("void", "metrics", metric) if is_void else pointer(place))
    shown = text("{}{}", bound_sign(row.cell, metric), form(value, scale, of))
    quiet = Tone.QUIET if row.cell.unqualified else Tone.PLAIN
    return Entry(text("({})", shown) if is_void else shown, quiet)


def shared_app(brief: Brief) -> str:
    """Return the end that the names of all subjects have, the app that they run; empty without one."""
    apps = {row.cell.name.rpartition("+")[2] if "+" in row.cell.name else "" for row in brief.rows}
    if len(apps) != 1 or apps == {""} or brief.group.of_generators:
        return ""
    return f"+{apps.pop()}"


def _name(row: Ranked, app: str) -> Entry:
    tone = Tone.STRONG if row.best and not row.open else Tone.PLAIN
    return Entry.of(Name(row.cell.name.removesuffix(app)), tone)


def _letters(row: Ranked, _: str) -> Entry:
    return Entry("?" if row.open and row.letters else row.letters)


def _void(row: Ranked, at: str) -> Entry:
    """Return of how many trials the figures in brackets are."""
    void = row.cell.void
    return Entry(text("n = {}", Figure(void.trials, count, at + pointer("void", "trials"))) if void else "")


def _letters_beside(letters: Mapping[str, str], row: Ranked, _: str) -> Entry:
    return Entry(letters.get(row.cell.name, ""))


def _errors(row: Ranked, at: str) -> Entry:
    ratio = row.cell.error_ratio
    if ratio is None:
        place, scale = "error_ratio", metric_scale("error_ratio", ())
        return _figure(row, at, metric=place, place=place, scale=scale, form=_percent)
    tone = Tone.WARNING if row.cell.unqualified else Tone.PLAIN
    return Entry.of(Figure(ratio, of_percent, at + pointer("error_ratio")), tone)


def _percent(value: Estimate, _: Scale, at: str) -> Text:
    return text("{}", Figure(value.mean, of_percent, at + pointer("mean")))


def _ratio(row: Ranked, at: str) -> Entry:
    found, of = row.ratio, at + pointer("ratio")
    if found is None:
        is_first = row.best or row.first
        return Entry("—" if row.cell.unqualified or not is_first else EMPTY, Tone.QUIET)
    value = Figure(found.value, _times(found), of + pointer("value"))
    if found.ends is None:
        return Entry.of(value)
    low, high = (Figure(end, _times(found), of + pointer(name)) for name, end in found.ends)
    return Entry(text("{} ({}–{})", value, low, high))


def _times(found: Ratio) -> Callable[[float], str]:
    """Return how a ratio is written: in hundredths, and less exactly where its interval is wide."""
    widest = max(abs(bound) for bound in (found.value, *(end for _, end in found.ends or ())))
    return digits(2 if widest < 10 else 1 if widest < 100 else 0)


def _span(brief: Brief, row: Ranked, at: str) -> Span | None:
    metric = brief.measures.primary
    value = row.value(metric)
    if not isinstance(value, Estimate) or value.low is None or value.high is None or row.cell.unqualified:
        return None
    form, of = in_scale(metric_scale(metric, [value.mean])), at + pointer("primary")
    return Span(*each_of(value, of, form, "mean", "low", "high"))


def _legend(brief: Brief) -> Text:
    """Return what the columns are, without what every reader knows."""
    measures = brief.measures
    app = shared_app(brief)
    parts = [text("all: {}", Name(app))] if len(app) > 1 else []
    if brief.group.of_generators:
        parts.append(text("after a name: threads or processes × connections"))
    if any(row.ratio for row in brief.rows):
        parts.append(text("{}: geometric means, {}", _to(brief), _spread(brief)))
    if any(row.letters for row in brief.rows):
        parts.append(text("tie: same letter, not separated"))
    if any(row.cell.at_least for row in brief.rows):
        parts.append(text("≥ ≤ ?: bounds" if any(row.open for row in brief.rows) else "≥ ≤: bounds"))
    if any(row.cell.void for row in brief.rows):
        parts.append(text("(…): void, of n trials, in no verdict"))
    if _shows_cpu(brief):
        parts.append(text("CPU: a request"))
    parts.append(text("{}: {}", _memory_unit(brief), Name(METRICS[measures.memory].title)))
    if any(trial.of_rounds for row in brief.rows for trial in row.cell.counted):
        parts.append(text("blocks of rounds alone have no latency, err and {}", _memory_unit(brief)))
    return text("{}.", joined(parts, by="; "))


def _spread(brief: Brief) -> Text:
    """Return what the ends beside a ratio are."""
    found = brief.group.answer
    if not found.by_session:
        return text("{} interval within one session", Name("95 %"))
    sessions = counted(Figure(found.blocks, count, pointer("answer", "blocks")), "session")
    if not found.decided:
        return text("range of {}", sessions)
    return text("{} interval over {}", Name("95 %"), sessions)


def _memory_unit(brief: Brief) -> str:
    metric = brief.measures.memory
    return metric_scale(metric, means(row.cell.seen(metric) for row in brief.rows)).unit
