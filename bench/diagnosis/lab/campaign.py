"""A campaign of planted faults: one archive for each plant in one folder, in shards, gone on with at will.

>>> from lab import PLANTS
>>> shards = [in_shard(PLANTS, number, 8) for number in range(1, 9)]
>>> sum(map(len, shards)) == len(PLANTS), max(map(len, shards)) - min(map(len, shards)) <= 1
(True, True)
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from lab.cause import Plant
from lab.harm import harm_of
from lab.kept import Kept, slimmed
from lab.planting import HEALTHY, PlantingListener, plan_of_plant
from lab.sessions import SessionFacts
from prony.archive import open_archive
from prony.catalog.schema.loader import Catalog
from prony.core.errors import UsageError
from prony.core.users import RunAs
from prony.core.version import prony_version
from prony.diagnosis.evidence import Evidence
from prony.figures.drift import WHAT_MATTERS, machine_key
from prony.machine.fingerprint import brief_fingerprint
from prony.model.facts import Unknown
from prony.model.plan import Plan
from prony.model.trial import FaultKind, Invalid, RunStatus, Trial, TrialRole
from prony.sandbox.choice import Chosen
from prony.sandbox.linux import may_enter_networks
from prony.study.extent import extent_of
from prony.study.run import run_study
from prony.study.task import Study, StudyListener

FOLDER = Path(__file__).resolve().parent.parent
"""The catalogue of servers and apps that are there only to have a fault."""

_OF_MACHINE = (FaultKind.OTHER_LOAD, FaultKind.STOLEN_TIME, FaultKind.SLEPT)


@dataclass(frozen=True, slots=True)
class Campaign:
    """Where faults are planted, and how: ``folder`` has the archives, each of ``blocks`` blocks."""

    folder: Path
    known: Catalog
    user: RunAs
    sandbox: Chosen
    blocks: int
    seed: int

    def plan(self, plant: Plant) -> Plan:
        """Return the plan of one plant.

        *Errors*: UsageError for a server or a setting that the catalogue does not have.
        """
        return plan_of_plant(plant, self.known, self.sandbox.choice, blocks=self.blocks, seed=self.seed)

    def length_s(self, plant: Plant) -> float:
        """Return about how long a plant takes."""
        return extent_of(self.plan(plant), self.known).seconds[1]


def matching(plants: Sequence[Plant], causes: Sequence[str], server: str | None) -> tuple[Plant, ...]:
    """Return the plants of these causes (globs; also whole names of plants), on the servers that fit."""
    return tuple(
        one
        for one in plants
        if (not causes or any(fnmatchcase(one.cause.name, name) or one.name == name for name in causes))
        and (server is None or fnmatchcase(one.server.name, server))
    )


def in_shard(plants: Sequence[Plant], number: int, of: int) -> tuple[Plant, ...]:
    """Return every ``of``-th plant from the ``number``-th on: each shard has some of each cause."""
    return tuple(plants[number - 1 :: of])


def archive_of(folder: Path, plant: Plant) -> Path:
    """Return where the trials of a plant are."""
    return folder / f"{plant.name}.prony"


def is_finished(folder: Path, plant: Plant) -> bool:
    """Return whether all trials of a plant are there.

    *Errors*: ArchiveError.
    """
    path = archive_of(folder, plant)
    if not path.exists():
        return False
    with open_archive(path) as archive:
        return any(run.status is RunStatus.FINISHED for run in archive.runs())


def begun_session() -> SessionFacts:
    """Return that a session begins now, on this machine."""
    machine = brief_fingerprint()
    facts = {name: machine.fact(*path) for name, path in WHAT_MATTERS.items()}
    known = {name: fact for name, fact in facts.items() if fact is not None}
    words = {name: str(fact) for name, fact in known.items() if not isinstance(fact, Unknown)}
    return SessionFacts(int(time.time()), prony_version(), machine_key(machine), words)


def run_plant(campaign: Campaign, plant: Plant, listener: StudyListener) -> None:
    """Measure a plant, or the trials that it lacks.

    *Errors*: as `prony.study.run_study`; UsageError for one on the host's network without root: a network
    stands in for it.
    """
    if plant.pair.faulty.on_host and not may_enter_networks():
        raise UsageError(f"`{plant.name}` needs root: another network stands in for the machine's")
    path = archive_of(campaign.folder, plant)
    plan = campaign.plan(plant)
    study = Study(
        plan,
        campaign.known,
        campaign.user,
        path,
        sandbox=replace(campaign.sandbox, choice=plan.cells[0].sandbox),
        force=True,
        resumes=path.exists(),
        retries=0,
    )
    planting = PlantingListener(plant, campaign.sandbox.choice, listener)
    try:
        run_study(study, planting)
    finally:
        planting.close()


def kept_trials(folder: Path, plant: Plant) -> Iterator[Kept]:
    """Yield the evidence of each trial of a plant.

    *Errors*: ArchiveError.
    """
    path = archive_of(folder, plant)
    if not path.exists():
        return
    with open_archive(path) as archive:
        cells, subjects = {cell.id: cell for cell in archive.cells()}, archive.subjects()
        for record in archive.trials():
            trial = record.trial
            if trial.role is not TrialRole.SUBJECT:
                continue
            cell = cells[trial.cell_id]
            evidence = Evidence(cell, trial, subjects.get(cell.subject.name))
            healthy = trial.cell_id == HEALTHY
            disturbed = _disturbed(plant, trial, healthy=healthy)
            harmed = harm_of(plant.cause.harm, trial)
            kept = Kept(plant.name, healthy, trial.block, harmed, disturbed, evidence, plant.digest)
            yield slimmed(kept)


def _disturbed(plant: Plant, trial: Trial, *, healthy: bool) -> bool:
    """Return whether a trial does not count: other work than what was planted ran beside it."""
    setup = plant.pair.healthy if healthy else plant.pair.faulty
    if isinstance(trial.outcome, Invalid):
        return True
    of_machine = trial.fault is not None and trial.fault.kind in _OF_MACHINE
    return of_machine and not setup.neighbour
