"""Studies as documents: all of them with what they need and take, and all that one holds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from prony.core.metrics import METRICS
from prony.core.units import seconds
from prony.figures.claim_needs import UnmetNeed
from prony.figures.claim_parts import estimand
from prony.model.plan import Cell, Claim, ClaimKind, Needs, Original, Plan
from prony.model.subject import Availability
from prony.report.document import (
    Block,
    Column,
    Document,
    Entry,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
    headed,
)
from prony.report.forms import as_typed, count, in_metric, load_number, percent
from prony.report.text import Figure, Name, Part, Quote, Text, counted, joined, pointer, text
from prony.report.words import availability_words

# More loads than this become rows of a table of figures, fewer its columns.
_MOST_COLUMNS = 4
# Beyond so many figures their notes are left to the data.
_MOST_NOTES = 60
_RATIOS = (ClaimKind.RATIO, ClaimKind.GROWS)


@dataclass(frozen=True, slots=True)
class ProfileLoad:
    """A load of a profile, in words, its generator, and how many subjects it is put on."""

    load: str
    generator: str
    threads: int
    subjects: int


@dataclass(frozen=True, slots=True)
class StudyView:
    """A study on this machine: its plan in each profile, and how long each takes, in words.

    ``here``: of each subject and each generator whether it can be measured. ``unmet``: for each profile the
    claims that it cannot test on this machine, with what they need. ``as_published``: for each profile how
    often the original measured, where that differs. ``checks``: for each profile the cells that other
    generators measure once more.
    """

    name: str
    plans: Mapping[str, Plan]
    lengths: Mapping[str, str]
    here: Mapping[str, Availability] = field(default_factory=dict)
    unmet: Mapping[str, Mapping[str, UnmetNeed]] = field(default_factory=dict)
    as_published: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, Sequence[Cell]] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """Any of the plans: what is not of a profile is the same in all."""
        return next(iter(self.plans.values()))

    @property
    def subjects(self) -> tuple[str, ...]:
        """The names of the subjects of all profiles, each once."""
        return tuple(dict.fromkeys(one.name for plan in self.plans.values() for one in plan.subjects()))

    @property
    def compared(self) -> tuple[str, ...]:
        """What the study compares: its subjects, or of a single one the generators that load it."""
        engines = (cell.engine.name for plan in self.plans.values() for cell in plan.cells)
        return self.subjects if len(self.subjects) > 1 else tuple(dict.fromkeys(engines))

    @property
    def missing(self) -> Mapping[str, Availability]:
        """What cannot be measured here."""
        return {name: one for name, one in self.here.items() if not one.is_here}

    @property
    def available(self) -> tuple[str, ...]:
        """What is compared and can be measured here."""
        return tuple(name for name in self.compared if name not in self.missing)

    def loads(self, profile: str) -> tuple[ProfileLoad, ...]:
        """Return the loads of a profile, each once, with those of its cross-checks."""
        counts: dict[tuple[str, str, int], int] = {}
        for cell in (*self.plans[profile].cells, *self.checks.get(profile, ())):
            key = (cell.workload.describe(), cell.engine.name, cell.engine.threads)
            counts[key] = counts.get(key, 0) + 1
        return tuple(ProfileLoad(*key, subjects) for key, subjects in counts.items())


# --- all of them ------------------------------------------------------------------------------------------


def studies_document(views: Sequence[StudyView]) -> Document:
    """Return a table of the studies with the time that each profile takes here, and what each repeats.

    The JSON of the same views is a list.
    """
    profiles = tuple(dict.fromkeys(name for view in views for name in view.plans))
    columns = headed("study", "subjects", "here", *profiles, words=("study", *profiles))
    placed = [(view, pointer(k)) for k, view in enumerate(views)]
    table = Table(columns, tuple(_row(view, at, profiles) for view, at in placed))
    hint = Paragraph("prony studies NAME shows one in full; prony run NAME measures it.", Tone.QUIET)
    return Document("Studies", (Section("", (table, hint)), *(_summary(view, at) for view, at in placed)))


def _row(view: StudyView, at: str, profiles: Sequence[str]) -> tuple[Entry, ...]:
    tone = Tone.GOOD if view.available == view.compared else Tone.WARNING
    return (
        Entry.of(Name(view.name)),
        Entry.of(Figure(len(view.compared), count, at + pointer("compared"))),
        Entry.of(Figure(len(view.available), count, at + pointer("available")), tone),
        *(Entry(_length(view, name, at)) for name in profiles),
    )


def _length(view: StudyView, profile: str, at: str) -> Text:
    if profile not in view.lengths:
        return text("—")
    return text("{}", Quote(view.lengths[profile], at + pointer("profiles", profile, "length")))


def _summary(view: StudyView, at: str) -> Section:
    source = Quote(view.plan.source, at + pointer("source"))
    blocks: list[Block] = [Paragraph(text("{}", source))] if view.plan.source else []
    if view.missing:
        lines = [
            text("{} {}", Name(name), Name(availability_words(one))) for name, one in view.missing.items()
        ]
        blocks.append(Notes.of(lines))
    return Section(_title(view, at), tuple(blocks))


def _title(view: StudyView, at: str) -> Text:
    return text("{}: {}", Name(view.name), Quote(view.plan.title, at + pointer("title")))


# --- one of them ------------------------------------------------------------------------------------------


def study_page(view: StudyView, at: str) -> Document:
    """Return all that a study holds: subjects, loads by profile, claims, published figures. ``at``: where the
    JSON of the studies has it.
    """
    plan = view.plan
    head = (
        (Quote(plan.question, at + pointer("question")), Tone.PLAIN),
        (Quote(plan.source, at + pointer("source")), Tone.QUIET),
    )
    notes = [text("{}", Quote(note, at + pointer("notes", k))) for k, note in enumerate(plan.notes)]
    sections = [
        Section("", tuple(Paragraph(text("{}", words), tone) for words, tone in head if words.words)),
        *(
            (Section("Otherwise than there" if plan.source else "About this study", (Notes.of(notes),)),)
            if plan.notes
            else ()
        ),
        Section("Subjects", (_here(view),)),
        *(_profile(view, name, at) for name in view.plans),
    ]
    if plan.claims:
        claims = [_claim(claim, at + pointer("claims", k)) for k, claim in enumerate(plan.claims)]
        sections.append(Section("Claims", (Notes.of(claims),)))
    sections += _figures([(one, at + pointer("originals", k)) for k, one in enumerate(plan.originals)])
    return Document(_title(view, at), tuple(sections))


def _here(view: StudyView) -> Table:
    rows = tuple(_here_row(name, view.here.get(name)) for name in dict.fromkeys((*view.subjects, *view.here)))
    return Table((Column("subject", text=True), Column("here", text=True)), rows)


def _here_row(name: str, here: Availability | None) -> tuple[Entry, ...]:
    title = Entry.of(Name(name))
    if here is None:
        return title, Entry("not known")
    return title, Entry.of(Name(availability_words(here)), Tone.PLAIN if here.is_here else Tone.WARNING)


def _profile(view: StudyView, name: str, study: str) -> Section:
    at = study + pointer("profiles", name)
    columns = (Column("load", text=True), Column("generator", text=True), Column("subjects"))
    rows = tuple(_load_row(one, at + pointer("runs", k)) for k, one in enumerate(view.loads(name)))
    blocks = counted(Figure(view.plans[name].blocks, count, at + pointer("blocks")), "block")
    length = Quote(view.lengths[name], at + pointer("length"))
    if published := view.as_published.get(name):
        blocks = text("{} (as published: {})", blocks, Quote(published, at + pointer("as_published")))
    table: Block = Table(columns, rows)
    return Section(
        text("Profile {}: {}, {}", Name(name), blocks, length), (table, *_testable(view, name, study))
    )


def _testable(view: StudyView, name: str, study: str) -> Iterator[Block]:
    """Yield how many claims the profile can test on this machine, and what the others need."""
    at = study + pointer("profiles", name)
    claims = view.plan.claims
    if not claims:
        return
    unmet = view.unmet.get(name, {})
    can = Figure(len(claims) - len(unmet), count, at + pointer("testable"))
    yield Paragraph(
        text(
            "It can test {} of {} here.",
            can,
            counted(Figure(len(claims), count, study + pointer("claims")), "claim"),
        )
    )
    if unmet:
        yield Notes.of(
            [
                text("not {}: needs {}", Name(claim), Quote(need.words, at + pointer("unmet", claim)))
                for claim, need in unmet.items()
            ]
        )


def _load_row(one: ProfileLoad, at: str) -> tuple[Entry, ...]:
    generator = text("{}", Name(one.generator))
    if one.threads > 1:
        generator = text("{}, {} threads", generator, Figure(one.threads, count, at + pointer("threads")))
    load = text("{}", Quote(one.load, at + pointer("load")))
    return (
        Entry(load),
        Entry(generator),
        Entry.of(Figure(one.subjects, count, at + pointer("subjects"))),
    )


def _claim(claim: Claim, at: str) -> Text:
    name, words = Quote(claim.name, at + pointer("name")), Quote(claim.text, at + pointer("text"))
    return text("{}: {} ({})", name, words, joined(_terms(claim, at), by="; "))


def _terms(claim: Claim, at: str) -> Iterator[Part]:
    """Yield what a claim is held against: its kind, estimand, bounds, subjects and needs, and its place."""
    yield text("{} {}", claim.kind.value, Name(claim.metric))
    yield Quote(estimand(claim), at + pointer("estimand"))
    yield from _bounds(claim, at)
    if claim.load:
        yield text("at {}", _load(claim.load, at))
    if needs := joined(_needs(claim.needs, at + pointer("needs"))):
        yield text("needs {}", needs)
    if claim.place:
        yield text("source: {}", Quote(claim.place, at + pointer("place")))


def _bounds(claim: Claim, at: str) -> Iterator[Part]:
    form: Callable[[float], str] = _times if claim.kind in _RATIOS else in_metric(claim.metric)
    for word, name, value in (("at least", "low", claim.low), ("at most", "high", claim.high)):
        if value is not None:
            yield text(f"{word} {{}}", Figure(value, form, at + pointer(name)))
    if claim.tolerance:
        yield text("tolerance {}", Figure(claim.tolerance, percent, at + pointer("tolerance")))


def _needs(needs: Needs, at: str) -> Iterator[Part]:
    for side, cpus in (("server", needs.server_cpus), ("generator", needs.generator_cpus)):
        if cpus > 1:
            yield text(f"{{}} CPUs for the {side}", Figure(cpus, as_typed, at + pointer(f"{side}_cpus")))
    if needs.connections:
        yield text("{} connections", Figure(needs.connections, count, at + pointer("connections")))
    if needs.requests:
        yield text("{} requests", Figure(needs.requests, count, at + pointer("requests")))
    for what, name, value in (
        ("window", "duration_ns", needs.duration_ns),
        ("time-out", "timeout_ns", needs.timeout_ns),
    ):
        if value:
            yield text(f"a {what} of {{}} s", Figure(value, _whole_seconds, at + pointer(name)))
    yield counted(Figure(needs.blocks, count, at + pointer("blocks")), "block")


def _whole_seconds(value_ns: float) -> str:
    return f"{seconds(value_ns):g}"


def _times(value: float) -> str:
    return f"{value:g} times"


def _load(load: Mapping[str, float], at: str) -> Text:
    """Return a load in words; a generator has one thread, and a connection one stream, unless it says
    otherwise. ``at``: what has it.

    >>> str(_load({"connections": 100.0, "threads": 4.0}, ""))
    '100 connections, 4 threads'
    """
    unsaid = {("threads", 1), ("streams", 1)}
    stated = {name: value for name, value in load.items() if (name, value) not in unsaid}
    return joined(_load_part(name, value, at + pointer("load", name)) for name, value in stated.items())


def _load_part(name: str, value: float, at: str) -> Text:
    if name == "rate":
        return text("{}/s", Figure(value, load_number, at))
    return text(f"{{}} {name}", Figure(value, count, at))


_Placed = tuple[Original, str]
"""A published figure, and where the JSON has it."""


def _figures(originals: Sequence[_Placed]) -> Iterator[Section]:
    for metric, role in dict.fromkeys((one.metric, one.role) for one, _ in originals):
        own = [(one, at) for one, at in originals if (one.metric, one.role) == (metric, role)]
        blocks: list[Block] = [_figure_table(own)]
        notes = {str(note): note for one, at in own if one.note for note in [_note(one, at)]}
        if notes and len(originals) <= _MOST_NOTES:
            blocks.append(Notes.of(list(notes.values())))
        of = text(", role {}", Name(role)) if role else ""
        yield Section(text("Published: {}{}", METRICS[metric].title, of), tuple(blocks))


def _who(one: Original) -> str:
    return one.subject if one.engine == "*" else one.engine


def _note(one: Original, at: str) -> Text:
    parts: list[Part] = [Name(_who(one)), _load(one.load, at)]
    return text("{}: {}", joined(part for part in parts if part), Quote(one.note, at + pointer("note")))


def _figure_table(figures: Sequence[_Placed]) -> Table:
    """Return figures by who and load; the shorter of both are the columns."""
    who = dict.fromkeys(_who(one) for one, _ in figures)
    loads = {str(words): words for one, at in figures for words in [_load(one.load, at)]}
    found: dict[tuple[str, str], list[Part]] = {}
    for one, at in figures:
        figure = Figure(one.value, in_metric(one.metric), at + pointer("value"))
        found.setdefault((_who(one), str(_load(one.load, at))), []).append(figure)
    shown = partial(_joined, found)
    if len(loads) <= _MOST_COLUMNS:
        columns = (Column("subject", text=True), *(Column(words) for words in loads.values()))
        rows = [[text("{}", Name(name)), *(shown(name, load) for load in loads)] for name in who]
    else:
        subjects = (Column(text("{}", Name(name.rpartition("+")[0] or name))) for name in who)
        columns = (Column("load", text=True), *subjects)
        rows = [[words, *(shown(name, load) for name in who)] for load, words in loads.items()]
    return Table(columns, tuple(tuple(map(Entry, row)) for row in rows))


def _joined(found: Mapping[tuple[str, str], Sequence[Part]], who: str, load: str) -> Text:
    return joined(found.get((who, load), ("—",)), " to ")
