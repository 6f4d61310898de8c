"""A document as Markdown: headings, tables, and nothing of what a server said read as markup."""

import re

from hypothesis import given
from hypothesis import strategies as st

from prony.core.glossary import TERMS
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
from prony.report.formats.markdown import markdown
from prony.report.text import Figure


def page(*blocks, heading=""):
    return markdown(Document("Title", (Section(heading, blocks),)))


def test_a_document_has_headings_by_level():
    document = Document("Title", (Section("Part", (Paragraph("Words."),)),))
    assert markdown(document, level=2) == "## Title\n\n### Part\n\nWords.\n"


def test_a_table_aligns_numbers_and_names_groups():
    columns = (Column("subject", text=True), Column("p99", group="time, ms"), Column("what", text=True))
    rows = ((Entry("a"), Entry("1.5", Tone.STRONG), Entry("x|y")), (Entry("b"), Entry("—"), Entry("")))
    assert page(Table(columns, rows)) == (
        "# Title\n\n"
        "| subject | time, ms: p99 | what |\n|---|---:|---|\n"
        "| a | **1.5** | x\\|y |\n| b | — |  |\n"
    )


def test_notes_commands_and_bars():
    assert "- ¹ fewer than 10\n- plain\n" in page(Notes((("¹", "fewer than 10"), ("", "plain"))))
    assert "```text\nprony run `x` | cat\n```" in page(Command("prony run `x` | cat"))
    assert "````text\na ``` b\n````" in page(Command("a ``` b"))
    assert "1 ms ####" in page(Bars((("1 ms", Figure(10, str, "")), ("2 ms", Figure(5, str, "")))))


def test_lines_of_a_log_are_a_block_of_code():
    assert page(Notes((("  |", "*one*"), ("  |", "  two")))) == "# Title\n\n```text\n*one*\n  two\n```\n"


def test_a_judgement_is_a_line_with_its_verdict_first():
    item = Judgement("does not hold", Tone.BAD, "a is *fast*", "measured 2")
    assert "- **does not hold**: a is \\*fast\\*. *measured 2*\n" in page(Judgements((item,)))


def test_what_a_server_said_is_no_markup():
    said = "<script>alert(1)</script> [a](javascript:x) **b** `c` \x1b[31m\n# not a heading"
    text = page(Paragraph(said), Notes((("", said),)), Paragraph("- no list"), Paragraph("# no heading"))
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\\[a\\](javascript:x)" in text
    assert "\\- no list" in text
    assert "\\# no heading" in text


@given(st.text())
def test_a_cell_stays_in_its_cell(text):
    columns = (Column("a", text=True), Column("b", text=True))
    lines = page(Table(columns, ((Entry(text), Entry("end")),))).splitlines()
    row = lines[-1]
    assert len(lines) == 5
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3


def test_the_first_use_of_a_term_links_to_its_definition_on_the_page():
    words = Paragraph("Blocks of an open loop: 5 blocks.")
    shown = markdown(Document("Title", (Section("Blocks", (words,)),)))
    assert "\n## Blocks\n\n[Blocks](#block) of an [open loop](#open-loop): 5 blocks.\n" in shown
    assert shown.partition("\n## Terms\n")[2].count("\n### ") == 2
    assert f"\n### open loop\n\n{TERMS['open loop']}\n" in shown


def test_logs_commands_tables_and_longer_names_are_no_terms():
    table = Table((Column("load", text=True),), ((Entry("trial"),),))
    blocks = (Notes((("  |", "trial"),)), Command("prony load"), table, Paragraph("load-scripts, a+trial"))
    shown = markdown(Document("Title", (Section("", blocks),)))
    assert "](#" not in shown
    assert "Terms" not in shown
