"""An archive read once, as what all reports of a study are made from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from prony.analysis.answer import Answer, answer
from prony.analysis.claim_cells import claimed
from prony.analysis.claims import ClaimResult, evaluate
from prony.analysis.compare import Terms
from prony.analysis.noise_floor import Floor, floors_by_metric
from prony.analysis.spending import Look
from prony.analysis.standings import GENERATOR_MEASURES, MEASURES, Standing, standings
from prony.analysis.summary import CellSummary, TrialFigures, figures, summarise_cell
from prony.archive import Archive
from prony.diagnosis import RULES, Evidence, Finding, diagnose
from prony.model import (
    Cell,
    Claim,
    ClosedLoop,
    EngineChoice,
    Fingerprint,
    OpenLoop,
    Placement,
    Plan,
    Request,
    Run,
    SandboxChoice,
    SubjectRecord,
    TrialRecord,
    TrialRole,
    Workload,
)

__all__ = ["Found", "Group", "Reading", "generator_name", "read", "read_archive", "terms"]


@dataclass(frozen=True, slots=True)
class Found:
    """A finding about a subject: the first of its kind, and in how many of its trials it was made.

    A Reading holds them in the order of the rules.
    """

    subject: str
    finding: Finding
    trials: int
    of: int


@dataclass(frozen=True, slots=True)
class Group:
    """The cells that share a load, generator and sandbox, and the best of them.

    ``workload`` is that of the first: requests and expectations belong to the apps, and may differ between
    cells. ``standings``: the best in each measure. ``primary``: the load that verdicts were planned for;
    others are a screening. ``noise_floor``: the machine's in the answer's metric, 0 where it is not known.
    ``of_generators``: one server under several generators, which are compared, each under its own load.
    """

    workload: Workload
    engine: EngineChoice
    sandbox: SandboxChoice
    cells: tuple[CellSummary, ...]
    answer: Answer
    standings: tuple[Standing, ...] = ()
    primary: bool = True
    of_generators: bool = False
    noise_floor: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """All that reports of a study say, as values. ``trials``: all of them, in the order in which they ran,
    also those of the calibration, of cross-checks and of searches, whose cells are ``added`` to the plan's
    own. ``claims``: each claim of the plan with what the study says of it.
    """

    plan: Plan
    runs: tuple[Run, ...]
    fingerprint: Fingerprint
    subjects: Mapping[str, SubjectRecord]
    groups: tuple[Group, ...]
    findings: tuple[Found, ...]
    placements: tuple[Placement, ...]
    trials: tuple[TrialFigures, ...] = ()
    claims: tuple[tuple[Claim, ClaimResult], ...] = ()
    added: Mapping[TrialRole, tuple[CellSummary, ...]] = field(default_factory=dict)

    @property
    def cells(self) -> tuple[CellSummary, ...]:
        """The cells of all groups."""
        return tuple(cell for group in self.groups for cell in group.cells)

    @property
    def measured(self) -> tuple[Group, ...]:
        """The groups of which a trial was run, whatever came of it; all where that is none."""
        ran = (group for group in self.groups if any(cell.total for cell in group.cells))
        return tuple(ran) or self.groups

    @property
    def blocks(self) -> int:
        """How many blocks were begun; those planned when there are no trials."""
        ran = {trial.block for trial in self.trials if trial.role is TrialRole.SUBJECT}
        return len(ran) or self.plan.blocks


def _merge(findings: Iterable[tuple[str, Finding]], trials: Mapping[str, int]) -> tuple[Found, ...]:
    first: dict[tuple[str, str], Finding] = {}
    count: dict[tuple[str, str], int] = {}
    for subject, finding in findings:
        key = (subject, finding.rule)
        first.setdefault(key, finding)
        count[key] = count.get(key, 0) + 1
    order = list(RULES)
    return tuple(
        Found(key[0], first[key], count[key], trials[key[0]])
        for key in sorted(first, key=lambda key: order.index(key[1]))
    )


def _load(workload: Workload) -> Workload:
    """Return the load without what is asked of the app: two apps answer with different bodies."""
    return replace(workload, request=Request(), expect_status=None, expect_body=None)


def _groups(plan: Plan, trials: Sequence[TrialFigures], floors: Sequence[Floor]) -> tuple[Group, ...]:
    compares_generators = _compares_generators(plan)
    alike: dict[object, list[CellSummary]] = {}
    for cell in plan.cells:
        load = _load(cell.workload)
        kind: object = (type(load.loop), load.stop) if compares_generators else (load, cell.engine)
        name = generator_name(cell) if compares_generators else None
        alike.setdefault((kind, cell.sandbox), []).append(summarise_cell(cell, trials, name))
    blocks = len({trial.block for trial in trials})
    return tuple(_group(plan, found, blocks, floors) for found in alike.values())


def _compares_generators(plan: Plan) -> bool:
    return len(plan.subjects()) == 1 and len({cell.engine.name for cell in plan.cells}) > 1


def generator_name(cell: Cell) -> str:
    """Return a generator with its threads and its load, such as ``wrk 2 × 80``."""
    match cell.workload.loop:
        case ClosedLoop(connections):
            load = f"{connections}"
        case OpenLoop(rate_per_s):
            load = f"{rate_per_s:g}/s"
    return f"{cell.engine.name} {cell.engine.threads} × {load}"


def _group(plan: Plan, cells: Sequence[CellSummary], blocks: int, floors: Sequence[Floor]) -> Group:
    first = cells[0].cell
    of_generators = _compares_generators(plan)
    primary = of_generators or first.is_under(plan.design.primary)
    by_metric = floors_by_metric(floors, first, blocks)
    agreed = replace(terms(plan, blocks), screens=not primary, floors=by_metric)
    found = answer(cells, agreed)
    return Group(
        workload=first.workload,
        engine=first.engine,
        sandbox=first.sandbox,
        cells=tuple(cells),
        answer=found,
        standings=standings(cells, agreed, GENERATOR_MEASURES if of_generators else MEASURES),
        primary=primary,
        of_generators=of_generators,
        noise_floor=by_metric.get(found.metric or "", 0.0),
    )


def terms(plan: Plan, blocks: int) -> Terms:
    """Return what was settled before the run about how comparisons after ``blocks`` are read."""
    precision = plan.design.precision
    look = Look(blocks, precision.looks) if precision else None
    return Terms(margin=plan.design.margin, look=look)


def _claims(
    plan: Plan, cells: Sequence[CellSummary], blocks: int, floors: Sequence[Floor]
) -> tuple[tuple[Claim, ClaimResult], ...]:
    agreed = terms(plan, blocks)
    found = []
    for claim in plan.claims:
        first = next((cell.cell for cell in claimed(claim, cells)), None)
        known = floors_by_metric(floors, first, blocks) if first else {}
        found.append((claim, evaluate(claim, cells, replace(agreed, floors=known))))
    return tuple(found)


def read(  # noqa: PLR0913, PLR0917 - what an archive holds, and its machine's noise
    plan: Plan,
    runs: tuple[Run, ...],
    subjects: Mapping[str, SubjectRecord],
    trials: Iterable[TrialRecord],
    added: Mapping[TrialRole, Sequence[Cell]] | None = None,
    floors: Sequence[Floor] = (),
) -> Reading:
    """Return what the values of an archive say. Each trial is dropped when its figures have been taken.
    ``added``: cells that are none of the plan's, by the reason why they were measured; ``floors``: those of
    the machine that measured.
    """
    own_cells = {cell.id: cell for cell in plan.cells}
    taken: list[TrialFigures] = []
    findings: list[tuple[str, Finding]] = []
    count: dict[str, int] = {}
    for record in trials:
        trial = record.trial
        taken.append(figures(trial))
        if trial.role is not TrialRole.SUBJECT or trial.cell_id not in own_cells:
            continue
        cell = own_cells[trial.cell_id]
        name = cell.subject.name
        count[name] = count.get(name, 0) + 1
        findings += [(name, found) for found in diagnose(Evidence(cell, trial, subjects.get(name)))]
    own = [one for one in taken if one.role is TrialRole.SUBJECT and one.cell_id in own_cells]
    groups = _groups(plan, own, floors)
    return Reading(
        plan=plan,
        runs=runs,
        fingerprint=runs[0].fingerprint if runs else Fingerprint(),
        subjects=subjects,
        groups=groups,
        findings=_merge(findings, count),
        placements=tuple(dict.fromkeys(trial.placement for trial in own if trial.placement is not None)),
        trials=tuple(taken),
        claims=_claims(
            plan,
            [cell for group in groups for cell in group.cells],
            len({trial.block for trial in own}),
            floors,
        ),
        added={
            role: tuple(summarise_cell(cell, [one for one in taken if one.role is role]) for cell in cells)
            for role, cells in (added or {}).items()
            if cells
        },
    )


def read_archive(archive: Archive, floors: Sequence[Floor] = ()) -> Reading:
    """Return what ``archive`` says, with the noise floors of the machine that measured."""
    plan = archive.plan()
    reasons = (role for role in TrialRole if role is not TrialRole.SUBJECT)
    added: dict[TrialRole, Sequence[Cell]] = {role: archive.cells(role) for role in reasons}
    return read(plan, archive.runs(), archive.subjects(), archive.trials(), added, floors)
