"""Reports on terminals of any width hold what their golden text, of one width, holds: nothing is lost, moved
or cut.
"""

import functools
import io

import pytest
from rich.console import Console

from golden import build, generators, studies
from prony.archive import open_archive
from prony.core.safe_text import plain
from prony.reading.load import read_load
from prony.reading.study import read_archive
from prony.report.document import Command, Document, Judgements, Notes, Paragraph, Section, Table
from prony.report.formats.terminal import TerminalReporter
from prony.report.load import load_document
from prony.report.study import study_report

ARCHIVES = {
    "study_two": build.study_two,
    "closed_study": build.closed_study,
    "grid_study": studies.grid_study,
    "settings_study": studies.settings_study,
    "count_study": studies.count_study,
    "generators_study": generators.generators_study,
    "checked_study": generators.checked_study,
}
# Cells wrap, the least at which none does, and wider than most tables; the golden texts have 100.
WIDTHS = (60, 80, 240)
# A cell of words that is wider alone is not wrapped.
NO_CELL_IS_WIDER = 80
# No table of a report is as wide.
ENDLESS = 10_000


@pytest.fixture(scope="module", params=ARCHIVES)
def documents(request, tmp_path_factory):
    """The report of a study, and those of its load runs' first."""
    path = tmp_path_factory.mktemp("widths") / f"{request.param}.prony"
    with open_archive(ARCHIVES[request.param](path)) as archive:
        recording = next(r.trial.recording for r in archive.trials() if r.trial.recording)
        return study_report(read_archive(archive)), load_document(read_load(recording))


def lines(document, width):
    out = io.StringIO()
    TerminalReporter(Console(file=out, width=width, highlight=False)).write(document)
    return out.getvalue().splitlines()


# Of a table the same parts are asked for at each width.
@functools.cache
def alone(block, width):
    """The lines of a block, without a title above it."""
    return lines(Document("", (Section("", (block,)),)), width)[2:]


def blocks(documents, *kinds):
    return [
        block
        for document in documents
        for section in document.sections
        for block in section.blocks
        if isinstance(block, kinds)
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_document_is_all_its_blocks_in_order(documents, width):
    for document in documents:
        parts = [[str(document.title)]]
        for section in document.sections:
            parts.append(["", str(section.heading)] if section.heading else [""])
            parts.extend(alone(block, width) for block in section.blocks)
        assert lines(document, width) == [line for part in parts for line in part]


@pytest.mark.parametrize("width", [width for width in WIDTHS if width >= NO_CELL_IS_WIDER])
def test_no_line_but_a_command_is_longer_than_the_terminal_is_wide(documents, width):
    commands = {f"    {line}" for command in blocks(documents, Command) for line in command.text.splitlines()}
    for document in documents:
        assert [line for line in lines(document, width) if len(line) > width and line not in commands] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_prose_has_all_its_words_in_order(documents, width):
    for block in blocks(documents, Paragraph, Notes, Judgements):
        wide = " ".join(alone(block, ENDLESS)).split()
        assert " ".join(alone(block, width)).split() == wide
        assert wide == plain(" ".join(said(block))).split()


def said(block):
    """What a block of prose holds, without a terminal."""
    match block:
        case Paragraph(text):
            yield str(text)
        case Notes(items):
            yield from (f"{mark} {text}" for mark, text in items)
        case Judgements(items):
            yield from (f"{item.verdict} {item.sentence} {item.detail}" for item in items)


@pytest.mark.parametrize("width", WIDTHS)
def test_what_follows_a_mark_is_indented_by_it(documents, width):
    for block in blocks(documents, Notes):
        for mark, text in block.items:
            _, *more = alone(Notes(((mark, text),)), width)
            indent = len(f"{mark} ") if mark else 0
            assert all(line[:indent].isspace() is bool(indent) and line[indent] != " " for line in more)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_is_cut_between_columns_and_each_part_is_laid_out_as_a_table(documents, width):
    for table in blocks(documents, Table):
        assert pieces(table, width)[-1].stop == len(table.columns)


def pieces(table, width):
    """The columns that the parts of a table add, as ranges that follow each other; each part is what a
    table of these columns, after those that name the rows, is.
    """
    found, shown = [], alone(table, width)
    while shown:
        begin = found[-1].stop if found else 0
        piece, part = next(part for part in candidates(table, begin) if shown[: len(part[1])] == part[1])
        found.append(piece)
        shown = shown[len(part) :]
        assert shown[:1] in ([], [""])
        shown = shown[1:]
    return found


def candidates(table, begin):
    """What a part may be that begins with a column: as many as can be, after one or all words that name the
    rows.
    """
    figures = [k for k, column in enumerate(table.columns) if not column.text]
    for stop in range(len(table.columns), begin, -1):
        for names in sorted({1, *figures[:1]}) if begin else (0,):
            chosen = [*range(names), *range(begin, stop)]
            columns = tuple(table.columns[k] for k in chosen)
            rows = tuple(tuple(row[k] for k in chosen) for row in table.rows)
            yield range(begin, stop), alone(Table(columns, rows), ENDLESS)
