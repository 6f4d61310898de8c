"""Each field of an archive that a resumed study reads, and what an archive from a stranger can make of it.

A field is this machine's, or a name or a value that could have been typed, or it needs consent. What is
otherwise is refused before anything runs, or has no effect.
"""

import json
import sqlite3
from contextlib import closing
from dataclasses import fields

import pytest

from prony import study
from prony.model.exchange import Check, Request
from prony.model.sandbox import SandboxChoice
from prony.model.subject import App, Frontend, Subject
from prony.model.workload import EngineChoice

RUN_STUDY = study.run_study
HELLO = ("--app", "hello", "--servers", "gunicorn", "--sandbox", "process", "--out", "out.prony")
REQUEST = {"method": "GET", "path": "/", "headers": [], "body": None, "keep_alive": True}


def put(archive, column, path, value, role="%"):
    """Put a value at ``path`` of the JSON of a column, in all cells or in those of a role."""
    with closing(sqlite3.connect(archive)) as database, database:
        text = json.dumps(value)
        change = f"UPDATE cell SET {column} = json_set({column}, ?, json(?)) WHERE role LIKE ?"
        assert database.execute(change, (path, text, role)).rowcount > 0


def requests(**others):
    return [{"request": REQUEST | others, "status": None, "body": None}]


def before(entry, variant):
    return {"entry": entry, "variant": variant, "settings": {}}


# By the field: places in the JSON of cells, values that mean harm, and words of the refusal.
PATHS = ("@other.host/", "other.host/", "", "/ HTTP/1.1\r\nHost: x", "/\n@/etc/passwd", "/\0")
METHODS = ("", "GET http://other.host\nPOST", "-X", "@file")
HEADERS = (("", "x"), ("a b", "x"), ("a:b", "x"), ("a\n", "x"), ("a", "b\r\nc: d"), ("a", "\0"))
SUBJECT, LOAD, ENGINE, SANDBOX = "subject_json", "workload_json", "engine_json", "sandbox_json"
REFUSED = [
    *[("Request.path", LOAD, "$.request.path", one, "expected a path that starts with `/`") for one in PATHS],
    *[("Request.method", LOAD, "$.request.method", one, "expected a method") for one in METHODS],
    *[("Request.headers", LOAD, "$.request.headers", [one], "expected headers of one") for one in HEADERS],
    ("Check.request", SUBJECT, "$.app.checks", requests(path="@other.host/"), "expected a path that starts"),
    ("Check.request", SUBJECT, "$.app.checks", requests(method="-X"), "expected a method"),
    ("Subject.server", SUBJECT, "$.server", "no-such-server", "there is no server"),
    ("Subject.server", SUBJECT, "$.server", "../../../tmp/x", "there is no server"),
    ("Subject.server", SUBJECT, "$.server", "gunicorn-gthread", "expected an entry's own name"),
    ("Subject.variant", SUBJECT, "$.variant", "../x", "there is no server"),
    (
        "Subject.frontend",
        SUBJECT,
        "$.frontend",
        {"entry": "../x", "variant": "", "settings": {}},
        "no frontend",
    ),
    ("Frontend.entry", SUBJECT, "$.frontend", {"entry": "sh", "variant": "", "settings": {}}, "no frontend"),
    (
        "Frontend.variant",
        SUBJECT,
        "$.frontend",
        {"entry": "nginx", "variant": "x", "settings": {}},
        "no frontend",
    ),
    ("App.targets", SUBJECT, "$.app.targets", {"wsgi": "os:system('id')"}, "has changed"),
    ("App.requirements", SUBJECT, "$.app.requirements", ["evil @ file:///tmp/evil"], "has changed"),
    ("App.services", SUBJECT, "$.app.services", ["postgres"], "has changed"),
    ("App.digest", SUBJECT, "$.app.digest", "0" * 64, "has changed"),
    ("EngineChoice.name", ENGINE, "$.name", "no-such-engine", "there is no engine"),
    ("EngineChoice.name", ENGINE, "$.name", "/bin/sh", "there is no engine"),
    ("EngineChoice.command", ENGINE, "$.command", "/bin/sh {id}", "found `{id}`"),
    ("EngineChoice.threads", ENGINE, "$.threads", 0, "expected more than 0"),
    ("EngineChoice.threads", ENGINE, "$.threads", 10**9, "1,000,000,000 threads"),
    ("EngineChoice.pacing", ENGINE, "$.pacing", "none", "expected one of"),
    ("Workload.loop", LOAD, "$.loop", {"kind": "closed", "connections": 0}, "expected more than 0"),
    ("Workload.loop", LOAD, "$.loop", {"kind": "closed", "connections": 10**12}, "connections"),
    ("Workload.streams", LOAD, "$.streams", 10**12, "streams"),
    ("Workload.mix", LOAD, "$.mix", {"paths": [{"path": "/", "weight": 1}]}, "expected 2 to 100 paths"),
    *[
        ("Workload.mix", LOAD, "$.mix", {"seed": 1, "paths": [{"path": "/", "weight": 1}, other]}, words)
        for other, words in (
            ({"path": "@other.host/", "weight": 1}, "expected a path"),
            ({"path": "/a", "weight": -1}, "expected a weight"),
        )
    ],
    ("SandboxChoice.kind", SANDBOX, "$.kind", "none", "expected one of"),
    ("SandboxChoice.network", SANDBOX, "$.network", "other", "expected one of"),
    ("SandboxChoice.listen", SANDBOX, "$.listen", "0.0.0.0", "expected one address of this machine"),
    ("SandboxChoice.cpu_quota", SANDBOX, "$.cpu_quota", 0, "a limit of 0 CPUs"),
    ("SandboxChoice.memory_bytes", SANDBOX, "$.memory_bytes", 1, "a limit of 1 bytes of memory"),
    ("SandboxChoice.pids", SANDBOX, "$.pids", 0, "a limit of 0 processes"),
    *[
        ("SandboxChoice.sysctl", SANDBOX, "$.sysctl", [list(one)], "of the kernel; expected")
        for one in (
            ("kernel.core_pattern", "|/tmp/x"),
            ("net.ipv4.ip_forward", "1"),
            ("../../tmp/x", "1"),
            ("net.core.somaxconn", "1;2"),
        )
    ],
    ("Subject.levels", SUBJECT, "$.levels", {"workers": 8}, "has other settings than its levels name"),
]
# What may be, if the user agrees.
CONSENTED = [
    ("SandboxChoice.run_as", SANDBOX, "$.run_as", "root", "servers as the user root"),
    ("SandboxChoice.kind", SANDBOX, "$.kind", "container", "servers in the sandbox container"),
    ("SandboxChoice.network", SANDBOX, "$.network", "host", "servers in the network of the host"),
    ("SandboxChoice.listen", SANDBOX, "$.listen", "127.0.0.1", "servers that listen at 127.0.0.1"),
    ("App.name", SUBJECT, "$.app.name", "../../../tmp/x", "the app "),
    ("App.name", SUBJECT, "$.app.name", "flask-hello", "the app "),
    ("EngineChoice.command", ENGINE, "$.command", "/bin/sh -c id", "the generator /bin/sh -c id"),
]
NO_EFFECT = {
    "Subject.name": "words of the report",
    "App.title": "words of the report",
    "App.folder": "the catalogue's own, or consented to with its targets",
    "App.root": "found in the app's folder",
    "App.environment": "names whose values are typed again",
    "Check.status": "compared",
    "Check.body": "compared",
    "Check.statuses": "compared",
    "Check.headers": "compared",
    "Check.body_contains": "compared",
    "Check.body_sha256": "compared",
    "Request.body": "bytes for one's own server",
    "Request.keep_alive": "yes or no",
    "SandboxChoice.share_cpus": "yes or no",
}
BY_THE_CATALOGUE = {
    "Subject.interface": "one that the entry and this machine's app have",
    "Subject.settings": "parsed as `--set`; texts are consented to",
    "Frontend.settings": "parsed as `--set`; texts are consented to",
}
BY_THEIR_FIELDS = {"Subject.app", "Subject.frontend", "App.contract", "Check.request"}


@pytest.fixture
def begun(run, folder):
    """Return a function that resumes a study of a built-in app after a change of its archive."""
    run(*HELLO)
    archive = folder / "out.prony"
    whole = archive.read_bytes()

    def resumed(column, path, value, *options):
        archive.write_bytes(whole)
        put(archive, column, path, value)
        run.task = None
        return run("--resume", "out.prony", *options)

    return resumed


@pytest.mark.parametrize("field", dict.fromkeys(field for field, *_ in REFUSED))
def test_what_nobody_could_type_is_refused_even_if_all_is_trusted(run, begun, field):
    for _, column, path, value, words in (one for one in REFUSED if one[0] == field):
        done = begun(column, path, value, "--trust-plan")
        assert run.task is None
        assert done.status in (2, 3)
        assert done.err.startswith("error: ")
        assert words in done.err.partition("\n")[0]


def test_what_an_archive_opens_is_shown_and_agreed_to(run, begun):
    for _, column, path, value, words in CONSENTED:
        refused = begun(column, path, value)
        assert (refused.status, run.task) == (2, None)
        assert f"would run or open on this machine:\n  {words}" in refused.err
        assert f"trusted, of `out.prony`:\n  {words}" in begun(column, path, value, "--trust-plan").err


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("$.settings", {"workers": "2; id"}, "expected"),
        ("$.settings", {"workers": 10**9}, "expected"),
        ("$.settings", {"no-such": 1}, "expected one of the settings"),
        ("$.settings", {"worker-class": "os.system"}, "expected one of"),
        ("$.settings", {"tls": "../key.pem"}, "expected"),
        ("$.interface", "psgi", "the server speaks wsgi"),
    ],
)
def test_what_the_catalogue_refuses_is_refused_of_an_archive_too(
    run, said, folder, monkeypatch, path, value, words
):
    run(*HELLO)
    put(folder / "out.prony", SUBJECT, path, value)
    monkeypatch.setattr("prony.study.run_study", RUN_STUDY)
    done = said("run", "--resume", "out.prony", "--force", "--trust-plan")
    assert done.status in (2, 3), done.err
    assert words in done.err
    assert "fault" not in done.err


def test_each_field_that_is_read_is_in_one_of_these_lists():
    read = {
        f"{one.__name__}.{part.name}"
        for one in (Subject, App, Frontend, Check, Request)
        for part in fields(one)
    }
    read |= {f"{one.__name__}.{part.name}" for one in (EngineChoice, SandboxChoice) for part in fields(one)}
    attacked = {field for field, *_ in (*REFUSED, *CONSENTED)}
    assert read - attacked - NO_EFFECT.keys() - BY_THE_CATALOGUE.keys() - BY_THEIR_FIELDS == set()


def test_commands_of_an_archive_run_in_the_folder_that_is_shown_or_typed(run, folder):
    """A catalogue's app is known by its digest: its folder in the archive is neither shown nor used."""
    program = folder / "serve"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    run("--app", "hello", "--servers", "gunicorn", "--command", "mine=./serve {port}", *HELLO[-2:])
    begun = run.task
    put(folder / "out.prony", SUBJECT, "$.app.folder", "/tmp")
    run.task = None
    done = run("--resume", "out.prony", "--trust-plan")
    assert "the command mine=./serve {port}" in done.err
    assert run.task.catalog.servers["mine"] == begun.catalog.servers["mine"]


@pytest.mark.parametrize("role", ["calibration", "cross-check"])
def test_cells_beside_the_grid_are_held_to_the_same(run, folder, role):
    """The reference server's, and those that another generator measures once more."""
    archive = folder / "out.prony"
    run(*HELLO, "--cross-check", "ab")
    whole = archive.read_bytes()
    for column, path, value, words in (
        (SUBJECT, "$.app.targets", {"wsgi": "os:system('id')"}, "has changed"),
        (LOAD, "$.request.path", "@other.host/", "expected a path"),
        (ENGINE, "$.name", "/bin/sh", "there is no engine"),
        (SANDBOX, "$.run_as", "root", "would run or open on this machine"),
    ):
        archive.write_bytes(whole)
        put(archive, column, path, value, role)
        run.task = None
        done = run("--resume", "out.prony")
        assert run.task is None
        assert words in done.err.partition("\n")[0]


def test_of_a_key_that_stands_twice_the_value_that_is_checked_is_the_one_that_is_used(run, folder):
    run(*HELLO)
    with closing(sqlite3.connect(folder / "out.prony")) as database, database:
        evil = '"targets":{"wsgi":"os:system(1)"},"targets":{'
        database.execute("UPDATE cell SET subject_json = replace(subject_json, '\"targets\":{', ?)", (evil,))
    run("--resume", "out.prony")
    assert all("system" not in str(cell.subject.app.targets) for cell in run.task.plan.cells)


def test_requests_to_ones_own_app_are_shown_before_they_are_sent(run, folder):
    own = ("--app", "shop:app", "--servers", "wsgiref", "--out", "out.prony")
    run(*own)
    assert "requests to your app" not in run("--resume", "out.prony", *own[:2]).err
    put(folder / "out.prony", LOAD, "$.request.method", "DELETE")
    put(folder / "out.prony", LOAD, "$.request.path", "/all\u202e")
    done = run("--resume", "out.prony", *own[:2])
    assert "requests to your app, of `out.prony`:\n  DELETE /all\\u202e\n" in done.err


def test_imports_of_ones_own_app_begin_where_its_folder_says_now_too(run, folder):
    own = ("--app", "counter:app", "--servers", "wsgiref", "--out", "out.prony")
    (folder / "src").mkdir()
    (folder / "src/counter.py").write_text("def app(environ, start_response): ...\n")
    run(*own)
    put(folder / "out.prony", SUBJECT, "$.app.root", "../../tmp")
    run("--resume", "out.prony", *own[:2])
    assert {cell.subject.app.root for cell in run.task.plan.cells} == {"src"}
