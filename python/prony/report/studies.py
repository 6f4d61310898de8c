"""Studies as documents: all of them with what they need and take, and all that one holds.

Must not know how studies are read or run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prony.metrics import METRICS, format_metric
from prony.model import Claim, Original, Plan
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
)

__all__ = ["StudyView", "studies_document", "study_page"]

# More loads than this become rows of a table of figures, fewer its columns.
_MOST_COLUMNS = 4
# Beyond so many figures their notes are left to the data.
_MOST_NOTES = 60


@dataclass(frozen=True, slots=True)
class StudyView:
    """A study on this machine: its plan in each profile, and how long each takes, in words.

    ``here``: of each subject and each generator whether it can be measured, as `catalog.status` tells it.
    """

    name: str
    plans: Mapping[str, Plan]
    lengths: Mapping[str, str]
    here: Mapping[str, str] = field(default_factory=dict)

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
    def missing(self) -> Mapping[str, str]:
        """What cannot be measured here, with the reason."""
        return {name: reason for name, reason in self.here.items() if reason.startswith("needs")}


# --- all of them ------------------------------------------------------------------------------------------


def studies_document(views: Sequence[StudyView]) -> Document:
    """Return a table of the studies with the time that each profile takes here, and what each repeats."""
    profiles = tuple(dict.fromkeys(name for view in views for name in view.plans))
    columns = (
        Column("study", text=True),
        Column("subjects"),
        Column("here"),
        *(Column(name, text=True) for name in profiles),
    )
    table = Table(columns, tuple(_row(view, profiles) for view in views))
    hint = Paragraph("prony studies NAME shows one in full; prony run NAME measures it.", Tone.QUIET)
    return Document("Studies", (Section("", (table, hint)), *(_summary(view) for view in views)))


def _row(view: StudyView, profiles: Sequence[str]) -> tuple[Entry, ...]:
    there = sum(name not in view.missing for name in view.compared)
    tone = Tone.GOOD if there == len(view.compared) else Tone.WARNING
    lengths = (Entry(view.lengths.get(name, "—")) for name in profiles)
    return Entry(view.name), Entry(str(len(view.compared))), Entry(str(there), tone), *lengths


def _summary(view: StudyView) -> Section:
    blocks: list[Block] = [Paragraph(text) for text in (view.plan.source,) if text]
    if view.missing:
        blocks.append(Notes(tuple(("", f"{name} {reason}") for name, reason in view.missing.items())))
    return Section(f"{view.name}: {view.plan.title}", tuple(blocks))


# --- one of them ------------------------------------------------------------------------------------------


def study_page(view: StudyView) -> Document:
    """Return all that a study holds: subjects, loads by profile, claims, published figures."""
    plan = view.plan
    head = [Paragraph(plan.question), Paragraph(plan.source, Tone.QUIET)]
    sections = [
        Section("", tuple(block for block in head if block.text)),
        *((Section("Otherwise than there", (_lines(plan.notes),)),) if plan.notes else ()),
        Section("Subjects", (_here(view),)),
        *(_profile(view, name) for name in view.plans),
    ]
    if plan.claims:
        claims = [f"{claim.name}: {claim.text} ({claim_words(claim)})" for claim in plan.claims]
        sections.append(Section("Claims", (_lines(claims),)))
    sections += _figures(plan.originals)
    return Document(f"{view.name}: {plan.title}", tuple(sections))


def _lines(texts: Sequence[str]) -> Notes:
    return Notes(tuple(("", text) for text in texts))


def _here(view: StudyView) -> Table:
    names = dict.fromkeys((*view.subjects, *view.here))
    rows = tuple(
        (Entry(name), Entry(here, Tone.WARNING if here.startswith("needs") else Tone.PLAIN))
        for name in names
        if (here := view.here.get(name, "not known"))
    )
    return Table((Column("subject", text=True), Column("here", text=True)), rows)


def _profile(view: StudyView, name: str) -> Section:
    plan = view.plans[name]
    counts: dict[tuple[str, str], int] = {}
    for cell in plan.cells:
        engine = cell.engine.name + (f", {cell.engine.threads} threads" if cell.engine.threads > 1 else "")
        key = (cell.workload.describe(), engine)
        counts[key] = counts.get(key, 0) + 1
    columns = (Column("load", text=True), Column("generator", text=True), Column("subjects"))
    rows = tuple((Entry(load), Entry(engine), Entry(str(count))) for (load, engine), count in counts.items())
    blocks = f"{plan.blocks} block{'s' if plan.blocks != 1 else ''}"
    return Section(f"Profile {name}: {blocks}, {view.lengths[name]}", (Table(columns, rows),))


def claim_words(claim: Claim) -> str:
    """Return what a claim is held against, in words: its kind, metric, bounds and needs."""
    bounds = [
        f"{word} {_bound(claim, value)}"
        for word, value in (("at least", claim.low), ("at most", claim.high))
        if value is not None
    ]
    parts = [
        f"{claim.kind} {claim.metric}{f' of the role {claim.role}' if claim.role else ''}",
        *bounds,
        f"at {stated_load_words(claim.load)}" if claim.load else "",
        *(
            f"needs {cpus} CPUs for the {what}"
            for what, cpus in (
                ("server", claim.needs.server_cpus),
                ("generator", claim.needs.generator_cpus),
            )
            if cpus > 1
        ),
    ]
    return ", ".join(part for part in parts if part)


def _bound(claim: Claim, value: float) -> str:
    return f"{value:g} times" if claim.kind == "ratio" else format_metric(claim.metric, value)


def stated_load_words(load: Mapping[str, float]) -> str:
    """Return a load in words; a generator has one thread unless it says otherwise.

    >>> stated_load_words({"connections": 100.0, "threads": 4.0})
    '100 connections, 4 threads'
    """
    told = {name: value for name, value in load.items() if (name, value) != ("threads", 1)}
    return ", ".join(
        f"{value:,g}/s" if name == "rate" else f"{value:,.0f} {name}" for name, value in told.items()
    )


def _figures(originals: Sequence[Original]) -> Iterator[Section]:
    for metric, role in dict.fromkeys((one.metric, one.role) for one in originals):
        own = [one for one in originals if (one.metric, one.role) == (metric, role)]
        blocks: list[Block] = [_figure_table(own)]
        notes = tuple(dict.fromkeys(f"{_told(one)}: {one.note}" for one in own if one.note))
        if notes and len(originals) <= _MOST_NOTES:
            blocks.append(_lines(notes))
        title = f"Published: {METRICS[metric].title}{f', role {role}' if role else ''}"
        yield Section(title, tuple(blocks))


def _who(one: Original) -> str:
    return one.subject if one.engine == "*" else one.engine


def _told(one: Original) -> str:
    return ", ".join(part for part in (_who(one), stated_load_words(one.load)) if part)


def _figure_table(figures: Sequence[Original]) -> Table:
    """Return figures by who and load; the shorter of both are the columns."""
    who, loads = (
        dict.fromkeys(map(_who, figures)),
        dict.fromkeys(stated_load_words(one.load) for one in figures),
    )
    found: dict[tuple[str, str], list[str]] = {}
    for one in figures:
        key = (_who(one), stated_load_words(one.load))
        found.setdefault(key, []).append(format_metric(one.metric, one.value))
    if len(loads) <= _MOST_COLUMNS:
        columns = (Column("subject", text=True), *(Column(load) for load in loads))
        rows = [[name, *(_joined(found.get((name, load))) for load in loads)] for name in who]
    else:
        columns = (Column("load", text=True), *(Column(name.partition("+")[0]) for name in who))
        rows = [[load, *(_joined(found.get((name, load))) for name in who)] for load in loads]
    return Table(columns, tuple(tuple(map(Entry, row)) for row in rows))


def _joined(values: Sequence[str] | None) -> str:
    return " to ".join(values) if values else "—"
