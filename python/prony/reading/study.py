"""An archive, read once: the source of all reports of a study."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from prony.archive import Archive
from prony.diagnosis import observe
from prony.diagnosis.conclusion import Diagnosis, Observed, conclude, confirmed
from prony.diagnosis.evidence import Evidence
from prony.figures.answer import log_values
from prony.figures.by_session import in_sessions
from prony.figures.claim_parts import ClaimResult, ClaimVerdict, estimand
from prony.figures.claims import Then, VersionChange, evaluate, of_the_time
from prony.figures.generator import most_per_s
from prony.figures.statistics.all_pairs import table_of
from prony.figures.statistics.compare import LEAST_BLOCKS, Comparison, Terms
from prony.figures.statistics.effects import Dependence, dependence
from prony.figures.summary import (
    CellSummary,
    TrialFigures,
    figures,
    judged_sessions,
    latest_attempts,
    summarise_cell,
)
from prony.model.facts import AskedProgram, Fingerprint, PilotStep, TrialStep
from prony.model.json_codec import INLINE
from prony.model.limit import Limited
from prony.model.plan import Cell, Claim, Plan
from prony.model.sandbox import Placement
from prony.model.shown import INTERNAL, shown, shown_as
from prony.model.trial import Ok, Run, SubjectRecord, TrialRecord, TrialRole
from prony.reading.across import Across, Side, in_their_order, over_sessions, session_of, stretches
from prony.reading.checks import (
    Beside,
    Calibrated,
    Calibrations,
    CrossCheck,
    Placed,
    PlacedTrial,
    beside,
    calibration_trials,
    calibrations,
    cross_checks,
    effect_of_order,
    in_order,
    position_of,
)
from prony.reading.failures import Attempts, Repeated, repeated, search_attempts
from prony.reading.findings import SharedFinding, SubjectFinding, merged, shared
from prony.reading.groups import Group, agreed_terms, allowed_errors, groups_of, with_unequal_work
from prony.reading.others import BesideOthers, Disturbers, beside_others, disturbers_of
from prony.reading.saturation import Confirmed, Curve, confirmed_rates, curves
from prony.reading.senders import Sender, WarmUp, senders, warm_ups
from prony.reading.sweeps import Sweep, sweeps_of


def dependence_of(groups: Iterable[Group]) -> Dependence | None:
    """Return the dependence in the first primary load that has an answer over five blocks; None where there
    is none, and where sessions are counted.
    """
    for group in (one for one in groups if one.primary and not one.answer.by_session):
        metric = group.answer.metric
        names = {group.answer.first, *group.answer.comparisons}
        logs = {cell.name: log_values(cell, metric) for cell in group.cells if metric and cell.name in names}
        if len(logs) >= 2 and len(table := table_of(logs)) >= LEAST_BLOCKS:
            return dependence(table)
    return None


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim, and what a study says of it."""

    claim: Claim = field(metadata=INLINE)
    result: ClaimResult = field(metadata=INLINE)
    estimand: str
    """The quantity that decides, in words."""
    then: Then | None
    """Of a claim that does not hold, or whose subjects of today were not measured: what the software of the
    original's time says.
    """


@dataclass(frozen=True, slots=True)
class StudyExtent:
    """How much was measured."""

    blocks: int
    """Those that were begun."""
    blocks_of_rounds: int
    """Those of them that have rounds alone."""
    sessions: int
    """How many the subjects' trials are of, parted by a planned pause, another day or another machine."""
    trials: Mapping[TrialRole, int]
    """How many were run for each reason."""
    limited: Mapping[str, int]
    """How many trials of subjects had each verdict on the generator, `of` so many that ran their window."""


@dataclass(frozen=True, slots=True)
class StudyResults:
    """All content of a study's reports, as values."""

    plan: Plan
    """What was asked for."""
    runs: tuple[Run, ...]
    """The runs that measured into the archive."""
    fingerprint: Fingerprint
    """The machine."""
    subjects: Mapping[str, SubjectRecord]
    """By name."""
    groups: tuple[Group, ...]
    """Cells that may be compared, one group for each load, engine and sandbox."""
    findings: tuple[SubjectFinding, ...]
    """What the rules found, in their order."""
    placements: tuple[Placement, ...]
    """The CPUs that trials had."""
    asked: tuple[AskedProgram, ...]
    """Programs of this machine that subjects asked over their sockets: each is a part of them."""
    trials: tuple[TrialFigures, ...] = field(metadata=INTERNAL)
    """All of them, in the order in which they ran, also those of the calibration, of cross-checks and of
    searches, whose cells are `added` to the plan's own.
    """
    claims: tuple[tuple[Claim, ClaimResult], ...] = field(metadata=INTERNAL)
    """Each claim of the plan with its result."""
    added: Mapping[TrialRole, tuple[CellSummary, ...]] = field(metadata=INTERNAL)
    dependence: Dependence | None = None
    """Of blocks on the one before; null where it is not testable."""
    across: Across | None = None
    """Its sessions beside each other, null where it has one."""
    tried: tuple[tuple[str, TrialStep], ...] = field(default=(), metadata=INTERNAL)
    """The steps of a search, with their subjects, in order."""
    warm_ups: tuple[WarmUp, ...] = ()
    """What a pilot found."""
    then: Mapping[str, Then] = field(default_factory=dict, metadata=INTERNAL)
    """Of claims that do not hold, by name, what the software of the original's time says."""
    diagnoses: Mapping[int, Diagnosis] = field(default_factory=dict, metadata=INTERNAL)
    """What limits the subject, by the id of a cell."""
    sweeps: tuple[Sweep, ...] = ()
    """What settings do, where subjects differ in them on purpose."""
    others: Disturbers | None = None
    """Other programs that used the CPUs meanwhile; null: none did, or that was not counted."""
    machines: tuple[Sender, ...] = ()
    """The generators of loads that came from several machines, or from another one than the server's."""

    @property
    def cells(self) -> tuple[CellSummary, ...]:
        """The cells of all groups."""
        return tuple(cell for group in self.groups for cell in group.cells)

    @property
    def measured(self) -> tuple[Group, ...]:
        """The groups with at least one trial, valid or not; all groups if none has one."""
        ran = (group for group in self.groups if any(cell.total for cell in group.cells))
        return tuple(ran) or self.groups

    @property
    def blocks(self) -> int:
        """How many blocks were begun; those planned when there are no trials."""
        ran = {trial.block for trial in self.trials if trial.role is TrialRole.SUBJECT}
        return len(ran) or self.plan.blocks

    @property
    def sessions(self) -> int:
        """How many sessions the trials of subjects are of, as far as these say something about them."""
        return len(judged_sessions(one for one in self.trials if one.role is TrialRole.SUBJECT)) or 1

    @shown
    def verdicts(self) -> Mapping[ClaimVerdict, int]:
        """The number of claims of each verdict."""
        return Counter(result.verdict for _, result in self.claims)

    @shown
    def then_verdicts(self) -> Mapping[VersionChange, int]:
        """The number of claims of which the software of the original's time says the same."""
        return Counter(one.change for one in self.then.values())

    @shown
    def shared_findings(self) -> tuple[SharedFinding, ...]:
        """The findings, grouped where several subjects share one."""
        return shared(self.findings)

    @shown_as("drift")
    def calibrations(self) -> Calibrations | None:
        """What the calibration shows of the machine during the study; None without one."""
        return calibrations(self.trials, self.plan.design.margin)

    @shown
    def cross_checks(self) -> tuple[CrossCheck, ...]:
        """The comparison of cells with the same cells under other generators."""
        found = self.added.get(TrialRole.CROSS_CHECK, ())
        return cross_checks(self.cells, found, self.plan.design.margin)

    @shown
    def found_rates(self) -> tuple[Confirmed, ...]:
        """The result of the last search for each subject; empty without a search."""
        return confirmed_rates(self.runs, self.tried, self.plan.design.margin)

    @shown
    def originals(self) -> tuple[Beside, ...]:
        """The published figures, each beside each cell that repeats it."""
        return beside(self.cells, self.plan.originals)

    @shown
    def curves(self) -> tuple[Curve, ...]:
        """The loads that differ in one quantity only, if there are enough, and where subjects saturate."""
        return curves(self.groups)

    @property
    def order(self) -> tuple[Placed, ...]:
        """Each of the trials against the mean of its own cell."""
        return in_order(self.trials, self.groups)

    @shown
    def order_effect(self) -> Comparison | None:
        """How what ran last in a block compares with what ran first; None where that cannot be known."""
        return effect_of_order(self.trials, self.order, self.plan.design.margin)

    @shown
    def repeated(self) -> Repeated | None:
        """The trials that were discarded and repeated; None if there are none."""
        return repeated(self.trials)

    @shown
    def search(self) -> Attempts | None:
        """What the trials of a search suffered; None without one."""
        return search_attempts(self.trials)

    @shown
    def unmeasured(self) -> Mapping[str, str]:
        """The subjects without a trial under some load, with the reason."""
        records = self.subjects.values()
        reasons = {record.name: record.unavailable for record in records if record.unavailable}
        left_out = {number: why for run in self.runs for number, why in run.facts.left_out.items()}
        for cell in self.cells:
            if not cell.total:
                reasons.setdefault(cell.name, left_out.get(str(cell.cell.id), "no trial was run"))
        return reasons

    @shown_as("claims")
    def judged_claims(self) -> tuple[JudgedClaim, ...]:
        """What the experiment claimed, and what this study says of it."""
        return tuple(
            JudgedClaim(claim, result, estimand(claim), self.then.get(claim.name))
            for claim, result in self.claims
        )

    @shown
    def extent(self) -> StudyExtent:
        """How much was measured."""
        trials = {role: self.count(role) for role in TrialRole}
        limited = {"of": sum(self.limited.values()), **{one.value: n for one, n in self.limited.items()}}
        alone = {trial.block for trial in self.trials if trial.of_rounds}
        return StudyExtent(self.blocks, len(alone), self.sessions, trials, limited)

    @shown_as("order")
    def positions(self) -> tuple[PlacedTrial, ...]:
        """Every trial in the order in which they ran."""
        both = zip(self.trials, self.order, strict=True)
        return tuple(PlacedTrial(position_of(trial), placed) for trial, placed in both)

    @shown
    def calibration(self) -> tuple[Calibrated, ...]:
        """The calibration cell, each time it was measured."""
        return calibration_trials(self.trials)

    def place(self, group: Group) -> int:
        """Return the place of a group in ``groups``.

        *Errors*: ValueError for a group that is none of these.
        """
        return [id(one) for one in self.groups].index(id(group))

    def count(self, role: TrialRole) -> int:
        """Return how many trials were run for this reason."""
        return sum(trial.role is role for trial in self.trials)

    @property
    def limited(self) -> Mapping[Limited, int]:
        """How many trials of subjects, of those that ran their window, had each verdict on the generator."""
        every = (one for one in self.trials if one.role is TrialRole.SUBJECT and not one.of_rounds)
        ran = (one for one in every if isinstance(one.outcome, Ok))
        found = Counter(Limited.NO if one.limited is None else one.limited.level for one in ran)
        return {level: found[level] for level in Limited}

    @property
    def is_search(self) -> bool:
        """Whether the study searched for rates instead of running its cells."""
        return bool(self.found_rates) and not self.count(TrialRole.SUBJECT)


def _claims(plan: Plan, cells: Sequence[CellSummary], agreed: Terms) -> tuple[tuple[Claim, ClaimResult], ...]:
    return tuple((claim, evaluate(claim, cells, agreed)) for claim in plan.claims)


def _then(
    plan: Plan,
    claims: Sequence[tuple[Claim, ClaimResult]],
    cells: Sequence[CellSummary],
    agreed: Terms,
) -> dict[str, Then]:
    """Return what the software of the original's time says of claims, by the names of those it was asked."""
    found = {
        claim.name: of_the_time(claim, result, cells, plan.design.editions, agreed)
        for claim, result in claims
    }
    return {name: one for name, one in found.items() if one is not None}


def _with_subjects(groups: Iterable[Group], subjects: Mapping[str, SubjectRecord]) -> tuple[Group, ...]:
    """Return groups with what is known of their subjects."""
    return tuple(_with_records(group, subjects) for group in groups)


def _with_records(group: Group, subjects: Mapping[str, SubjectRecord]) -> Group:
    cells = (
        replace(one, most_per_s=most_per_s(one.cell, subjects.get(one.cell.subject.name)))
        for one in group.cells
    )
    leader = subjects.get(group.answer.leader or "")
    answer = replace(group.answer, command_line=None if leader is None else leader.command_line)
    return replace(group, cells=tuple(cells), answer=answer)


def _cells(groups: Iterable[Group]) -> list[CellSummary]:
    return [cell for group in groups for cell in group.cells]


@dataclass(frozen=True, slots=True)
class _Diagnosed:
    """The last attempt at a cell in a block, as observed: discarded ones explain no figure."""

    subject: str
    attempt: int
    observed: Observed


def _concluded(
    diagnosed: Mapping[tuple[int, int], _Diagnosed], closely: Mapping[int, Evidence]
) -> dict[int, Diagnosis]:
    trials: dict[int, list[Observed]] = {}
    for (cell, _), one in diagnosed.items():
        trials.setdefault(cell, []).append(one.observed)
    found = {cell: conclude(each) for cell, each in trials.items()}
    return {
        cell: confirmed(one, closely[cell]) if cell in closely else one
        for cell, one in found.items()
        if one is not None
    }


def read(  # noqa: PLR0913 - what an archive holds
    plan: Plan,
    runs: tuple[Run, ...],
    subjects: Mapping[str, SubjectRecord],
    trials: Iterable[TrialRecord],
    added: Mapping[TrialRole, Sequence[Cell]] | None = None,
    *,
    takes_unsteady: bool = False,
) -> StudyResults:
    """Return the results of an archive's values. Each trial is dropped once its figures are taken.
    ``added``: cells that are none of the plan's, by the reason why they were measured. ``takes_unsteady``:
    subjects whose pace was not steady enter verdicts too, as they do when the study was measured by force.
    """
    own_cells = {cell.id: cell for cell in plan.cells}
    stretch = stretches(runs)
    taken: list[TrialFigures] = []
    diagnosed: dict[tuple[int, int], _Diagnosed] = {}
    searched = {cell.id: cell.subject.name for cell in (added or {}).get(TrialRole.FIND_RATE, ())}
    tried: dict[tuple[int, int], tuple[str, TrialStep]] = {}
    looks: dict[tuple[int, int], PilotStep] = {}
    closely: dict[int, Evidence] = {}
    asked: dict[tuple[str, str, str], AskedProgram] = {}
    beside: dict[tuple[int, int], BesideOthers | None] = {}
    for record in trials:
        trial = record.trial
        taken.append(replace(figures(trial), session=session_of(record, plan, stretch)))
        if trial.facts.find_rate is not None and trial.cell_id in searched:
            # A step that was repeated counts once, as it came out last.
            step = searched[trial.cell_id], trial.facts.find_rate
            tried[trial.cell_id, trial.block] = step
        if trial.role is TrialRole.PILOT and trial.facts.pilot is not None:
            looks[trial.cell_id, trial.block] = trial.facts.pilot
        if trial.role in (TrialRole.SUBJECT, TrialRole.FIND_RATE):
            beside[trial.cell_id, trial.block] = beside_others(trial)
        close = trial.facts.close
        if trial.role is TrialRole.CONFIRMATION and close is not None and close.cell_id in own_cells:
            closely[close.cell_id] = Evidence(own_cells[close.cell_id], trial)
        if trial.role is not TrialRole.SUBJECT or trial.cell_id not in own_cells or trial.is_of_rounds:
            continue
        for program in trial.facts.asked:
            known = asked.setdefault((program.role, program.name, program.place), program)
            if program.connections > known.connections:
                asked[program.role, program.name, program.place] = program
        cell, key = own_cells[trial.cell_id], (trial.cell_id, trial.block)
        if key not in diagnosed or trial.attempt >= diagnosed[key].attempt:
            evidence = Evidence(cell, trial, subjects.get(cell.subject.name))
            diagnosed[key] = _Diagnosed(cell.subject.name, trial.attempt, observe(evidence))
    reading = read_figures(plan, runs, subjects, taken, added, takes_unsteady=takes_unsteady)
    diagnoses = with_unequal_work(reading.groups, _concluded(diagnosed, closely))
    return replace(
        reading,
        groups=tuple(replace(one, diagnoses=diagnoses) for one in reading.groups),
        findings=merged((one.subject, one.observed.findings) for one in diagnosed.values()),
        diagnoses=diagnoses,
        asked=tuple(asked.values()),
        others=disturbers_of(beside.values(), (run.facts.command for run in reversed(runs))),
        tried=tuple(tried.values()),
        warm_ups=warm_ups(plan, looks),
    )


def read_figures(  # noqa: PLR0913 - what an archive holds
    plan: Plan,
    runs: tuple[Run, ...],
    subjects: Mapping[str, SubjectRecord],
    taken: Sequence[TrialFigures],
    added: Mapping[TrialRole, Sequence[Cell]] | None = None,
    *,
    takes_unsteady: bool = False,
) -> StudyResults:
    """Return the results of the figures of trials, as ``read`` does: without what needs their samples, so
    without findings, diagnoses, searches and pilots.
    """
    takes_unsteady |= any(run.facts.forced for run in runs)
    own_cells = {cell.id for cell in plan.cells}
    own = [one for one in taken if one.role is TrialRole.SUBJECT and one.cell_id in own_cells]
    agreed = agreed_terms(plan, own)
    groups = _with_subjects(groups_of(plan, own, agreed, takes_unsteady=takes_unsteady), subjects)
    cells = _cells(groups)
    claims = _claims(plan, cells, agreed)
    return StudyResults(
        plan=plan,
        runs=runs,
        fingerprint=runs[0].fingerprint if runs else Fingerprint(),
        subjects=subjects,
        groups=groups,
        findings=(),
        placements=tuple(dict.fromkeys(trial.placement for trial in own if trial.placement is not None)),
        asked=(),
        trials=tuple(taken),
        claims=claims,
        then=_then(plan, claims, cells, agreed),
        dependence=dependence_of(groups),
        sweeps=sweeps_of(groups, subjects, agreed),
        machines=senders(one.machines for one in latest_attempts(own)),
        added={
            role: _added(
                plan, cells, [one for one in taken if one.role is role], by_session=agreed.by_session
            )
            for role, cells in (added or {}).items()
            if cells
        },
    )


def _added(
    plan: Plan, cells: Iterable[Cell], trials: Sequence[TrialFigures], *, by_session: bool
) -> tuple[CellSummary, ...]:
    """Return cells that are none of the plan's, with their trials."""
    errors, margin = allowed_errors(plan), plan.design.margin
    found = [summarise_cell(cell, trials, allowed_errors=errors, margin=margin) for cell in cells]
    return tuple(in_sessions(found) if by_session else found)


def read_archive(archive: Archive, *, takes_unsteady: bool = False, plan: Plan | None = None) -> StudyResults:
    """Return the results of ``archive``. ``plan``: its own with other claims or published figures; the rest
    as ``read``.
    """
    plan = plan or archive.plan()
    reasons = (role for role in TrialRole if role is not TrialRole.SUBJECT)
    added: dict[TrialRole, Sequence[Cell]] = {role: archive.cells(role) for role in reasons}
    known = (plan, archive.runs(), archive.subjects(), archive.trials(), added)
    reading = read(*known, takes_unsteady=takes_unsteady)
    sides = sessions_in(reading, takes_unsteady=takes_unsteady) if reading.sessions > 1 else ()
    return replace(reading, across=read_over(sides)) if len(sides) > 1 else reading


def read_over(sides: Iterable[Side]) -> Across:
    """Return sessions of one plan, from one archive or several, beside each other; claims are judged over the
    trials of all of them. A session counts once, also where one alone says something about servers. Subjects
    whose pace was not steady enter verdicts where all sessions take them.
    """
    numbered = in_their_order(sides)
    plan = numbered[0].plan
    trials = _joined(plan, numbered)
    subjects = {name: one for side in reversed(numbered) for name, one in side.subjects.items()}
    takes_unsteady = all(side.takes_unsteady for side in numbered)
    agreed = replace(agreed_terms(plan, trials), by_session=True, look=None)
    groups = groups_of(plan, trials, agreed, takes_unsteady=takes_unsteady)
    claims = _claims(plan, _cells(_with_subjects(groups, subjects)), agreed)
    return over_sessions(plan, numbered, groups, [result for _, result in claims])


def _joined(plan: Plan, sides: Sequence[Side]) -> list[TrialFigures]:
    """Return the trials of sessions as those of one study: no two have a block in common. A session that says
    nothing about servers takes no figure from the others.
    """
    found: list[TrialFigures] = []
    for session, side in enumerate(sides):
        if not judged_sessions(side.trials):
            continue
        ids = {own.id: cell.id for own, cell in zip(side.plan.cells, plan.cells, strict=True)}
        begin = 1 + max((one.block for one in found), default=-1)
        found += [
            replace(one, session=session, block=begin + one.block, cell_id=ids[one.cell_id])
            for one in side.trials
        ]
    return found


def side_of(reading: StudyResults, archive: str = "", *, takes_unsteady: bool = False) -> Side:
    """Return what was read of an archive as one side. ``archive``: its name."""
    ids = {cell.id for cell in reading.plan.cells}
    own = (one for one in reading.trials if one.role is TrialRole.SUBJECT and one.cell_id in ids)
    return Side(
        archive=archive,
        started_unix_ns=min((run.started_unix_ns for run in reading.runs), default=0),
        prony_version=reading.runs[0].prony_version if reading.runs else None,
        blocks=reading.blocks,
        plan=reading.plan,
        subjects=reading.subjects,
        groups=reading.groups,
        claims=reading.claims,
        trials=latest_attempts(own),
        fingerprint=reading.fingerprint,
        takes_unsteady=takes_unsteady or any(run.facts.forced for run in reading.runs),
    )


def sessions_in(
    reading: StudyResults, archive: str = "", *, takes_unsteady: bool = False
) -> tuple[Side, ...]:
    """Return each session that has trials of subjects, judged by itself. ``archive``, ``takes_unsteady``: as
    of `side_of`.
    """
    whole = side_of(reading, archive, takes_unsteady=takes_unsteady)
    stretch, sessions = stretches(reading.runs), max(1, reading.plan.design.sessions)

    def session(number: int) -> Side:
        own = [one for one in reading.trials if one.session == number]
        runs = (run for run in reading.runs if stretch[run.id] == number // sessions)
        known = (reading.plan, tuple(runs), reading.subjects, own)
        alone = side_of(read_figures(*known, takes_unsteady=whole.takes_unsteady), archive)
        return replace(
            alone,
            started_unix_ns=min(one.started_unix_ns for one in own),
            trials=tuple(one for one in whole.trials if one.session == number),
            takes_unsteady=whole.takes_unsteady,
        )

    numbers = {one.session for one in reading.trials if one.role is TrialRole.SUBJECT}
    return tuple(map(session, sorted(numbers)))
