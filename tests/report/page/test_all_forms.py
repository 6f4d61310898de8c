"""Archives with everything that an archive may have, or lack, in every form of a report."""

import csv
from functools import cache

import pytest
from jsonschema import Draft202012Validator

from prony import open as open_prony
from prony.archive import open_archive
from prony.report.brief import brief_report
from prony.report.formats.as_json import report_schema
from prony.report.formats.csv_files import write_csv
from prony.report.formats.markdown import markdown
from prony.report.formats.terminal import TerminalReporter
from prony.report.page.study import page_of_study
from prony.report.study import full_page, study_report
from report.page import studies
from report.page.walk import Parsed, wrong_numbers, wrong_rows

EVERY = {**studies.STUDIES, **studies.ODD}
COLUMNS, LINES = 80, 40


@cache
def validator():
    Draft202012Validator.check_schema(report_schema())
    return Draft202012Validator(report_schema())


@pytest.mark.parametrize("name", EVERY)
def test_its_json_is_valid_by_the_published_schema(name):
    assert [one.message for one in validator().iter_errors(studies.json_of(name))] == []


def test_a_wrong_value_and_a_missing_key_are_not_valid():
    data = dict(studies.json_of("one_subject"))
    assert not validator().is_valid(data | {"plan": 3})
    assert not validator().is_valid({key: value for key, value in data.items() if key != "plan"})


@pytest.mark.parametrize("name", EVERY)
def test_its_answer_has_at_most_forty_lines_of_eighty_columns(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    TerminalReporter().write(brief_report(studies.read(name)[0]))
    lines = capsys.readouterr().out.splitlines()
    assert 3 < len(lines) <= LINES
    # A command is one line, to be copied.
    assert [line for line in lines if len(line) > COLUMNS and not line.startswith("    ")] == []


@pytest.mark.parametrize("name", EVERY)
def test_its_whole_report_and_its_markdown_are_written(name, capsys):
    reading, _ = studies.read(name)
    TerminalReporter().write_report(study_report(reading))
    whole, page = capsys.readouterr().out, markdown(full_page(reading))
    assert "nan" not in (whole + page).lower().split()
    # A name with settings in it has blanks, where lines break; Markdown escapes its brackets.
    first = reading.plan.cells[0].subject.name.partition(" ")[0]
    assert all(first in text.replace("\\[", "[") for text in (whole, page)) or name == "hostile"


@pytest.mark.parametrize("name", EVERY)
def test_its_tables_and_its_objects_have_every_trial(name, tmp_path):
    path, count = studies.archive_of(name, tmp_path), len(studies.read(name)[0].trials)
    with open_archive(path) as archive:
        write_csv(archive.trials, studies.read(name)[0], tmp_path / "tables")
    with (tmp_path / "tables" / "trials.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == count
    assert len(list(open_prony(path).trials())) == count


@pytest.mark.parametrize("name", studies.ODD)
def test_its_page_is_whole_and_true(name):
    page, data = studies.page_of(name), studies.json_of(name)
    assert wrong_numbers(page, data) == []
    assert wrong_rows(page, data) == []
    found = [one["id"] for _, one in Parsed(page).tags if "id" in one]
    assert sorted(found) == sorted(set(found))


@pytest.mark.parametrize("name", studies.ODD)
def test_its_page_to_pass_on_is_made(name):
    assert "<h1>" in page_of_study(*studies.read(name), passed_on=True)
