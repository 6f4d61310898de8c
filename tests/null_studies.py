"""Studies of equal subjects as an archive holds them, for the whole of a reading: trials with recordings and
samples, of which some lose requests, fail, or are repeated.

What a reading chooses from the data, it chooses here too: who qualifies, which metric decides, whether blocks
depend on each other, who leads, and against whom failures are tested.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

import simulated
from cells import cell_of
from golden import build
from histograms import Histogram
from prony.figures.claim_parts import ClaimVerdict
from prony.figures.statistics.compare import Verdict
from prony.model.facts import Fingerprint, RunFacts
from prony.model.plan import Claim, ClaimKind, Design, Plan
from prony.model.recording import Distribution
from prony.model.trial import Failed, Invalid, Run, TrialRecord, TrialRole
from prony.model.workload import ClosedLoop, OpenLoop
from prony.reading.study import read

LOOPS = {"closed": (ClosedLoop(10), ClosedLoop(100)), "open": (OpenLoop(550.0),)}
"""The loads of a study. Verdicts are planned for the first; a second is a screening."""

FAMILIES = (
    "leader",
    "pairs",
    "throughput",
    "latency",
    "errors",
    "CPU/request",
    "memory",
    "failures",
    "claims",
)
"""What a report decides, at 5 % each: a family is one measure under one load; a claim stands by itself."""

SECONDS = 6
NOISE = 0.3
"""The standard deviation of a trial's logarithms: far above the margin, which so hides little."""

# So many trials lose requests, fail, or are repeated, whoever the subject is: at the limits of who qualifies.
_USUAL, _FRAIL = (0.02, 0.02, 0.05), (0.4, 0.15, 0.05)
_LOST = (0.005, 0.03)
_REPLIES = 60_000
# A trial's latencies, relative to its median, with how many replies have each.
_SHAPE = {0.6: 200, 0.8: 500, 1.0: 600, 1.2: 400, 1.6: 200, 2.5: 70, 4.0: 20, 6.0: 10}

CLAIMS = (
    Claim("fastest", "s0 is the fastest", ClaimKind.HIGHEST, "ok_per_s", "s0+*"),
    Claim("quickest", "s0 has the lowest latency", ClaimKind.LOWEST, "service_ok_p99", "s0+*"),
    Claim("cheaper", "s0 needs less CPU than s1", ClaimKind.LOWEST, "cpu_ns_per_request", "s0+*", "s1+*"),
    Claim(
        "alike",
        "s0 needs as much memory as s1",
        ClaimKind.RATIO,
        "pss_end",
        "s0+*",
        "s1+*",
        low=0.8,
        high=1.25,
    ),
    Claim("steadier", "s0 is steadier than s1", ClaimKind.STEADIER, "ok_per_s", "s0+*", "s1+*"),
    Claim("grows", "the memory of s0 grows", ClaimKind.GROWS, "pss_end", "s0+*"),
    Claim("clean", "most trials of s0 lose little", ClaimKind.VALUE, "error_ratio", "s0+*", high=0.001),
    Claim("fails", "s0 fails more than s1", ClaimKind.FAILS, "error_ratio", "s0+*", "s1+*"),
)
TRUE = ("alike", "clean")
"""The claims that are so: to refute them is false. To confirm one of the others is, and where it is an order,
to refute it: nobody is ahead."""


@dataclass(frozen=True)
class NullStudy:
    """A kind of study: its loop, subjects, blocks, the shape of their noise, and by how much the first is
    faster after all. ``frail``: many trials lose requests or fail, whoever the subject is.
    """

    loop: str
    subjects: int
    blocks: int
    shape: str = "normal"
    effect: float = 0.0
    frail: bool = False


def reading_of(kind, rng):
    """Return the results of one study of this kind."""
    plan = _plan(kind.loop, kind.subjects, kind.blocks)
    run = Run(1, "1.0", 0, 1, build.RunStatus.FINISHED, Fingerprint(), RunFacts())
    added = {TrialRole.CALIBRATION: (plan.calibration,)}
    return read(plan, (run,), {}, list(_records(plan, kind, rng)), added)


@lru_cache
def _plan(loop, subjects, blocks):
    loads = LOOPS[loop]
    cells = [
        cell_of(f"s{k}+hello", load, seconds=SECONDS, number=at * subjects + k + 1)
        for at, load in enumerate(loads)
        for k in range(subjects)
    ]
    reference = cell_of("reference+hello", OpenLoop(1000.0), seconds=SECONDS, number=1000)
    primary = Design(primary={"connections": 10}) if len(loads) > 1 else Design()
    return Plan(
        "null",
        "Null",
        "",
        "full",
        tuple(cells),
        blocks,
        1,
        calibration=reference,
        design=primary,
        claims=CLAIMS,
    )


def _records(plan, kind, rng):
    """Yield the trials of a study: all cells of a block share its drift, and each has noise of its own in
    speed, CPU and memory.
    """
    size = len(plan.cells) // kind.subjects
    drawn = [
        np.concatenate(
            [simulated.studies(rng, kind.shape, 1, kind.blocks, kind.subjects)[0] for _ in range(size)], 1
        )
        for _ in range(3)
    ]
    speed, cpu, memory = (NOISE * (one + rng.normal(size=(kind.blocks, 1))) for one in drawn)
    for at, cell in enumerate(plan.cells):
        speed[:, at] += np.log1p(kind.effect) if cell.subject.name == "s0+hello" else 0
    chances, number = _FRAIL if kind.frail else _USUAL, 0
    for block in range(kind.blocks):
        for at in range(2):
            pace = 0.03 * rng.normal()
            yield TrialRecord(number := number + 1, 1, _calibration(plan.calibration, block, at, pace, rng))
        for at in rng.permutation(len(plan.cells)).tolist():
            for trial in _attempts(
                plan.cells[at], block, rng, chances, (speed[block, at], cpu[block, at], memory[block, at])
            ):
                yield TrialRecord(number := number + 1, 1, trial)


def _attempts(cell, block, rng, chances, noise):
    losing, failing, repeated = chances
    first = 1
    if rng.random() < repeated:
        yield replace(_template(cell), block=block, outcome=Invalid("steal"))
        first = 2
    if rng.random() < failing:
        yield replace(
            _template(cell), block=block, attempt=first, outcome=Failed("load", "it died"), recording=None
        )
        return
    yield replace(_trial(cell, rng, *noise, losing), block=block, attempt=first)


def _calibration(cell, block, position, pace, rng):
    own = replace(_trial(cell, rng, pace, 0.0, 0.0, 0.0), block=block, role=TrialRole.CALIBRATION)
    return replace(own, position=position, started_unix_ns=own.started_unix_ns + (2 * block + position))


def _template(cell):
    return replace(_any_trial(cell.workload.loop), cell_id=cell.id)


@lru_cache
def _any_trial(loop):
    return build.trial(cell_of("any+hello", loop, seconds=SECONDS), 0, 0, [1_000_000] * 2000)


def _trial(cell, rng, speed, cpu, memory, losing):
    """Return a trial whose speed, CPU a reply and memory are off by so much, as logarithms, and which loses
    requests with this chance.
    """
    is_open = isinstance(cell.workload.loop, OpenLoop)
    quick = 1.0 if is_open else np.exp(speed)
    replies = int(_REPLIES * quick * np.exp(0.002 * rng.normal()))
    lost = int(replies * rng.uniform(*_LOST)) if rng.random() < losing else 0
    times = _distribution(_SHAPE, 1_000_000 * np.exp(-speed))
    known = _template(cell).recording
    account = replace(
        known.account,
        scheduled=replies + lost,
        ok=replies,
        others={**known.account.others, "reset": lost},
    )
    kinds = ("ok_response", "ok_service") if is_open else ("ok_service",)
    recording = replace(
        known,
        account=account,
        completed=replace(known.completed, ok=replies, failed=lost),
        distributions=replace(known.distributions, **dict.fromkeys(kinds, times)),
        series=tuple(_second(one, replies // SECONDS, rng, speed) for one in known.series),
    )
    cores = 0.4 * np.exp(cpu) * replies / _REPLIES
    taken = build.samples(SECONDS * build.SECOND, float(cores), float(50 * np.exp(memory)), 1)
    # Few of them, for the sake of time: of the window its ends and its middle, and the last one.
    return replace(_template(cell), recording=recording, samples=(*taken[:-1:3], taken[-1]))


def _second(row, replies, rng, speed):
    noise = np.exp(0.03 * rng.normal())
    latency = _distribution({1.0: 100}, 1_000_000 * np.exp(-speed) / noise)
    return replace(row, ok=int(replies * noise), latency=latency)


def _distribution(shape, middle):
    times, histogram = {int(middle * at): count for at, count in shape.items()}, Histogram()
    for value, count in times.items():
        histogram.record(value, count)
    total = sum(value * count for value, count in times.items())
    return Distribution(sum(times.values()), min(times), max(times), total, histogram.encode())


# --- what is said of them ---------------------------------------------------------------------------------

_DIFFERENT = (Verdict.HIGHER, Verdict.LOWER, Verdict.TRIVIAL)


def false_verdicts(reading):
    """Return the families in which a reading of equal subjects says what is not so: each with its load, a
    claim with its name.
    """
    found = set()
    for at, group in enumerate(reading.groups):
        answer = group.answer
        if answer.leader is not None and answer.decided and len(answer.ties) < len(answer.comparisons):
            found.add(("leader", at))
        if any(one.verdict in _DIFFERENT for one in answer.comparisons.values()):
            found.add(("pairs", at))
        found |= {(one.measure, at) for one in group.standings if _separates(one)}
        if any(one.shown for one in group.failures):
            found.add(("failures", at))
    return found | {("claims", claim.name) for claim, result in reading.claims if _is_false(claim, result)}


def _separates(standing):
    """Whether letters differ, or not all are best, where somebody is and there are verdicts."""
    if not standing.decided:
        return False
    named = standing.best and len(standing.best) < len(standing.ranked)
    return bool(named) or len(set(standing.letters.values())) > 1


def _is_false(claim, result):
    if claim.name in TRUE:
        return result.verdict is ClaimVerdict.DOES_NOT_HOLD
    refuted = result.verdict is ClaimVerdict.DOES_NOT_HOLD and claim.kind in (
        ClaimKind.HIGHEST,
        ClaimKind.LOWEST,
    )
    return refuted or result.verdict is ClaimVerdict.HOLDS


def rates(kind, studies, seed=0):
    """Return the share of so many studies in which each family says what is not so."""
    rng, counts = np.random.default_rng(seed), {}
    for _ in range(studies):
        for family in false_verdicts(reading_of(kind, rng)):
            counts[family] = counts.get(family, 0) + 1
    return {family: count / studies for family, count in counts.items()}
