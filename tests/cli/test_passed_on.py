"""What is passed on: texts that are planted in every field of an archive are in no form of its report."""

import base64
import gzip
import json
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fuzz import goldens
from golden import build
from prony.archive import open_archive
from prony.cli.report import ReportOptions
from prony.cli.report import report as command
from prony.core.errors import HostError, PronyError
from prony.core.units import DAY_NS
from prony.model.facts import AskedProgram, CodeKind, HotCode, HotSpot, TrialFacts
from prony.model.json_codec import encode
from prony.reading.study import read_archive
from prony.report.publication import Redaction, redaction_for

HOST = "bench-7"
LOOKED_AT = TrialFacts(
    asked=(AskedProgram("database", "postgres", "/run/postgresql", 3),),
    code=HotCode(300, {CodeKind.APP: 0.9}, (HotSpot(CodeKind.APP, "a.b", "app.py:12", 0.9),)),
)


# What reports and pages show of an archive: each takes a mark.
SHOWN = frozenset(
    (
        "plan title",
        "plan question",
        "plan source",
        "plan notes_json *",
        "plan claims_json * text",
        "subject server_version",
        "subject interpreter",
        "subject packages_json gunicorn",
        "subject packages_json gunicorn (key)",
        "subject command_line",
        "subject settings_json workers (key)",
        "run fingerprint_json cpu model",
        "run fingerprint_json kernel release",
        "trial outcome_reason",
        "trial facts_json asked * name",
        "trial facts_json asked * place",
        "trial facts_json code hottest * function",
        "trial facts_json code hottest * place",
        "log text_deflate",
        "thread name",
        "process command",
    )
)


# Of an object of JSON whose names come from others; those of all other objects are the format's.
NAMED_BY_OTHERS = re.compile(
    r"subject (packages|settings|facts)_json|cell subject_json (settings|levels)|run fingerprint_json"
)


class Place(NamedTuple):
    """A text of an archive: in a column, or in its JSON after ``steps``; ``is_key``: the last step itself."""

    table: str
    column: str
    row: int
    steps: tuple[str | int, ...] | None = None
    is_key: bool = False

    @property
    def kind(self) -> str:
        steps = ["*" if isinstance(step, int) else step for step in self.steps or ()]
        return " ".join([self.table, self.column, *steps, *(["(key)"] if self.is_key else [])])


def marks(number: int) -> tuple[str, ...]:
    """What is planted, and what where that is no text to the reader."""
    paths = f"/home/al{number}/pro/f /code/sec{number}/x -L/code/opt{number}/x ../../home/up{number}/x"
    return f" {paths} {HOST.upper()}.corp{number}.example h{number} {HOST} h", f"/code/sec{number}/x"


def leaks(text: str) -> list[str]:
    return re.findall(rf"\b(?:al|sec|opt|up|corp)\d+\b|h\d* {HOST}", text)


def texts(path: Path) -> Iterator[Place]:
    """Yield each text of an archive: one row of each column, one of each place and key in JSON."""
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
        seen: set[str] = set()
        for table in tables:
            columns = database.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
            for column in (name for name, kind in columns if kind == "TEXT" or name == "text_deflate"):
                for place in texts_of(database, table, column):
                    is_ours = place.is_key and not NAMED_BY_OTHERS.match(place.kind)
                    if place.kind not in seen and not is_ours:
                        seen.add(place.kind)
                        yield place


def texts_of(database: sqlite3.Connection, table: str, column: str) -> Iterator[Place]:
    for row, value in database.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
        if value is not None and column.endswith("_json"):
            for steps, is_key in leaves(json.loads(value)):
                yield Place(table, column, row, steps, is_key)
        elif value is not None:
            yield Place(table, column, row)


def leaves(value: object, above: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    if isinstance(value, dict | list):
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        for step, inner in steps:
            if isinstance(value, dict):
                yield (*above, step), True
            yield from leaves(inner, (*above, step))
    elif isinstance(value, str):
        yield above, False


def plant(database: sqlite3.Connection, place: Place, planted: str) -> None:
    asked = f"SELECT {place.column} FROM {place.table} WHERE rowid = ?"
    (value,) = database.execute(asked, (place.row,)).fetchone()
    if place.steps is not None:
        content = inner = json.loads(value)
        *way, last = place.steps
        for step in way:
            inner = inner[step]
        if place.is_key:
            inner[last + planted] = inner.pop(last)
        else:
            inner[last] += planted
        value = json.dumps(content)
    elif place.column == "text_deflate":
        text = zlib.decompress(value) + f"Error: {planted}\n".encode()
        value = zlib.compress(text)
        database.execute("UPDATE log SET text_bytes = ? WHERE rowid = ?", (len(text), place.row))
    else:
        value += planted
    database.execute(f"UPDATE {place.table} SET {place.column} = ? WHERE rowid = ?", (value, place.row))


def is_read(path: Path) -> bool:
    try:
        with open_archive(path) as archive:
            read_archive(archive)
    except (PronyError, sqlite3.Error):
        return False
    return True


def planted_in(data: bytes, place: Place, number: int, folder: Path) -> bytes | None:
    """Return an archive with a mark at a place; null: its reader takes no text there but its own."""
    for mark in marks(number):
        # A file of its own: whoever refused the one before may not have closed it.
        tried = folder / f"{number}-{len(mark)}"
        tried.write_bytes(data)
        with closing(sqlite3.connect(tried)) as database, database:
            database.execute("PRAGMA ignore_check_constraints=ON")
            plant(database, place, mark)
        read, changed = is_read(tried), tried.read_bytes()
        tried.unlink()
        if read:
            return changed
    return None


def rename_subjects(database: sqlite3.Connection) -> None:
    """Plant a mark in the name of each: it stands in several places, and must be the same in all."""
    for number, (name,) in enumerate(database.execute("SELECT subject_name FROM subject").fetchall(), 900):
        new = f"{name}{marks(number)[0]}"
        quoted = (f'"{name}"', f'"{new}"')
        database.execute("UPDATE cell SET subject_json = replace(subject_json, ?, ?)", quoted)
        for table in ("cell", "subject"):
            database.execute(f"UPDATE {table} SET subject_name = ? WHERE subject_name = ?", (new, name))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with everything that one may have, and a mark in each text in which its reader takes one."""
    folder = tmp_path_factory.mktemp("planted")
    path = goldens.rich(folder / f"{HOST}.prony")
    with closing(sqlite3.connect(path)) as database, database:
        looked_at = json.dumps(encode(LOOKED_AT))
        database.execute("UPDATE trial SET facts_json = ? WHERE trial_id = 1", (looked_at,))
        rename_subjects(database)
    assert is_read(path)
    data, taken = path.read_bytes(), set()
    # Keys last, the inner ones first: they lead to the others.
    places = sorted(texts(path), key=lambda place: (place.is_key, -len(place.steps or ())))
    for number, place in enumerate(places):
        if changed := planted_in(data, place, number, folder):
            data = changed
            taken.add(place.kind)
    path.write_bytes(data)
    assert len(taken) >= 50
    assert taken >= SHOWN
    return path


@pytest.fixture(params=["sessions", "trend"])
def several(tmp_path: Path, request: pytest.FixtureRequest) -> list[Path]:
    """Two sessions of a plan, or the same cells of two plans, with marks in their texts."""
    paths = [build.study_two(tmp_path / f"al{number}.prony", blocks=1) for number in (7, 8)]
    for number, path in enumerate(paths):
        with closing(sqlite3.connect(path)) as database, database:
            rename_subjects(database)
            database.execute("UPDATE plan SET title = ?, question = ?", (marks(800)[0], marks(801)[0]))
            for table in ("run", "trial"):
                database.execute(f"UPDATE {table} SET started_unix_ns = started_unix_ns + {number * DAY_NS}")
                database.execute(f"UPDATE {table} SET ended_unix_ns = ended_unix_ns + {number * DAY_NS}")
            if request.param == "trend":
                database.execute("UPDATE plan SET name = name || ?", (f"{number}{marks(802)[0]}",))
    return paths


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: HOST)


def report(files: list[Path], **how: Any) -> None:
    command.__wrapped__(files, ReportOptions(**how))


def unpacked(page: str) -> str:
    packed = re.search(r'<script type="text/plain" id="charts">([^<]*)', page)
    charts = gzip.decompress(base64.b64decode(packed[1])).decode() if packed else ""
    return re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL) + charts


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


def test_no_mark_is_in_files_of_several(several: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    report(
        several, html_to=str(tmp_path / "page.html"), csv_to=out / "csv", figures_to=out / "svg", redact=True
    )
    assert leaks(unpacked((tmp_path / "page.html").read_text())) == []
    files = [file for file in out.rglob("*") if file.suffix in (".csv", ".svg")]
    assert len(files) >= 5
    assert [file for file in files if leaks(file.name + file.read_text())] == []


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_no_mark_is_printed_of_several(
    several: list[Path], tmp_path: Path, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    report(several, redact=True, as_json=as_json)
    report(several, markdown_to=str(tmp_path / "page.md"))
    out = capsys.readouterr().out + (tmp_path / "page.md").read_text()
    assert len(out) > 500
    assert leaks(out) == []


def test_no_mark_is_in_the_markdown_of_a_comparison(
    said: Callable[..., Any], planted: Path, tmp_path: Path
) -> None:
    with open_archive(planted) as archive:
        names = [subject.name for subject in archive.plan().subjects()]
    page = tmp_path / "page.md"
    assert said("compare", planted, *names[:2], "--markdown", page).status == 0
    assert leaks(page.read_text()) == []


FORMS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "answer": lambda _: {},
    "full": lambda _: {"full": True},
    "json": lambda _: {"as_json": True},
    "page": lambda out: {"html_to": str(out)},
    "markdown": lambda out: {"markdown_to": str(out)},
    "tables": lambda out: {"csv_to": out},
    "pictures": lambda out: {"figures_to": out},
    "site": lambda out: {"site_to": out},
}


def refuse(files: list[Path], form: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(redaction: Redaction, value: object) -> object:
        redaction._changed(value)
        return value

    monkeypatch.setattr(Redaction, "__call__", forgetful)
    with pytest.raises(HostError, match="nothing is written"):
        report(files, redact=True, **FORMS[form](out))


@pytest.mark.parametrize("form", FORMS)
def test_what_still_has_something_that_was_taken_out_is_not_written(
    form: str,
    planted: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    refuse([planted], form, tmp_path / "out", monkeypatch)
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("form", sorted(FORMS.keys() - {"full", "site"}))
def test_the_same_holds_of_several(
    form: str, several: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(several, form, tmp_path / "out", monkeypatch)
    assert sorted(tmp_path.iterdir()) == several


def test_a_machine_or_a_subject_that_is_called_as_a_word_of_pages_breaks_none() -> None:
    redaction = Redaction("app")
    assert redaction("built on app in /srv/app/x") == "built on HOST in …/x"
    assert redaction.left_in('<p class="app">the app</p>') is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("-I/code/shop/lib", "-I…/lib"),
        ("//home/me/shop", "…/shop"),
        ("see ../../home/me/shop", "see ..…/shop"),
        ("PYTHONPATH=/code/a:/code/b", "PYTHONPATH=…/a:…/b"),
        ("/home//me/shop and /code//a/b", "…/shop and …/b"),
        ("sqlite:////home/me/shop.db unix:///srv/me/shop", "sqlite:…/shop.db unix:…/shop"),
        (r'{"at":"\/home\/me\/shop\/x"}', '{"at":"…/x"}'),
        ("?at=%2Fhome%2Fme%2Fshop", "?at=…/shop"),
        ("file:///home/me/my%20shop/x", "…/x"),
        ("/home/me/a(b)/x /home/my\\ own/x /srv/c/d=[1]/x", "…/x …/x …/x"),
        ("\\" * 200_000, "\\" * 200_000),
        ("as BENCH-7.corp.example:80", "as HOST:80"),
        ("http://example.com/a/b and a/b/c", "http://example.com/a/b and a/b/c"),
        ("bench-7-2, mybench-7", "bench-7-2, mybench-7"),
    ],
)
def test_a_path_and_the_machine_are_known_in_whatever_they_stand(text: str, left: str) -> None:
    assert Redaction("bench-7.corp.example")(text) == left


def test_different_names_stay_different(planted: Path) -> None:
    with open_archive(planted) as archive:
        plan = archive.plan()
    names = {subject.name for subject in plan.subjects()}
    assert len({redaction_for([plan], HOST)(name) for name in names}) == len(names)
