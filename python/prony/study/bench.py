"""What the trials of one run share, and what one trial needs of it.

Must not know in which order trials run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from prony.assembly import Site, assemble
from prony.catalog.environment import Environment, Unavailable
from prony.engine import open_engine
from prony.model import Cell, Launch, Placement, SandboxChoice, Subject
from prony.plan import Nuisances, nuisances, with_arrivals
from prony.sandbox import Sandbox, open_sandbox
from prony.sandbox.groups import Groups
from prony.sandbox.journal import Run
from prony.study.base import Study
from prony.study.preparing import Ready
from prony.trial import Position, Task

__all__ = ["Bench", "make_task"]


@dataclass(frozen=True, slots=True)
class Bench:
    """All that the trials of one run share."""

    study: Study
    run: Run
    ready: Mapping[str, Ready]
    environments: Mapping[str, Environment | Unavailable]
    placement: Placement
    groups: Groups | None = None

    def sandbox(self, name: str, choice: SandboxChoice) -> Sandbox:
        """Return a sandbox with a folder of this name below the run's."""
        return open_sandbox(choice, self.study.user, self.run.folder / name, self.groups)

    def launch(self, subject: Subject, sandbox: Sandbox, nuisance: Nuisances) -> Launch:
        """Return the exact processes to start, on free ports, with the nuisances in the environment."""
        ready = self.ready[subject.name]
        cpus = len(self.placement.server_cpus)
        site = Site(sandbox.free_port, sandbox.folder_for, ready.app_folder, cpus)
        launch = assemble(self.study.catalog, subject, ready.needs, self.environments, site)
        return replace(launch, environment={**launch.environment, **nuisance.as_environment()})


def make_task(bench: Bench, cell: Cell, position: Position) -> Task:
    """Return all that the trial of ``cell`` at ``position`` needs."""
    sandbox = bench.sandbox(f"trial-{position.block}-{position.position}-{position.attempt}", cell.sandbox)
    nuisance = nuisances(bench.study.plan, position.block, cell, position.attempt)
    launch = bench.launch(cell.subject, sandbox, nuisance)
    return Task(
        cell=replace(cell, workload=with_arrivals(cell.workload, nuisance.arrival_seed)),
        position=position,
        launch=launch,
        contract=cell.subject.app.contract,
        sandbox=sandbox,
        engine=open_engine(cell.engine),
        placement=bench.placement,
        nuisances={**nuisance.as_text(), "port": str(launch.address.port)},
    )
