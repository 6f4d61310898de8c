"""The report of several archives: the same cells over versions or days, without a verdict.

The report of several archives of one plan, as sessions: first who leads over them, and by how much.
"""

from collections.abc import Iterator

from prony.core.metrics import METRICS
from prony.figures.summary import CellSummary
from prony.reading.across import ClaimOver, SameLoad, Sessions, change, known
from prony.reading.trend import Trend
from prony.report.document import Block, Column, Document, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.forms import count, day, estimate, metric_scale, signed_percent
from prony.report.sections.answer import answer_lines
from prony.report.sections.sessions import machines_words, session_load, session_sections
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, joined, pointer, text
from prony.report.words import heading, machine_words, workload_words


def sessions_report(title: str, found: Sessions) -> Document:
    """Return the report of sessions. ``title``: of their plan."""
    answer = Section("", (*_answer(found), *_machines(found)))
    sections = (answer, *_claims(found), *session_sections(found, ""))
    return Document(text("{}", Quote(title, "/title")), sections)


def _machines(found: Sessions) -> Iterator[Block]:
    """Yield that there were several machines."""
    machines = machines_words(found, "")
    if machines is not None:
        yield Paragraph(text("The sessions were on {}: see Sessions.", machines), Tone.QUIET)


def _claims(found: Sessions) -> Iterator[Section]:
    """Yield what all sessions together say of the claims."""
    if found.claims:
        lines = (_claim(one, pointer("claims", k)) for k, one in enumerate(found.claims))
        yield Section("Claims, over the sessions", (Notes.of(lines),))


def _claim(one: ClaimOver, at: str) -> Text:
    verdict = Quote(one.over.verdict.value, at + pointer("over", "verdict"))
    words = text("{}: {}", Quote(one.claim.text, at + pointer("text")), verdict)
    reason = one.over.reason
    return text("{} ({})", words, Quote(reason, at + pointer("over", "reason"))) if reason else words


def _answer(found: Sessions) -> Iterator[Block]:
    if not found.loads:
        yield Paragraph("No subject qualifies in these sessions: there is no answer.", Tone.WARNING)
    for place, one in enumerate(found.loads):
        at = pointer("loads", place)
        load = session_load(found, one, at)
        where = text("{}: ", load) if len(found.loads) > 1 and load else EMPTY
        yield from answer_lines(one.group, at + pointer("answer"), where)
        compared = {one.group.answer.first, *one.group.answer.comparisons}
        left_out = [Name(cell.name) for cell in one.group.cells if cell.name not in compared and cell.total]
        if left_out:
            yield Paragraph(
                text("Not compared, with too few trials or sessions that count: {}.", joined(left_out))
            )


NO_VERDICT = (
    "No verdict: between two archives day, machine and versions may differ at once. To decide about one "
    "change, measure both sides in one study, or use `prony compare`."
)


def trend_document(trend: Trend) -> Document:
    """Return the report of several archives."""
    archives = counted(Figure(len(trend.editions), count, "/editions"), "archive")
    sections = [_editions(trend)]
    sections += [_load(trend, place) for place in range(len(trend.loads))]
    if versions := list(_versions(trend)):
        sections.append(Section("Versions that changed", (Notes(tuple(versions)),)))
    return Document(text("The same cells in {}, the oldest first", archives), tuple(sections))


def _editions(trend: Trend) -> Section:
    rows = tuple(
        (
            Entry.of(Quote(one.name, pointer("editions", k, "name"))),
            Entry.of(Figure(one.started_unix_ns, day, pointer("editions", k, "started_unix_ns"))),
            Entry.of(Name(one.prony_version or "—")),
            Entry.of(Name(str(machine_words(one.reading.fingerprint)))),
        )
        for k, one in enumerate(trend.editions)
    )
    columns = ("archive", "measured on", "Prony", "machine")
    table = Table(tuple(Column(title, text=True) for title in columns), rows)
    said = NO_VERDICT if trend.loads else "They have no subject under the same load in common."
    return Section("", (table, Paragraph(said, Tone.QUIET if trend.loads else Tone.WARNING)))


def _load(trend: Trend, place: int) -> Section:
    one, at = trend.loads[place], pointer("loads", place)
    scale = metric_scale(
        one.metric, [value for row in one.cells.values() for value in known(row, one.metric)]
    )
    editions = (
        Column(text("{}", Quote(edition.name, pointer("editions", k, "name"))))
        for k, edition in enumerate(trend.editions)
    )
    columns = (Column("subject", text=True), *editions, Column("last to first"))

    def shown(cell: CellSummary | None, where: str) -> Entry:
        value = cell.known(one.metric) if cell else None
        return Entry(estimate(value, scale, where)) if value else Entry("—", Tone.QUIET)

    rows = []
    for name, row in one.cells.items():
        of = at + pointer("subjects", name)
        figures = (shown(cell, of + pointer("figures", k)) for k, cell in enumerate(row))
        rows.append((Entry.of(Name(name)), *figures, _change(one, name, of)))
    unit = f", {scale.unit}" if scale.unit else ""
    title = Paragraph(f"{heading(METRICS[one.metric].title)}{unit}")
    blocks: tuple[Block, ...] = (title, Table(columns, tuple(rows)))
    return Section(workload_words(one.workload, at + pointer("load")), blocks)


def _change(one: SameLoad, name: str, at: str) -> Entry:
    found = change(one.cells[name], one.metric)
    if found is None:
        return Entry("—", Tone.QUIET)
    return Entry.of(Figure(found, signed_percent, at + pointer("change")))


def _versions(trend: Trend) -> Iterator[tuple[str, Text]]:
    for name in dict.fromkeys(name for one in trend.loads for name in one.cells):
        versions = [edition.version(name) for edition in trend.editions]
        if len({one for one in versions if one}) > 1:
            yield "", text("{}: {}", Name(name), Name(", ".join(one or "—" for one in versions)))
