"""A study is held against the machine before anything is built: told, refused, or forced and marked."""

import io
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

from golden import build
from prony.archive import open_archive
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import ArchiveError, HostError
from prony.core.users import resolve_user
from prony.machine.checks import HostCheck
from prony.model.exchange import Request
from prony.model.sandbox import Network, Placement, SandboxChoice, SandboxFacts
from prony.model.workload import ClosedLoop, CountStop, DurationStop, EngineChoice, OpenLoop
from prony.plan.build import PlanOptions, make_plan
from prony.plan.document import StudyDocument
from prony.reading.study import read_archive
from prony.report.formats.terminal import TerminalReporter
from prony.report.study import study_report
from prony.study import Study, admission
from prony.study.admission import admit, demand_of

CATALOG = load_catalog()
PLACEMENT = Placement((0, 1), (2, 3))
DOCUMENT = {
    "name": "two",
    "title": "Two",
    "subjects": [{"server": ["gunicorn", "waitress"], "app": "hello"}],
    "workloads": [{"loop": "closed", "connections": [100, 5000]}],
    "profiles": {"quick": {"blocks": 3, "duration": "10s", "warmup": "2s"}},
}


def plan_of(change=lambda cell: cell, **changes):
    plan = make_plan(StudyDocument.model_validate({**DOCUMENT, **changes}), "", CATALOG, PlanOptions())
    return replace(plan, cells=tuple(change(cell) for cell in plan.cells))


def loaded(loop, stop=None, keep_alive=True):
    """Return a change of a cell: another load."""
    stop = stop or DurationStop(10**10)
    request = Request(keep_alive=keep_alive)
    return lambda cell: replace(
        cell, workload=replace(cell.workload, loop=loop, stop=stop, request=request, warmup_ns=0)
    )


def asked(plan):
    return demand_of(plan, CATALOG, PLACEMENT)


# --- what a plan asks for ---------------------------------------------------------------------------------


def test_the_largest_load_of_the_grid_counts():
    demand = asked(plan_of())
    assert (demand.connections, demand.load_s, demand.new_per_s) == (5000, 12.0, 0.0)


def test_a_servers_processes_share_its_connections_as_the_catalogue_declares_them():
    held = asked(plan_of(subjects=[{"server": ["gunicorn", "waitress"], "app": "hello"}]))
    workers = int(asked_processes("gunicorn+hello"))
    assert held.connections_per_process["waitress+hello"] == 5000
    assert held.connections_per_process["gunicorn+hello"] == -(-5000 // workers)


def asked_processes(name):
    from prony.catalog.launch import declared_facts

    subject = next(one for one in plan_of().subjects() if one.name == name)
    return declared_facts(CATALOG.server(subject.server), subject, 2).processes


def test_a_frontend_holds_two_connections_for_each_client():
    demand = asked(plan_of(subjects=[{"server": ["gunicorn@nginx"], "app": "hello"}]))
    assert demand.connections_per_process["gunicorn@nginx+hello"] > 5000 / 2 - 1
    assert demand.processes > asked_processes("gunicorn+hello")


def test_declared_backlogs_are_asked_of_the_kernel():
    assert asked(plan_of()).backlogs == {"gunicorn+hello": 2048, "waitress+hello": 1024}


def test_engine_threads_and_limits_are_the_plans():
    sandbox = SandboxChoice("cgroup", "host", share_cpus=True, memory_bytes=2**29)
    change = lambda cell: replace(cell, engine=EngineChoice(threads=2), sandbox=sandbox)  # noqa: E731
    demand = asked(plan_of(change))
    assert (demand.engine_threads, demand.share_cpus, demand.memory_bytes) == (2, True, 2**29)
    assert not demand.own_network


@pytest.mark.parametrize(
    ("change", "new_per_s"),
    [
        (loaded(ClosedLoop(10)), 0.0),
        (loaded(ClosedLoop(10), keep_alive=False), None),
        (loaded(OpenLoop(550.0)), 0.0),
        (loaded(OpenLoop(550.0), keep_alive=False), 550.0),
    ],
)
def test_connections_that_are_not_kept_come_at_the_rate_or_at_the_servers_pace(change, new_per_s):
    assert asked(plan_of(change)).new_per_s == new_per_s


def test_a_fixed_count_has_no_length_and_is_taken_for_a_minute():
    assert asked(plan_of(loaded(ClosedLoop(10), CountStop(1000)))).load_s == 60


# --- admission --------------------------------------------------------------------------------------------


@dataclass
class Listener:
    notices: list[str] = field(default_factory=list)

    def notice(self, text):
        self.notices.append(text)


FACTS = SandboxFacts(Network.HOST, False, "me")
FITS = HostCheck("CPUs", "ok", "2", "2")
DISTURBED = HostCheck("steal now", "warn", "5 %", "1 % or less", "wait")
UNFIT = HostCheck("ports", "fail", "10", "5,000", "sudo sysctl -w x=1")


@pytest.fixture
def study(tmp_path):
    return Study(plan_of(), CATALOG, resolve_user(), tmp_path / "a.prony")


@pytest.fixture
def checked(monkeypatch):
    """Make the machine one of which the checks say this; return what was asked of it."""
    demands = []

    def say(*found):
        monkeypatch.setattr(admission, "preflight", lambda demand: demands.append(demand) or list(found))
        return demands

    return say


def test_what_may_disturb_a_study_is_told_with_what_mends_it(study, checked):
    listener = Listener()
    checked(FITS, DISTURBED)
    assert admit(study, PLACEMENT, FACTS, listener) == ()
    assert listener.notices == ["steal now: 5 %; needed: 1 % or less; fix: wait"]


def test_a_study_that_cannot_be_valid_is_refused_with_3_and_what_mends_it(study, checked):
    checked(FITS, DISTURBED, UNFIT)
    with pytest.raises(HostError, match=r"cannot be valid .*\n  ports: 10; needed: 5,000") as refused:
        admit(study, PLACEMENT, FACTS, Listener())
    assert refused.value.exit_code == 3
    assert "--force" in str(refused.value.hint)
    assert "steal" not in refused.value.message


def test_a_forced_study_runs_and_says_why_it_should_not(study, checked):
    listener = Listener()
    checked(UNFIT)
    forced = admit(replace(study, force=True), PLACEMENT, FACTS, listener)
    assert forced == ("ports: 10; needed: 5,000; fix: sudo sysctl -w x=1",)
    assert listener.notices == list(forced)


def test_the_archives_place_and_the_network_that_was_had_are_asked_for(study, checked):
    demands = checked(FITS)
    admit(study, PLACEMENT, FACTS, Listener())
    admit(study, PLACEMENT, replace(FACTS, network=Network.ISOLATED), Listener())
    assert [demand.own_network for demand in demands] == [False, True]
    folder, size = demands[0].archive
    assert folder == study.out.parent
    assert size > 4 * 3 * 65_536


# --- as a user meets it -----------------------------------------------------------------------------------


def test_more_connections_than_ports_are_refused_before_anything_is_built(tmp_path, own_claim):
    from prony.study import run_study

    study = Study(plan_of(loaded(ClosedLoop(65_000))), CATALOG, resolve_user(), tmp_path / "a.prony")
    study = replace(
        study,
        plan=replace(
            study.plan,
            cells=tuple(
                replace(cell, sandbox=SandboxChoice(share_cpus=True), engine=EngineChoice("wrk"))
                for cell in study.plan.cells
            ),
        ),
    )
    listener = Listener()
    with pytest.raises(HostError, match="ports: "):
        run_study(study, listener)
    assert not study.out.exists()


def marked(folder: Path, forced: object) -> str:
    path = build.study_two(folder / "two.prony")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "UPDATE run SET fingerprint_json = json_set(fingerprint_json, '$.forced', json(?))",
            [json.dumps(forced)],
        )
    with open_archive(path) as archive:
        out = io.StringIO()
        TerminalReporter(Console(file=out, width=200, highlight=False)).write(
            study_report(read_archive(archive))
        )
        return out.getvalue()


def test_the_report_says_first_that_a_study_was_forced_and_why(tmp_path):
    text = marked(tmp_path, ["ports: 10; needed: 5,000"])
    assert "Measured only because of --force: ports: 10; needed: 5,000" in text


def test_a_study_that_was_not_forced_is_not_marked(tmp_path):
    assert "because of --force" not in marked(tmp_path, [])


@pytest.mark.parametrize("forced", [None, 7, "text"])
def test_an_archive_that_says_it_was_forced_in_no_known_way_is_refused(tmp_path, forced):
    with pytest.raises(ArchiveError, match=r"fingerprint\.forced: expected an array, found "):
        marked(tmp_path, forced)
