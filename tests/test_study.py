"""A study with environments, sandbox and engine made of paper: blocks, archive, notices, interruptions."""

import os
import secrets
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from commands import passable_folder
from prony.archive import RunStatus, open_archive
from prony.catalog.environment import Environment, Unavailable
from prony.catalog.loader import load_catalog, with_app
from prony.engine import ENGINES
from prony.errors import ArchiveError, HostError, SubjectError
from prony.host import claim_machine
from prony.model import Address, Failed, Interface, LogTail, Ok
from prony.plan import PlanOptions, make_plan
from prony.runas import RunAs
from prony.sandbox import SANDBOXES, EngineSeat, SandboxFacts, StopReport
from prony.sandbox.exchange import Reply
from prony.schedule import block_order
from prony.study import Study, run_study
from prony.study_document import StudyDocument

DOCUMENT = {
    "name": "paper",
    "title": "Paper",
    "subjects": [{"server": ["wsgiref", "waitress"], "app": "hello"}],
    "workloads": [{"loop": "closed", "connections": [1, 2]}],
    "profiles": {"quick": {"blocks": 3, "duration": "1s"}},
}


class Sandbox:
    """Starts nothing; `log` is the test's list of what happened."""

    facts = SandboxFacts("host's loopback", False, "me")
    address, seat = Address("127.0.0.1", 8000), EngineSeat(cpus=(0,))
    tree_pid = network_pid = os.getpid()
    pids = MappingProxyType({"server": os.getpid()})

    def __init__(self, folder, log, fail):
        self.folder, self._log, self._fail = folder, log, fail

    def folder_for(self, name):
        return self.folder

    def free_port(self, random=None):
        return 8000

    def start(self, launch, placement):
        self.launch = launch
        self._log.append(("start", self.folder.name, launch))
        return self

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.stop()

    def wait_until_ready(self, request=None):
        trouble = self._fail(self.launch) if callable(self._fail) else self._fail
        if trouble:
            raise trouble if isinstance(trouble, SubjectError) else SubjectError(trouble)
        return 1

    def verify(self, contract):
        return None

    def strays(self, placement):
        return ()

    def counters(self):
        return {}

    def exit_reason(self):
        return None

    def log(self):
        return LogTail("")

    def stop(self):
        self._log.append(("stop", self.folder.name, None))
        return StopReport("ended", 0.0)


class Engine:
    """Answers at once; raises what the test gave it for a trial of that number."""

    def __init__(self, log, errors):
        self._log, self._errors = log, errors

    def run(self, workload, address, seat, on_event):
        number = sum(entry[0] == "load" for entry in self._log)
        self._log.append(("load", workload.loop.connections, None))
        if number in self._errors:
            raise self._errors[number]
        on_event({"event": "window_open", "monotonic_ns": 1})
        on_event({"event": "window_close", "monotonic_ns": 2})
        return {
            "window": {"interrupted": False},
            "little": {"in_flight_integral_ns": 1, "sojourn_sum_ns": 1, "residual": 0.0},
        }

    def cancel(self):
        pass


class Listener:
    def __init__(self):
        self.notices, self.told = [], []

    def notice(self, text):
        self.notices.append(text)

    def environment(self, progress):
        self.told.append(("environment", progress))

    def planned(self, trials):
        self.told.append(("planned", trials))

    def trial_started(self, cell, block, blocks):
        self.told.append(("started", (block, cell.id)))

    def trial_event(self, cell, event):
        pass

    def trial_ended(self, cell, trial):
        self.told.append(("ended", (trial.block, trial.cell_id)))

    def of(self, kind):
        return [what for name, what in self.told if name == kind]


class World:
    """A study with everything outside of it replaced, and what happened in it."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.log, self.listener = folder, [], Listener()
        self.requests, self.unavailable, self.errors, self.fail = [], {}, {}, None
        self.faults = {}
        user = os.environ.get("USER") or "root"
        self.user = RunAs(user, os.geteuid(), os.getegid(), False, folder / "cache")
        monkeypatch.setattr("prony.study.preparing.prepare", self._prepare)
        # Windows of no length say nothing of the machine.
        monkeypatch.setattr("prony.trial.environment_fault", self._fault)
        monkeypatch.setitem(
            SANDBOXES, "process", lambda choice, user, place, groups: Sandbox(place, self.log, self.fail)
        )
        monkeypatch.setitem(ENGINES, "prony", lambda choice: Engine(self.log, self.errors))

    def _fault(self, trial):
        return self.faults.get((trial.block, trial.cell_id, trial.attempt))

    def _prepare(self, requests, user, on_progress, jobs):
        self.requests = list(requests)
        return {
            request.key: Unavailable(request.key, self.unavailable[request.key], "")
            if request.key in self.unavailable
            else Environment(
                request.key, "1.0", "CPython", Path("/env/python"), Path("/env"), {request.key: "1.0"}, "d"
            )
            for request in requests
        }

    def study(self, catalog=None, **changes):
        known = catalog or load_catalog()
        document = StudyDocument.model_validate({**DOCUMENT, **changes})
        plan = make_plan(document, "as written", known, PlanOptions())
        plan = replace(
            plan, cells=tuple(replace(c, sandbox=replace(c.sandbox, share_cpus=True)) for c in plan.cells)
        )
        return Study(plan, known, self.user, self.folder / "out.prony")

    def run(self, **changes):
        study = self.study(**changes)
        run_study(study, self.listener)
        return study

    def archive(self):
        with open_archive(self.folder / "out.prony") as archive:
            return [record.trial for record in archive.trials()], archive.subjects(), archive.runs()[0]

    def happened(self, kind):
        return [(name, more) for what, name, more in self.log if what == kind]


@pytest.fixture
def world(monkeypatch):
    # Nothing is measured here: another Prony may do so meanwhile.
    monkeypatch.setattr("prony.host.claim._NAME", f"\0prony-test-{secrets.token_hex(8)}")
    with passable_folder() as folder:
        yield World(folder, monkeypatch)


# --- blocks -----------------------------------------------------------------------------------------------


def test_every_cell_is_measured_in_every_block_in_the_seeded_order(world):
    study = world.run()
    trials, _, run = world.archive()
    expected = [(block, cell.id) for block in range(3) for cell in block_order(study.plan, block)]
    assert [(trial.block, trial.cell_id) for trial in trials] == expected
    assert [trial.position for trial in trials] == [0, 1, 2, 3] * 3
    assert {trial.outcome for trial in trials} == {Ok()}
    assert run.status is RunStatus.FINISHED


def test_the_listener_hears_of_every_trial_when_it_is_archived(world):
    world.run()
    trials, _, _ = world.archive()
    order = [(trial.block, trial.cell_id) for trial in trials]
    assert world.listener.of("planned") == [12]
    assert world.listener.of("started") == world.listener.of("ended") == order


def test_each_trial_has_a_fresh_server_in_a_folder_of_its_own(world):
    world.run()
    folders = [name for name, _ in world.happened("start")]
    assert len(set(folders)) == len(folders) == 12
    steps = [what for what, *_ in world.log]
    assert steps == ["start", "load", "stop"] * 12


def test_nuisances_reach_the_server_and_the_archive(world):
    world.run()
    trials, _, _ = world.archive()
    for trial, (_, launch) in zip(trials, world.happened("start"), strict=True):
        assert launch.environment["PYTHONHASHSEED"] == trial.nuisances["hash_seed"]
        assert len(launch.environment["PRONY_PADDING"]) == int(trial.nuisances["padding_bytes"])
    assert len({trial.nuisances["hash_seed"] for trial in trials}) == 12


def test_nothing_of_a_run_is_left_in_the_cache(world):
    world.run()
    assert not list((world.folder / "cache" / "run").iterdir())


# --- subjects ---------------------------------------------------------------------------------------------


def test_a_subject_is_archived_as_it_was_resolved(world):
    world.run()
    _, subjects, _ = world.archive()
    waitress = subjects["waitress+hello"]
    assert (waitress.server_version, waitress.interpreter, waitress.lock_digest) == ("1.0", "CPython", "d")
    assert waitress.settings["threads"] == 4
    assert waitress.command_line is not None
    assert "waitress-serve" in waitress.command_line
    assert subjects["wsgiref+hello"].server_version == "1.0"


def test_an_unavailable_subject_is_told_archived_and_passed_over(world):
    world.unavailable = {"waitress": "no such version"}
    world.run()
    trials, subjects, run = world.archive()
    assert len(trials) == 6
    assert world.listener.of("planned") == [6]
    assert subjects["waitress+hello"].unavailable == "no such version"
    assert "waitress+hello is unavailable: no such version" in world.listener.notices
    assert run.status is RunStatus.FINISHED


def test_built_in_apps_share_the_environment_of_their_server(world):
    world.run(subjects=[{"server": "wsgiref", "app": ["hello", "flask-hello"]}])
    assert [request.key for request in world.requests] == ["wsgiref"]
    assert any("flask" in requirement for requirement in world.requests[0].app_requirements)


# --- a user's own app -------------------------------------------------------------------------------------


BOTH = [{"server": ["wsgiref", "waitress"], "app": "shop"}]


def is_waitress(launch):
    """A failure that only this server has."""
    if not any("waitress" in word for word in launch.command):
        return None
    return SubjectError("it ended", log="ModuleNotFoundError: No module named 'humanize'\nbye\n")


def own_app(world):
    from prony.catalog.apps import user_app

    (world.folder / "shop.py").write_text("app = None\n")
    app = user_app("shop:app", world.folder, Interface.WSGI)
    return with_app(load_catalog(), app)


def test_a_users_app_has_an_environment_for_each_server(world):
    world.fail = "no"
    with pytest.raises(SubjectError):
        world.run(catalog=own_app(world), subjects=BOTH)
    assert [request.key for request in world.requests] == ["wsgiref for shop", "waitress for shop"]


def test_an_app_without_a_contract_is_asked_once_for_each_subject_before_the_first_block(world):
    world.fail = is_waitress
    world.run(catalog=own_app(world), subjects=BOTH)
    probes = [name for name, _ in world.happened("start") if name.startswith("probe-")]
    assert len(probes) == 2


def test_a_server_that_does_not_start_is_told_with_the_error_and_stays_in_the_study(world, monkeypatch):
    monkeypatch.setattr("prony.study.replies.probe", lambda *arguments: Reply(200, b"hi"))
    world.fail = is_waitress
    world.run(catalog=own_app(world), subjects=BOTH)
    told = world.listener.notices
    place = told.index("waitress+shop does not start: it ended")
    assert told[place + 1] == "  ModuleNotFoundError: No module named 'humanize'"
    assert not any("--expect-status" in line for line in told)
    trials, _, run = world.archive()
    assert Counter(type(trial.outcome) for trial in trials) == {Ok: 6, Failed: 6}
    assert run.status is RunStatus.FINISHED


def test_replies_that_differ_are_told_without_servers_that_do_not_start(world, monkeypatch):
    replies = iter([Reply(200, b"hi"), Reply(418, b"hi")])
    monkeypatch.setattr("prony.study.replies.probe", lambda *arguments: next(replies))
    world.fail = is_waitress
    world.run(
        catalog=own_app(world), subjects=[{"server": ["wsgiref", "waitress", "gunicorn"], "app": "shop"}]
    )
    told = world.listener.notices
    assert (
        "the replies to the probe differ; say which is right with --expect-status and --expect-body:" in told
    )
    assert [line.partition(":")[0] for line in told if line.startswith("  ") and "status" in line] == [
        "  wsgiref+shop",
        "  gunicorn+shop",
    ]


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        ("ModuleNotFoundError: No module named 'humanize'", "--requirements"),
        ("ImportError: cannot import name 'x' from 'y'", "--requirements"),
        ("KeyError: 'DATABASE_URL'", "--env"),
        ("ZeroDivisionError: division by zero", "--dry-run"),
    ],
)
def test_a_study_of_which_no_server_starts_stops_with_each_ones_error(world, error, hint):
    log = f'Traceback (most recent call last):\n  File "shop.py", line 1\n{error}\n[1] Worker exiting\n'
    world.fail = SubjectError("it ended", log=log)
    with pytest.raises(SubjectError) as stopped:
        world.run(catalog=own_app(world), subjects=BOTH)
    each = f'it ended\n    Traceback (most recent call last):\n      File "shop.py", line 1\n    {error}'
    assert stopped.value.message == f"no server starts\n  wsgiref+shop: {each}\n  waitress+shop: {each}"
    assert hint in stopped.value.hint
    assert not any("--expect-status" in line for line in world.listener.notices)


def test_servers_that_answer_nothing_readable_are_told(world, monkeypatch):
    monkeypatch.setattr("prony.study.replies.probe", lambda *arguments: "GET /: no reply within 10 s")
    world.run(catalog=own_app(world), subjects=BOTH)
    assert "every subject answers the probe so: GET /: no reply within 10 s" in world.listener.notices


# --- ends -------------------------------------------------------------------------------------------------


def test_a_trial_that_fails_does_not_stop_the_study(world):
    world.fail = "it ended before it was ready"
    world.run()
    trials, _, run = world.archive()
    assert [trial.outcome for trial in trials] == [Failed("start", "it ended before it was ready")] * 12
    assert run.status is RunStatus.FINISHED


def test_an_interruption_passes_through_and_keeps_what_was_finished(world):
    world.errors = {5: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        world.run()
    trials, _, run = world.archive()
    assert [trial.outcome for trial in trials] == [Ok()] * 5
    assert run.status is RunStatus.INTERRUPTED
    assert world.log[-1][0] == "stop"
    assert not list((world.folder / "cache" / "run").iterdir())


def test_an_archive_that_exists_is_never_written_over(world):
    (world.folder / "out.prony").write_text("mine")
    with pytest.raises(ArchiveError, match="exists already"):
        world.run()
    assert (world.folder / "out.prony").read_text() == "mine"


def test_a_second_study_is_refused_while_another_measures(world):
    with claim_machine(), pytest.raises(HostError, match="another Prony measures on this machine"):
        world.run()
    assert world.log == []
    assert not (world.folder / "out.prony").exists()
    world.run()
    assert (world.folder / "out.prony").exists()
