"""What settings do, where subjects differ in them: the best in a few lines, and tables against them."""

from collections.abc import Callable, Iterator, Sequence

from prony.core.metrics import METRICS
from prony.core.units import Scale
from prony.figures.missing import Missing
from prony.figures.statistics.compare import Dependent, Verdict
from prony.figures.summary import means
from prony.model.workload import ClosedLoop
from prony.reading.brief import Brief
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.reading.sweeps import Crossed, Factor, Level, Member, Neighbour, Sweep
from prony.report.document import (
    Block,
    Column,
    Entry,
    Footnotes,
    Judgement,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
)
from prony.report.forms import count, metric_scale
from prony.report.sections.effects import bounded_words
from prony.report.tables import figure_entry, group_at
from prony.report.text import Figure, Name, Part, Text, joined, listed, pointer, text
from prony.report.words import bound_sign, group_words, heading

_CLOSED = ("ok_per_s", "service_ok_p99", "cpu_ns_per_request", "pss_end")
_OPEN = ("response_ok_p50", "response_ok_p99", "cpu_ns_per_request", "pss_end")
_MOST_NAMES, _MOST_TIES = 4, 3
# The best setting of the first server is not cut.
_FIRST_LINES = 2


def sweep_lines(reading: StudyResults, brief: Brief) -> Iterator[Judgement]:
    """Yield for each sweep under the main load its best setting, what more would do, and on what the best
    depends.
    """
    own = [(k, one) for k, one in enumerate(reading.sweeps) if one.group == brief.place]
    for place, (k, sweep) in enumerate(own):
        at = pointer("sweeps", k)
        lines = [*_best(sweep, at), *_more(sweep, at), *_dependences(sweep)]
        for number, words in enumerate(lines):
            label, least = ("", 1) if place or number else ("settings", _FIRST_LINES)
            yield Judgement(label, Tone.PLAIN, words, least_lines=least)


# --- the best ---------------------------------------------------------------------------------------------


def _best(sweep: Sweep, at: str) -> Iterator[Text]:
    if sweep.best is None:
        return
    whose, best = Name(sweep.name), _setting(sweep, sweep.best)
    if not sweep.decided:
        blocks = Figure(sweep.blocks, count, at + pointer("blocks"))
        yield text("{}: {} has the best figure; too few repeats for a verdict (n = {})", whose, best, blocks)
    elif not sweep.ties:
        yield text("{}: {} is best{}", whose, best, _beside(sweep))
    else:
        ties: list[Part] = [_setting(sweep, name) for name in sweep.ties]
        shown = listed(ties, most=_MOST_TIES)
        beside = (_least(sweep), _beside(sweep))
        yield text("{}: {} shares the first place with {}{}{}", whose, best, shown, *beside)


def _beside(sweep: Sweep) -> Text:
    """Return which settings are in no verdict, so that they may be better."""
    if not sweep.unranked:
        return Text()
    left: list[Part] = [_setting(sweep, name) for name in sweep.unranked]
    return text("; not ranked: {}", listed(left, most=_MOST_TIES))


def _least(sweep: Sweep) -> Text:
    """Return which of the leader and its ties takes the least."""
    if sweep.least is None:
        return Text()
    if sweep.least == sweep.best:
        return text("; it takes the least of them")
    return text("; {} takes the least of them", _setting(sweep, sweep.least))


def _setting(sweep: Sweep, name: str) -> Name:
    """Return the levels of a subject: ``workers=4 threads=2``."""
    levels = zip(sweep.factors, sweep.levels(name), strict=True)
    return Name(" ".join(_level(factor, level) for factor, level in levels))


def _level(factor: Factor, level: Level) -> str:
    return f"{factor.title}={level.shown}"


def _more(sweep: Sweep, at: str) -> Iterator[Text]:
    """Yield what one level more of each setting does, and where none was measured."""
    if sweep.best is None or not sweep.decided:
        return
    best = sweep.point(sweep.best)
    more = [
        _step_words(sweep, one, at + pointer("neighbours", k, "comparison"))
        for k, one in enumerate(sweep.neighbours)
        if sweep.factors[one.factor].is_number and one.level > best.at[one.factor]
    ]
    if more:
        yield text("more does not help: {}", joined(more, by="; "))
    for k in sweep.at_edge:
        factor = sweep.factors[k]
        largest = Name(_level(factor, factor.levels[-1]))
        yield text("{} is the most that was measured: more may help", largest)


def _step_words(sweep: Sweep, one: Neighbour, at: str) -> Text:
    factor = sweep.factors[one.factor]
    said = "is equivalent" if one.comparison.verdict is Verdict.EQUIVALENT else "shows no gain"
    if one.name not in sweep.ties:
        said = "is worse"
    level = Name(_level(factor, factor.levels[one.level]))
    return text(f"{{}} {said}, {{}}", level, bounded_words(one.comparison, at))


# --- two settings -----------------------------------------------------------------------------------------


def _dependences(sweep: Sweep) -> Iterator[Text]:
    if sweep.decided:
        yield from (_dependence(sweep, one) for one in sweep.crossed)


def _dependence(sweep: Sweep, one: Crossed) -> Text:
    """Return whether what the second setting does depends on the first, and which is best where."""
    first, second = sweep.factors[one.first], sweep.factors[one.second]
    names = (Name(second.title), Name(first.title))
    match one.verdict:
        case Dependent.YES if one.best is not None and not one.everywhere:
            return text("which {} is best depends on {}: {}", *names, _best_at_each(first, second, one.best))
        case Dependent.YES:
            return text("what {} does depends on {}{}", *names, _everywhere(second, one))
        case Dependent.NO:
            return text("what {} does is the same at every {}{}", *names, _everywhere(second, one))
        case _:
            return text("whether what {} does depends on {} is not shown{}", *names, _everywhere(second, one))


def _everywhere(second: Factor, one: Crossed) -> Text:
    if not one.everywhere:
        return Text()
    levels: list[Part] = [Name(second.levels[k].shown) for k in one.everywhere]
    return text("; {} is best everywhere, or not shown to be worse", listed(levels, most=_MOST_NAMES))


def _best_at_each(first: Factor, second: Factor, best: Sequence[Sequence[int]]) -> Text:
    parts = []
    for level, places in zip(first.levels, best, strict=True):
        names = " or ".join(second.levels[k].shown for k in places)
        parts.append(text("{}: {}", Name(_level(first, level)), Name(names)))
    return joined(parts, by="; ")


# --- tables -----------------------------------------------------------------------------------------------


def sweep_sections(reading: StudyResults) -> Iterator[Section]:
    """Yield a section for each sweep: its figures against the settings, and how settings act together."""
    for k, sweep in enumerate(reading.sweeps):
        group, at = reading.groups[sweep.group], pointer("sweeps", k)
        load = group_words(group, sweep.group)
        under = text(", {}", load) if load and len(reading.measured) > 1 else Text()
        lines = [*_best(sweep, at), *_more(sweep, at), *_dependences(sweep)]
        blocks: list[Block] = [Notes.of(lines)] if lines else []
        blocks += _tables(reading, sweep, group, at)
        blocks += [block for j, one in enumerate(sweep.crossed) for block in _crossed(sweep, one, at, j)]
        yield Section(text("Settings of {}{}", Name(sweep.name), under), tuple(blocks))


def _tables(reading: StudyResults, sweep: Sweep, group: Group, at: str) -> Iterator[Block]:
    names = _CLOSED if isinstance(group.workload.loop, ClosedLoop) else _OPEN
    cells = [group.cells[point.cell] for point in sweep.points]
    known = [name for name in names if any(cell.known(name) for cell in cells)]
    scales = {name: metric_scale(name, means(cell.metrics[name] for cell in cells)) for name in known}
    notes = Footnotes()
    figures = _figures(reading, group, scales, notes)
    if len(sweep.factors) == 2:
        yield from (_matrix(sweep, name, scales[name], figures) for name in known)
    else:
        yield _list(sweep, scales, figures, at)
    if notes.notes().items:
        yield notes.notes()


_Figures = Callable[[Member, str, Tone], Entry]


def _figures(reading: StudyResults, group: Group, scales: dict[str, Scale], notes: Footnotes) -> _Figures:
    """Return what writes a metric of a point."""
    of_group = group_at(reading, group)

    def figure(point: Member, name: str, tone: Tone) -> Entry:
        cell = group.cells[point.cell]
        value, at = cell.metrics[name], of_group + pointer("cells", point.cell, "metrics", name)
        shown = figure_entry(value, scales[name], at, notes)
        if isinstance(value, Missing):
            return shown
        words = text("{}{}", bound_sign(cell, name), shown.text)
        if cell.unqualified:
            return Entry(notes.marked(words, "not qualified: its speed is not compared"), Tone.QUIET)
        return Entry(words, tone)

    return figure


def _tone(sweep: Sweep, point: Member, name: str) -> Tone:
    good = name == sweep.metric and point.name in (sweep.best, *sweep.ties)
    return Tone.STRONG if good else Tone.PLAIN


def _matrix(sweep: Sweep, name: str, scale: Scale, figures: _Figures) -> Table:
    """Return the table of a metric: a row for each level of the first setting, a column for each of the
    second.
    """
    first, second = sweep.factors
    by_place = {point.at: point for point in sweep.points}
    unit = f", {scale.unit}" if scale.unit else ""
    whose = text("{}{}; {}", Name(heading(METRICS[name].title)), Name(unit), Name(second.title))
    rows = []
    for i, level in enumerate(first.levels):
        found = [by_place.get((i, j)) for j in range(len(second.levels))]
        entries = (
            Entry("—", Tone.QUIET) if point is None else figures(point, name, _tone(sweep, point, name))
            for point in found
        )
        rows.append((Entry.of(Name(level.shown)), *entries))
    columns = (Column(text("{}", Name(level.shown)), whose) for level in second.levels)
    return Table((Column(text("{}", Name(first.title)), text=True), *columns), tuple(rows))


def _list(sweep: Sweep, scales: dict[str, Scale], figures: _Figures, at: str) -> Table:
    """Return a table with a row for each subject: its levels, then its figures."""
    titles = [Column(text("{}", Name(factor.title)), text=True) for factor in sweep.factors]
    units = {name: Name(f", {scale.unit}" if scale.unit else "") for name, scale in scales.items()}
    titles += [Column(text("{}{}", Name(METRICS[name].title), unit)) for name, unit in units.items()]
    titles += [Column("to the one before", text=True)] if sweep.steps else []
    rows = []
    for point in sweep.points:
        levels = [Entry.of(Name(level.shown)) for level in sweep.levels(point.name)]
        shown = [figures(point, name, _tone(sweep, point, name)) for name in scales]
        step = sweep.steps.get(point.at[0])
        words = bounded_words(step, at + pointer("steps", point.at[0])) if step else Text()
        rows.append((*levels, *shown, *((Entry(words),) if sweep.steps else ())))
    return Table(tuple(titles), tuple(rows))


def _crossed(sweep: Sweep, one: Crossed, at: str, place: int) -> Iterator[Block]:
    """Yield what the second setting does at each level of the first, and how much more than at its first."""
    first, second = sweep.factors[one.first], sweep.factors[one.second]
    base = first.levels[0]
    columns = [Column(text("{}", Name(first.title)), text=True)]
    for j in range(1, len(second.levels)):
        group = Name(f"{_level(second, second.levels[j])} instead of {second.levels[0].shown}")
        if one.steps:
            columns.append(Column("makes", text("{}", group), text=True))
        columns.append(Column(text("to {}", Name(_level(first, base))), text("{}", group), text=True))
    rows = []
    for i, level in enumerate(first.levels):
        entries = [Entry.of(Name(level.shown))]
        for j in range(1, len(second.levels)):
            entries += _effects(one, (i, j), at + pointer("crossed", place))
        rows.append(tuple(entries))
    yield Table(tuple(columns), tuple(rows))
    yield Paragraph(
        "makes: the difference that the step makes there. To the first row: the ratio of both ratios, with "
        "its interval within blocks; where it excludes zero, the two settings do not act by themselves.",
        Tone.QUIET,
    )


def _effects(one: Crossed, at: tuple[int, int], of: str) -> Iterator[Entry]:
    key = f"{at[0]},{at[1]}"
    if one.steps:
        step = one.steps.get(at)
        yield Entry(bounded_words(step, of + pointer("steps", key)) if step else "—")
    found = one.found.get(at)
    shown = found is not None and found.verdict in (Verdict.HIGHER, Verdict.LOWER)
    words = Text() if found is None else bounded_words(found, of + pointer("found", key))
    yield Entry(words, Tone.STRONG if shown else Tone.PLAIN)
