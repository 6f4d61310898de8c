"""The shape of a study's JSON, as types, and its JSON Schema.

docs/reference/report-json.md says what each key means; here stands which keys there are and of which type.
New keys may be added within a version, so the schema does not refuse those that it does not name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue, TypeAdapter

from prony.analysis.drift import Drift
from prony.analysis.failure_rates import Failures
from prony.analysis.knee import Saturation
from prony.analysis.power import Sight
from prony.model import Json
from prony.model.claims import Needs
from prony.reading.brief import Elsewhere, Measures, Ratio

__all__ = ["Report", "report_schema", "report_type"]

Object = Mapping[str, JsonValue]
"""An object with a page of its own in docs/reference, or whose keys depend on what was measured."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no value."""

    missing: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure over the trials that count, in the unit of its metric."""

    count: int
    mean: float
    low: float | None
    high: float | None
    half_width: float | None
    median: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class AnswerSubject:
    """A subject in the short answer."""

    name: str
    cell: int
    best: bool
    letters: str | None
    trials_ok: int
    trials: int
    qualified: bool
    at_least: bool
    primary: Estimate | Missing
    ratio: Ratio | None
    latency: Estimate | Missing | None
    error_ratio: float | None
    cpu: Estimate | Missing
    memory: Estimate | Missing


@dataclass(frozen=True, slots=True)
class ShortAnswer:
    """The answer in short."""

    group: int
    leader: str | None
    ties: Sequence[str]
    decided: bool
    reason: str | None
    blocks: int
    command_line: str | None
    metrics: Measures
    subjects: Sequence[AnswerSubject]
    elsewhere: Sequence[Elsewhere]
    limits: Sequence[int]


@dataclass(frozen=True, slots=True)
class Plan:
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
class Run:
    """One run of the study."""

    id: int
    prony_version: str
    started_unix_ns: int
    ended_unix_ns: int | None
    status: str
    fingerprint: Object
    facts: Object


@dataclass(frozen=True, slots=True)
class Subject:
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
class Extent:
    """How much was measured."""

    blocks: int
    sessions: int
    trials: Mapping[str, int]
    limited: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Placement:
    """The CPUs that trials had."""

    server_cpus: Sequence[int]
    generator_cpus: Sequence[int]
    shared: bool


@dataclass(frozen=True, slots=True)
class FailedRequests:
    """Requests that failed alike."""

    classes: Sequence[str]
    requests: int
    share: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial that does not count."""

    block: int
    attempt: int
    outcome: Literal["ok", "failed", "invalid"]
    stage: str | None
    reason: str | None
    log: str


@dataclass(frozen=True, slots=True)
class FailedAlike:
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
class Cell:
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
    error_ratio: float | None
    success_ratio: float | None
    censored_from: float | None
    account: Mapping[str, int | None]
    carried_in: Object | None
    failed_requests: Sequence[FailedRequests]
    metrics: Mapping[str, Estimate | Missing]
    roles: Mapping[str, Mapping[str, Estimate | Missing]]
    by_block: Mapping[str, Mapping[str, float | None]]
    trimmed_mean: Mapping[str, float | None]
    pace: Mapping[str, Object]
    steadiness: Object
    listeners: Mapping[str, Sequence[Object]]
    shared_addresses: Sequence[Object]
    uncounted: Sequence[Trial]
    failed_alike: Sequence[FailedAlike]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A subject against another."""

    blocks: int
    effect: float | None
    low: float | None
    high: float | None
    level: float
    p_value: float | None
    method: str
    verdict: str
    blocks_needed: int | None
    spread: float | None
    freedom: float | None
    nominal: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The best of a group."""

    metric: str | None
    leader: str | None
    ties: Sequence[str]
    blocks: int
    decided: bool
    reason: str | None
    command_line: str | None
    comparisons: Mapping[str, Comparison]


@dataclass(frozen=True, slots=True)
class Standing:
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
class FailureTest:
    """Whether trials of one subject fail more often than another's."""

    name: str
    against: str
    count: Failures
    least: Failures
    p_value: float
    level: float
    shown: bool


@dataclass(frozen=True, slots=True)
class Stall:
    """Trials that were far worse than the others."""

    blocks: Sequence[int]
    of: int
    worst: float
    trials: int


@dataclass(frozen=True, slots=True)
class Group:
    """The cells that may be compared."""

    load: Object
    engine: Object
    sandbox: Object
    cells: Sequence[Cell]
    noise_floor: float | None
    primary: bool
    of_generators: bool
    most_per_s: float | None
    standings: Sequence[Standing]
    answer: Answer
    failures: Sequence[FailureTest]
    stalls: Mapping[str, Stall]
    power: Sight | None


@dataclass(frozen=True, slots=True)
class Curve:
    """Loads that differ in one thing only."""

    groups: Sequence[int]
    over: str
    latency: str
    subjects: Mapping[str, Saturation | Missing]


@dataclass(frozen=True, slots=True)
class Claim:
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
    verdict: str
    n: int | None
    figure: float | None
    interval: Sequence[float | None] | None
    reason: str | None
    tolerance: float
    among: Sequence[str]
    place: str
    estimand: str
    level: float | None
    lack: str | None


@dataclass(frozen=True, slots=True)
class Original:
    """A published figure beside the one measured."""

    cell_id: int
    name: str
    metric: str
    role: str | None
    published: float
    measured: Estimate | Missing
    note: str | None


@dataclass(frozen=True, slots=True)
class Position:
    """A trial, in the order in which they ran."""

    cell_id: int
    role: str
    block: int
    position: int
    attempt: int
    started_unix_ns: int
    outcome: Literal["ok", "failed", "invalid"]
    stage: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Calibration:
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
class Drifts:
    """Whether the machine changed while the study ran."""

    trials: int
    counted: int
    uncounted: int
    metrics: Mapping[str, Drift]


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """A cell under another generator."""

    cell_id: int
    check_cell_id: int
    name: str
    generator: str
    metric: str
    own: Estimate | Missing
    other: Estimate | Missing
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found."""

    subject: str
    rule: str
    kind: str
    confidence: str
    sentence: str
    numbers: Mapping[str, float]
    names: Mapping[str, str]
    advice: str | None
    trials: int
    of: int


@dataclass(frozen=True, slots=True)
class SharedFinding:
    """A finding that is the same for several subjects."""

    subjects: Sequence[str]
    findings: Sequence[int]
    trials: int
    of: int


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a study, as `prony report FILE --json` prints it."""

    version: Literal[1]
    answer: ShortAnswer | None
    plan: Plan
    runs: Sequence[Run]
    fingerprint: Object
    subjects: Mapping[str, Subject]
    extent: Extent
    placements: Sequence[Placement]
    groups: Sequence[Group]
    curves: Sequence[Curve]
    claims: Sequence[Claim]
    verdicts: Mapping[str, int]
    originals: Sequence[Original]
    calibration: Sequence[Calibration]
    drift: Drifts | None
    dependence: Object | None
    cross_checks: Sequence[CrossCheck]
    found_rates: Sequence[Object]
    repeated: Object | None
    unmeasured: Mapping[str, str]
    order: Sequence[Position]
    findings: Sequence[Finding]
    shared_findings: Sequence[SharedFinding]


def report_type() -> TypeAdapter[Report]:
    """Return what reads the JSON of a report into these types; *Errors*: `pydantic.ValidationError`."""
    return TypeAdapter(Report)


def report_schema() -> Json:
    """Return the JSON Schema of a study's report.

    *Source*: JSON Schema, draft 2020-12.
    """
    found = report_type().json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
