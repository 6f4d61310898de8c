"""What a check makes of a trial: passed, or at which stage it failed and why."""

from dataclasses import replace
from pathlib import Path

import pytest

from prony.catalog.schema.loader import load_catalog
from prony.cli.documents.servers import check_json, checks_document
from prony.core.errors import UsageError
from prony.figures.account import RequestClass
from prony.model.address import TlsKey, Wire
from prony.model.observation import LogTail
from prony.model.subject import Interface
from prony.model.trial import Failed, Invalid, Ok, Trial, TrialRole
from prony.report.formats.markdown import markdown
from prony.sandbox.pipe import StopReport
from prony.study.catalog_check import ServerCheck, names_to_check, subjects_to_check, verdict_of
from prony.study.trial import Stay
from recordings import recording_of

FOUND = ServerCheck("wsgiref", Interface.WSGI, "1.0")
STOPPED = StopReport("ended", 0.1)


def trial(outcome=Ok(), log="", **account):  # noqa: B008
    told = {"scheduled": sum(account.values()), "bad_status": {}, **account}
    recording = recording_of(account=told) if account else None
    return Trial(0, 0, 0, 0, TrialRole.SUBJECT, outcome, 0, 0, recording=recording, log=LogTail(log))


def test_right_answers_to_all_requests_pass():
    found = verdict_of(FOUND, Stay(trial(ok=1000), 250_000_000, STOPPED))
    assert found.passed
    assert (found.ok, found.failed, found.ready_s, found.stopped) == (1000, 0, 0.25, STOPPED)


def test_a_rare_named_failure_passes_and_is_kept():
    found = verdict_of(FOUND, Stay(trial(ok=9999, reset=1), 1, STOPPED))
    assert found.passed
    assert found.failures == {RequestClass("reset"): 1}


def test_a_request_left_on_each_connection_passes_even_where_few_were_answered():
    assert verdict_of(FOUND, Stay(trial(ok=100, timed_out=3), 1, STOPPED)).passed


@pytest.mark.parametrize(
    ("account", "told"),
    [
        ({"ok": 900, "reset": 100}, "100 of 1000 requests failed"),
        ({"ok": 99_999, "failed_validation": 1}, "1 of 100000 replies were wrong"),
        ({"ok": 99_999, "client_other": 1}, "1 requests failed for an unknown reason"),
        ({"ok": 0, "reset": 3}, "no request was answered"),
    ],
)
def test_what_failed_under_load_is_told(account, told):
    found = verdict_of(FOUND, Stay(trial(log="last words", **account), 1, STOPPED))
    assert (found.stage, found.reason, found.log) == ("load", told, "last words")


def test_a_request_that_no_class_counts_is_a_failure_without_a_name():
    done = trial(ok=5, scheduled=6)
    assert "for an unknown reason" in verdict_of(FOUND, Stay(done, 1, STOPPED)).reason


@pytest.mark.parametrize(
    ("outcome", "stage", "reason"),
    [
        (Failed("start", "exited with status 7"), "start", "exited with status 7"),
        (Invalid("no port"), "load", "not measured: no port"),
    ],
)
def test_the_trials_own_fault_comes_first(outcome, stage, reason):
    found = verdict_of(FOUND, Stay(trial(outcome), None, None))
    assert (found.stage, found.reason, found.ready_s) == (stage, reason, None)


def test_processes_that_are_still_there_are_a_failure():
    assert verdict_of(FOUND, Stay(trial(ok=10), 1, STOPPED), ["worker (7)"]).stage == "stop"


def test_what_speaks_tls_is_checked_once_more_with_it():
    catalog = load_catalog(found=Path("/nowhere"))
    app = catalog.app("hello")
    names = ("uvicorn", "waitress", "gunicorn@nginx", "uwsgi-socket@nginx", "gunicorn-gthread")
    rows = list(subjects_to_check(catalog, names, app))
    encrypted = {
        one.name
        for one in rows
        if "tls" in {**one.settings, **(one.frontend.settings if one.frontend else {})}
    }
    assert encrypted == {"uvicorn", "gunicorn@nginx"}


def test_a_row_with_tls_says_so():
    found = replace(verdict_of(FOUND, Stay(trial(ok=10), 1, STOPPED)), wire=Wire.HTTP, tls=TlsKey.ECDSA)
    assert check_json(found)["tls"] == "ecdsa"
    assert "http, TLS" in markdown(checks_document([found]))


def test_what_speaks_http2_is_checked_with_tls_and_without_where_it_can():
    catalog = load_catalog(found=Path("/nowhere"))
    names = ("node-http", "go-net-http", "mod-wsgi-express", "uwsgi-socket@nginx", "gunicorn@nginx")
    rows = list(subjects_to_check(catalog, names, catalog.app("hello")))
    spoken = [
        (one.name, "tls" in around)
        for one in rows
        for around in [{**one.settings, **(one.frontend.settings if one.frontend else {})}]
        if around.get("wire") == "http2" or around.get("http2")
    ]
    assert spoken == [
        ("node-http", False),
        ("node-http", True),
        ("go-net-http", True),
        ("mod-wsgi-express", False),
        ("gunicorn@nginx", False),
        ("gunicorn@nginx", True),
    ]


def test_a_row_behind_a_frontend_says_what_clients_speak():
    found = replace(verdict_of(FOUND, Stay(trial(ok=10), 1, STOPPED)), wire=Wire.UWSGI, clients=Wire.HTTP2)
    assert check_json(found)["clients"] == "http2"
    assert "uwsgi, HTTP/2" in markdown(checks_document([found])).replace("\\", "")


def test_only_the_last_lines_of_a_log_are_kept():
    log = "\n".join(str(line) for line in range(100))
    assert verdict_of(FOUND, Stay(trial(Failed("start", "x"), log), None, None)).log.splitlines()[0] == "80"


def test_without_names_all_built_in_servers_and_variants_are_checked():
    names = names_to_check(load_catalog(), ())
    assert {"wsgiref", "gunicorn", "gunicorn-gthread", "gunicorn-embedded"} <= set(names)
    assert len(names) == len(set(names))


def test_an_entrys_name_means_its_variants_and_a_variants_name_itself():
    catalog = load_catalog()
    assert names_to_check(catalog, ["uvicorn"]) == ("uvicorn", "uvicorn-quiet")
    assert names_to_check(catalog, ["uvicorn-quiet", "wsgiref"]) == ("uvicorn-quiet", "wsgiref")
    with pytest.raises(UsageError, match="there is no server `nothing`"):
        names_to_check(catalog, ["nothing"])


def test_a_server_that_needs_a_frontend_is_checked_behind_it():
    catalog = load_catalog()
    assert names_to_check(catalog, ["php-fpm-static"]) == ("php-fpm-static@nginx",)
    (alone, *variants) = names_to_check(catalog, ["php-fpm"])
    assert alone == "php-fpm@nginx"
    assert all(name.endswith("@nginx") for name in variants)


def test_the_document_has_a_row_for_each_and_reason_and_log_for_what_failed():
    failed = verdict_of(FOUND, Stay(trial(Failed("start", "exited with status 7"), "last words"), None, None))
    text = markdown(checks_document([verdict_of(FOUND, Stay(trial(ok=10), 1, STOPPED)), failed]))
    assert "checked, these failed: " in text
    assert "failed at start: exited with status 7" in text
    assert "last words" in text


def test_a_check_is_also_data():
    data = check_json(verdict_of(FOUND, Stay(trial(ok=10), 500_000_000, STOPPED)))
    assert (data["passed"], data["ready_s"], data["reason"]) == (True, 0.5, None)
    assert data["stopped"] == {"how": "ended", "seconds": 0.1, "killed": 0}
