"""What the archive of a stranger can make of the command that its user types: nothing but another study."""

import json
import sqlite3
from contextlib import closing

import pytest

from prony.cli.run_checks import goes_on
from prony.core.errors import UsageError

TYPED = (
    *("--app", "hello", "--servers", "gunicorn@nginx", "--sandbox", "process", "--set", "gunicorn.threads=2"),
    *("-H", "X-Shop: 1", "--path", "/=9", "--path", "/a=1", "--cross-check", "ab", "--out", "out.prony"),
)
TABLES = {
    "cell": ("subject_json", "workload_json", "engine_json", "sandbox_json"),
    "plan": ("design_json", "claims_json", "originals_json", "notes_json"),
}


@pytest.fixture
def begun(run, folder):
    """Return the study that was typed, of which the archive has one trial."""
    run(*TYPED)
    return run.task


def changed(file, statement, *values):
    with closing(sqlite3.connect(file)) as database, database:
        assert database.execute(statement, values).rowcount > 0


def texts(file):
    """Yield each JSON text of the plan in an archive: its table, its row, its column, and itself."""
    with closing(sqlite3.connect(file)) as database:
        for table, columns in TABLES.items():
            for row, *found in database.execute(f"SELECT rowid, {','.join(columns)} FROM {table}"):
                for column, text in zip(columns, found, strict=True):
                    yield table, row, column, json.loads(text)


def places(value, path="$"):
    """Yield the path of each value in JSON that has no others inside."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places(part, f"{path}[{key}]" if isinstance(value, list) else f'{path}."{key}"')
    if not inside:
        yield path


OTHERS = ("os:system('id')", 7, ["/tmp/evil"])


@pytest.mark.parametrize("other", OTHERS)
def test_no_value_of_a_plan_can_be_changed_in_an_archive(begun, other):
    """Each is refused: it is no plan's, or another's. What an archive would run can never be what runs."""
    whole = begun.out.read_bytes()
    changes = [(*place, path) for *place, value in texts(begun.out) for path in places(value)]
    assert len(changes) > 150
    for table, row, column, path in changes:
        statement = f"UPDATE {table} SET {column} = json_set({column}, ?, json(?)) WHERE rowid = ?"
        changed(begun.out, statement, path, json.dumps(other), row)
        with pytest.raises(UsageError, match=r"`out\.prony` (holds another study|exists already)"):
            goes_on(begun.out, begun.plan, begun.cross_checks)
        begun.out.write_bytes(whole)
    assert goes_on(begun.out, begun.plan, begun.cross_checks)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE plan SET seed = 2",
        "UPDATE plan SET blocks_count = 9",
        "UPDATE plan SET profile = 'full'",
        "UPDATE cell SET role = 'subject' WHERE role = 'calibration'",
        "DELETE FROM cell WHERE role = 'cross-check'",
    ],
)
def test_no_number_of_a_plan_can_be_changed_in_an_archive(run, begun, statement):
    changed(begun.out, statement)
    run.task = None
    done = run(*TYPED, "--force")
    assert (done.status, run.task) == (2, None)
    assert "`out.prony` holds another study: " in done.err


def test_what_an_archive_says_of_its_command_has_no_effect(run, begun):
    changed(begun.out, "UPDATE plan SET text = 'prony run --command ./evil'")
    assert run(*TYPED).status == 130
    assert run.task.resumes
    assert (run.task.plan, run.task.catalog) == (begun.plan, begun.catalog)


def test_a_difference_cannot_hide_itself(run, begun):
    target = json.dumps("app:app\x1b[2K\r\u202e")
    changed(
        begun.out,
        "UPDATE cell SET subject_json = json_set(subject_json, '$.app.targets.wsgi', json(?))",
        target,
    )
    done = run(*TYPED)
    assert ".0.subject.app.targets.wsgi was " in done.err
    assert "\x1b" not in done.err
    assert "\u202e" not in done.err


def test_of_a_key_that_stands_twice_nothing_is_used(run, begun):
    evil = '"targets":{"wsgi":"os:system(1)"},"targets":{'
    changed(begun.out, "UPDATE cell SET subject_json = replace(subject_json, '\"targets\":{', ?)", evil)
    run(*TYPED)
    assert run.task.plan == begun.plan
