"""A study's page beside its archive."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from golden.build import study_two
from prony.cli import pages
from prony.core.version import own_command


@pytest.fixture
def archive(folder):
    study_two(folder / "a.prony")
    return folder / "a.prony"


@pytest.fixture(autouse=True)
def _in_folder(said):
    """Commands run in the folder, with a cache of their own."""


def test_a_page_is_written_beside_the_archive(archive):
    page = pages.page_beside(archive)
    assert page == archive.with_name("a.prony.html")
    assert page.read_text().startswith("<!doctype html>")


def test_a_page_that_cannot_be_written_costs_nothing_but_a_line(archive, capsys):
    archive.with_name("a.prony.html").mkdir()
    assert pages.page_beside(archive) is None
    assert "the page `" in capsys.readouterr().err


def test_a_page_whose_drawing_dies_costs_nothing_but_a_line(archive, capsys, monkeypatch):
    died = subprocess.CompletedProcess((), -6, "", "")
    monkeypatch.setattr(pages.subprocess, "run", lambda *_, **__: died)
    assert pages.page_beside(archive) is None
    assert "was not written: status -6" in capsys.readouterr().err


def test_an_archive_whose_trials_are_gone_has_a_page(said, archive, folder):
    with closing(sqlite3.connect(archive)) as database, database:
        database.execute("DELETE FROM trial")
    done = said("report", archive, "--html", folder / "out.html")
    assert (done.status, done.err) == (0, "")


FINISHED = """
import sys
from prony import study
from prony.archive import create
from prony.cli import main

def finish(task, listener):
    with create(task.out, task.plan, {}, task.cross_checks) as writer:
        writer.finish()

study.run_study = finish
sys.argv = ["prony", *sys.argv[1:]]
main.main()
"""
TYPED = ("run", "--app", "hello", "--servers", "wsgiref", "--out", "done.prony")


@pytest.mark.parametrize(("options", "is_written"), [((), True), (("--dry-run",), False)])
def test_a_complete_study_has_its_page_again_unless_nothing_is_to_be_done(folder, options, is_written):
    subprocess.run([sys.executable, "-c", FINISHED, *TYPED, "--no-html"], cwd=folder, check=False)
    page = folder / "done.prony.html"
    assert not page.exists()
    command = own_command(*TYPED, *options)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "`done.prony` is complete" in done.stderr
    assert page.exists() is is_written


def test_figures_go_into_a_new_folder_or_nowhere(said, archive, folder):
    (folder / "pictures").mkdir()
    (folder / "pictures" / "mine.txt").write_text("")
    assert said("report", archive, "--figures", "pictures").status == 2
    assert [path.name for path in (folder / "pictures").iterdir()] == ["mine.txt"]
