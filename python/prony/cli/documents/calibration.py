"""The report of `prony calibrate`: what each of Prony's parts costs, and which limits hold.

The report of `prony host`: the machine in one line, and whether it is fit for a measurement.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from prony.core.units import format_rate
from prony.machine.checks import HostCheck
from prony.model.facts import Fingerprint, GeneratorFitness
from prony.model.json_codec import Json, encode
from prony.report.document import (
    Block,
    Column,
    Command,
    Document,
    Entry,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
    headed,
)
from prony.report.forms import count, duration, percent, signed_percent
from prony.report.text import Figure, Name, Part, Quote, Text, each_of, joined, pointer, text
from prony.report.words import machine_words
from prony.study.calibration import Calibration, Change, Holding, PartFigure, PartResult, to_json

_MISSING = "—"
_FORMS = {"duration": duration, "rate": format_rate}
_SHORT = {"ok_per_s": "replies/s", "service_ok_p99": "p99"}


def calibration_document(calibration: Calibration) -> Document:
    """Return the report: a section for each part, in the order in which they were measured."""
    version = Quote(calibration.prony_version, "/prony_version")
    made = text("{}, {}, Prony {}", _day(calibration, ""), _effort(calibration, ""), version)
    machine = text("{}", Quote(calibration.machine, "/machine"))
    head = Section("", (Paragraph(machine, Tone.QUIET), Paragraph(made, Tone.QUIET)))
    placed = ((part, pointer("parts", name)) for name, part in calibration.parts.items())
    parts = (Section(part.title, tuple(_blocks(part, at))) for part, at in placed)
    return Document("Calibration", (head, *parts))


def summary(calibration: Calibration, at: str) -> tuple[Block, ...]:
    """Return the calibration in a few lines, for the report of the machine. ``at``: where the JSON has it."""
    found = [*_costs(calibration, at), *_shares(calibration, at), *_fitnesses(calibration, at)]
    lines = Notes.of(found)
    made = text("Of {}, {}:", _day(calibration, at), _effort(calibration, at))
    return (Paragraph(made, Tone.QUIET), lines)


def _costs(calibration: Calibration, at: str) -> Iterator[Text]:
    for name, part in calibration.parts.items():
        for k, change in enumerate(part.changes):
            if change.metric == "ok_per_s":
                words = change_words(change, at + pointer("parts", name, "changes", k))
                yield text("{}: {}", Name(change.name), words)


def _shares(calibration: Calibration, at: str) -> Iterator[Text]:
    for name, part in calibration.parts.items():
        for k, figure in enumerate(part.figures):
            if figure.unit == "ratio":
                value = _value(figure, "value", at + pointer("parts", name, "figures", k))
                yield text("{}: {}", Name(figure.name), value)


def _fitnesses(calibration: Calibration, at: str) -> Iterator[Text]:
    for name, part in calibration.parts.items():
        if part.fitness is not None:
            yield _fitness(part.fitness, at + pointer("parts", name, "fitness"))


def change_words(change: Change, at: str) -> Text:
    """Return a change with its interval and verdict: ``replies/s -0.4 % [-1.1 %, +0.3 %], not shown``.

    ``at``: where the JSON has the change.
    """
    short = _SHORT.get(change.metric, change.metric)
    if change.effect is None:
        return text("{} not measured", Name(short))
    return text("{} {} {}, {}", Name(short), _effect(change, at), _interval(change, at), change.verdict)


def _day(calibration: Calibration, at: str) -> Figure:
    return Figure(calibration.made_unix_s, _minute, at + pointer("made_unix_s"))


def _minute(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _effort(calibration: Calibration, at: str) -> Quote:
    return Quote(calibration.effort, at + pointer("effort"))


def _blocks(part: PartResult, at: str) -> Iterator[Block]:
    if part.changes:
        of = at + pointer("changes")
        yield _changes(part.changes, of)
        yield Notes((("", _terms(part.changes, of)),))
    if part.figures:
        yield _figures(part.figures, at + pointer("figures"))
    if part.fitness is not None:
        yield Paragraph(_fitness(part.fitness, at + pointer("fitness")))
    if remarks := list(_remarks(part, at)):
        yield Notes.of(remarks)


def _fitness(found: GeneratorFitness, at: str) -> Text:
    """Return whether the load engine is fit to measure with, and what is not."""
    why = joined(Quote(why, at + pointer("reasons", k)) for k, why in enumerate(found.reasons))
    words = text("The load engine is {} here", found.level.value)
    return text("{}: beyond its bounds are {}.", words, why) if found.reasons else text("{}.", words)


def _remarks(part: PartResult, at: str) -> Iterator[Text]:
    yield from _held(part.holdings, at + pointer("holdings"))
    for name, reason in part.missing.items():
        yield text("{}: not measured: {}", Name(name), Quote(reason, at + pointer("missing", name)))
    for k, note in enumerate(part.notes):
        yield text("{}", Quote(note, at + pointer("notes", k)))


def _held(holdings: Iterable[Holding], at: str) -> Iterator[Text]:
    """Yield how far limits hold, with the evidence; limits with the same evidence share a line."""
    alike: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for k, one in enumerate(holdings):
        alike.setdefault((one.holding, one.reason), []).append((k, one.name))
    for (holding, reason), found in alike.items():
        evidence = Quote(reason, at + pointer(found[0][0], "reason"))
        yield text("{}: {}: {}", joined(Name(name) for _, name in found), holding, evidence)


def _changes(changes: Iterable[Change], at: str) -> Table:
    titles = ("what", "of", "changed by", "interval", "verdict")
    columns = headed(*titles, words=("what", "of", "verdict"))
    return Table(columns, tuple(_change_row(one, at + pointer(k)) for k, one in enumerate(changes)))


def _change_row(change: Change, at: str) -> tuple[Entry, ...]:
    return (
        Entry.of(Name(change.name)),
        Entry(_SHORT.get(change.metric, change.metric)),
        Entry.of(_effect(change, at)),
        Entry(_interval(change, at)),
        Entry(change.verdict),
    )


def _effect(change: Change, at: str) -> Part:
    return (
        _MISSING if change.effect is None else Figure(change.effect, signed_percent, at + pointer("effect"))
    )


def _terms(changes: Sequence[Change], at: str) -> Text:
    """Return what the intervals of a table mean."""
    ranked = sorted((one.blocks, at + pointer(k, "blocks")) for k, one in enumerate(changes))
    least, most = (Figure(blocks, count, place) for blocks, place in (ranked[0], ranked[-1]))
    blocks = text("{}", least) if least.value == most.value else text("{} to {}", least, most)
    return text(
        "Each row compares the server with and without one part, in pairs from {} blocks. The intervals "
        "allow for {} comparisons at {} together (Holm).",
        *(blocks, Figure(len(changes), count, at), Name("5 %")),
    )


def _interval(change: Change, at: str) -> Text:
    if change.low is None or change.high is None:
        return text(_MISSING)
    return text("[{}, {}]", *each_of(change, at, signed_percent, "low", "high"))


def _figures(figures: Iterable[PartFigure], at: str) -> Table:
    columns = (
        *(Column("what", text=True), Column("value")),
        *(Column(text("{} interval", Name("95 %"))), Column("samples")),
    )
    return Table(columns, tuple(_figure_row(one, at + pointer(k)) for k, one in enumerate(figures)))


def _figure_row(figure: PartFigure, at: str) -> tuple[Entry, ...]:
    low, high = _value(figure, "low", at), _value(figure, "high", at)
    # What was measured once has none.
    interval = _MISSING if figure.low == figure.high else text("[{}, {}]", low, high)
    return (
        Entry.of(Name(figure.name)),
        Entry.of(_value(figure, "value", at)),
        Entry(interval),
        Entry.of(Figure(figure.count, count, at + pointer("count"))),
    )


def _value(figure: PartFigure, name: str, at: str) -> Figure:
    values = {"value": figure.value, "low": figure.low, "high": figure.high}
    form = _FORMS.get(figure.unit, percent)
    return Figure(values[name], form, at + pointer(name))


_NOT_CALIBRATED = "Not measured yet on this machine as it is now; run `prony calibrate`."
_LEVELS = {"ok": ("ok", Tone.GOOD), "warn": ("look", Tone.WARNING), "fail": ("fails", Tone.BAD)}


def _row(check: HostCheck, at: str) -> tuple[Entry, ...]:
    word, tone = _LEVELS[check.level]
    found, wanted = Quote(check.found, at + pointer("found")), Quote(check.wanted, at + pointer("wanted"))
    name = Entry.of(Name(check.name))
    return name, Entry(word, tone), Entry.of(found), Entry.of(wanted)


def host_document(
    fingerprint: Fingerprint, checks: Sequence[HostCheck], calibration: Calibration | None = None
) -> Document:
    """Return the report of a machine: each check, the commands that fix those that are not ok, and what Prony
    costs here.
    """
    titles = ("check", "state", "found", "wanted")
    rows = tuple(_row(check, pointer("preflight", k)) for k, check in enumerate(checks))
    table = Table(tuple(Column(title, text=True) for title in titles), rows)
    commands = [check.command for check in checks if check.level != "ok" and check.command]
    sections = [Section("", (Paragraph(machine_words(fingerprint), Tone.QUIET),)), Section("", (table,))]
    if commands:
        blocks: tuple[Block, ...] = tuple(Command(command) for command in commands)
        sections.append(Section("How to fix it", blocks))
    not_calibrated = (Paragraph(_NOT_CALIBRATED, Tone.QUIET),)
    costs = summary(calibration, "/calibration") if calibration else not_calibrated
    sections.append(Section("What Prony costs here", costs))
    return Document("This machine", tuple(sections))


def host_json(
    fingerprint: Fingerprint, checks: Sequence[HostCheck], calibration: Calibration | None = None
) -> Json:
    """Return the same as data."""
    return {
        "fingerprint": encode(fingerprint),
        "preflight": encode(checks),
        "calibration": to_json(calibration) if calibration else None,
    }
