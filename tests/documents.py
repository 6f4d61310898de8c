"""Documents that are no study's report, each with the JSON that its command prints with --json."""

import contextlib
import io
import json
from dataclasses import replace
from functools import partial

import pytest

from cli import test_compare, test_compare_loads, test_report_sessions, test_selftest, test_selftest_planted
from cli.documents import test_calibration_report
from figures import test_load_pairs
from golden import build
from histograms import distribution
from prony.cli import main as entry
from prony.cli.documents.calibration import calibration_document, host_document, host_json
from prony.cli.documents.servers import check_json, checks_document
from prony.core.errors import FailureStage
from prony.figures import noise_floor
from prony.figures.account import RequestClass
from prony.figures.objective import parse_load_condition
from prony.machine.checks import HostCheck
from prony.model.json_codec import encode
from prony.model.limit import Limit, LimitKind
from prony.model.subject import Interface
from prony.model.workload import ConnectionStage, RateStage, UserGroup
from prony.reading.load import read_load
from prony.report.compare import compare_document
from prony.report.document import Document, Section
from prony.report.formats.as_json import document_json
from prony.report.formats.terminal import TerminalReporter
from prony.report.load import load_document
from prony.report.tune import answer_document
from prony.sandbox.pipe import StopReport
from prony.study.calibration import to_json
from prony.study.catalog_check import ServerCheck
from recordings import with_parts
from tune import test_tune_answer, test_tune_trying

__all__ = ["REPORTS"]

MS = 1_000_000


# --- prony load -------------------------------------------------------------------------------------------


CONDITIONS = ("p99 > 50ms", "p99.99 > 50ms", "errors > 0.1%", "rate < 2k", "max of all > 1s")


def load(loop, ok, errors=None, censored=(), conditions=CONDITIONS, users=(), **changes):
    workload = build.Workload(loop, build.DurationStop(build.SECOND), groups=users)
    spec = {"target": {"host": "127.0.0.1", "port": 8000}, "workload": encode(workload)}
    recording = with_parts(build.recording(workload, ok, errors, censored), spec=spec, **changes)
    reading = read_load(recording, [parse_load_condition(text) for text in conditions])
    return load_document(reading), document_json(reading)


SPREAD = [MS + 7919 * k % (20 * MS) for k in range(12_000)]
SAMPLES = [{"class": "reset", "detail": f"os error {104 + k % 2}", "at_ns": k} for k in range(5)]
COSTS = {
    **build.told_limit(Limit(LimitKind.LATE, lag_ns=12_500_000, percentile=99)),
    "cpu_ns_per_request": 9100.5,
    "spin_share": 0.31,
}

STAGES = (RateStage(500 * MS, 20.0, 20.0), RateStage(500 * MS, 20.0, 12_500.0))
STAGE_FIGURES = [
    {
        **{"begin_ns": 500 * MS * k, "duration_ns": 500 * MS, "from_per_s": 20.0, "to_per_s": rate},
        **{"scheduled": ok + 25, "sent": ok + 20, "ok": ok, "failed": 5},
        "ok_response": distribution(SPREAD[:ok]),
        "censored_response": distribution([2_000_000_000] * 20),
    }
    for k, (rate, ok) in enumerate(((20.0, 10), (12_500.0, 3130)))
]

CONNECTION_STAGES = (ConnectionStage(500 * MS, 20, 20), ConnectionStage(500 * MS, 20, 12_500))
CONNECTION_STAGE_FIGURES = [
    {
        **{"begin_ns": 500 * MS * k, "duration_ns": 500 * MS},
        **{"from_connections": 20, "to_connections": most},
        **{"scheduled": ok + 25, "sent": ok + 20, "ok": ok, "failed": 5},
        "ok_service": distribution(SPREAD[:ok]),
        "censored_service": distribution([2_000_000_000] * 20),
    }
    for k, (most, ok) in enumerate(((20, 10), (12_500, 3130)))
]


def load_pairs():
    pairs = test_load_pairs.pairs(test_load_pairs.CLOSED, 1.1, errors={"reset": 1})
    found = test_load_pairs.compare(pairs, dropped=2)
    found = replace(found, sides=tuple(replace(side, limited=3) for side in found.sides))
    return compare_document(found), document_json(found)


MACHINES = [
    {
        **{"name": f"generator-{k + 1}", "requests": 1570 + k, "ok": 1545, "start_skew_ns": skew_ns},
        **{"ok_p50_ns": 1_234_000 + k, "ok_p99_ns": 15_600_000 + k, "as_root": k == 1},
        **{"clock_bound_ns": 431_000 + k, "clock_drift_ppm": [-0.5, 1.5], "limited": limited},
        "evidence": [{"kind": "busy", "level": limited, "share": 0.83}] if limited != "no" else [],
        "fingerprint": {
            **{"machine": "x86_64", "kernel": {"release": "6.1.0-28"}, "memory": {"total_bytes": 2**33}},
            "cpu": {"model": ("AMD EPYC", "Intel Xeon")[k], "available": 4 * (k + 1)},
        },
    }
    for k, (skew_ns, limited) in enumerate(((-12_500, "no"), (1_250_000, "suspect")))
]
LOST = {"name": "generator-3", "lost": "no sign of life"}


def of_statuses():
    """A load of few replies of one status, many of another, and one that was cut."""
    few, many = SPREAD[:12], SPREAD[:3140]
    times = {name: distribution(many) for name in ("ok_response", "ok_service")}
    other = {name: distribution(few) for name in ("other_response", "other_service")}
    nothing = {"requests": 0, "ok": 0, "carried_in": 0, "carried_in_ok": 0, "body_received": 0}
    statuses = {
        "200": {**nothing, **{"requests": 3140, "ok": 3140, "body_received": 9 * 3140}, **times},
        "503": {**nothing, "requests": 12, **other},
        "none": {**nothing, "requests": 1},
    }
    whole = {"ok_response": distribution(many), "ok_service": distribution(many)}
    errors = {"bad_status": {"503": 12}, "eof": 1}
    return load(build.OpenLoop(12_500.0), many, errors, statuses=statuses, distributions=whole)


def of_groups():
    """A load of near users, and of a few far ones of which one got no reply."""
    users = (UserGroup("near", 3.0), UserGroup("far", 1.0, delay_ns=80 * MS))
    times, errors = (SPREAD[:2355], [80 * MS + one for one in SPREAD[:785]]), ({}, {"reset": 1})
    loop = build.OpenLoop(12_500.0)
    parts = [
        build.wire(build.Workload(loop, build.DurationStop(build.SECOND)), ok, failed, (), None, ())
        for ok, failed in zip(times, errors, strict=True)
    ]
    groups = [
        {
            "name": one.name,
            "connections": 8,
            **{key: part[key] for key in ("account", "bytes", "distributions")},
        }
        for one, part in zip(users, parts, strict=True)
    ]
    for name in ("connect", "send_lag"):
        parts[1]["distributions"][name] = distribution([])
    bytes_of_all = {key: sum(part["bytes"][key] for part in parts) for key in parts[0]["bytes"]}
    return load(loop, [*times[0], *times[1]], errors[1], users=users, groups=groups, bytes=bytes_of_all)


LOADS = {
    "several generators": partial(
        load, build.OpenLoop(12_500.0), SPREAD[:3140], {"reset": 10}, machines=[*MACHINES, LOST]
    ),
    "two in pairs": load_pairs,
    "stages": partial(
        load,
        build.OpenLoop(12_500.0, stages=STAGES),
        SPREAD[:3140],
        {"reset": 10, "timed_out": 40},
        [2_000_000_000] * 40,
        stages=STAGE_FIGURES,
    ),
    "connections in stages": partial(
        load,
        build.ClosedLoop(12_500, CONNECTION_STAGES),
        SPREAD[:3140],
        {"reset": 10, "timed_out": 40},
        [2_000_000_000] * 40,
        stages=CONNECTION_STAGE_FIGURES,
        connections={"added": 12_480, "taken_away": 3},
    ),
    "statuses": of_statuses,
    "groups of users": of_groups,
    "TLS": partial(
        load,
        build.ClosedLoop(10),
        SPREAD,
        {"tls": 4},
        tls={
            "full": distribution(SPREAD[:30]),
            "resumed": distribution([MS] * 12),
            "failed": 4,
            "protocols": {"TLS 1.2": 40, "TLS 1.3": 2},
            "ciphers": {"TLS_AES_256_GCM_SHA384": 42},
            "groups": {"X25519": 42},
            "keys": {"RSA 2048": 42},
            "alpn": {"none": 42},
        },
    ),
    "a closed loop": partial(load, build.ClosedLoop(10), SPREAD),
    "an open loop with failures": partial(
        load,
        build.OpenLoop(12_500.0),
        SPREAD,
        {"bad_status": {"503": 400, "500": 7}, "reset": 12, "timed_out": 30},
        [2_000_000_000] * 30,
        error_samples=SAMPLES,
        connections={"retried": 4},
        generator=COSTS,
        little={"residual": -0.0123},
    ),
    "few replies of one time": partial(load, build.ClosedLoop(1), [MS] * 20),
    "nothing answered": partial(load, build.OpenLoop(10), [], {"connect_refused": 50}),
    "a window that never opened": partial(
        load, build.ClosedLoop(1), [], {"connect_refused": 1200}, window={"open_ns": None}
    ),
    "nothing sent": partial(load, build.OpenLoop(10), []),
}


# --- commands ---------------------------------------------------------------------------------------------


def command(*arguments):
    """Return the documents that a command shows, as one, and what it prints with --json."""
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TerminalReporter, "write", lambda _, document: shown.append(document))
        run(patch, *arguments)
        printed = run(patch, *arguments, "--json")
    titled = (Section(one.title, ()) for one in shown)
    sections = (section for one in shown for section in one.sections)
    return Document("", (*titled, *sections)), json.loads(printed)


def run(patch, *arguments):
    patch.setattr("sys.argv", ["prony", *map(str, arguments)])
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        entry.main()
    return out.getvalue()


# --- prony compare ----------------------------------------------------------------------------------------

LIMITS = ("--fail-if", "rps < -5%", "--fail-if", "p99 > 10%")


def subjects(path, **kwargs):
    rates = {"a+hello": 2000, "b+hello": kwargs.pop("after", 3000)}
    file = test_compare.archive(path, rates, loads=(10, 100), **kwargs)
    return command("compare", file, "a+hello", "b+hello", *LIMITS)


def archives(path):
    before = test_compare.archive(path, {"a+hello": 2000})
    after = test_compare.archive(path.with_name("b.prony"), {"a+hello": 2003}, 4, duration_s=3)
    return command("compare", before, after, "--force", *LIMITS)


def saved_loads(path, runs):
    """Saved loads of which the second side loses requests, one a side or several."""
    first = test_compare_loads.folder_of(path.parent / f"before-{runs}", runs)
    second = test_compare_loads.folder_of(path.parent / f"after-{runs}", runs, errors={"reset": 3})
    sides = (first, second) if runs > 1 else (first / "0.json", second / "0.json")
    return command("compare", *sides, *LIMITS)


def in_sessions(path, sessions):
    def planned(plan):
        return replace(plan, design=replace(plan.design, sessions=sessions, pause_ns=build.SECOND))

    file = test_report_sessions.session(path, 0, change=planned, blocks=2 * sessions)
    return command("compare", file, "bjoern*", "gunicorn*", *LIMITS)


COMPARED = {
    **{f"two subjects, {n} sessions": partial(in_sessions, sessions=n) for n in (2, 5)},
    "two subjects": subjects,
    "too alike": partial(subjects, after=2001),
    "some trials failed": partial(subjects, failing=("b+hello", 2)),
    "two archives": archives,
    "one saved load a side": partial(saved_loads, runs=1),
    "five saved loads a side": partial(saved_loads, runs=5),
}


# --- prony selftest ---------------------------------------------------------------------------------------


def alike(path, blocks=20, **kwargs):
    file = test_selftest.archive(path, test_selftest.twins(), blocks, **kwargs)
    with pytest.MonkeyPatch.context() as patch:
        test_selftest.draw_few(patch)
        return command("selftest", "aa", file)


def differing(path):
    """Two labels that are not the same, with studies enough to show it, had a verdict fewer needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_floor, "LEAST_STUDIES", 4)
        return alike(path, effect=1.2)


def planted(path, **kwargs):
    return command("selftest", "planted", test_selftest_planted.archive(path, **kwargs))


SELF_TESTS = {
    "two labels": alike,
    "two labels, few blocks": partial(alike, blocks=4),
    "two labels that differ": differing,
    "planted": partial(planted, blocks=20),
    "planted, few blocks": partial(planted, blocks=4),
    "planted, and not there": partial(planted, truth=lambda work: 1000),
}

# --- prony studies ----------------------------------------------------------------------------------------

LISTED = {"all": (), "those with figures": ("wsgi-servers", "load-scripts")}

# --- the machine ------------------------------------------------------------------------------------------

CALIBRATION = test_calibration_report.CALIBRATION
CHECKS = (
    HostCheck("free ports", "ok", "28,232 free", "at least 10,000"),
    HostCheck("somaxconn", "warn", "128", "4096 or more", "sysctl -w net.core.somaxconn=4096"),
)


def calibrated(_path):
    return calibration_document(CALIBRATION), to_json(CALIBRATION)


def machine(_path, calibration=CALIBRATION):
    known = (build.FINGERPRINT, CHECKS, calibration)
    return host_document(*known), host_json(*known)


MACHINE = {
    "calibrate": calibrated,
    "host": machine,
    "host, not calibrated": partial(machine, calibration=None),
}

# --- the catalogue ----------------------------------------------------------------------------------------

SHOWN = ("gunicorn", "nginx", "meinheld", "wsgiref", "uwsgi", "postgresql", "hypercorn", "starman")
RESET, STATUS = RequestClass("reset"), RequestClass("bad_status", "503")
STOPPED = StopReport("killed", 5.012, 2)
CHECKED = (
    ServerCheck("a", Interface.WSGI, ready_s=0.431, ok=12_345, failures={RESET: 1}, stopped=STOPPED),
    ServerCheck(
        "b", Interface.ASGI, stage=FailureStage.START, reason="exited with status 3", log="one\nat 2\n"
    ),
    ServerCheck(
        "c",
        Interface.WSGI,
        version="2.1",
        ok=10,
        failures={STATUS: 1234},
        stage=FailureStage.LOAD,
        reason="9 of 10",
    ),
)


def checked(_path, checks=CHECKED):
    return checks_document(checks), [check_json(one) for one in checks]


def over_sessions(path, count=3):
    files = [
        test_report_sessions.session(path.with_suffix(f".{k}"), k, (1, 1 + k / 5, 1)) for k in range(count)
    ]
    return command("report", *files)


SESSIONS = {"sessions": over_sessions, "sessions, enough": partial(over_sessions, count=5)}

CATALOGUE = {
    "servers": lambda _path: command("servers"),
    "servers by name": lambda _path: command("servers", *SHOWN),
    "servers, checked": checked,
    "servers that pass": partial(checked, checks=CHECKED[:1]),
    "doctor": lambda _path: command("doctor"),
}


def of_tune():
    found = test_tune_answer.raced()
    return answer_document(found), document_json(found)


REPORTS = {
    **CATALOGUE,
    **MACHINE,
    **{f"load: {name}": lambda _path, made=made: made() for name, made in LOADS.items()},
    **{f"compare: {name}": made for name, made in COMPARED.items()},
    **SESSIONS,
    **{f"selftest: {name}": made for name, made in SELF_TESTS.items()},
    **{
        f"studies: {name}": lambda _path, names=names: command("studies", *names)
        for name, names in LISTED.items()
    },
    "tune": lambda _path: of_tune(),
    "tune: one setting tried": lambda _path: test_tune_trying.report(test_tune_trying.OPEN),
}
