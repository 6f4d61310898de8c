"""A page that can be committed as it is: no path and no name of the machine, all that was asked of it."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from golden import build, generators, studies
from prony.archive import open_archive
from prony.model.facts import Fingerprint
from prony.reading.study import read_archive
from prony.reading.traces import primary_cells, traces
from prony.report.formats.markdown import markdown
from prony.report.page.study import page_of_study
from prony.report.publication import Redaction, redaction_for
from prony.report.study import full_page


def page_of(path, host="bench-7"):
    with open_archive(path) as archive:
        reading = read_archive(archive)
    return markdown(full_page(redaction_for([reading.plan], host)(reading)))


@pytest.mark.parametrize(
    "said, shown",
    [
        ("/home/me/shop/app.py:3", "…/app.py:3"),
        ('File "/var/cache/prony/env/lib/a.py", line 1', 'File "…/a.py", line 1'),
        ("unix:/tmp/prony-x/run/server.sock failed", "unix:…/server.sock failed"),
        ("--chdir=/srv/acme", "--chdir=…"),
        ("a:/home/me/x.py:/home/me/y", "a:…/x.py:…/y"),
        ("see file:///home/me/x.py", "see …/x.py"),
        ("`/home/me/my shop/x.py`: no", "`…/x.py`: no"),
        ("in ~/shop/x.py or ~you/x.py", "in …/x.py or …/x.py"),
        ("/home/me", "…"),
        ("http://127.0.0.1:80/api/v1/users", "http://127.0.0.1:80/api/v1/users"),
        ("GET /api/items", "GET /api/items"),
        ("raise /proc/sys/net/core/somaxconn", "raise /proc/sys/net/core/somaxconn"),
        ("/usr/lib/python3/dist-packages/a.py", "/usr/lib/python3/dist-packages/a.py"),
    ],
)
def test_paths_are_cut_to_their_last_part(said, shown):
    assert Redaction("bench-7", frozenset({"/api/items"}))(said) == shown


def test_a_log_with_paths_and_the_machines_name_gives_a_page_without(tmp_path):
    load = build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
    cell = build.Cell(1, build.subject("a+x"), load)
    plan = build.Plan("study", "", "", "quick", (cell,), 1, 1)
    log = 'Traceback\n  File "/home/me/secret/place/app.py", line 1\nKeyError: bench-7 has no DNS\n'
    with build.create(tmp_path / "a.prony", plan, Fingerprint()) as writer:
        writer.append(build.trial(cell, 0, 0, [], outcome=build.Failed("start", "no"), log=log))
    text = page_of(tmp_path / "a.prony")
    assert "No answer: no trial counts." in re.sub(r"\[(\w+)\]\(#\w+\)", r"\1", text)
    assert "secret" not in text
    assert "bench-7" not in text
    assert "…/app.py" in text


def test_reasons_commands_and_pages_name_neither_paths_nor_users_nor_the_machine(tmp_path):
    path = build.study_two(tmp_path / "a.prony")
    reason = "cannot write `/home/alice/zanzibar/acme/serve.py` on bench-7, see file:///home/alice/g.py"
    command = "x --chdir=/srv/acme --bind bench-7:80 --config file:/home/alice/g.py --path /a/b/c:~/acme/d"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE trial SET outcome_reason = ? WHERE outcome = 'failed'", (reason,))
        database.execute("UPDATE subject SET command_line = ?", (command,))
    with open_archive(path) as archive:
        reading = read_archive(archive)
        found = traces(reading, archive.trials(), primary_cells(reading.groups))
    reading, found = redaction_for([reading.plan], "bench-7")((reading, found))
    for text in (markdown(full_page(reading)), page_of_study(reading, found, passed_on=True)):
        assert "…/serve.py" in text
        assert "--bind HOST:80" in text
        assert not [one for one in ("alice", "acme", "bench-7", "zanzibar") if one in text]


@pytest.mark.parametrize("study", [studies.grid_study, studies.count_study, generators.generators_study])
def test_a_page_tells_the_machine_the_order_and_what_held_and_no_place(study, tmp_path):
    text = page_of(study(tmp_path / "a.prony"))
    assert "AMD EPYC 7B13, 2 CPUs, 8.00 GiB" in text
    assert "in random order (seed" in text
    assert "Repeats " in text
    assert not re.search(r"(?<![\w.:/…])/(home|root|tmp|var|work|run)/", text)
    assert str(tmp_path) not in text


def test_a_page_begins_with_the_answer(tmp_path):
    text = page_of(build.closed_study(tmp_path / "a.prony"))
    assert re.findall(r"^## (.*)$", text, re.MULTILINE)[:2] == ["Answer", "What was measured"]
    assert text.count("## Answer") == 1


def test_the_page_of_a_repeat(tmp_path, update_golden):
    text = page_of(studies.grid_study(tmp_path / "a.prony"))
    text = re.sub(r"Measured on [^\n]+", "Measured on DATE.", text)
    text = re.sub(r"virtual machine; \d{4}-\d\d-\d\d\.", "virtual machine; DATE.", text)
    golden = Path(__file__).parents[1] / "golden" / "grid_study.md"
    if update_golden:
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")
