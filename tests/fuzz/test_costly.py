"""Archives of at most 5 MB with as much as they may hold, of what costs most to read: 10 s, 500 MiB."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from commands import COLUMNS
from fuzz import workers
from fuzz.mutants import changed
from fuzz.workers import Done
from golden.build import study_two
from prony.core.units import KIB, MIB

TEXT_BYTES = 192 * KIB
STEPS = [{"rate_per_s": 100.0, "met": True}] * 20_000


def text(table, column, part):
    """Return a change that fills a text with a part, again and again."""

    def change(place):
        full = part * (TEXT_BYTES // len(part.encode()))
        failed = "outcome = 'failed', outcome_stage = 'load', " if column == "outcome_reason" else ""
        changed(place, (f"UPDATE {table} SET {failed}{column} = ?", full))

    return change


def whole(table, column, value):
    return lambda place: changed(place, (f"UPDATE {table} SET {column} = ?", json.dumps(value)))


def more_in(table, column, more):
    """Return a change that puts more keys into an object of each row."""

    def change(place):
        with closing(sqlite3.connect(place)) as database:
            rows = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        for row, found in rows:
            filled = json.dumps({**json.loads(found), **more})
            changed(place, (f"UPDATE {table} SET {column} = ? WHERE rowid = ?", filled, row))

    return change


def counters(place):
    with closing(sqlite3.connect(place)) as database, database:
        trials = [trial for (trial,) in database.execute("SELECT trial_id FROM trial WHERE outcome = 'ok'")]
        rows = [(trial, f"c{k}", k) for trial in trials[:3] for k in range(9000)]
        database.executemany("INSERT OR IGNORE INTO counter VALUES (?, ?, ?, NULL)", rows)


def runs(place):
    with closing(sqlite3.connect(place)) as database, database:
        (first,) = database.execute("SELECT * FROM run LIMIT 1").fetchall()
        marks = ", ".join("?" * len(first))
        database.executemany(
            f"INSERT INTO run VALUES ({marks})", [(1000 + k, *first[1:]) for k in range(900)]
        )


CODE = {"samples": 9, "shares": {"app": 0.9}, "slowed": None, "missing": ""}
LISTENER = {"role": "server", "kind": "tcp4", "queue_count": 9, "limit_count": 128, "waiting_count": 1}
FULL = {
    **{
        f"reasons of {part[:8]!r}": text("trial", "outcome_reason", part)
        for part in ("/home/a", "../", "-L", "'/home/", "a/b ", "/", "e\u0301", "http://a@", "\\\\", "(('")
    },
    **{
        f"a question of {part[:8]!r}": text("plan", "question", part)
        for part in ("w", "word ", "e" + "\u0301" * 50, "\u4e2d", "**", "[a](", "<b>", "`", "_ ")
    },
    "a title": text("plan", "title", "word "),
    "a command": text("subject", "command_line", "a "),
    "programs that were asked": whole("trial", "facts_json", {"asked": [
        {"role": "database", "name": f"n{k}", "place": f"p{k}", "connections": 1} for k in range(1900)
    ]}),
    "places in code": whole("trial", "facts_json", {"code": {**CODE, "hottest": [
        {"kind": "app", "function": f"f{k}", "place": "a:1", "share": 0.0001} for k in range(1900)
    ]}}),
    "listeners": whole("trial", "facts_json", {"strays": 0, "listeners": [
        {**LISTENER, "address": f"127.0.0.1:{k}", "inode": k} for k in range(1000)
    ]}),
    "other facts": whole("trial", "facts_json", {f"k{k}": k for k in range(9000)}),
    "facts in facts": whole("trial", "facts_json", {"a": [[[[[k]]]] for k in range(1500)]}),
    "packages": whole("subject", "packages_json", {f"p{k}": "1.0" for k in range(9000)}),
    "settings": whole("subject", "settings_json", {f"p{k}": k for k in range(9000)}),
    "notes": whole("plan", "notes_json", [f"note {k}" for k in range(900)]),
    "published figures": whole("plan", "originals_json", [
        {"subject": "gunicorn+*", "metric": "ok_per_s", "value": 1.0, "load": {}} for _ in range(15_000)
    ]),
    "facts of a machine": more_in("run", "fingerprint_json", {f"k{k}": {"a": k} for k in range(45_000)}),
    "paths of a mix": more_in("cell", "workload_json", {"mix": {
        "seed": 1, "paths": [{"path": f"/{k}", "weight": 1} for k in range(4900)]
    }}),
    "steps of a search": whole("run", "facts_json", {"found_rates": [
        {"subject": "gunicorn+falcon-hello", "rate_per_s": 1.0, "met": 1, "tried": 1, "steps": STEPS}
    ]}),
    "counters": counters,
    "runs": runs,
}  # fmt: skip
COMMANDS = {
    "report": ("report", "out.prony"),
    "why": ("why", "out.prony"),
    "text": ("report", "out.prony", "--full", "--redact"),
    "page": ("report", "out.prony", "--html", "out.html", "--redact"),
    "json": ("report", "out.prony", "--json"),
}
# In CI one that no cap refuses and one of texts that a pattern could try again and again.
QUICK = {("reasons of '/home/a'", "text"), ("settings", "report")}


# A program that is executed begins with the peak of who executes it: that must be a small one.
SMALL = """
import json, resource, subprocess, sys
status = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump([status, used.ru_utime + used.ru_stime, used.ru_maxrss], file)
"""


def ended(words, folder):
    """Run a command as users do, and return what it took."""
    command = [sys.executable, "-S", "-c", SMALL, folder / "used", sys.executable, "-m", "prony", *words]
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "PRONY_CACHE": str(folder / "cache")}
    done = subprocess.run(command, capture_output=True, cwd=folder, env=environment, check=True)
    status, used_s, peak = json.loads((folder / "used").read_text())
    return Done(status, len(done.stdout), done.stderr.decode(), used_s, peak * KIB)


@pytest.mark.parametrize(
    ("what", "command"),
    [
        pytest.param(what, name, marks=() if (what, name) in QUICK else pytest.mark.slow)
        for what in FULL
        for name in COMMANDS
    ],
)
def test_what_an_archive_may_hold_costs_ten_seconds_and_500_mib_at_most(what, command, tmp_path: Path):
    file = study_two(tmp_path / "out.prony")
    FULL[what](file)
    assert file.stat().st_size <= 5 * MIB
    done = ended(COMMANDS[command], tmp_path)
    assert workers.breaches(done) == [], done.err[-500:]
