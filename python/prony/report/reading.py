"""An archive read once, as what all reports of a study are made from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from prony.analysis.answer import Answer, answer
from prony.analysis.claims import ClaimResult, evaluate
from prony.analysis.compare import Terms
from prony.analysis.spending import Look
from prony.analysis.standings import Standing, standings
from prony.analysis.summary import CellSummary, TrialFigures, figures, summarise_cell
from prony.archive import Archive, Run, SubjectRecord, TrialRecord
from prony.diagnosis import RULES, Evidence, Finding, diagnose
from prony.errors import ArchiveError
from prony.model import (
    Cell,
    Claim,
    EngineChoice,
    Json,
    Placement,
    Plan,
    Request,
    SandboxChoice,
    TrialRole,
    Workload,
)

__all__ = ["Found", "Group", "Reading", "read", "read_archive", "terms"]


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
    others are a screening.
    """

    workload: Workload
    engine: EngineChoice
    sandbox: SandboxChoice
    cells: tuple[CellSummary, ...]
    answer: Answer
    standings: tuple[Standing, ...] = ()
    primary: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """All that reports of a study say, as values. ``trials``: all of them, in the order in which they ran,
    also those of the calibration, of cross-checks and of searches, whose cells are ``added`` to the plan's
    own. ``claims``: each claim of the plan with what the study says of it.
    """

    plan: Plan
    runs: tuple[Run, ...]
    fingerprint: Json
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


def _groups(plan: Plan, trials: Sequence[TrialFigures]) -> tuple[Group, ...]:
    alike: dict[tuple[Workload, EngineChoice, SandboxChoice], list[CellSummary]] = {}
    for cell in plan.cells:
        key = (_load(cell.workload), cell.engine, cell.sandbox)
        alike.setdefault(key, []).append(summarise_cell(cell, trials))
    blocks = len({trial.block for trial in trials})
    return tuple(_group(plan, found, blocks) for found in alike.values())


def _group(plan: Plan, cells: Sequence[CellSummary], blocks: int) -> Group:
    first = cells[0].cell
    primary = first.is_under(plan.design.primary)
    agreed = replace(terms(plan, blocks), screens=not primary)
    return Group(
        workload=first.workload,
        engine=first.engine,
        sandbox=first.sandbox,
        cells=tuple(cells),
        answer=answer(cells, agreed),
        standings=standings(cells, agreed),
        primary=primary,
    )


def terms(plan: Plan, blocks: int) -> Terms:
    """Return what was settled before the run about how comparisons after ``blocks`` are read."""
    precision = plan.design.precision
    look = Look(blocks, precision.looks) if precision else None
    return Terms(margin=plan.design.margin, look=look)


def _claims(
    plan: Plan, cells: Sequence[CellSummary], trials: Sequence[TrialFigures]
) -> tuple[tuple[Claim, ClaimResult], ...]:
    agreed = terms(plan, len({trial.block for trial in trials}))
    return tuple((claim, evaluate(claim, cells, agreed)) for claim in plan.claims)


@contextmanager
def _reading(record: TrialRecord) -> Iterator[None]:
    """Turn what a Recording of another shape causes into one kind of error: an archive may come from
    anyone.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ArchiveError(f"trial {record.id} holds a Recording that cannot be read: {error!r}") from error


def read(
    plan: Plan,
    runs: tuple[Run, ...],
    subjects: Mapping[str, SubjectRecord],
    trials: Iterable[TrialRecord],
    added: Mapping[TrialRole, Sequence[Cell]] | None = None,
) -> Reading:
    """Return what the values of an archive say. Each trial is dropped when its figures have been taken.
    ``added``: cells that are none of the plan's, by the reason why they were measured.

    *Errors*: ArchiveError when a Recording is not of the documented shape.
    """
    own_cells = {cell.id: cell for cell in plan.cells}
    taken: list[TrialFigures] = []
    findings: list[tuple[str, Finding]] = []
    count: dict[str, int] = {}
    for record in trials:
        trial = record.trial
        with _reading(record):
            taken.append(figures(trial))
        if trial.role is not TrialRole.SUBJECT or trial.cell_id not in own_cells:
            continue
        cell = own_cells[trial.cell_id]
        name = cell.subject.name
        count[name] = count.get(name, 0) + 1
        with _reading(record):
            findings += [(name, found) for found in diagnose(Evidence(cell, trial, subjects.get(name)))]
    own = [one for one in taken if one.role is TrialRole.SUBJECT and one.cell_id in own_cells]
    groups = _groups(plan, own)
    return Reading(
        plan=plan,
        runs=runs,
        fingerprint=runs[0].fingerprint if runs else {},
        subjects=subjects,
        groups=groups,
        findings=_merge(findings, count),
        placements=tuple(dict.fromkeys(trial.placement for trial in own if trial.placement is not None)),
        trials=tuple(taken),
        claims=_claims(plan, [cell for group in groups for cell in group.cells], own),
        added={
            role: tuple(summarise_cell(cell, [one for one in taken if one.role is role]) for cell in cells)
            for role, cells in (added or {}).items()
            if cells
        },
    )


def read_archive(archive: Archive) -> Reading:
    """Return what ``archive`` says."""
    plan = archive.plan()
    reasons = (role for role in TrialRole if role is not TrialRole.SUBJECT)
    added: dict[TrialRole, Sequence[Cell]] = {role: archive.cells(role) for role in reasons}
    return read(plan, archive.runs(), archive.subjects(), archive.trials(), added)
