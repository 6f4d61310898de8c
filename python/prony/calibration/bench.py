"""The reference server in different setups, measured in the same way as a study's trials.

Must not know how the figures are judged.

>>> QUICK.blocks < USUAL.blocks
True
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from prony.assembly import Site, SubjectNeeds, assemble, needs_of, why_unavailable
from prony.catalog.install.apps import materialise_app
from prony.catalog.install.environment import Environment, Unavailable
from prony.catalog.install.prepare import EnvironmentProgress, prepare
from prony.catalog.schema.loader import Catalog
from prony.certificates import Authority
from prony.engine.registry import open_engine
from prony.errors import EngineError, FailureStage, PronyError, SubjectError
from prony.model.plan import Cell
from prony.model.recording import Recording
from prony.model.sandbox import Placement, SandboxChoice, SandboxKind
from prony.model.shapes import Json
from prony.model.subject import Interface, Subject
from prony.model.trial import Failed, Invalid, Ok, Outcome, Trial
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.runas import RunAs
from prony.sandbox import open_sandbox
from prony.sandbox.groups import Groups
from prony.sandbox.journal import RunFolder
from prony.schedule import Position
from prony.study.bench import beside_the_generator
from prony.trial import Task, run_trial
from prony.units import SECOND_NS, seconds

_SERVER, _APP = "reference", "hello"

OnEvent = Callable[[Json], None]
# Runs a trial: with all monitors, or without any.
Runner = Callable[[Task, OnEvent], Trial]
watched: Runner = run_trial


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to measure. ``samples``: how often to time the sampler."""

    blocks: int
    window_ns: int
    warmup_ns: int
    samples: int
    connections: int = 16

    def in_words(self) -> str:
        """Return the effort, such as ``10 blocks of 1.5 s windows``."""
        return f"{self.blocks} blocks of {seconds(self.window_ns):g} s windows"


# About two minutes, with a server started and stopped for each window. Ten blocks show the
# shape of their noise twice as well as five, which are the fewest that give a verdict.
USUAL = Effort(blocks=10, window_ns=3 * SECOND_NS // 2, warmup_ns=SECOND_NS // 2, samples=40)
QUICK = Effort(blocks=5, window_ns=3 * SECOND_NS // 4, warmup_ns=SECOND_NS // 4, samples=10)


@dataclass(frozen=True, slots=True)
class CalibrationBench:
    """What all trials of a calibration share. ``no_groups``: why there are no control groups, else empty."""

    catalog: Catalog
    user: RunAs
    run: RunFolder
    subject: Subject
    needs: SubjectNeeds
    environments: Mapping[str, Environment | Unavailable]
    placement: Placement
    effort: Effort
    groups: Groups | None = None
    no_groups: str = ""

    def cell(self, number: int, name: str, sandbox: SandboxChoice) -> Cell:
        """Return the cell of one setup, under the load that all setups get."""
        check = self.subject.app.contract.checks[0]
        workload = Workload(
            ClosedLoop(self.effort.connections),
            DurationStop(self.effort.window_ns),
            request=check.request,
            warmup_ns=self.effort.warmup_ns,
            expect_status=check.status,
            expect_body=check.body,
        )
        return Cell(
            number, replace(self.subject, name=f"reference server, {name}"), workload, sandbox=sandbox
        )

    def measure(self, cell: Cell, block: int, runner: Runner, on_event: OnEvent) -> Trial:
        """Run one trial of a cell and return it; its folder is removed."""
        task = self._task(cell, block)
        try:
            with beside_the_generator(self.placement):
                return runner(task, on_event)
        finally:
            self.run.remove_trial_folder(task.sandbox.folder.name)

    def _task(self, cell: Cell, block: int) -> Task:
        folder = self.run.folder / f"calibrate-{block}-{cell.id}"
        groups = self.groups if cell.sandbox.kind is SandboxKind.CGROUP else None
        sandbox = open_sandbox(cell.sandbox, self.user, folder, groups)
        app_folder = materialise_app(cell.subject.app, self.user)
        cpus, authority = len(self.placement.server_cpus), Authority(self.run.folder)
        site = Site(sandbox.free_port, sandbox.folder_for, app_folder, cpus, authority)
        return Task(
            cell=cell,
            position=Position(block, cell.id),
            launch=assemble(self.catalog, self.subject, self.needs, self.environments, site),
            contract=cell.subject.app.contract,
            sandbox=sandbox,
            engine=open_engine(cell.engine),
            placement=self.placement,
            nuisances={},
        )


def open_bench(  # noqa: PLR0913, PLR0917 - what a bench is made of
    catalog: Catalog,
    user: RunAs,
    run: RunFolder,
    placement: Placement,
    effort: Effort,
    tell: Callable[[EnvironmentProgress], None],
) -> CalibrationBench:
    """Return a bench with the reference server ready to start.

    *Errors*: SubjectError when it is unavailable.
    """
    subject = Subject(_SERVER, _SERVER, catalog.app(_APP), Interface.NONE)
    needs = needs_of(catalog, subject, user)
    found = prepare(needs.all(), user, tell, jobs=1)
    lacking = why_unavailable(needs, found)
    if lacking:
        raise SubjectError(
            f"the reference server is unavailable: {lacking.reason}", stage=FailureStage.INSTALL
        )
    return CalibrationBench(catalog, user, run, subject, needs, found, placement, effort)


def unwatched(task: Task, on_event: OnEvent) -> Trial:
    """Run one trial as `run_trial` does, but without monitors.

    *Errors*: as `run_trial`.
    """
    started = time.time_ns()
    recording: Recording | None = None
    outcome: Outcome = Ok()
    try:
        with task.sandbox.start(task.launch, task.placement) as subject:
            subject.wait_until_ready(task.cell.workload.request)
            recording = task.engine.run(task.cell.workload, subject.address, subject.seat, on_event)
            died = subject.exit_reason()
            outcome = Failed(FailureStage.LOAD, died) if died else outcome
    except SubjectError as error:
        outcome = Failed(error.stage, error.message)
    except EngineError as error:
        outcome = Invalid(f"the generator: {error.message}")
    except PronyError as error:
        outcome = Invalid(error.message)
    at = task.position
    return Trial(
        task.cell.id,
        at.block,
        at.position,
        at.attempt,
        at.role,
        outcome,
        started,
        time.time_ns(),
        command=task.launch.command,
        placement=task.placement,
        recording=recording,
    )
