"""The bench on which trials run, and how a trial of a study uses it."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random

from prony.catalog.install.environment import Environment, Unavailable
from prony.catalog.schema.apps import is_built_in
from prony.catalog.schema.loader import Catalog
from prony.core.safe_text import shortened
from prony.core.units import SECOND_NS, seconds
from prony.core.users import RunAs
from prony.engine.registry import Means, open_engine
from prony.figures.validity import MOST_OTHER_LOAD
from prony.machine.activity import Activity, watch_machine
from prony.machine.cpus import Cpu
from prony.model.facts import GeneratorFitness
from prony.model.json_codec import Json
from prony.model.launch import Launch, Readiness
from prony.model.plan import Cell
from prony.model.sandbox import Placement, SandboxChoice, SandboxKind
from prony.model.subject import Subject
from prony.model.trial import FaultKind, Trial, TrialRole
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.plan.order import Nuisances, Position, Turn, nuisances, with_arrivals
from prony.sandbox import Sandbox, open_sandbox
from prony.sandbox.certificates import Authority
from prony.sandbox.groups import Groups
from prony.sandbox.journal import RunFolder
from prony.sandbox.placement import equivalent
from prony.sandbox.watch.partners import KnownPrograms
from prony.study.assembly import HOST, Site, assemble
from prony.study.preparing import Ready
from prony.study.reference_load import with_taken
from prony.study.task import Study, StudyListener, placement_of_subject
from prony.study.trial import Stay, Task, run_trial

_WINDOW_S = 1.0
_MOST_OF_TRIAL_S = 10.0
_MOST_OF_STUDY_S = 60.0
_NAMED = 3


@dataclass(slots=True)
class Patience:
    """How long a study still waits for quiet, all trials together. ``look``: watches the machine so long.
    ``busiest``: the programs for which it waited in vain, or that disturbed a trial, by name, with how often.
    """

    left_s: float = _MOST_OF_STUDY_S
    look: Callable[[float], Activity] = watch_machine
    busiest: Counter[str] = field(default_factory=Counter)

    def wait(self, load: Workload, listener: StudyListener) -> bool:
        """Return whether other programs leave the CPUs alone, after as long as waiting is worth: 10 s, what
        the trial itself takes, and what is left for the study.
        """
        most_s = min(_MOST_OF_TRIAL_S, _length_s(load), self.left_s)
        waited_s, seen = 0.0, self.look(_WINDOW_S / 4)
        while _is_busy(seen) and waited_s < most_s:
            listener.paused(most_s - waited_s, f"the next trial ({_names(seen)})")
            window_s = min(_WINDOW_S, most_s - waited_s)
            seen = self.look(window_s)
            waited_s += window_s
        self.left_s -= waited_s
        if _is_busy(seen):
            self.busiest.update(seen.busiest)
        return not _is_busy(seen)

    def note(self, trial: Trial) -> None:
        """Remember which programs disturbed a trial."""
        if trial.fault is not None and trial.fault.kind is FaultKind.OTHER_LOAD:
            self.busiest.update(one.name for one in trial.facts.others)

    def in_vain(self, command: str) -> str | None:
        """Return which programs took the CPUs, and what to type once they are closed; None: none did."""
        if not self.busiest:
            return None
        names = ", ".join(shortened(name) for name, _ in self.busiest.most_common(_NAMED))
        again = f": `{command}`" if command else " the command again"
        return f"other programs took the CPUs ({names}): close them, and for exact figures type{again}"


def _length_s(load: Workload) -> float:
    """Return how long a load takes; of one with a number of requests, that is not known."""
    stop = load.stop
    return seconds(load.warmup_ns + stop.duration_ns) if isinstance(stop, DurationStop) else _MOST_OF_TRIAL_S


def _is_busy(seen: Activity) -> bool:
    return seen.cpu.get("busy", 0.0) > MOST_OTHER_LOAD


def _names(seen: Activity) -> str:
    """Return who takes the CPUs, such as ``chromium uses 31 % of a CPU``."""
    each = [f"{name} uses {100 * share:.0f} % of a CPU" for name, share in seen.busiest.items()]
    return ", ".join(each[:1]) or "short-lived programs run"


@dataclass(frozen=True, slots=True)
class LaunchPlace:
    """On how many CPUs a subject runs, at which address it listens, and by what its ports are drawn.
    ``own_port``: at which it listens instead, whatever it is given.
    """

    cpus: int
    listen: str = HOST
    draw: Random | None = None
    own_port: int | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """Where trials run, one after the other: of a study, of a check, or of a calibration.

    ``authority``: for subjects that speak TLS. ``hidden``: a file that no subject sees.
    """

    catalog: Catalog
    user: RunAs
    run: RunFolder
    environments: Mapping[str, Environment | Unavailable]
    authority: Authority
    groups: Groups | None = None
    hidden: Path | None = None

    @contextmanager
    def sandbox(self, name: str, choice: SandboxChoice) -> Iterator[Sandbox]:
        """Yield a sandbox with a folder of this name below the run's, which is removed afterwards."""
        groups = self.groups if choice.kind is SandboxKind.CGROUP else None
        try:
            yield open_sandbox(choice, self.user, self.run.folder / name, groups, self.hidden)
        finally:
            self.run.remove_trial_folder(name)

    def launch(self, ready: Ready, sandbox: Sandbox, place: LaunchPlace) -> Launch:
        """Return the exact processes to start, on free ports."""
        port = partial(sandbox.free_port, place.draw) if place.draw else sandbox.free_port
        site = Site(
            *(port, sandbox.folder_for, ready.app_folder, place.cpus, self.authority),
            listen=place.listen,
            own_port=place.own_port,
        )
        return assemble(self.catalog, ready.subject, ready.needs, self.environments, site)

    def task(self, cell: Cell, ready: Ready, sandbox: Sandbox, placement: Placement, block: int = 0) -> Task:
        """Return a trial of a cell without nuisances, which belongs to no study."""
        return Task(
            cell=cell,
            position=Position(block, cell.id),
            launch=self.launch(ready, sandbox, LaunchPlace(len(placement.server_cpus))),
            contract=cell.subject.app.contract,
            sandbox=sandbox,
            engine=open_engine(cell.engine),
            placement=placement,
            nuisances={},
        )


def measured(task: Task, on_event: Callable[[Json], None]) -> Stay:
    """Run a trial with Prony's own work beside the generator. Errors as `run_trial`."""
    with beside_the_generator(task.placement):
        return run_trial(task, on_event)


@dataclass(frozen=True, slots=True)
class StudyBench:
    """What the trials of one run of a study share.

    ``placement``: the widest of all trials, whose generator has the same CPUs. ``left_out``: why a cell
    cannot be measured here, by its id. ``fitness``: the load engine's calibration here.
    ``warmups``: what a pilot found, by the cell's id, in nanoseconds; else the cell's own holds. ``sharing``:
    what a server loses to a generator on its CPUs (`calibrated_sharing`). ``known``: what trials found that
    their subjects ask. ``in_turns``: cells whose servers could not live beside the others in a round.
    ``disturbed``: blocks in which rounds alone did not suffice, for what disturbed them. ``own_ports``: where
    subjects listen, by name, that do not listen where they should (`study.replies`).
    """

    study: Study
    bench: Bench
    ready: Mapping[str, Ready]
    placement: Placement
    cpus: Sequence[Cpu]
    left_out: Mapping[int, str] = field(default_factory=dict)
    fitness: GeneratorFitness | None = None
    warmups: Mapping[int, int] = field(default_factory=dict)
    sharing: float | None = None
    patience: Patience = field(default_factory=Patience)
    known: KnownPrograms = field(default_factory=KnownPrograms)
    in_turns: set[int] = field(default_factory=set)
    disturbed: set[int] = field(default_factory=set)
    own_ports: dict[str, int] = field(default_factory=dict)

    def has(self, turn: Turn) -> bool:
        """Return whether the turn's subject can be started and its load be sent."""
        return turn.cell.subject.name in self.ready and turn.cell.id not in self.left_out

    def placement_of(self, subject: Subject) -> Placement:
        """Return the CPUs of a trial of this subject."""
        return placement_of_subject(self.study.plan, subject.name, self.cpus)

    def launch(self, subject: Subject, sandbox: Sandbox, nuisance: Nuisances) -> Launch:
        """Return the exact processes to start, on free ports, with the nuisances in the environment."""
        draw = Random(nuisance.draw_seed)  # noqa: S311 - a nuisance, not a secret
        cpus = len(self.placement_of(subject).server_cpus)
        listen = self.study.plan.sandbox.listen or HOST
        place = LaunchPlace(cpus, listen, draw, self.own_ports.get(subject.name))
        launch = self.bench.launch(replace(self.ready[subject.name], subject=subject), sandbox, place)
        if self.study.ready_timeout_ns is not None and not is_built_in(subject.app):
            within = replace(launch.readiness, timeout_ns=self.study.ready_timeout_ns)
            launch = replace(launch, readiness=within, backends=_all_with(launch.backends, readiness=within))
        words = () if is_built_in(subject.app) else self.study.before_each
        launch = _with_before(launch, words, self._programs(subject))
        each = tuple(_disturbed(one, nuisance) for one in launch.backends)
        return replace(_disturbed(launch, nuisance), backends=each)

    def _programs(self, subject: Subject) -> Path | None:
        """Return the folder of the programs of a subject's environment; None: it has none of its own."""
        found = self.bench.environments[self.ready[subject.name].needs.server.key]
        return found.bin if isinstance(found, Environment) else None


def _with_before(launch: Launch, words: tuple[str, ...], programs: Path | None) -> Launch:
    """Return a launch before which a command runs: with the environment's own program, if it has that."""
    if not words:
        return launch
    own = programs / words[0] if programs else None
    before = (str(own), *words[1:]) if own and own.exists() else words
    slower = replace(launch.readiness, timeout_ns=launch.readiness.timeout_ns + _BEFORE_NS)
    return replace(launch, before=before, readiness=slower)


# Enough to fill tables again; a study that needs more for each trial would hardly end.
_BEFORE_NS = 60 * SECOND_NS


def _all_with(launches: Iterable[Launch], readiness: Readiness) -> tuple[Launch, ...]:
    return tuple(replace(one, readiness=readiness) for one in launches)


def _disturbed(launch: Launch, nuisance: Nuisances) -> Launch:
    return replace(launch, environment={**launch.environment, **nuisance.as_environment()})


_REFERENCE = "reference"
# An open loop has as many connections as it needs; a hundred are near the engine's best.
_OF_OPEN_LOOP = 100


def _ceiling(fitness: GeneratorFitness | None, cell: Cell) -> float | None:
    """Return what the built-in engine can reach under a cell's load, if that is known."""
    loop = cell.workload.loop
    connections = loop.connections if isinstance(loop, ClosedLoop) else _OF_OPEN_LOOP
    return None if fitness is None else fitness.ceiling(connections, cell.engine.threads)


def _means(bench: StudyBench, cell: Cell) -> Means:
    groups = bench.bench.groups
    group = groups.tree.create if groups else None
    counts = cell.subject.server == _REFERENCE and is_built_in(cell.subject.app)
    return Means(_ceiling(bench.fitness, cell), bench.study.fleet, group, bench.study.requests, counts)


def measure(bench: StudyBench, turn: Turn, listener: StudyListener) -> Trial:
    """Run the trial of one turn and return it."""
    cell, at = turn.cell, turn.position
    name = f"trial-{cell.id}-{at.block}-{at.position}-{at.attempt}"
    with bench.bench.sandbox(name, cell.sandbox) as sandbox:
        stay = measured(task_of(bench, turn, sandbox), partial(listener.trial_event, cell))
    return with_taken(stay.trial, bench.sharing)


@contextmanager
def beside_the_generator(placement: Placement) -> Iterator[None]:
    """Within the block, Prony's own work stays off the server's CPUs.

    Its nice value stays: a subject would inherit a new one, and could not undo it without root.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, placement.generator_cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def task_of(bench: StudyBench, turn: Turn, sandbox: Sandbox) -> Task:
    """Return all that the trial of a turn needs."""
    cell, at = turn.cell, turn.position
    nuisance = nuisances(bench.study.plan, turn)
    launch = bench.launch(cell.subject, sandbox, nuisance)
    warm = replace(cell.workload, warmup_ns=bench.warmups.get(cell.id, cell.workload.warmup_ns))
    return Task(
        cell=replace(cell, workload=with_arrivals(warm, nuisance.arrival_seed)),
        position=at,
        launch=launch,
        contract=cell.subject.app.contract,
        sandbox=sandbox,
        engine=open_engine(cell.engine, _means(bench, cell)),
        placement=equivalent(bench.placement_of(cell.subject), bench.cpus, Random(nuisance.draw_seed)),  # noqa: S311
        nuisances={**nuisance.as_text(), "port": str(launch.address.port)},
        counts_disturbed=_counts_disturbed(bench.study, at),
        looks=bench.study.plan.design.confirm if at.role is TrialRole.CONFIRMATION else (),
        known=bench.known,
    )


def _counts_disturbed(study: Study, at: Position) -> bool:
    """Return whether what the environment disturbed is not repeated but counts.

    A calibration does: elsewhere it says nothing. By force, what comes again in the last attempt too is taken
    as this machine's usual state.
    """
    return at.role is TrialRole.CALIBRATION or (study.force and at.attempt >= study.retries)
