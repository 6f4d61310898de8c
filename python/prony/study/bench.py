"""What the trials of one run share, and what one trial needs of it.

Must not know in which order trials run.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from prony.assembly import Site, assemble
from prony.catalog.install.environment import Environment, Unavailable
from prony.engine import open_engine
from prony.host import Cpu
from prony.model import Launch, Placement, SandboxChoice, Subject, Trial
from prony.sandbox import Sandbox, open_sandbox
from prony.sandbox.equivalent import equivalent
from prony.sandbox.groups import Groups
from prony.sandbox.journal import RunFolder
from prony.schedule import Nuisances, Turn, nuisances, with_arrivals
from prony.study.base import Study, StudyListener
from prony.study.preparing import Ready
from prony.trial import Task, run_trial

__all__ = ["Bench", "beside_the_generator", "measure"]


@dataclass(frozen=True, slots=True)
class Bench:
    """All that the trials of one run share. A trial's placement is ``placement`` or one like it.

    ``left_out``: why cells have no generator here, by their ids.
    """

    study: Study
    run: RunFolder
    ready: Mapping[str, Ready]
    environments: Mapping[str, Environment | Unavailable]
    placement: Placement
    cpus: Sequence[Cpu]
    groups: Groups | None = None
    left_out: Mapping[int, str] = field(default_factory=dict)

    def has(self, turn: Turn) -> bool:
        """Return whether the turn's subject can be started, and its load made."""
        return turn.cell.subject.name in self.ready and turn.cell.id not in self.left_out

    def sandbox(self, name: str, choice: SandboxChoice) -> Sandbox:
        """Return a sandbox with a folder of this name below the run's."""
        return open_sandbox(choice, self.study.user, self.run.folder / name, self.groups)

    def launch(self, subject: Subject, sandbox: Sandbox, nuisance: Nuisances) -> Launch:
        """Return the exact processes to start, on free ports, with the nuisances in the environment."""
        ready = self.ready[subject.name]
        draw = Random(nuisance.draw_seed)  # noqa: S311 - a nuisance, not a secret
        cpus = len(self.placement.server_cpus)
        site = Site(partial(sandbox.free_port, draw), sandbox.folder_for, ready.app_folder, cpus)
        launch = assemble(self.study.catalog, subject, ready.needs, self.environments, site)
        return replace(launch, environment={**launch.environment, **nuisance.as_environment()})


def measure(bench: Bench, turn: Turn, listener: StudyListener) -> Trial:
    """Run the trial of one turn to its end and return it; its folder is gone then."""
    task = _task(bench, turn)
    with beside_the_generator(task.placement):
        trial = run_trial(task, partial(listener.trial_event, turn.cell))
    bench.run.remove_trial_folder(task.sandbox.folder.name)
    return trial


@contextmanager
def beside_the_generator(placement: Placement) -> Iterator[None]:
    """Within the block, Prony's own work stays off the server's CPUs.

    Its nice value stays: a subject would inherit it, and without root could not take it back.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, placement.generator_cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _task(bench: Bench, turn: Turn) -> Task:
    cell, at = turn.cell, turn.position
    sandbox = bench.sandbox(f"trial-{cell.id}-{at.block}-{at.position}-{at.attempt}", cell.sandbox)
    nuisance = nuisances(bench.study.plan, turn)
    launch = bench.launch(cell.subject, sandbox, nuisance)
    return Task(
        cell=replace(cell, workload=with_arrivals(cell.workload, nuisance.arrival_seed)),
        position=at,
        launch=launch,
        contract=cell.subject.app.contract,
        sandbox=sandbox,
        engine=open_engine(cell.engine),
        placement=equivalent(bench.placement, bench.cpus, Random(nuisance.draw_seed)),  # noqa: S311
        nuisances={**nuisance.as_text(), "port": str(launch.address.port)},
    )
