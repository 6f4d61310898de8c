"""A study with environments, sandbox, engine and faults made of paper, and what happened in it."""

import os
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

from prony.archive import open_archive
from prony.catalog.install.environment import Environment, Unavailable
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import SubjectError
from prony.core.users import RunAs
from prony.engine.registry import ENGINES
from prony.machine.activity import Activity
from prony.machine.fingerprint import fingerprint
from prony.model.address import Address
from prony.model.observation import LogTail
from prony.model.sandbox import EngineSeat, Network, SandboxChoice, SandboxFacts
from prony.model.trial import Fault, FaultKind
from prony.plan.build import PlanOptions, make_plan
from prony.plan.document import StudyDocument
from prony.sandbox import SANDBOXES
from prony.sandbox.pipe import StopReport
from prony.study import Study, run_study
from recordings import recording_of

DOCUMENT = {
    "name": "paper",
    "title": "Paper",
    "subjects": [{"server": ["wsgiref", "waitress"], "app": "hello"}],
    "workloads": [{"loop": "closed", "connections": [1, 2]}],
    "profiles": {"quick": {"blocks": 3, "duration": "1s"}},
}


CATALOG = load_catalog()
# The module; the package names its function so.
preflight = import_module("prony.machine.preflight")


@cache
def _machine():
    return fingerprint()


def _fingerprint(forced=()):
    """Say what the machine was when a study first asked: it takes a while to see."""
    return replace(_machine(), forced=tuple(forced))


class Sandbox:
    """Starts nothing; `log` is the test's list of what happened."""

    facts = SandboxFacts(Network.HOST, False, "me")
    address, seat = Address("127.0.0.1", 8000), EngineSeat(cpus=(0,))
    tree_pid = network_pid = os.getpid()

    def __init__(self, folder, world):
        self.folder, self._world = folder, world
        self._log, self._fail = world.log, world.fail

    def folder_for(self, name):
        return self.folder

    def free_port(self, random=None):
        return random.randrange(20_000, 30_000) if random else 8000

    def start(self, launch, placement):
        self.launch = self._world.launch = launch
        self.pids = {process.name: os.getpid() for process in launch.processes}
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
        # A second call returns the first one's report.
        stopped = ("stop", self.folder.name, None)
        if stopped not in self._log:
            self._log.append(stopped)
        return StopReport("ended", 0.0)


class Engine:
    """Answers at once; raises what the test gave it for a trial of that number, or says what it was given."""

    def __init__(self, world):
        self._world = world
        self._log, self._errors = world.log, world.errors

    def run(self, workload, address, seat, on_event):
        number = sum(entry[0] == "load" for entry in self._log)
        self._log.append(("load", workload.loop.connections, None))
        if number in self._errors:
            raise self._errors[number]
        on_event({"event": "window_open", "monotonic_ns": 1})
        on_event({"event": "window_close", "monotonic_ns": 2})
        if self._world.replies:
            return self._world.replies(self._world.launch, workload)
        return recording_of()

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

    def rounds_planned(self, blocks, seconds):
        self.told.append(("rounds", blocks))

    def paused(self, left_s, words):
        self.told.append(("paused", words))

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
        self.faults, self.replies, self.launch = {}, None, None
        user = os.environ.get("USER") or "root"
        self.user = RunAs(user, os.geteuid(), os.getegid(), False, folder / "cache")
        monkeypatch.setattr("prony.study.preparing.prepare", self._prepare)
        monkeypatch.setattr("prony.study.run.fingerprint", _fingerprint)
        monkeypatch.setattr(preflight, "watch_machine", lambda: Activity({}, {}, 0))
        monkeypatch.setattr("prony.study.run.calibrated_sharing", lambda _placement, _listener: None)
        monkeypatch.setattr("prony.study.bench.Patience.wait", lambda *_: True)
        # The servers here know one load after another.
        monkeypatch.setattr("prony.study.trial.alone", lambda *_: {})
        monkeypatch.setattr("prony.study.trial.profiled", lambda *_: None)
        # Windows of no length say nothing of the machine.
        monkeypatch.setattr("prony.figures.validity.environment_fault", self._fault)
        monkeypatch.setitem(
            SANDBOXES, "process", lambda choice, user, place, groups, _hidden: Sandbox(place, self)
        )
        monkeypatch.setitem(ENGINES, "prony", lambda choice, ceiling_per_s: Engine(self))

    def _fault(self, trial):
        text = self.faults.get((trial.block, trial.cell_id, trial.attempt))
        return Fault(FaultKind.SANDBOX, text=text) if isinstance(text, str) else text

    def _prepare(self, requests, user, on_progress, jobs):
        self.requests = list(requests)
        return {
            request.key: Unavailable(request.key, self.unavailable[request.key], "")
            if request.key in self.unavailable
            else Environment(
                *(
                    request.key,
                    "1.0",
                    "CPython",
                    Path("/env/python"),
                    Path("/env"),
                    {request.key: "1.0"},
                    "d",
                ),
                programs={name: Path("/bin", name) for name in request.server.install.programs},
                prony=Path("/env/prony"),
            )
            for request in requests
        }

    def study(self, catalog=None, **changes):
        known = catalog or CATALOG
        document = StudyDocument.model_validate({**DOCUMENT, **changes})
        options = PlanOptions(sandbox=SandboxChoice(share_cpus=True))
        plan = make_plan(document, "as written", known, options)
        return Study(plan, known, self.user, self.folder / "out.prony")

    def run(self, **changes):
        return self.measure(self.study(**changes))

    def measure(self, study):
        run_study(study, self.listener)
        return study

    def archive(self):
        with open_archive(self.folder / "out.prony") as archive:
            return [record.trial for record in archive.trials()], archive.subjects(), archive.runs()[0]

    def happened(self, kind):
        return [(name, more) for what, name, more in self.log if what == kind]
