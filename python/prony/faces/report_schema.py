"""The shape of a study's JSON, as types, and its JSON Schema.

docs/reference/report-json.md says what each key means; here stands which keys there are and of which type.
New keys may be added within a version, so the schema does not refuse those that it does not name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue, TypeAdapter

from prony.analysis.compare import Comparison
from prony.analysis.drift import Drift
from prony.analysis.editions import Then
from prony.analysis.failure_rates import Failures
from prony.analysis.handshakes import Agreed, AgreedInBlocks
from prony.analysis.knee import Saturation
from prony.analysis.power import Sight
from prony.model.claims import Needs
from prony.model.shapes import Json
from prony.reading.brief import Elsewhere, Measures, Otherwise, Ratio
from prony.reading.sweeps import Factor
from prony.reading.warm_ups import WarmUp

Object = Mapping[str, JsonValue]
"""An object with a page of its own in docs/reference, or whose keys depend on what was measured."""


@dataclass(frozen=True, slots=True)
class MissingShape:
    """Why there is no value."""

    missing: str


@dataclass(frozen=True, slots=True)
class EstimateShape:
    """A figure over the trials that count, in the unit of its metric."""

    count: int
    mean: float
    low: float | None
    high: float | None
    median: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class AnswerSubjectShape:
    """A subject in the short answer."""

    name: str
    cell: int
    best: bool
    letters: str | None
    trials_ok: int
    trials: int
    qualified: bool
    at_least: bool
    primary: EstimateShape | MissingShape
    ratio: Ratio | None
    latency: EstimateShape | MissingShape | None
    error_ratio: float | None
    cpu: EstimateShape | MissingShape
    memory: EstimateShape | MissingShape


@dataclass(frozen=True, slots=True)
class ShortAnswerShape:
    """The answer in short."""

    group: int
    leader: str | None
    ties: Sequence[str]
    decided: bool
    reason: str | None
    blocks: int
    by_session: bool
    command_line: str | None
    metrics: Measures
    beside: Otherwise | None
    subjects: Sequence[AnswerSubjectShape]
    elsewhere: Sequence[Elsewhere]
    limits: Sequence[int]


@dataclass(frozen=True, slots=True)
class PlanShape:
    """What was asked."""

    name: str
    title: str
    question: str
    profile: str
    blocks: int
    cells: int
    seed: int
    source: str
    notes: Sequence[str]
    design: Object


@dataclass(frozen=True, slots=True)
class RunShape:
    """One run of the study."""

    id: int
    prony_version: str
    started_unix_ns: int
    ended_unix_ns: int | None
    status: str
    fingerprint: Object
    facts: Object


@dataclass(frozen=True, slots=True)
class SubjectShape:
    """What a subject was."""

    server_version: str | None
    interpreter: str | None
    packages: Mapping[str, str]
    lock_digest: str | None
    settings: Object
    command_line: str | None
    sandbox: Object
    facts: Object
    unavailable: str | None


@dataclass(frozen=True, slots=True)
class ExtentShape:
    """How much was measured."""

    blocks: int
    sessions: int
    trials: Mapping[str, int]
    limited: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PlacementShape:
    """The CPUs that trials had."""

    server_cpus: Sequence[int]
    generator_cpus: Sequence[int]
    shared: bool


@dataclass(frozen=True, slots=True)
class FailedRequestsShape:
    """Requests that failed alike."""

    classes: Sequence[str]
    requests: int
    share: float
    carried_in: int | None


@dataclass(frozen=True, slots=True)
class TrialShape:
    """A trial that does not count."""

    block: int
    attempt: int
    outcome: Literal["ok", "failed", "invalid"]
    stage: str | None
    reason: str | None
    log: str


@dataclass(frozen=True, slots=True)
class FailedAlikeShape:
    """Trials that do not count for the same reason."""

    blocks: Sequence[int]
    outcome: Literal["ok", "failed", "invalid"]
    stage: str | None
    reason: str | None
    fault: str | None
    low: float | None
    high: float | None
    also: JsonValue


@dataclass(frozen=True, slots=True)
class KnobShape:
    """A setting of a subject, as `--set` calls it, and its value."""

    name: str
    value: int | str | None


@dataclass(frozen=True, slots=True)
class RuleFindingShape:
    """What a rule found in a trial."""

    rule: str
    kind: str
    confidence: str
    sentence: str
    numbers: Mapping[str, float]
    names: Mapping[str, str]
    advice: str | None
    consequence: str
    experiment: str
    knob: KnobShape | None


@dataclass(frozen=True, slots=True)
class FrequentShape:
    """A finding, and how many trials have it."""

    finding: RuleFindingShape
    trials: int


@dataclass(frozen=True, slots=True)
class BoundShape:
    """The requests per second that a resource allows."""

    resource: str
    per_s: float
    low: float | None
    high: float | None
    times: float
    times_low: float | None
    times_high: float | None


@dataclass(frozen=True, slots=True)
class DiagnosisShape:
    """What limits a subject under a load."""

    kind: str
    confidence: str
    sentence: str
    trials: int
    cause: FrequentShape | None
    beside: Sequence[FrequentShape]
    overloaded: bool
    done_per_s: float | None
    asked_per_s: float | None
    in_flight: float | None
    slots: int | None
    shares: Mapping[str, float]
    bounds: Sequence[BoundShape]
    ruled_out: Sequence[str]
    looks: int
    time: Mapping[str, float]
    confirmation: Object | None


@dataclass(frozen=True, slots=True)
class PathShape:
    """A path of a mix, of one subject."""

    path: str
    weight: float
    asked: float
    share: float | None
    requests: int
    errors: int
    account: Mapping[str, int | None]
    carried_in: Object | None
    of: str
    percentiles: Mapping[str, EstimateShape | MissingShape]
    censored_from: float | None


@dataclass(frozen=True, slots=True)
class CellShape:
    """One subject under one load."""

    cell_id: int
    name: str
    subject: str
    workload: Object
    trials_ok: int
    trials: int
    qualified: bool
    unqualified_reason: str | None
    generator_limited: str | None
    at_least: bool
    generator_share: float
    error_ratio: float | None
    success_ratio: float | None
    censored_from: float | None
    account: Mapping[str, int | None]
    carried_in: Object | None
    failed_requests: Sequence[FailedRequestsShape]
    metrics: Mapping[str, EstimateShape | MissingShape]
    roles: Mapping[str, Mapping[str, EstimateShape | MissingShape]]
    tls: Agreed | None
    tls_differs: Sequence[AgreedInBlocks]
    by_block: Mapping[str, Mapping[str, float | None]]
    trimmed_mean: Mapping[str, float | None]
    pace: Mapping[str, Object]
    steadiness: Object
    listeners: Mapping[str, Sequence[Object]]
    shared_addresses: Sequence[Object]
    uncounted: Sequence[TrialShape]
    failed_alike: Sequence[FailedAlikeShape]
    diagnosis: DiagnosisShape | None
    paths: Sequence[PathShape] = ()


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """The best of a group."""

    metric: str | None
    leader: str | None
    ties: Sequence[str]
    blocks: int
    decided: bool
    reason: str | None
    first: str | None
    by_session: bool
    figure: EstimateShape | None
    command_line: str | None
    comparisons: Mapping[str, Comparison]


@dataclass(frozen=True, slots=True)
class StandingShape:
    """The best in one measure."""

    measure: str
    metric: str | None
    ranked: Sequence[str]
    best: Sequence[str]
    letters: Mapping[str, str] | None
    blocks: int
    reason: str | None
    left_out: Sequence[str]
    omnibus_p: float | None
    decided: bool


@dataclass(frozen=True, slots=True)
class FailureTestShape:
    """Whether trials of one subject fail more often than another's."""

    name: str
    against: str
    count: Failures
    least: Failures
    p_value: float
    level: float
    method: str
    by_session: bool
    shown: bool


@dataclass(frozen=True, slots=True)
class StallShape:
    """Trials that were far worse than the others."""

    blocks: Sequence[int]
    of: int
    worst: float
    trials: int


@dataclass(frozen=True, slots=True)
class GroupShape:
    """The cells that may be compared."""

    load: Object
    engine: Object
    sandbox: Object
    cells: Sequence[CellShape]
    primary: bool
    of_generators: bool
    asks: str | None
    most_per_s: float | None
    standings: Sequence[StandingShape]
    answer: AnswerShape
    failures: Sequence[FailureTestShape]
    stalls: Mapping[str, StallShape]
    power: Sight | None


@dataclass(frozen=True, slots=True)
class CurveShape:
    """Loads that differ in one thing only."""

    groups: Sequence[int]
    over: str
    latency: str
    subjects: Mapping[str, Saturation | MissingShape]


@dataclass(frozen=True, slots=True)
class PointShape:
    """A subject of a sweep."""

    cell: int
    name: str
    levels: Sequence[int]


@dataclass(frozen=True, slots=True)
class NeighbourShape:
    """What one step in one setting from the best does."""

    factor: int
    level: int
    name: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class CrossedShape:
    """How two settings act together."""

    first: int
    second: int
    steps: Mapping[str, Comparison]
    found: Mapping[str, Comparison]
    verdict: str
    best: Sequence[Sequence[int]] | None
    everywhere: Sequence[int]


@dataclass(frozen=True, slots=True)
class SweepShape:
    """Subjects that differ in settings only."""

    group: int
    name: str
    metric: str | None
    factors: Sequence[Factor]
    points: Sequence[PointShape]
    best: str | None
    ties: Sequence[str]
    least: str | None
    blocks: int
    decided: bool
    neighbours: Sequence[NeighbourShape]
    at_edge: Sequence[int]
    steps: Mapping[str, Comparison]
    crossed: Sequence[CrossedShape]


@dataclass(frozen=True, slots=True)
class ClaimShape:
    """What was claimed, and what the study says of it."""

    name: str
    text: str
    kind: str
    metric: str
    subject: str
    against: str
    engine: str
    role: str
    load: Mapping[str, float]
    against_engine: str
    against_load: Mapping[str, float]
    low: float | None
    high: float | None
    failure: str | None
    needs: Needs
    tolerance: float
    among: Sequence[str]
    place: str
    estimand: str
    verdict: str
    level: float | None
    one_sided: bool
    lack: str | None
    n: int | None
    figure: float | None
    interval: Sequence[float | None] | None
    reason: str | None
    then: Then | None


@dataclass(frozen=True, slots=True)
class OriginalShape:
    """A published figure beside the one measured."""

    cell_id: int
    name: str
    metric: str
    role: str | None
    published: float
    measured: EstimateShape | MissingShape
    note: str | None


@dataclass(frozen=True, slots=True)
class PositionShape:
    """A trial, in the order in which they ran."""

    cell_id: int
    role: str
    block: int
    position: int
    attempt: int
    started_unix_ns: int
    metric: str | None
    change: float | None
    outcome: Literal["ok", "failed", "invalid"]
    stage: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class CalibrationShape:
    """A measurement of the calibration cell."""

    cell_id: int
    role: str
    block: int
    position: int
    attempt: int
    started_unix_ns: int
    outcome: Literal["ok", "failed", "invalid"]
    stage: str | None
    reason: str | None
    metrics: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class DriftsShape:
    """Whether the machine changed while the study ran."""

    trials: int
    counted: int
    uncounted: int
    metrics: Mapping[str, Drift]


@dataclass(frozen=True, slots=True)
class CrossCheckShape:
    """A cell under another generator."""

    cell_id: int
    check_cell_id: int
    name: str
    generator: str
    metric: str
    own: EstimateShape | MissingShape
    other: EstimateShape | MissingShape
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class FindingShape(RuleFindingShape):
    """What a rule found, and in how many of a subject's trials."""

    subject: str
    trials: int
    of: int


@dataclass(frozen=True, slots=True)
class SharedFindingShape:
    """A finding that is the same for several subjects."""

    subjects: Sequence[str]
    findings: Sequence[int]
    trials: int
    of: int


@dataclass(frozen=True, slots=True)
class SenderShape:
    """A generator of loads that several machines sent, or one that is not the server's."""

    name: str
    trials: int
    requests: int
    limited: int
    certain: int
    limits: Mapping[str, int]
    start_skew_ns: float | None
    clock_bound_ns: int | None
    fingerprint: Object | None
    as_root: bool


@dataclass(frozen=True, slots=True)
class ReportShape:
    """The report of a study, as `prony report FILE --json` prints it."""

    version: Literal[1]
    answer: ShortAnswerShape | None
    plan: PlanShape
    runs: Sequence[RunShape]
    fingerprint: Object
    subjects: Mapping[str, SubjectShape]
    extent: ExtentShape
    across: Object | None
    placements: Sequence[PlacementShape]
    groups: Sequence[GroupShape]
    curves: Sequence[CurveShape]
    sweeps: Sequence[SweepShape]
    claims: Sequence[ClaimShape]
    verdicts: Mapping[str, int]
    then_verdicts: Mapping[str, int]
    originals: Sequence[OriginalShape]
    calibration: Sequence[CalibrationShape]
    drift: DriftsShape | None
    dependence: Object | None
    cross_checks: Sequence[CrossCheckShape]
    found_rates: Sequence[Object]
    search: Object | None
    warm_ups: Sequence[WarmUp]
    machines: Sequence[SenderShape]
    repeated: Object | None
    unmeasured: Mapping[str, str]
    order: Sequence[PositionShape]
    order_effect: Comparison | None
    findings: Sequence[FindingShape]
    shared_findings: Sequence[SharedFindingShape]


def report_type() -> TypeAdapter[ReportShape]:
    """Return what reads the JSON of a report into these types; *Errors*: `pydantic.ValidationError`."""
    return TypeAdapter(ReportShape)


def report_schema() -> Json:
    """Return the JSON Schema of a study's report.

    *Source*: JSON Schema, draft 2020-12.
    """
    found = report_type().json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
