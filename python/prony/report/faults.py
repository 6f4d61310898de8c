"""The report of `prony selftest diagnosis`: which planted causes are named, and what else is."""

from collections.abc import Iterator, Sequence

from prony.diagnosis import Symptom
from prony.faults import CAUSES, DOUBLES, PlanPart
from prony.faults.dominance import JudgedDouble, judge_doubles, share_of
from prony.faults.judge import MOST_OF_A_CPU, JudgedPlant, lost_causes
from prony.faults.matrix import HEALTHY, CauseRow, Macro, Matrix, Share, matrix_of
from prony.faults.sessions import SessionFacts
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import count, percent, whole_percent
from prony.report.planted_where import where_planted
from prony.report.text import EMPTY, Figure, Name, Text, counted, joined, pointer, text

__all__ = ["faults_document"]

_PARTS = (
    (PlanPart.HELD_OUT, "held_out", "Held out"),
    (PlanPart.CALIBRATION, "calibration", "Calibrated on"),
    (PlanPart.MUSEUM, "museum", "Museum: cases that users reported"),
)
_NOTES = (
    text("A fault counts where it hurt: against its twin without it, in the same blocks."),
    text(
        "Recall: of the trials of a cause, those in which it is named first; precision: of all trials in "
        "which it is named first, healthy ones too, those in which it was planted. Both with exact "
        "{} intervals.",
        Name("95 %"),
    ),
)


def faults_document(
    place: str,
    judged: Sequence[JudgedPlant],
    sessions: Sequence[SessionFacts] = (),
    outdated: Sequence[str] = (),
    rootless: Sequence[JudgedPlant] = (),
) -> Document:
    """Return what became of planted faults. ``place``: where they were read, in words; ``sessions``: when and
    where they were measured; ``outdated``: plants of which there is only evidence of an earlier form.
    ``rootless``: what an ordinary user observed of what root planted.
    """
    sections = [
        Section(heading, tuple(_part(matrix_of(judged, CAUSES, part), pointer("parts", key))))
        for part, key, heading in _PARTS
        if any(one.plant.part is part for one in judged)
    ]
    doubles = judge_doubles(DOUBLES, judged)
    if doubles:
        sections.append(Section("Two faults at once", tuple(_doubles(doubles))))
    beside = tuple(_beside_the_server(judged))
    if beside:
        sections.append(Section("Where the server has all CPUs", beside))
    if rootless:
        sections.append(Section("As an ordinary user", tuple(_rootless(rootless))))
    alarms = tuple(_alarms(judged))
    more = [Section("Healthy trials with a certain finding", alarms)] if alarms else []
    measured = tuple(_measured(sessions, outdated))
    more += [Section("Where it was measured", measured)] if measured else []
    notes = Section("Notes", (Notes(tuple(("", note) for note in _NOTES)),))
    return Document(text("Planted faults: {}", Name(place)), (*sections, *more, where_planted(), notes))


def _beside_the_server(judged: Sequence[JudgedPlant]) -> Iterator[Block]:
    """Yield how much of a CPU the generator used beside servers that have all of them, and where too much."""
    used = {place: one.generator_cpus for place, one in enumerate(judged) if one.generator_cpus is not None}
    if not used:
        return
    most = max(used, key=lambda place: used[place])
    yield Paragraph(
        text(
            "Beside servers that may use every CPU the generator used {} of one at most; {} is allowed.",
            Figure(used[most], percent, pointer("plants", most, "generator_cpus")),
            Name(f"{MOST_OF_A_CPU:.0%}".replace("%", " %")),
        )
    )
    above = [judged[place].plant.name for place, share in used.items() if share > MOST_OF_A_CPU]
    if above:
        words = text("It used more, so that these may be faults of its own: {}.", joined(map(Name, above)))
        yield Paragraph(words, Tone.WARNING)


def _rootless(judged: Sequence[JudgedPlant]) -> Iterator[Block]:
    hurt, lost = {one.plant.cause.name for one in judged if one.hurt}, lost_causes(judged)
    at = pointer("rootless")
    said = text(
        "Root planted each cause once, and an ordinary user observed: {} of {} are named in most trials.",
        Figure(len(hurt) - len(lost), count, at + pointer("named")),
        counted(Figure(len(hurt), count, at + pointer("causes")), "cause"),
    )
    yield Paragraph(said)
    if lost:
        yield Paragraph(text("Lost: {}.", joined(Name(one) for one in lost)), Tone.WARNING)


def _measured(sessions: Sequence[SessionFacts], outdated: Sequence[str]) -> Iterator[Block]:
    """Yield the machines, with how many sessions each had; and what is to be measured again."""
    by_machine: dict[str, list[SessionFacts]] = {}
    for one in sessions:
        by_machine.setdefault(one.machine_key, []).append(one)
    places = {id(one): place for place, one in enumerate(sessions)}
    rows = [
        text(
            "{} of Prony {} on {}",
            counted(_sessions(len(same), places[id(same[0])]), "session"),
            Name(", ".join(dict.fromkeys(one.prony for one in same))),
            Name(_machine(same[0])),
        )
        for same in by_machine.values()
    ]
    if rows:
        yield Notes(tuple(("", one) for one in rows))
    if outdated:
        names = joined(Name(one) for one in outdated)
        yield Paragraph(text("Left out, for what is planted has changed since: {}.", names), Tone.WARNING)


def _sessions(number: int, place: int) -> Figure:
    return Figure(number, count, pointer("sessions", place, "of_machine"))


def _machine(one: SessionFacts) -> str:
    return "; ".join(f"{name}: {fact}" for name, fact in one.machine.items()) or "an unknown machine"


def _part(found: Matrix, at: str) -> Iterator[Block]:
    yield Paragraph(_verdict(found, at), Tone.BAD if found.false_certain.count else Tone.STRONG)
    columns = ("cause", "rule", "faults that hurt", "recall", "precision", "also named")
    rows = (_row(one, at + pointer("causes", k)) for k, one in enumerate(found.rows))
    shown = tuple(Column(name, text=name in ("cause", "rule", "also named")) for name in columns)
    yield Table(shown, tuple(rows))


def _doubles(doubles: Sequence[JudgedDouble]) -> Iterator[Block]:
    at = pointer("doubles")
    yield Paragraph(
        text(
            "The fault that hurts more is named first in {} trials.",
            _share(share_of(doubles), at + pointer("right")),
        )
    )
    names = ("faults", "better without the first", "without the second", "named first")
    rows = (_double(one, at + pointer("each", k)) for k, one in enumerate(doubles))
    yield Table(tuple(Column(name, text=name == "faults") for name in names), tuple(rows))


def _double(one: JudgedDouble, at: str) -> tuple[Entry, ...]:
    right = EMPTY if one.right is None else _share(one.right, at + pointer("right"))
    return (
        Entry(text("{}", Name(one.double.name))),
        Entry(text("{}", Figure(one.first, _times, at + pointer("first")))),
        Entry(text("{}", Figure(one.second, _times, at + pointer("second")))),
        Entry(right or text("neither hurts more")),
    )


def _times(value: float) -> str:
    return f"{value:.2f} times"


def _verdict(found: Matrix, at: str) -> Text:
    healthy = found.false_certain
    alarms = text(
        "of {} {} have a certain finding, at most {}",
        counted(Figure(healthy.total, count, at + pointer("false_certain", "total")), "healthy trial"),
        Figure(healthy.count, count, at + pointer("false_certain", "count")),
        Figure(healthy.interval[1], percent, at + pointer("false_certain", "high")),
    )
    recall, precision = (
        _macro(one, at + pointer(name))
        for one, name in ((found.recall, "recall"), (found.precision, "precision"))
    )
    disturbed = Figure(found.disturbed, count, at + pointer("disturbed"))
    return text(
        "Macro recall {}, macro precision {}; {}. {} did not count.",
        recall,
        precision,
        alarms,
        counted(disturbed, "disturbed trial"),
    )


def _macro(one: Macro, at: str) -> Text:
    if one.value is None:
        return text("—")
    value = Figure(one.value, whole_percent, at + pointer("value"))
    if one.low is None or one.high is None:
        return text("{}", value)
    low = Figure(one.low, whole_percent, at + pointer("low"))
    return text("{} ({} to {})", value, low, Figure(one.high, whole_percent, at + pointer("high")))


def _row(one: CauseRow, at: str) -> tuple[Entry, ...]:
    hurt = text(
        "{} of {}",
        Figure(one.plants, count, at + pointer("plants")),
        Figure(one.tried, count, at + pointer("tried")),
    )
    missed = one.recall.total and one.recall.count < one.recall.total
    return (
        Entry(text("{}", Name(one.cause.title))),
        Entry(text("{}", Name(one.cause.rule))),
        Entry(hurt),
        Entry(_share(one.recall, at + pointer("recall")), Tone.WARNING if missed else Tone.PLAIN),
        Entry(_share(one.precision, at + pointer("precision"))),
        Entry(_others(one, at)),
    )


def _share(one: Share, at: str) -> Text:
    if not one.total:
        return text("—")
    return text(
        "{} of {} ({} to {})",
        Figure(one.count, count, at + pointer("count")),
        Figure(one.total, count, at + pointer("total")),
        Figure(one.interval[0], whole_percent, at + pointer("low")),
        Figure(one.interval[1], whole_percent, at + pointer("high")),
    )


def _others(one: CauseRow, at: str) -> Text:
    """Return what was named instead of the cause, and how often."""
    others = [name for name in one.named if name != one.cause.name]
    if not others:
        return EMPTY
    return joined(
        text("{} {}", Figure(one.named[name], count, at + pointer("named", name)), Name(_class(name)))
        for name in others
    )


def _class(name: str) -> str:
    return "nothing" if name == HEALTHY else name


def _alarms(judged: Sequence[JudgedPlant]) -> Iterator[Block]:
    found = [
        text(
            "{}: {}", Name(one.plant.name), joined(Name(kind.value) for kind in dict.fromkeys(_certain(one)))
        )
        for one in judged
        if one.false_alarms
    ]
    if found:
        yield Notes(tuple(("", one) for one in found))


def _certain(one: JudgedPlant) -> Iterator[Symptom]:
    for trial in one.false_alarms:
        yield from trial.certain
