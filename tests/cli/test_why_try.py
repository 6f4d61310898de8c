"""`prony why --try` turns a setting of this machine's catalogue; an archive says nothing that is executed."""

from dataclasses import replace
from pathlib import Path

import pytest

from golden import build
from prony.catalog.schema.loader import load_catalog
from prony.cli.trying import WhyOptions
from prony.cli.why_try import _as_run, _turned
from prony.core.errors import UsageError
from prony.diagnosis.cpu_time import FEWER_WORKERS
from prony.diagnosis.evidence import Confidence, Finding
from prony.diagnosis.memory import ENDED_UNDER_LOAD
from prony.diagnosis.started_under_load import READ_LOG_FOR_LIMITS
from prony.diagnosis.waiting import ADD_THREADS
from prony.model.subject import Interface, Subject

KNOWN = load_catalog(())
GUNICORN = KNOWN.servers["gunicorn"].settings


def because(advice):
    return Finding(ENDED_UNDER_LOAD, Confidence.LIKELY, advice=advice)


@pytest.mark.parametrize(
    ("key", "now", "advice", "value"),
    [
        ("threads", 4, ADD_THREADS, "8"),
        ("workers", 8, FEWER_WORKERS, "4"),
        ("workers", 1, FEWER_WORKERS, None),
        ("threads", 1024, ADD_THREADS, None),
        ("max_requests", 100, READ_LOG_FOR_LIMITS, "10000000"),
        ("access_log", True, None, "off"),
        ("reuse_port", False, None, "on"),
        ("worker_class", "sync", None, None),
        ("max_requests", None, READ_LOG_FOR_LIMITS, None),
    ],
)
def test_a_setting_is_turned_to_where_the_advice_points(key, now, advice, value):
    assert _turned(GUNICORN[key], now, because(advice)) == value


def cell(app, targets, **subject):
    """A cell of an archive: an app with these targets on Gunicorn."""
    made = replace(build.app("x"), name=app, targets=targets, folder="/tmp/evil")
    own = Subject(f"gunicorn+{app}", "gunicorn", made, Interface.WSGI, **subject)
    load = build.Workload(build.ClosedLoop(7), build.DurationStop(2 * build.SECOND))
    return build.Cell(1, own, load)


def again(app=None):
    return WhyOptions(app=app, directory=Path("mine"))


def test_what_is_executed_is_what_was_typed_and_never_what_an_archive_says():
    evil = cell("evil", {Interface.WSGI: "os:system"})
    with pytest.raises(UsageError, match="no archive says what is executed here"):
        _as_run(evil, KNOWN, again())
    with pytest.raises(UsageError, match="no archive says what is executed here"):
        _as_run(evil, KNOWN, again("shop:app"))
    options = _as_run(cell("shop", {Interface.WSGI: "shop:app"}), KNOWN, again("shop:app"))
    assert (options.own.app, options.own.directories) == ("shop:app", [Path("mine")])
    assert options.own.commands is None
    built_in = _as_run(cell("hello", {Interface.WSGI: "os:system"}), KNOWN, again())
    assert (built_in.own.app, built_in.own.servers) == ("hello", "gunicorn")


def test_the_same_load_and_settings_are_asked_for_again():
    turned = cell("hello", {}, settings={"threads": 4}, levels={"threads": 4})
    named = replace(turned, subject=replace(turned.subject, name="gunicorn[threads=4]+hello"))
    options = _as_run(named, KNOWN, again())
    assert options.own.servers == "gunicorn"
    assert options.what.settings == ["gunicorn.threads=4"]
    assert (options.load.connections, options.load.rate, options.load.duration) == ("7", None, "2000ms")
    with pytest.raises(UsageError, match="variables or texts of its own"):
        _as_run(cell("hello", {}, levels={"env.PATH": "/tmp"}), KNOWN, again())


def test_a_cause_without_a_setting_is_left_open(said, tmp_path):
    archive = build.study_two(tmp_path / "a.prony")
    done = said("why", archive, "wsgiref+falcon", "--try")
    assert done.status == 3
    assert "cannot tell: no setting of the catalogue" in done.out or "cannot tell: no cause" in done.out
    assert "`--try` takes one subject under one load" in said("why", archive, "--try").err
    assert "only work with `--try`" in said("why", archive, "--app", "shop:app").err
