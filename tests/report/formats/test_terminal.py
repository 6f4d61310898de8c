"""Documents on terminals of any width: nothing is cut, nothing a server wrote steers them."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from prony.core.safe_text import plain
from prony.core.units import format_count
from prony.report.document import (
    Bars,
    Column,
    Command,
    Document,
    Entry,
    Judgement,
    Judgements,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
)
from prony.report.formats.terminal import TerminalReporter
from prony.report.text import Figure


def shown(document, width=80, **kwargs):
    out = io.StringIO()
    TerminalReporter(Console(file=out, width=width, highlight=False, **kwargs)).write(document)
    return out.getvalue()


def document(*blocks):
    return Document("Title", (Section("Heading", blocks),))


WIDE = Table(
    (Column("subject", text=True), *(Column(f"c{k}", "group" if k < 3 else "") for k in range(8))),
    ((Entry("a"), *(Entry(f"{k}.00 ±0.10") for k in range(8))),),
)

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\x08\r\u202e[bold red]x[/bold red] :smile: \x00"


@pytest.mark.parametrize(
    "block",
    [
        Paragraph(HOSTILE),
        Notes((("  |", HOSTILE),)),
        Command(HOSTILE),
        Judgements((Judgement(HOSTILE, Tone.BAD, HOSTILE, HOSTILE),)),
        Bars(((HOSTILE, Figure(1, format_count, "")),)),
        Table((Column(HOSTILE),), ((Entry(HOSTILE),),)),
    ],
)
def test_no_control_character_and_no_markup_reaches_the_terminal(block):
    out = shown(Document(HOSTILE, (Section(HOSTILE, (block,)),)))
    assert "[bold red]x[/bold red] :smile:" in out
    assert all(character == "\n" or character.isprintable() for character in out)


@given(st.text())
def test_plain_text_holds_no_control_character(text):
    assert all(c == "\n" or not (ord(c) < 32 or 127 <= ord(c) < 160) for c in plain(text))


def test_verdicts_stand_in_a_column_of_their_own():
    items = (
        Judgement("holds", Tone.GOOD, "a is fast", "measured 2"),
        Judgement("cannot tell", Tone.WARNING, "b " * 60),
    )
    lines = shown(document(Judgements(items)), 60).splitlines()
    assert "holds        a is fast" in lines
    assert "             measured 2" in lines
    assert all(len(line) <= 60 for line in lines)
    assert sum(line.startswith("cannot tell") for line in lines) == 1


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_a_wide_table_is_split_and_every_figure_is_shown_once(width):
    lines = shown(document(WIDE), width).splitlines()
    assert max(len(line) for line in lines) <= width
    assert all(sum(f"{k}.00 ±0.10" in line for line in lines) == 1 for k in range(8))


def test_columns_of_a_group_stay_together_where_they_fit():
    lines = shown(document(WIDE), 50).splitlines()
    (line,) = [line for line in lines if "c0" in line]
    assert "c2" in line


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_heading_that_is_wider_than_its_columns_widens_them(width):
    group = "service time of valid replies, ms"
    columns = (Column("subject", text=True), Column("max", group), Column("CPU %", "CPU"), Column("n", "CPU"))
    table = Table(columns, (tuple(Entry(text) for text in ("a", "1.0", "99.0 ±0.1", "5")),))
    lines = shown(document(table), width).splitlines()
    assert max(len(line) for line in lines) <= max(width, len("subject  ") + len(group))
    (heading,) = [line for line in lines if group in line]
    (figures,) = [line for line in lines if "1.0" in line]
    assert figures.index("1.0") + 3 == heading.index(group) + len(group)


def test_marks_hang_to_the_right_of_the_digits():
    table = Table(
        (Column("s", text=True), Column("n")), ((Entry("a"), Entry("100¹")), (Entry("b"), Entry("99")))
    )
    first, second = shown(document(table)).splitlines()[-2:]
    assert first.index("100") + 3 == second.index("99") + 2


def test_without_colour_nothing_is_lost():
    text = document(Paragraph("careful", Tone.WARNING), Paragraph("bad", Tone.BAD))
    assert "\x1b" not in shown(text, no_color=True)
    assert "\x1b[33mcareful" in shown(text, force_terminal=True, color_system="standard")


def test_no_color_is_heeded(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in shown(document(Paragraph("careful", Tone.WARNING)), force_terminal=True)


def test_a_command_is_never_wrapped():
    command = "python -m server " + "--option value " * 20
    assert command.rstrip() in shown(document(Command(command.rstrip())))


def test_prose_is_wrapped_at_words():
    lines = shown(document(Paragraph("word " * 60))).splitlines()
    assert all(len(line) <= 80 for line in lines)


def test_a_rare_class_has_a_bar_and_an_empty_one_has_none():
    classes = (("1 ms", 100_000), ("2 ms", 1), ("3 ms", 0))
    out = shown(document(Bars(tuple((label, Figure(count, format_count, "")) for label, count in classes))))
    many, rare, none = out.splitlines()[-3:]
    assert many.count("█") == 40
    assert rare.endswith("▏")
    assert none.rstrip().endswith("0")


def test_a_continued_table_repeats_all_words_that_name_its_rows():
    figures = tuple(Column(f"c{k}") for k in range(8))
    row = (Entry("server"), Entry("all requests"), *(Entry("1.00 ±0.10") for _ in figures))
    table = Table((Column("subject", text=True), Column("of", text=True), *figures), (row,))
    lines = shown(document(table), 60).splitlines()
    named = [line for line in lines if line.startswith("server   all requests  1.00")]
    assert len(named) == sum("1.00" in line for line in lines) > 1


def test_the_last_line_names_the_glossary_where_terms_of_it_are_used():
    for words, end in (("3 blocks", "\n\nTerms are explained in docs/glossary.md.\n"), ("3 apples", "")):
        out = io.StringIO()
        report = document(Paragraph(words))
        TerminalReporter(Console(file=out, width=80, highlight=False)).write_report(report)
        assert out.getvalue() == shown(report) + end.removeprefix("\n")
