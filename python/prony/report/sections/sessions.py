"""Sessions of one plan beside each other: what differs between them, and which verdicts change."""

from collections.abc import Iterator

from prony.core.metrics import METRICS
from prony.figures.across_sessions import OverRatio, OverRow
from prony.figures.statistics.compare import LEAST_BLOCKS, NO_VERDICT, Verdict
from prony.reading.across import LoadOver, SessionPart, Sessions
from prony.report.document import Column, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import count, day, in_metric, percent
from prony.report.sections.effects import comparison_entries
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, counted, joined, pointer, text
from prony.report.words import heading, load_words, machine_words

_FEW = "Fewer than {} sessions: their range, no interval, and no verdict over them."
_ENOUGH = "Intervals are over sessions, each of which counts once; they hold for all pairs together ({})."
_TIE = "tie"
_SPREAD = ("mean", "least", "most", "within", "between")
_COLUMNS = ("subject", _TIE, *_SPREAD, "to the first", "interval", "verdict", "n")


def session_sections(found: Sessions, at: str) -> Iterator[Section]:
    """Yield the sections. ``at``: where the JSON has ``found``."""
    yield Section("Sessions", (_list(found, at), Paragraph(_how(found), Tone.QUIET)))
    for place, one in enumerate(found.loads):
        yield _load(found, one, at + pointer("loads", place))
    changes = tuple(("", words) for words in _changes(found, at))
    same = text("Every verdict is the same in all sessions that have one.")
    yield Section("Verdicts that change", (Notes(changes),) if changes else (Paragraph(same, Tone.GOOD),))


def _how(found: Sessions) -> Text:
    if len(found.parts) < LEAST_BLOCKS:
        return text(_FEW, Name(str(LEAST_BLOCKS)))
    return text(_ENOUGH, Name("95 %"))


def _list(found: Sessions, at: str) -> Notes:
    several = len(set(found.machines)) > 1
    lines = []
    for place, one in enumerate(found.parts):
        own = at + pointer("sessions", place)
        end = _machine(one, found.machines[place], own) if several else EMPTY
        lines.append(("", text("{}{}", _part(one, place, own), end)))
    return Notes(tuple(lines))


def _machine(one: SessionPart, number: int, at: str) -> Text:
    """Return which machine a session was on: two that differ may have the same words."""
    which = Figure(number, count, at + pointer("machine_number"))
    return text(
        "; machine {}: {}", which, Quote(str(machine_words(one.fingerprint)), at + pointer("machine"))
    )


def machines_words(found: Sessions, at: str) -> Text | None:
    """Return on how many machines the sessions were; None for one. ``at``: where the JSON has ``found``."""
    number = len(set(found.machines))
    return text("{} machines", Figure(number, count, at + pointer("machines"))) if number > 1 else None


def _part(one: SessionPart, place: int, at: str) -> Text:
    began = Figure(one.started_unix_ns, day, at + pointer("started_unix_ns"))
    number = Figure(place + 1, count, at + pointer("number"))
    archive = text(", {}", Name(one.archive)) if one.archive else EMPTY
    blocks = counted(_count(one.blocks, at, "blocks"), "block")
    return text("session {}: {}, {}{}", number, began, blocks, archive)


def _count(value: int, at: str, key: str) -> Figure:
    return Figure(value, count, at + pointer(key))


def session_load(found: Sessions, one: LoadOver, at: str) -> Text:
    """Return the load of sessions in words, empty for generators. ``at``: where the JSON has the load."""
    group = found.parts[0].groups[one.place]
    return EMPTY if group.of_generators else load_words(group.workload, at + pointer("load"))


def _load(found: Sessions, one: LoadOver, at: str) -> Section:
    load = session_load(found, one, at)
    own = _COLUMNS if one.group.answer.decided else tuple(name for name in _COLUMNS if name != _TIE)
    columns = tuple(Column(name, text=name in ("subject", _TIE, "verdict")) for name in own)
    rows = tuple(_row(row, one, at + pointer("rows", k)) for k, row in enumerate(one.rows))
    head = text("{}{}", Name(heading(METRICS[one.metric].title)), text(", {}", load) if str(load) else EMPTY)
    note = text(
        "within: standard deviation of a trial in its session; between: of sessions, beyond what their "
        "trials explain; least and most: of single sessions; n: sessions in which it is compared."
    )
    ties = ((_TIE, text("subjects that share a letter are not separated from each other.")),)
    notes = Notes((("", note), *(ties if one.group.answer.decided else ())))
    return Section(head, (Table(columns, rows), notes))


def _row(row: OverRow, one: LoadOver, at: str) -> tuple[Entry, ...]:
    known = [value for value in row.values if value is not None]
    form = in_metric(one.metric)
    places = [row.values.index(value) for value in (min(known), max(known))]
    mean = text("{}", Figure(row.mean, form, at + pointer("mean")))
    ends = [text("{}", Figure(row.values[k] or 0.0, form, at + pointer("values", k))) for k in places]
    spread = [_share(getattr(row, key), at + pointer(key)) for key in ("within", "between")]
    tie = (Name(row.letters),) if one.group.answer.decided else ()
    words = (Name(row.name), *tie, mean, *ends, *spread)
    compared = comparison_entries(one.metric, row.ratio.over if row.ratio else None, at + pointer("ratio"))
    return (*(Entry.of(each) for each in words), *compared)


def _share(value: float | None, at: str) -> Part:
    return "—" if value is None else Figure(value, percent, at)


# --- what changes -----------------------------------------------------------------------------------------


def _changes(found: Sessions, at: str) -> Iterator[Text]:
    for place, one in enumerate(found.loads):
        own = at + pointer("loads", place)
        if one.leader_changes:
            leaders = [_named(name, own + pointer("leaders", k)) for k, name in enumerate(one.leaders)]
            yield text(
                "{}: the leader of the sessions in turn: {}",
                METRICS[one.metric].title,
                joined(leaders, " / "),
            )
        first = one.rows[0].name
        for k, row in enumerate(one.rows):
            if row.ratio is not None and row.ratio.changes:
                where = own + pointer("rows", k, "ratio")
                said = joined([_verdict(v, where, j) for j, v in enumerate(row.ratio.verdicts)], " / ")
                over = _over(row.ratio, where)
                yield text("{} against {}: in turn {}{}", Name(row.name), Name(first), said, over)
    for k, claim in enumerate(found.claims):
        if claim.changes:
            where = at + pointer("claims", k)
            said = joined(
                [Quote(v.value, where + pointer("verdicts", j)) for j, v in enumerate(claim.verdicts)], " / "
            )
            over = Quote(claim.over.verdict.value, where + pointer("over", "verdict"))
            parts = (Quote(claim.claim.text, where + pointer("text")), said, over)
            yield text("claim: {}: in turn {}; over the sessions: {}", *parts)
    for name, versions in found.versions.items():
        where = at + pointer("versions", name)
        said = joined([Quote(v, where + pointer(j)) for j, v in enumerate(versions)], " / ")
        yield text("{}: its version differs between sessions: {}", Name(name), said)


def _named(name: str | None, at: str) -> Part:
    return "none" if name is None else Quote(name, at)


def _verdict(found: Verdict | None, at: str, place: int) -> Part:
    return "none" if found is None else Quote(found.value, at + pointer("verdicts", place))


def _over(found: OverRatio, at: str) -> Part:
    if found.over.verdict in NO_VERDICT:
        return EMPTY
    return text("; over the sessions: {}", Quote(found.over.verdict.value, at + pointer("verdict")))
