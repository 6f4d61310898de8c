"""A cell's figures: each metric over its trials, with an interval; failures are counted, never averaged.

One trial gives one number per metric, and trials are the replicates: a percentile is taken in each trial,
and these per-trial values are summarised. Percentiles of windows or threads are never averaged.

>>> trimmed_mean([1.0, 2.0, 3.0, 90.0])
2.5
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, fsum, inf, log, sqrt
from statistics import median, mode

from prony.core.metrics import METRICS, Unit
from prony.figures.accept_queue import SharedAddress, shared_addresses, starvation
from prony.figures.account import QUALIFIED_ERROR_RATIO, ClassKind, Tally, is_speed, kind_of, tally, together
from prony.figures.at_least import (
    capacity_reach,
    grows_with_load,
    is_at_least,
    is_bound,
    is_pace,
    rate_reach,
)
from prony.figures.generator import dearer_ns, generator_share, lost_to_server_ns, share_reach
from prony.figures.handshakes import Agreed, AgreedInBlocks, agreed_by_all, agreed_in, differing
from prony.figures.latency import (
    LoadPart,
    LoadStatus,
    latency_summaries,
    load_groups,
    load_paths,
    load_statuses,
)
from prony.figures.missing import Missing, Value
from prony.figures.resources import (
    LEAST_UNSAMPLED_PERCENT,
    cpu_share,
    threads_at_work,
    window_length_ns,
    window_samples,
)
from prony.figures.rounds import beside_window, paces_by_round
from prony.figures.statistics.compare import LEAST_BLOCKS, MARGIN
from prony.figures.statistics.effects import geometric_mean, ratio_of, student_t
from prony.figures.steadiness import Steadiness, steadiness
from prony.figures.steady_state import Paces, SteadyState, paces_of, steady_state
from prony.figures.trial_metrics import ROUNDS_ALONE, role_metrics, trial_metrics
from prony.figures.validity import asked_roles, disturbed_reach
from prony.model.json_codec import INLINE, at
from prony.model.limit import GeneratorVerdict, Limit
from prony.model.observation import ListenerUsage, LogTail
from prony.model.plan import Cell
from prony.model.recording import GeneratorMachine, GeneratorName, Recording
from prony.model.sandbox import Placement
from prony.model.shown import INTERNAL, shown
from prony.model.trial import Failed, Fault, Invalid, Ok, Outcome, Trial, TrialRole
from prony.model.workload import ClosedLoop

# If a larger share of trials does not count, there is no figure of speed.
_MOST_FAILED = 0.2
_LONGEST_LOG = 32_768
_MEAN_OF_CLOSED_LOOP = "service_ok_mean"
_FAILS = "its requests fail"
_NOT_COUNTED = Missing("rounds do not count what the server asks")
_NEVER_NOTHING = (Unit.RATE, Unit.DURATION, Unit.BYTES)


@dataclass(frozen=True, slots=True)
class MoreOfGenerator:
    """What a generator may have done more without its server on its CPUs, and without other programs."""

    reach: float = 1.0
    """The factor by which it may have sent more."""
    cpu_percent: float = 0.0
    """CPU that it may have used more."""


@dataclass(frozen=True, slots=True)
class TrialFigures:
    """The figures of a trial, without its samples and histograms.

    ``log``: its end, of a trial that is not ok. ``steady``: how its pace developed over the window,
    ``paces``: those of its seconds, or why they are unknown. ``listeners``: each in its fullest state of the
    window. ``engine``: what the generator says of itself (version, command, caveats). ``tls``: what was
    agreed on, null without TLS. ``machines``: of a load that several generators sent, or one elsewhere.
    ``session``: the number of the session that it is of, from 0. ``disturbed``: by other programs or the
    hypervisor, so that its figures of speed are bounds: it counts, and ``rate_reach`` says how far.
    ``of_rounds``: its block has rounds alone; ``asks``: it asked programs that rounds do not count.
    ``generator_share``: as of `generator.generator_share`; ``hidden_cpu_percent``: CPU that the server may
    have used more. ``of_generator``: what its generator may have done more. ``by_round``: as of
    `rounds.paces_by_round`, ``beside_window``: as of `rounds.beside_window`.
    """

    cell_id: int
    role: TrialRole
    block: int
    position: int
    attempt: int
    started_unix_ns: int
    outcome: Outcome
    fault: Fault | None
    metrics: Mapping[str, Value]
    roles: Mapping[str, Mapping[str, Value]]
    account: Tally
    censored_from: float | None
    limited: Limit | None
    rate_reach: float
    starved: str | None
    steady: SteadyState | Missing
    paces: Paces | Missing
    listeners: tuple[ListenerUsage, ...]
    shared_addresses: tuple[SharedAddress, ...]
    log: LogTail
    command: tuple[str, ...]
    placement: Placement | None
    engine: GeneratorName | None
    paths: tuple[LoadPart, ...] = ()
    groups: tuple[LoadPart, ...] = ()
    statuses: tuple[LoadStatus, ...] = ()
    followed: Mapping[str, int] = field(default_factory=dict)
    tls: Agreed | None = None
    machines: tuple[GeneratorMachine, ...] = ()
    session: int = 0
    disturbed: bool = False
    of_rounds: bool = False
    asks: bool = False
    generator_share: float = 0.0
    hidden_cpu_percent: float = 0.0
    of_generator: MoreOfGenerator = field(default_factory=MoreOfGenerator)
    by_round: Mapping[int, float] = field(default_factory=dict)
    beside_window: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """One metric over the trials of a cell. ``mean`` is geometric where a metric is never nothing (rates,
    times, memory).
    """

    count: int
    """How many trials."""
    mean: float
    low: float | None
    """`low` and `high`: its 95 % interval, null below five trials. Where trials are of several sessions, mean
    and interval are those of the sessions' means.
    """
    high: float | None
    median: float
    min: float
    max: float

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width; None without one."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


Estimated = Estimate | Missing


@dataclass(frozen=True, slots=True)
class Void:
    """Figures of what was answered that do not count. They are in no verdict, ratio or rank."""

    reason: str
    """Why they do not count: of most of the trials, where that differs."""
    trials: int
    """How many trials they are of: of those that count, or where none does, of the others."""
    metrics: Mapping[str, Estimate]
    """Those of which the cell's `metrics` have none, by name."""


@dataclass(frozen=True, slots=True)
class CellSummary:
    """A cell: ``ok`` of ``total`` trials count, ``others`` are those that do not."""

    cell: Cell = field(metadata=INTERNAL)
    name: str
    """How it differs from those that it is compared with: its subject, or its generator."""
    ok: int = field(metadata=at("trials_ok"))
    """Trials that count; of several attempts at a block the last counts."""
    total: int = field(metadata=at("trials"))
    """Trials that were run."""
    metrics: Mapping[str, Estimated]
    """By name, in the units of METRICS."""
    roles: Mapping[str, Mapping[str, Estimated]]
    """CPU and memory likewise, by role of the process."""
    account: Tally = field(metadata=INLINE)
    """Requests by how they ended, summed."""
    error_ratio: float | None
    """Of all requests of the trials that count."""
    censored_from: float | None
    """The least percentile, over the trials, from which latencies of all requests are lower bounds."""
    unqualified: str | None = field(metadata=at("unqualified_reason"))
    """Null, or why the cell's speed is not compared."""
    limited: Limit | None = field(metadata=INTERNAL)
    """Why the generator and not the server may have limited the figures, in some trial."""
    at_least: bool
    """So much that speed figures are bounds, and the server is at least so good."""
    rate_reach: float = field(metadata=INTERNAL)
    """The factor by which throughput is then higher at most (the less of `at_least.rate_reach` and
    `at_least.capacity_reach`).
    """
    steadiness: Steadiness | Missing
    """Over the trials together, or why it is unknown."""
    others: tuple[TrialFigures, ...] = field(metadata=INTERNAL)
    counted: tuple[TrialFigures, ...] = field(metadata=INTERNAL)
    """The trials that count, `by_block`: their metrics."""
    by_block: Mapping[int, Mapping[str, Value]] = field(metadata=INTERNAL)
    void: Void | None = None
    """What was answered, where too few trials count for a figure of speed; null where enough do, or nothing
    was answered.
    """
    allowed_errors: float = field(default=QUALIFIED_ERROR_RATIO, metadata=INTERNAL)
    """The largest error ratio with which its speed is compared."""
    by_session: Mapping[int, Mapping[str, Value]] | None = field(default=None, metadata=INTERNAL)
    """Those of its sessions, null where all trials are of one."""
    most_per_s: float | None = field(default=None, metadata=INTERNAL)
    """As of `ceiling.most_per_s`."""
    generator_share: float = 0.0
    """The largest of its trials' where the load saturates the server; else 0."""
    is_of_generator: bool = field(default=False, metadata=INTERNAL)
    """Whether its figures are compared as its generator's: what that cannot do is then no bound."""

    @property
    def units(self) -> Mapping[int, Mapping[str, Value]]:
        """What verdicts count: its blocks, or its sessions where it has several."""
        return self.by_block if self.by_session is None else self.by_session

    @property
    def windows(self) -> tuple[TrialFigures, ...]:
        """The trials that count and have a window of their own."""
        return tuple(trial for trial in self.counted if not trial.of_rounds)

    @property
    def judged(self) -> tuple[TrialFigures, ...]:
        """The trials that say something about the server: those that count, and those that it failed."""
        return *self.counted, *(trial for trial in self.others if isinstance(trial.outcome, Failed))

    @property
    def held_back(self) -> bool:
        """Whether the generator made its speed a bound as the limit, and not only by sharing its CPUs."""
        is_limit = not self.is_of_generator and is_at_least(trial.limited for trial in self.windows)
        return self.at_least and is_limit

    @property
    def rate_reaches(self) -> list[float]:
        """The factor of each trial by which its throughput may have been higher."""
        if self.is_of_generator:
            return [trial.of_generator.reach for trial in self.counted]
        return [trial.rate_reach for trial in self.counted]

    @property
    def answers_some(self) -> bool:
        """Whether its speed is not compared because requests, or connections, were left without a reply: its
        latencies are then those of the others, and at least so long for all.

        *Assumptions*: who got no reply before the time-out waited longer than who got one. What failed sooner
        says nothing, nor does a mean over a change of pace.
        """
        failed = self.account.failed.items()
        silent = sum(count for ending, count in failed if kind_of(ending.name) is ClassKind.UNANSWERED)
        is_known = self.account.lost - silent <= self.allowed_errors * self.account.requests
        is_steady = isinstance(self.steadiness, Missing) or self.steadiness.is_steady
        reasons = {_FAILS, *(trial.starved for trial in self.counted)} - {None}
        return is_known and is_steady and self.unqualified in reasons

    def known(self, metric: str) -> Estimate | None:
        """Return the estimate of a metric; None where it is missing."""
        value = self.metrics[metric]
        return value if isinstance(value, Estimate) else None

    def seen(self, metric: str) -> Estimated:
        """Return the figure of a metric that tables show: a void one where none counts."""
        value = self.metrics[metric]
        return value if self.void is None else self.void.metrics.get(metric, value)

    @property
    def has_figures(self) -> bool:
        """Whether there is anything to show of it, if only what does not count."""
        return self.ok > 0 or self.void is not None

    def reach(self, metric: str, role: str = "") -> float:
        """Return the factor by which a figure of speed may be better, or CPU and errors more; 1 where it is
        no bound. ``role``: whose CPU.
        """
        if metric == "cpu_percent":
            return _sum_reach([self._cpu(trial, role) for trial in self.windows])
        if not self.at_least:
            return 1.0
        if metric == "generator_cpu_percent" and self.is_of_generator:
            return _sum_reach([_cpu_of_generator(trial) for trial in self.windows])
        if is_pace(metric):
            return self.rate_reach
        if metric == _MEAN_OF_CLOSED_LOOP:
            return self._reach_of_mean()
        return inf if is_bound(metric) or grows_with_load(metric) else 1.0

    def _reach_of_mean(self) -> float:
        """Return the factor by which the mean latency of a closed loop's kept connections may be shorter.

        *Definition*: R / (R - (1 - 1/r) N/X): r is that by which throughput X may be higher.
        *Assumptions*: each of N connections takes N/X for a request, of which R is the server's; the rest,
        the generator's, becomes no longer. Where requests got no reply: these waited longer.
        *Source*: J. D. C. Little, "A proof for the queuing formula: L = λW", Operations Research 9 (1961).
        """
        workload, loop = self.cell.workload, self.cell.workload.loop
        mean, each = self.known(_MEAN_OF_CLOSED_LOOP), self.known("duration_ns_per_request")
        if not isinstance(loop, ClosedLoop) or not workload.request.keep_alive or self.is_of_generator:
            return inf
        if mean is None or each is None or (self.unqualified and not self.answers_some):
            return inf
        own, has_rounds = self.windows, len(self.windows) < len(self.counted)
        reach = _mean_reach([one.rate_reach for one in own]) if has_rounds else self.rate_reach
        taken = loop.connections * workload.streams * each.mean * (1 - 1 / reach)
        return mean.mean / (mean.mean - taken) if taken < mean.mean else inf

    def _cpu(self, trial: TrialFigures, role: str) -> tuple[float, float]:
        more = self.without_role(role) + (trial.hidden_cpu_percent if self.at_least else 0.0)
        used = (trial.roles.get(role, {}) if role in self.roles else trial.metrics).get("cpu_percent")
        return 0.0 if used is None or isinstance(used, Missing) else used, more

    def without_role(self, role: str) -> float:
        """Return how much of the CPU that no sample shows may be this role's, in percent of a core: in the
        trial with most; 0 where it is no more than the difference of clocks.
        """
        found = self.roles.get(role, {}).get("cpu_unsampled_percent")
        most = found.max if isinstance(found, Estimate) else 0.0
        return most if most >= LEAST_UNSAMPLED_PERCENT else 0.0

    @shown
    def qualified(self) -> bool:
        """Whether its speed may be compared."""
        return self.unqualified is None

    @shown
    def tls(self) -> Agreed | None:
        """What the trials that count agreed on with TLS; None without TLS."""
        return agreed_by_all(trial.tls for trial in self.counted)

    @shown
    def tls_differs(self) -> tuple[AgreedInBlocks, ...]:
        """What they agreed on by their blocks, where that is not the same in all."""
        return differing((trial.block, trial.tls) for trial in self.counted)

    @shown
    def success_ratio(self) -> float | None:
        """The share of all requests that were answered as expected; None where nothing was sent."""
        return None if self.error_ratio is None else 1 - self.error_ratio


def _censored_from(recording: Recording | None) -> float | None:
    if recording is None:
        return None
    summaries = latency_summaries(recording)
    summary = summaries["all", "response"] or summaries["all", "service"]
    return None if summary is None else summary.censored_from


def _starved(recording: Recording | None) -> str | None:
    found = starvation(recording)
    if found is None:
        return None
    return f"it served {found.served} of {found.connections} connections in the window"


def figures(trial: Trial) -> TrialFigures:
    """Return the figures of one trial."""
    recording = trial.recording
    verdict = recording.generator.verdict if recording else GeneratorVerdict()
    listeners = trial.facts.listeners
    # A disturbance that the user accepted bounds nothing: it is what this machine is like.
    is_discarded = isinstance(trial.outcome, Invalid) and recording is not None
    disturbed = disturbed_reach(trial) if is_discarded else None
    metrics, hidden = trial_metrics(trial), rate_reach(verdict.evidence) * (disturbed or 1.0)
    return TrialFigures(
        cell_id=trial.cell_id,
        role=trial.role,
        block=trial.block,
        position=trial.position,
        attempt=trial.attempt,
        started_unix_ns=trial.started_unix_ns,
        outcome=trial.outcome if disturbed is None else Ok(),
        fault=trial.fault,
        metrics=metrics,
        roles=role_metrics(trial),
        account=tally(recording.account) if recording else Tally(),
        censored_from=_censored_from(trial.recording),
        limited=verdict.strongest,
        rate_reach=_rate_reach(trial, metrics, hidden),
        disturbed=disturbed is not None,
        of_rounds=trial.is_of_rounds,
        asks=bool(asked_roles(trial.counters)),
        generator_share=generator_share(trial),
        hidden_cpu_percent=_hidden_cpu_percent(trial, metrics, hidden),
        of_generator=_more_of_generator(trial, metrics, is_disturbed=disturbed is not None),
        starved=_starved(trial.recording),
        steady=steady_state(trial.recording),
        paces=paces_of(trial.recording),
        listeners=listeners,
        shared_addresses=shared_addresses(listeners, window_samples(trial.samples)),
        log=_end(trial.log) if not isinstance(trial.outcome, Ok) else LogTail(""),
        command=trial.command,
        placement=trial.placement,
        engine=recording.engine if recording else None,
        paths=load_paths(recording),
        groups=load_groups(recording),
        statuses=load_statuses(recording),
        followed=recording.followed if recording else {},
        tls=agreed_in(recording),
        machines=recording.machines if recording else (),
        by_round=paces_by_round(trial.slices),
        beside_window=beside_window(trial.slices, recording),
    )


def _rate_reach(trial: Trial, metrics: Mapping[str, Value], others: float) -> float:
    """Return the factor by which a trial's throughput may have been higher: a generator on the server's CPUs
    made each request cost more, and what ``others`` hid is no more than the CPUs that it can use had left.
    """
    shared, used = share_reach(generator_share(trial)), metrics["cpu_percent"]
    cpus = _usable_cpus(trial, metrics)
    if shared is None or cpus is None or isinstance(used, Missing):
        return others * (shared or inf)
    dearer = dearer_ns(trial) / max(1, window_length_ns(window_samples(trial.samples)))
    return min(others * shared, capacity_reach((used / 100 - dearer) / cpus))


def _more_of_generator(trial: Trial, metrics: Mapping[str, Value], *, is_disturbed: bool) -> MoreOfGenerator:
    """Return what a trial's generator may have done more without the server on its CPUs, and without the
    programs that disturbed it: no more than these CPUs had left.
    """
    used, placed = metrics["generator_cpu_percent"], trial.placement
    length_ns = window_length_ns(window_samples(trial.samples))
    taken, dearer = (100 * ns / length_ns if length_ns else 0.0 for ns in lost_to_server_ns(trial))
    if not taken and not is_disturbed:
        return MoreOfGenerator()
    if isinstance(used, Missing) or used <= dearer or placed is None:
        return MoreOfGenerator(inf, inf)
    every = 100.0 * len(placed.generator_cpus)
    room = max(used, every if is_disturbed else min(used + taken, every))
    return MoreOfGenerator(room / (used - dearer), room - used)


def _hidden_cpu_percent(trial: Trial, metrics: Mapping[str, Value], others: float) -> float:
    """Return how much more CPU the server may have used: what a generator on its CPUs took, or where
    ``others`` hid some, what those that it can use had left.
    """
    used, cpus = metrics["cpu_percent"], _usable_cpus(trial, metrics)
    length_ns = window_length_ns(window_samples(trial.samples))
    taken = 100 * trial.counters.get("generator.taken_ns", 0) / length_ns if length_ns else 0.0
    most = taken if others == 1 else inf
    return most if cpus is None or isinstance(used, Missing) else min(most, max(0.0, 100 * cpus - used))


def _usable_cpus(trial: Trial, metrics: Mapping[str, Value]) -> int | None:
    """Return how many CPUs a trial's server can use: its own, or fewer where fewer threads of it work; None
    where that is not known.

    *Assumptions*: more load starts no more threads: a pool that grows has grown by then. Threads that used
    more CPU than they have are not all that there were.
    """
    if trial.placement is None or not trial.placement.server_cpus:
        return None
    if trial.facts.strays:  # what it used elsewhere is no part of these CPUs
        return None
    window, used = window_samples(trial.samples), metrics["cpu_percent"]
    own, threads, sampled = len(trial.placement.server_cpus), threads_at_work(window), cpu_share(window)
    if isinstance(sampled, Missing) or isinstance(used, Missing) or asked_roles(trial.counters):
        return own
    are_all = used < min(100 * sampled, 100 * threads) + LEAST_UNSAMPLED_PERCENT
    return min(own, threads) if are_all and threads else own


def _end(log: LogTail) -> LogTail:
    """Return what is kept of a log in memory: its end says why a trial failed, and there are many trials."""
    return log if len(log.text) <= _LONGEST_LOG else LogTail(log.text[-_LONGEST_LOG:], truncated=True)


def latest_attempts(trials: Iterable[TrialFigures]) -> tuple[TrialFigures, ...]:
    """Return one trial for each cell and block: of several attempts the last counts."""
    latest: dict[tuple[int, int], TrialFigures] = {}
    for trial in trials:
        key = (trial.cell_id, trial.block)
        if key not in latest or trial.attempt >= latest[key].attempt:
            latest[key] = trial
    return tuple(latest.values())


def judged_sessions(trials: Iterable[TrialFigures]) -> frozenset[int]:
    """Return the sessions that say something about servers: one whose trials were all repeated later, or say
    nothing about them, is none.
    """
    latest = latest_attempts(trials)
    return frozenset(one.session for one in latest if isinstance(one.outcome, Ok | Failed))


def estimate_over(values: Sequence[float], name: str, level: float = 0.05) -> Estimate:
    """Return the estimate of a metric from one value per trial, at least one; its interval holds at 1 -
    ``level``.

    *Definition*: `estimate_geometric`, or `estimate_mean` of what may well be 0 (shares, counts, errors) and
    where a value is 0.
    """
    on_logs = (
        METRICS[name].unit in _NEVER_NOTHING and not name.startswith("error") if name in METRICS else True
    )
    return (estimate_geometric if on_logs and min(values) > 0 else estimate_mean)(values, level)


def means(values: Iterable[object]) -> list[float]:
    """Return the means of those of the values that are estimates."""
    return [value.mean for value in values if isinstance(value, Estimate)]


def estimate_geometric(values: Sequence[float], level: float = 0.05) -> Estimate:
    """Return the geometric mean of values above 0, one per trial, with its interval.

    *Definition*: exp(m +- t(1 - level / 2, n - 1) s / sqrt(n)), with m and s of the logarithms: what a
    comparison of two subjects is a ratio of.
    *Assumptions*: trials are independent, logarithms roughly normal.
    *Source*: Student, "The probable error of a mean", Biometrika 6 (1908), on logarithms.
    """
    found = estimate_mean([log(value) for value in values], level)
    mean = geometric_mean(values)
    low = None if found.low is None else min(ratio_of(found.low), mean)
    high = None if found.high is None else max(ratio_of(found.high), mean)
    return Estimate(len(values), mean, low, high, float(median(values)), min(values), max(values))


def estimate_mean(values: Sequence[float], level: float = 0.05) -> Estimate:
    """Return the arithmetic mean of one value per trial, with its interval.

    *Definition*: mean +- t(1 - level / 2, n - 1) s / sqrt(n); no interval below five trials, whose spread
    says little.
    *Assumptions*: trials are independent, their values roughly normal. A bootstrap was rejected: with ten
    trials its 95 % interval of the mean covers 90 %.
    *Source*: Student, "The probable error of a mean", Biometrika 6 (1908).
    """
    count = len(values)
    mean, half = fsum(values) / count, None
    if count >= LEAST_BLOCKS:
        spread = sqrt(fsum((value - mean) ** 2 for value in values) / (count - 1))
        half = student_t(1 - level / 2, count - 1) * spread / sqrt(count)
    low, high = (None, None) if half is None else (mean - half, mean + half)
    return Estimate(count, mean, low, high, float(median(values)), min(values), max(values))


def _over_trials(values: Sequence[Value], name: str, none: str = "no trial counts") -> Estimated:
    known = [value for value in values if not isinstance(value, Missing)]
    reasons = [value.reason for value in values if isinstance(value, Missing)]
    if not values:
        return Missing(none)
    # Failures make a percentile of all requests infinite: the mean of the trials that had none would flatter.
    if not known or (reasons and "_all_" in name):
        where = "" if len(reasons) == len(values) else f" (in {len(reasons)} of {len(values)} trials)"
        return Missing(f"{reasons[0]}{where}")
    return estimate_over(known, name)


def lost_trials(ok: int, total: int) -> str | None:
    """Return how many trials did not count, if they are too many for a figure of speed; else None."""
    return f"{total - ok} of {total} trials did not count" if total - ok > _MOST_FAILED * total else None


def _unqualified(counted: Sequence[TrialFigures], total: int, account: Tally, allowed: float) -> str | None:
    ok, error_ratio = len(counted), account.error_ratio
    if not ok:
        return "no trial counts" if total else "no trial ran"
    if lost := lost_trials(ok, total):
        return lost
    if error_ratio is None:
        return "nothing was sent"
    if error_ratio > allowed:
        return _failing(account, allowed)
    return next((trial.starved for trial in counted if trial.starved), None)


def _failing(account: Tally, allowed: float) -> str:
    """Return on whose side too many requests failed."""
    failed = account.failed.items()
    here = sum(count for ending, count in failed if kind_of(ending.name) is ClassKind.CLIENT)
    if account.lost - here > allowed * account.requests:
        return _FAILS
    return "the generator could not send its requests"


def summarise_cell(
    cell: Cell,
    trials: Iterable[TrialFigures],
    name: str | None = None,
    allowed_errors: float = QUALIFIED_ERROR_RATIO,
    margin: float = MARGIN,
) -> CellSummary:
    """Return the summary of ``cell`` over its trials (those of other cells are left out); without a ``name``
    it has its subject's. A change of its pace by less than ``margin`` is of no interest.

    *Definition*: only trials that ran their window count. Speed is qualified when at most ``allowed_errors``
    (0.1 %) of all their requests failed, at most 20 % of the trials did not count, and no closed loop starved
    its connections. If more did not count, figures of speed are void: the surviving trials are no fair
    sample.
    """
    every = [trial for trial in trials if trial.cell_id == cell.id]
    own = latest_attempts(every)
    counted = _with_rounds([trial for trial in own if isinstance(trial.outcome, Ok)])
    account = together(trial.account for trial in counted)
    error_ratio = account.error_ratio
    lost = lost_trials(len(counted), len(own)) if counted else None
    # What an open loop asks for, the server gives: nothing is taken from its throughput.
    is_saturated = isinstance(cell.workload.loop, ClosedLoop)
    taken = max((one.generator_share for one in counted), default=0.0) if is_saturated else 0.0
    roles = sorted({role for trial in counted for role in trial.roles})
    metrics = {
        name: Missing(lost) if lost and is_speed(name) else _metric(counted, name, bool(own))
        for name in METRICS
    }
    return CellSummary(
        cell=cell,
        name=name or cell.subject.name,
        ok=len(counted),
        total=len(own),
        metrics=metrics,
        roles={role: _role([trial.roles.get(role, {}) for trial in counted]) for role in roles},
        account=account,
        error_ratio=error_ratio,
        censored_from=min((t.censored_from for t in counted if t.censored_from is not None), default=None),
        unqualified=_unqualified(counted, len(own), account, allowed_errors),
        limited=next((trial.limited for trial in counted if trial.limited), None),
        at_least=is_at_least(trial.limited for trial in counted if not trial.of_rounds)
        or any(one.disturbed for one in counted)
        or taken > 0,
        rate_reach=_mean_reach([trial.rate_reach for trial in counted]),
        steadiness=steadiness([trial.paces for trial in counted if not trial.of_rounds], margin),
        others=tuple(trial for trial in own if not isinstance(trial.outcome, Ok)),
        counted=tuple(counted),
        by_block={trial.block: trial.metrics for trial in counted},
        void=_void(counted or every, metrics, lost) if lost or not counted else None,
        allowed_errors=allowed_errors,
        generator_share=taken,
    )


def _void(trials: Iterable[TrialFigures], metrics: Mapping[str, Estimated], lost: str | None) -> Void | None:
    """Return the void figures of trials in place of the ``metrics`` that are missing; None where they
    answered nothing. ``lost``: why they do not count, None for the reasons of their own.
    """
    answered = latest_attempts(trial for trial in trials if trial.account.ok)
    if not answered:
        return None
    missing = (name for name, value in metrics.items() if isinstance(value, Missing))
    found = {name: _metric(answered, name, ran=True) for name in missing}
    reasons = [trial.outcome.reason for trial in answered if not isinstance(trial.outcome, Ok)]
    return Void(
        reason=lost or mode(reasons or ["no trial counts"]),
        trials=len(answered),
        metrics={name: value for name, value in found.items() if isinstance(value, Estimate)},
    )


def _with_rounds(trials: Sequence[TrialFigures]) -> list[TrialFigures]:
    """Return the trials of a cell with what those of rounds alone cannot know themselves: the bound that the
    windows had which nothing disturbed (all, where each was), and no CPU of a request where a part of it is
    that of programs which the server asks.
    """
    windows = [one for one in trials if not one.of_rounds]
    quiet = [one for one in windows if not one.disturbed] or windows
    usual = _mean_reach([one.rate_reach for one in quiet])
    lost = {"cpu_ns_per_request": _NOT_COUNTED} if any(one.asks for one in trials) else {}
    return [
        replace(one, rate_reach=usual, metrics={**one.metrics, **lost}) if one.of_rounds else one
        for one in trials
    ]


def _mean_reach(reaches: Sequence[float]) -> float:
    """Return the factor by which a geometric mean may be higher: that of its trials'."""
    return inf if inf in reaches else exp(fsum(map(log, reaches)) / max(1, len(reaches)))


def _sum_reach(trials: Sequence[tuple[float, float]]) -> float:
    """Return the factor by which a mean may be higher of what was used, and perhaps used more, in each trial:
    that of the arithmetic mean, which a figure has, or of the geometric, which a ratio has, the larger.

    >>> [round(_sum_reach(trials), 2) for trials in ([(100, 90), (10, 0)], [(10, 90), (100, 0)], [(0, 1)])]
    [1.82, 3.16, inf]
    """
    if any(more and used <= 0 for used, more in trials):
        return inf
    known = [(used, more) for used, more in trials if used > 0]
    if not known:
        return 1.0
    arithmetic = 1 + fsum(more for _, more in known) / fsum(used for used, _ in known)
    return max(arithmetic, _mean_reach([1 + more / used for used, more in known]))


def _cpu_of_generator(trial: TrialFigures) -> tuple[float, float]:
    """Return the CPU that a trial's generator used, and perhaps used more."""
    used = trial.metrics["generator_cpu_percent"]
    return 0.0 if isinstance(used, Missing) else used, trial.of_generator.cpu_percent


def _metric(counted: Sequence[TrialFigures], name: str, ran: bool) -> Estimated:
    values = [value for trial in counted if (value := trial.metrics[name]) != ROUNDS_ALONE]
    return _over_trials(values, name, "no trial counts" if ran else "no trial ran")


def _role(trials: Sequence[Mapping[str, Value]]) -> dict[str, Estimated]:
    names = {name: None for trial in trials for name in trial}
    return {name: _over_trials([trial[name] for trial in trials if name in trial], name) for name in names}


def as_of_generator(cell: CellSummary) -> CellSummary:
    """Return a cell as its generator's: what that cannot do is its figure and no bound, but for what the
    server on its CPUs, and other programs, took from it.
    """
    is_saturated = isinstance(cell.cell.workload.loop, ClosedLoop)
    own = replace(cell, is_of_generator=True, generator_share=0.0)
    reach = _mean_reach(own.rate_reaches) if is_saturated else 1.0
    return replace(own, at_least=reach > 1, rate_reach=reach)


NOT_STEADY = "its pace was not steady"
"""Why a cell is not qualified whose pace changed within the window."""


def without_unsteady(cell: CellSummary) -> CellSummary:
    """Return a cell that is not qualified where its pace was not steady: a mean over a change is of neither
    state.
    """
    found = cell.steadiness
    if cell.unqualified or isinstance(found, Missing) or found.is_steady:
        return cell
    return replace(cell, unqualified=NOT_STEADY)


# --- statistics that published experiments show, but no verdict uses --------------------------------------


_LEAST = 3


def trimmed_mean(values: Sequence[float]) -> Value:
    """Return the mean without the highest and the lowest value; missing below three.

    *Assumptions*: none, and no interval: of four values the mean of two is left, whose spread is not known.
    """
    if len(values) < _LEAST:
        return Missing(f"{len(values)} trials; none is left without the highest and the lowest")
    return fsum(sorted(values)[1:-1]) / (len(values) - 2)


def cell_trimmed_mean(cell: CellSummary, metric: str) -> Value:
    """Return the trimmed mean of a metric over the cell's trials that count; missing where the mean is."""
    mean = cell.metrics[metric]
    if isinstance(mean, Missing):
        return mean
    found = [metrics[metric] for metrics in cell.by_block.values()]
    return trimmed_mean([value for value in found if not isinstance(value, Missing)])
