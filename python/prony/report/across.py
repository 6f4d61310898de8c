"""Sessions of one plan, or archives of different plans, side by side: what they gave, and what changes."""

from collections.abc import Iterable, Iterator

from prony.core.metrics import METRICS
from prony.figures.across_sessions import OverRow
from prony.figures.statistics.compare import LEAST_BLOCKS, NO_VERDICT
from prony.figures.summary import means
from prony.reading.across import Across, ClaimOver, LoadOver, Side, SideKind
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import count, day, estimate, in_metric, metric_scale, percent, signed_percent
from prony.report.sections.answer import answer_lines
from prony.report.sections.effects import comparison_entries
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, framed, joined, pointer, text
from prony.report.words import heading, load_words, machine_words, workload_words

_FEW = "Fewer than {} sessions: their range, no interval, and no verdict over them."
_ENOUGH = "Intervals are over sessions, each of which counts once; they hold for all pairs together ({})."
_SAME = "Every verdict is the same in all sessions that have one."
_JUDGED_BY_NONE = (
    "No verdict: between two archives day, machine and versions may differ at once. To decide about one "
    "change, measure both sides in one study, or use `prony compare`."
)
_TIE = "tie"
_COLUMNS = (*("mean", "least", "most", "within", "between"), *("to the first", "interval", "verdict", "n"))
_NOTE = text(
    "within: standard deviation of a trial in its session; between: of sessions, beyond what their trials "
    "explain; least and most: of single sessions; n: sessions in which it is compared."
)
_TIES = text("subjects that share a letter are not separated from each other.")


def across_document(found: Across) -> Document:
    """Return the report of several archives; of one plan, first who leads over its sessions, by how much."""
    if found.kind is SideKind.SESSION:
        answer = (*_answer(found), *_on_machines(found))
        head = (Section("", answer), *_claims(found))
        return Document(text("{}", Quote(found.title, "/title")), (*head, *across_sections(found, "")))
    archives = counted(Figure(len(found.sides), count, "/sides"), "archive")
    sections = tuple(across_sections(found, ""))
    return Document(text("The same cells in {}, the oldest first", archives), sections)


def across_sections(found: Across, at: str) -> Iterator[Section]:
    """Yield the sections. ``at``: where the JSON has ``found``."""
    sides = (_side(one, found, at + pointer("sides", k)) for k, one in enumerate(found.sides))
    yield Section(heading(f"{found.kind}s"), (Notes.of(sides), _how(found)))
    for place, one in enumerate(found.loads):
        yield _load(found, one, at + pointer("loads", place))
    changes = tuple(_changes(found, at))
    if changes:
        yield Section("What changes", (Notes.of(changes),))
    elif found.kind is SideKind.SESSION:
        yield Section("What changes", (Paragraph(_SAME, Tone.GOOD),))


def machines_words(found: Across, at: str) -> Text | None:
    """Return on how many machines the sides were; None for one. ``at``: where the JSON has ``found``."""
    number = found.machines
    return text("{} machines", Figure(number, count, at + pointer("machines"))) if number > 1 else None


def _side(one: Side, found: Across, at: str) -> Text:
    began = Figure(one.started_unix_ns, day, at + pointer("started_unix_ns"))
    blocks = counted(Figure(one.blocks, count, at + pointer("blocks")), "block")
    number = Figure(one.number, count, at + pointer("number"))
    archive = text(" ({})", Quote(one.archive, at + pointer("archive"))) if one.archive else EMPTY
    words = text("{} {}{}: {}, {}", found.kind.value, number, archive, began, blocks)
    if one.prony_version:
        words = text("{}, Prony {}", words, Quote(one.prony_version, at + pointer("prony_version")))
    if found.machines == 1 and found.kind is SideKind.SESSION:
        return words
    # Two machines that differ may have the same words.
    machine = Figure(one.machine_number, count, at + pointer("machine_number"))
    return text("{}; machine {}: {}", words, machine, Quote(machine_of(one), at + pointer("machine")))


def machine_of(one: Side) -> str:
    """Its machine, in words."""
    return str(machine_words(one.fingerprint))


def _how(found: Across) -> Paragraph:
    if not found.loads and found.kind is SideKind.ARCHIVE:
        return Paragraph("They have no subject under the same load in common.", Tone.WARNING)
    if found.kind is SideKind.ARCHIVE:
        return Paragraph(_JUDGED_BY_NONE, Tone.QUIET)
    is_few = len(found.sides) < LEAST_BLOCKS
    how = text(_FEW, Name(str(LEAST_BLOCKS))) if is_few else text(_ENOUGH, Name("95 %"))
    return Paragraph(how, Tone.QUIET)


# --- what sessions say together ---------------------------------------------------------------------------


def _answer(found: Across) -> Iterator[Block]:
    if not found.loads:
        yield Paragraph("No subject qualifies in these sessions: there is no answer.", Tone.WARNING)
    for place, one in enumerate(found.loads):
        at, group = pointer("loads", place), one.group
        where = framed("", _load_of(one, at), ": ") if len(found.loads) > 1 else EMPTY
        yield from answer_lines(group, at + pointer("answer"), where)
        compared = {group.answer.first, *group.answer.comparisons}
        left_out = [Name(cell.name) for cell in group.cells if cell.name not in compared and cell.total]
        if left_out:
            words = text("Not compared, with too few trials or sessions that count: {}.", joined(left_out))
            yield Paragraph(words)


def _on_machines(found: Across) -> Iterator[Block]:
    if (machines := machines_words(found, "")) is not None:
        yield Paragraph(text("The sessions were on {}: see Sessions.", machines), Tone.QUIET)


def _claims(found: Across) -> Iterator[Section]:
    lines = [_claim(one, pointer("claims", k)) for k, one in enumerate(found.claims)]
    if lines:
        yield Section("Claims, over the sessions", (Notes.of(lines),))


def _claim(one: ClaimOver, at: str) -> Text:
    said = Quote(one.claim.text, at + pointer("text"))
    verdict = Quote(one.over.verdict.value, at + pointer("over", "verdict"))
    reason = text("{}", Quote(one.over.reason, at + pointer("over", "reason")))
    return text("{}: {}{}", said, verdict, framed(" (", reason, ")") if one.over.reason else EMPTY)


# --- a load -----------------------------------------------------------------------------------------------


def _load_of(one: LoadOver, at: str) -> Text:
    """Return a load in words, empty for generators. ``at``: where the JSON has ``one``."""
    group = one.group
    return EMPTY if group.of_generators else load_words(group.workload, at + pointer("load"))


def _load(found: Across, one: LoadOver, at: str) -> Section:
    if found.kind is SideKind.ARCHIVE:
        return _beside(found, one, at)
    is_tied = one.group.answer.decided
    names = ("subject", *([_TIE] if is_tied else []), *_COLUMNS)
    columns = tuple(Column(name, text=name in ("subject", _TIE, "verdict")) for name in names)
    rows = tuple(_row(row, one, at + pointer("rows", k)) for k, row in enumerate(one.rows))
    notes = Notes((("", _NOTE), *([(_TIE, _TIES)] if is_tied else [])))
    head = text("{}{}", Name(heading(METRICS[one.metric].title)), framed(", ", _load_of(one, at)))
    return Section(head, (Table(columns, rows), notes))


def _row(row: OverRow, one: LoadOver, at: str) -> tuple[Entry, ...]:
    form = in_metric(one.metric)
    known = [(value, k) for k, value in enumerate(row.values) if value is not None]
    ends = [Figure(value, form, at + pointer("values", k)) for value, k in (min(known), max(known))]
    shares = {"within": row.within, "between": row.between}
    spread = ("—" if v is None else Figure(v, percent, at + pointer(key)) for key, v in shares.items())
    tie = [Name(row.letters)] if one.group.answer.decided else []
    words = (Name(row.name), *tie, Figure(row.mean, form, at + pointer("mean")), *ends, *spread)
    compared = comparison_entries(one.metric, row.ratio.over if row.ratio else None, at + pointer("ratio"))
    return (*(Entry.of(each) for each in words), *compared)


def _beside(found: Across, one: LoadOver, at: str) -> Section:
    """Return the figures of each archive, and how the last compares with the first."""
    figures = one.figures(one.metric)
    scale = metric_scale(one.metric, [value for row in figures.values() for value in means(row)])
    columns = (
        Column(text("{}", Quote(side.archive, pointer("sides", k, "archive"))))
        for k, side in enumerate(found.sides)
    )
    rows = []
    for name, row in figures.items():
        of, change = at + pointer("metrics", one.metric, name), one.last_to_first[name]
        own = (estimate(value, scale, of + pointer(k)) if value else None for k, value in enumerate(row))
        end = None if change is None else Figure(change, signed_percent, at + pointer("last_to_first", name))
        entries = (Entry("—", Tone.QUIET) if each is None else Entry.of(each) for each in (*own, end))
        rows.append((Entry.of(Name(name)), *entries))
    words = f"{heading(METRICS[one.metric].title)}{f', {scale.unit}' if scale.unit else ''}"
    load = workload_words(one.group.workload, at + pointer("load"))
    table = Table((Column("subject", text=True), *columns, Column("last to first")), tuple(rows))
    return Section(load, (Paragraph(words), table))


# --- what changes -----------------------------------------------------------------------------------------


def _changes(found: Across, at: str) -> Iterator[Text]:
    for place, one in enumerate(found.loads):
        yield from _changes_under(one, at + pointer("loads", place))
    for k, claim in enumerate(found.claims):
        if claim.changes:
            where = at + pointer("claims", k)
            said = _in_turn((v.value for v in claim.verdicts), where + pointer("verdicts"))
            over = Quote(claim.over.verdict.value, where + pointer("over", "verdict"))
            words = Quote(claim.claim.text, where + pointer("text"))
            yield text("claim: {}: in turn {}; over the sessions: {}", words, said, over)
    for name, versions in found.versions.items():
        said = _in_turn(versions, at + pointer("versions", name))
        yield text("{}: its version differs: {}", Name(name), said)


def _changes_under(one: LoadOver, at: str) -> Iterator[Text]:
    if len(set(one.leaders)) > 1:
        leaders = _in_turn(one.leaders, at + pointer("leaders"))
        yield text("{}: the leader of the sessions in turn: {}", METRICS[one.metric].title, leaders)
    for k, row in enumerate(one.rows):
        if row.ratio is not None and row.ratio.changes:
            where, over = at + pointer("rows", k, "ratio"), row.ratio.over.verdict
            said = _in_turn((v and v.value for v in row.ratio.verdicts), where + pointer("verdicts"))
            whole = text("; over the sessions: {}", Quote(over.value, where + pointer("verdict")))
            pair = Name(row.name), Name(one.rows[0].name)
            yield text("{} against {}: in turn {}{}", *pair, said, EMPTY if over in NO_VERDICT else whole)


def _in_turn(values: Iterable[str | None], at: str) -> Text:
    """Return what each side has, or none. ``at``: where the JSON has them."""
    return joined(
        ("none" if one is None else Quote(one, at + pointer(k)) for k, one in enumerate(values)), " / "
    )
