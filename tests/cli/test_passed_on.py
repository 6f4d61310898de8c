"""What is passed on: texts that are planted in every field of an archive are in no form of its report."""

import base64
import gzip
import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from golden import build
from prony.archive import open_archive
from prony.cli.report import report
from prony.errors import HostError, PronyError
from prony.reading.study import read_archive
from prony.report.publication import Redaction

HOST = "bench-7"
Place = tuple[str, str, int, tuple[str | int, ...] | None]


def mark(number: int) -> str:
    return f" m{number}x /home/al{number}/pro/f{number} /code/sec{number} h{number} {HOST} h{number}"


def leaks(text: str) -> list[str]:
    return re.findall(rf"\bal\d+\b|/code/sec\d+\b|h\d+ {HOST} h\d+", text)


def texts(path: Path) -> Iterator[Place]:
    """Yield each text of an archive: one row of each column, one of each place in JSON."""
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
        for table in tables:
            columns = database.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
            for column in (name for name, kind in columns if kind == "TEXT"):
                yield from texts_of(database, table, column)


def texts_of(database: sqlite3.Connection, table: str, column: str) -> Iterator[Place]:
    seen: set[object] = set()
    for row, value in database.execute(f"SELECT rowid, {column} FROM {table} LIMIT 9").fetchall():
        places = list(leaves(json.loads(value))) if column.endswith("_json") and value else [None]
        for place in places:
            kind = place and tuple("*" if isinstance(step, int) else step for step in place)
            if value is not None and kind not in seen:
                seen.add(kind)
                yield table, column, row, place


def leaves(value: object, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict | list):
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        for step, inner in steps:
            yield from leaves(inner, (*above, step))
    elif isinstance(value, str):
        yield above


def plant(database: sqlite3.Connection, place: Place, number: int) -> None:
    table, column, row, steps = place
    (value,) = database.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
    if steps is None:
        value += mark(number)
    else:
        content = inner = json.loads(value)
        for step in steps[:-1]:
            inner = inner[step]
        inner[steps[-1]] += mark(number)
        value = json.dumps(content)
    database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))


def is_read(path: Path) -> bool:
    try:
        with open_archive(path) as archive:
            read_archive(archive)
    except (PronyError, sqlite3.Error):
        return False
    return True


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with a mark in each text in which its reader takes one."""
    folder = tmp_path_factory.mktemp("planted")
    data, taken = build.study_two(folder / "bare", blocks=1).read_bytes(), 0
    for number, place in enumerate(list(texts(folder / "bare"))):
        tried = folder / str(number)
        tried.write_bytes(data)
        with closing(sqlite3.connect(tried)) as database, database:
            database.execute("PRAGMA ignore_check_constraints=ON")
            plant(database, place, number)
        if is_read(tried):
            data, taken = tried.read_bytes(), taken + 1
        tried.unlink()
    path = folder / f"{HOST}.prony"
    path.write_bytes(data)
    assert taken >= 45
    return path


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: HOST)


def unpacked(page: str) -> str:
    packed = re.search(r'<script type="text/plain" id="charts">([^<]*)', page)
    assert packed
    return (
        re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)
        + gzip.decompress(base64.b64decode(packed[1])).decode()
    )


def test_marks_are_there_where_nothing_is_redacted(planted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report([planted], full=True)
    assert len(set(leaks(capsys.readouterr().out))) >= 10


@pytest.mark.parametrize("how", [{}, {"full": True}, {"as_json": True}], ids=["answer", "full", "json"])
def test_no_mark_is_printed(planted: Path, how: dict[str, bool], capsys: pytest.CaptureFixture[str]) -> None:
    report([planted], redact=True, **how)
    out = capsys.readouterr().out
    assert len(out) > 500
    assert leaks(out) == []


def test_no_mark_is_in_a_page(planted: Path, tmp_path: Path) -> None:
    report([planted], html_to=str(tmp_path / "page.html"), redact=True)
    assert leaks(unpacked((tmp_path / "page.html").read_text())) == []


def test_no_mark_is_in_markdown(planted: Path, tmp_path: Path) -> None:
    report([planted], markdown_to=str(tmp_path / "page.md"), full=True)
    assert leaks((tmp_path / "page.md").read_text()) == []


def test_no_mark_is_in_tables_or_pictures(planted: Path, tmp_path: Path) -> None:
    report([planted], csv_to=tmp_path / "tables", figures_to=tmp_path / "figures", redact=True)
    files = [*(tmp_path / "tables").iterdir(), *(tmp_path / "figures").glob("*.svg")]
    assert len(files) > 10
    assert [
        leaks(file.name + file.read_text()) for file in files if leaks(file.name + file.read_text())
    ] == []


def test_no_mark_is_in_a_site_nor_in_the_names_of_its_files(planted: Path, tmp_path: Path) -> None:
    report([planted.parent], site_to=tmp_path / "site", redact=True)
    assert sorted(file.name for file in (tmp_path / "site").iterdir()) == ["index.html", "study-1.html"]
    index = (tmp_path / "site" / "index.html").read_text()
    assert leaks(index) == []
    assert HOST not in index


def test_no_mark_is_in_a_report_of_several(planted: Path, tmp_path: Path) -> None:
    other = build.study_two(tmp_path / "other.prony", blocks=1)
    report([planted, other], html_to=str(tmp_path / "page.html"), csv_to=tmp_path / "tables", redact=True)
    assert leaks(unpacked((tmp_path / "page.html").read_text())) == []
    assert [file for file in (tmp_path / "tables").iterdir() if leaks(file.read_text())] == []


def test_a_finished_page_with_something_that_was_taken_out_is_not_written(
    planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = sys.modules.get("prony.page.study") or __import__("prony.page.study", fromlist=["page"])
    monkeypatch.setattr(page, "page_of_study", lambda *_values, **_options: HOST)
    with pytest.raises(HostError, match="nothing is written"):
        report([planted], html_to=str(tmp_path / "page.html"), redact=True)
    assert list(tmp_path.iterdir()) == []


def test_a_machine_or_a_subject_that_is_called_as_a_word_of_pages_breaks_none() -> None:
    redaction = Redaction("app")
    assert redaction("built on app in /srv/app/x") == "built on HOST in …/x"
    assert redaction.left_in('<p class="app">the app</p>') is None


def test_different_names_stay_different(planted: Path) -> None:
    with open_archive(planted) as archive:
        plan = archive.plan()
    from prony.report.publication import redaction_for

    names = {subject.name for subject in plan.subjects()}
    assert len({redaction_for([plan], HOST)(name) for name in names}) == len(names)
