"""The search as a conversation: it asks for blocks of trials, gets their figures, and ends with an answer.

``race`` is a generator. Each `Stage` that it yields is an ordinary study: candidates, and how many blocks in
which each of them runs once. It is sent the figures of these trials, and asks for what it needs next; the
same figures lead to the same stages, so an interrupted search goes on where it was. Pure.

Every stage of the race has the incumbent, the settings of today, in each block: candidates of different
stages are compared through it. A candidate leaves when another is better by the bound that holds for all
pairs together (`figures.statistics.all_pairs`), which two blocks of a dozen candidates allow.
What the search saw of its winner is too good by chance, so the answer is made of fresh blocks alone.

*Source*: the race of M. Birattari et al., "A racing algorithm for configuring metaheuristics", GECCO (2002),
with pooled residuals in place of ranks, which cannot decide before four blocks.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import exp, floor, fsum, inf, log, sqrt

from prony.core.units import seconds
from prony.figures.objective import Condition
from prony.figures.statistics.all_pairs import all_pairs, pair_level
from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.figures.statistics.effects import Effect, change_of, geometric_mean, paired, student_t
from prony.figures.summary import Estimate, estimate_over
from prony.tune.space import Candidate, Cost, Knobs, Machine, first_candidates, neighbours

Figures = Mapping[str, float]
"""Metrics of one trial that counts, by name, in the units of METRICS; of one that failed, as where the server
died, that all its requests were lost.
"""
Trials = Mapping[Candidate, Mapping[int, Figures]]
"""By candidate and block."""
Reply = tuple[Trials, int]
"""The figures of a stage, none where there was no time for it, and how many trials the whole budget has room
for, with those that were asked for: the others as long as those of this stage.
"""

# Of the trials: a search that takes more leaves too few to show the gain.
_SEARCHED = 0.5
_BLOCKS = 2
_FINALISTS = 4
# Of all pairs of a stage together: a good candidate that is lost costs more than a bad one that stays.
_LEVEL = 0.1
LEAST_GAIN = 0.02
"""What the lower end of a gain's interval must reach for a command to be changed for it, whatever the
objective is: one start of a server differs from the next by as much.
"""
# Of the interval of a gain that is hardly worth it.
_HALF_WIDTH = 0.025
_ATTEMPTS = 3
# Nearer to a limit than this, no number of pairs that anybody waits for decides.
_NEAREST = 0.01
# What costs less must carry about as much: of what the incumbent carries, in a closed loop.
_CARRIED = 0.9
CAPACITY_BLOCKS = 3
CAPACITY_TRIALS = 20
"""Of a search for the highest rate: some ten windows, and the fresh trials of one rate or two."""
# A shorter search keeps its trials for the gain.
_LEAST_FOR_CAPACITY = 5 * CAPACITY_TRIALS
# Names of blocks of different stages never meet.
_STAGE = 10_000


def stage_and_block(name: int) -> tuple[int, int]:
    """Return the place of a block's stage among all, and its number there."""
    return name // _STAGE - 1, name % _STAGE


class StageName(StrEnum):
    """What a stage is for."""

    PROFILE = "profile"
    RACE = "race"
    NEIGHBOURS = "neighbours"
    FINAL = "final"
    CONFIRMATION = "confirmation"
    CAPACITY = "capacity"


@dataclass(frozen=True, slots=True)
class Stage:
    """Blocks to run. ``PROFILE`` is measured with one connection; ``CAPACITY`` searches for the highest rate
    that meets all conditions, and confirms it in so many blocks; all others have the wished load.
    """

    name: StageName
    candidates: tuple[Candidate, ...]
    blocks: int

    @property
    def trials(self) -> int:
        """How many trials it has; at most, about, where it searches for a rate."""
        each = CAPACITY_TRIALS if self.name is StageName.CAPACITY else self.blocks
        return len(self.candidates) * each


@dataclass(frozen=True, slots=True)
class TuneWish:
    """What is asked for: the best in ``metric`` of what meets all ``conditions``, in about so many
    ``trials``.
    """

    knobs: tuple[Knobs, ...]
    incumbent: Candidate
    machine: Machine
    trials: int
    metric: str = "ok_per_s"
    higher_is_better: bool = True
    conditions: tuple[Condition, ...] = ()

    def knobs_of(self, one: Candidate) -> Knobs:
        """Return those of a candidate's server."""
        return next(knobs for knobs in self.knobs if knobs.server == one.server)

    @property
    def has_capacity(self) -> bool:
        """Whether the highest rate of the answer is searched for: only a limit of latency has one."""
        asked = any(name.startswith("service_") for one in self.conditions for name in one.metrics)
        return asked and self.metric == "ok_per_s" and self.trials >= _LEAST_FOR_CAPACITY


@dataclass(frozen=True, slots=True)
class Gain:
    """By how much one is better than another, in blocks that have both: ratios less 1, positive where it is
    better. ``low`` and ``high``: the 95 % interval, null of one block.

    *Definition*: Student's t on the logarithms of the ratios within blocks, whose trials stand beside each
    other in random order: what the machine does for longer is in both. Of the k-th challenger that is
    compared with the incumbent, at 1 - 5 % / k.
    *Assumptions*: the next one is compared, in blocks of its own, where one is not shown to meet a condition,
    whatever its gain is. Where a trial that carries more is quicker too, who is lucky in one is so in the
    other: of three, each refused in a share r of its confirmations, 95 % for each would miss the truth in up
    to 2.5 % x (1 + r + 2 r^2) of all answers, 7.7 % at r = 0.8; so it is 2.5 % x (1 + r / 2 + 2 r^2 / 3),
    4.6 % there, and at most 5.4 %.
    """

    blocks: int
    effect: float
    low: float | None
    high: float | None


def gain_of(log_ratios: Sequence[float], challengers: int = 1) -> Gain | None:
    """Return the gain from the logarithms of the ratios within blocks; None without any. ``challengers``: how
    many were compared so far, with this one.
    """
    if len(log_ratios) < 2:
        return Gain(1, change_of(log_ratios[0]), None, None) if log_ratios else None
    effect = paired(log_ratios, widening=1.0)
    low, high = effect.interval(0.05 / challengers)
    return Gain(effect.count, change_of(effect.centre), change_of(low), change_of(high))


def log_ratios_by_block(
    metric: str, base: Mapping[int, Figures], own: Mapping[int, Figures], *, is_higher: bool
) -> list[float]:
    """Return the logarithms of the ratios of a metric in the blocks that both have, better as more."""
    sign = 1 if is_higher else -1
    pairs = (
        (own[block].get(metric, 0.0), base[block].get(metric, 0.0)) for block in sorted(own.keys() & base)
    )
    return [sign * log(one / other) for one, other in pairs if 0 < one < inf and 0 < other < inf]


class Move(StrEnum):
    """What the answer says."""

    CHANGE = "change"
    KEEP = "keep"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """``chosen``: what to use, null where nothing is shown to meet the conditions. ``challenger``: the best
    other than the incumbent, null where no other gave a figure. ``gain``: challenger against incumbent, in
    ``fresh`` blocks alone, null where either gave no figure there. ``searched``: the trials before.
    ``stages``: all that was asked for; ``beaten``: after which of them, by number, others were shown to be
    better, or a condition to be broken.
    """

    advice: Move
    incumbent: Candidate
    challenger: Candidate | None
    gain: Gain | None
    fresh: Trials
    searched: Trials
    broken: tuple[str, ...] = ()
    """Conditions that the incumbent is not shown to meet."""
    unfit: tuple[str, ...] = ()
    """Those that the challenger is not shown to meet."""
    stages: tuple[Stage, ...] = ()
    beaten: Mapping[Candidate, int] = field(default_factory=dict)

    @property
    def chosen(self) -> Candidate | None:
        """What to use."""
        return {Move.CHANGE: self.challenger, Move.KEEP: self.incumbent, Move.NOTHING: None}[self.advice]


@dataclass(slots=True)
class _Search:
    wish: TuneWish
    room: int
    spent: int = 0
    stages: list[Stage] = field(default_factory=list)
    found: dict[Candidate, dict[int, Figures]] = field(default_factory=dict)
    beaten: dict[Candidate, int] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """Trials that are kept for the highest rate of the answer."""
        return CAPACITY_TRIALS if self.wish.has_capacity else 0

    @property
    def left(self) -> int:
        """Trials that the search may still take."""
        return int((self.room - self.kept) * _SEARCHED) - self.spent

    @property
    def pairs_left(self) -> int:
        """How many fresh pairs there is room for."""
        return (self.room - self.kept - self.spent) // 2

    def alive(self) -> tuple[Candidate, ...]:
        """Return who stays, and remember since when the others do not."""
        alive = survivors(self.wish, self.found)
        for one in self.found.keys() - set(alive):
            self.beaten.setdefault(one, len(self.stages) - 1)
        return alive

    def ask(
        self, name: StageName, wanted: Iterable[Candidate], blocks: int
    ) -> Generator[Stage, Reply, dict[Candidate, dict[int, Figures]]]:
        """Ask for blocks of these candidates and the incumbent; fresh blocks do not enter the search."""
        stage = Stage(name, tuple(dict.fromkeys((self.wish.incumbent, *wanted))), blocks)
        trials, self.room = yield stage
        self.spent += stage.trials
        self.stages.append(stage)
        known = {
            one: {len(self.stages) * _STAGE + block: figures for block, figures in blocks_of.items()}
            for one, blocks_of in trials.items()
            if blocks_of
        }
        if name not in (StageName.PROFILE, StageName.CONFIRMATION):
            for one, blocks_of in known.items():
                self.found.setdefault(one, {}).update(blocks_of)
        return known


def least_trials(wish: TuneWish) -> int:
    """Return how many trials a search needs at least: a race of six, and five pairs to confirm."""
    return len(wish.knobs) + 1 + 2 * _BLOCKS * 6 + 2 * LEAST_BLOCKS


def race(wish: TuneWish) -> Generator[Stage, Reply, Recommendation]:
    """Ask for stages until the answer is known, which is the generator's value."""
    search = _Search(wish, wish.trials)
    light = yield from search.ask(StageName.PROFILE, (one.default for one in wish.knobs), 1)
    costs = costs_of(light)
    first = first_candidates(wish.knobs, costs, wish.machine, (wish.incumbent,), search.left // _BLOCKS)
    yield from search.ask(StageName.RACE, first, _BLOCKS)
    search.wish = wish = _carrying(wish, search.found)
    alive = search.alive()
    while len(alive) > _FINALISTS and search.left >= 2 * _BLOCKS * (len(alive) + 1):
        yield from search.ask(StageName.RACE, alive, _BLOCKS)
        alive = search.alive()
    yield from _climb(search, costs)
    best = best_first(wish, search.found, search.alive())[:_FINALISTS]
    if len(best) > 1 and search.left >= _BLOCKS * (len(best) + 1):
        yield from search.ask(StageName.FINAL, best, search.left // (len(best) + 1))
    answer = yield from _confirmed(search)
    if answer.chosen and wish.has_capacity and search.room - search.spent >= CAPACITY_TRIALS:
        stage = Stage(StageName.CAPACITY, (answer.chosen,), CAPACITY_BLOCKS)
        measured, _ = yield stage
        search.stages += [stage] if measured else []
    return replace(answer, stages=tuple(search.stages), beaten=search.beaten)


def _carrying(wish: TuneWish, found: Trials) -> TuneWish:
    """Return the wish for what costs least, and carries no less than 90 % of what the incumbent does; one
    whose conditions say what it carries, and that for the highest rate, as they are.
    """
    rates = [row["ok_per_s"] for row in found.get(wish.incumbent, {}).values() if row.get("ok_per_s")]
    is_said = any("ok_per_s" in one.metrics for one in wish.conditions)
    if wish.metric == "ok_per_s" or is_said or not rates:
        return wish
    least = _CARRIED * geometric_mean(rates)
    carries = Condition(f"rps > {least:.3g}, 90 % of today's", ("ok_per_s",), ">", least)
    return replace(wish, conditions=(*wish.conditions, carries))


def _climb(search: _Search, costs: Mapping[str, Cost]) -> Generator[Stage, Reply, None]:
    """Ask for what is one step from the best, and again where that is better, as long as half is left."""
    wish, tried = search.wish, set[Candidate]()
    while leaders := best_first(wish, search.found, search.alive())[:2]:
        best = leaders[0]
        near = neighbours(best, wish.knobs_of(best), costs.get(best.server), wish.machine)
        new = [one for one in near if one not in search.found]
        if best in tried or not new or search.left < 2 * _BLOCKS * (len(new) + 3):
            return
        tried.add(best)
        yield from search.ask(StageName.NEIGHBOURS, (*leaders, *new), _BLOCKS)


def costs_of(light: Trials) -> dict[str, Cost]:
    """Return what a request costs on each server, from trials with one connection."""
    found = {}
    for one, blocks in light.items():
        figures = next((row for row in blocks.values() if "ok_per_s" in row), None)
        if figures is None:
            continue
        cpu_s, whole_s = (
            seconds(round(figures.get("cpu_ns_per_request", 0.0))),
            1 / max(figures["ok_per_s"], 1e-4),
        )
        if cpu_s > 0:
            workers = (one.workers or 1) + 1
            found[one.server] = Cost(cpu_s, max(0.0, whole_s - cpu_s), figures.get("pss_end", 0.0) / workers)
    return found


# --- who stays --------------------------------------------------------------------------------------------


def logs_of(wish: TuneWish, found: Trials, wanted: Iterable[Candidate]) -> dict[str, dict[int, float]]:
    """Return the logarithms of the objective, higher is better, by the candidate's words and block."""
    sign = 1 if wish.higher_is_better else -1
    return {
        one.words: {
            block: sign * log(figures[wish.metric])
            for block, figures in found[one].items()
            if figures.get(wish.metric, 0.0) > 0
        }
        for one in wanted
        if one in found
    }


def survivors(wish: TuneWish, found: Trials) -> tuple[Candidate, ...]:
    """Return the candidates that no other is shown to beat, and that may meet all conditions.

    *Definition*: one is beaten where the interval of its pair with another that seems to meet them lies
    wholly on the other's side, at the level that all pairs of the stage hold together (Tukey).
    """
    may = [one for one in found if not _surely_breaks(wish, found, one)]
    logs = logs_of(wish, found, may)
    fair = {one.words for one in may if _seems_to_meet(wish, found, one)}
    beaten = set()
    for (first, second), effect in all_pairs(logs).items():
        low, high = effect.interval(pair_level(_LEVEL, len(logs), max(1, floor(effect.freedom))))
        if low > 0 and second in fair:
            beaten.add(first)
        if high < 0 and first in fair:
            beaten.add(second)
    return tuple(one for one in may if one.words not in beaten and logs[one.words])


def best_first(wish: TuneWish, found: Trials, among: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, best first, the incumbent left out; those that seem to break a condition at the
    end.

    *Definition*: by the lower bound of the ratio to the incumbent, one standard error below: of two that look
    alike the one that was measured more often.
    """
    logs = logs_of(wish, found, dict.fromkeys((wish.incumbent, *among)))
    base = wish.incumbent.words
    effects = {pair: effect for pair, effect in all_pairs(logs).items() if base in pair}

    def bound(one: Candidate) -> float:
        effect = effects.get((base, one.words)) or _turned(effects.get((one.words, base)))
        if effect is not None:
            return effect.centre - effect.error
        # Without two blocks beside the incumbent it is behind all that have them; where nobody has, because
        # the incumbent gave no figure, the means are compared.
        values = [] if logs.get(base) else list(logs.get(one.words, {}).values())
        return fsum(values) / len(values) if values else -inf

    others = [one for one in among if one != wish.incumbent]
    return sorted(others, key=lambda one: (_seems_to_meet(wish, found, one), bound(one)), reverse=True)


def _turned(effect: Effect | None) -> Effect | None:
    return effect.mirrored() if effect else None


# --- conditions -------------------------------------------------------------------------------------------


def _metric_of(condition: Condition, blocks: Iterable[Figures]) -> str:
    """Return the first of a condition's metrics that trials have."""
    known = {name for figures in blocks for name in figures}
    return next((name for name in condition.metrics if name in known), condition.metrics[0])


def _values(condition: Condition, blocks: Mapping[int, Figures]) -> tuple[str, list[float]]:
    name = _metric_of(condition, blocks.values())
    return name, [figures[name] for figures in blocks.values() if name in figures]


def _spread(condition: Condition, found: Trials) -> tuple[float, int]:
    """Return how far logarithms of a condition's metric scatter between trials of a candidate, pooled over
    all, and its degrees of freedom.
    """
    squares, freedom = 0.0, 0
    for blocks in found.values():
        _, values = _values(condition, blocks)
        if len(values) < 2 or not 0 < min(values) <= max(values) < inf:
            continue
        logs = [log(value) for value in values]
        mean = fsum(logs) / len(logs)
        squares += fsum((value - mean) ** 2 for value in logs)
        freedom += len(logs) - 1
    return (sqrt(squares / freedom), freedom) if freedom else (0.0, 1)


def _bounded(condition: Condition, found: Trials, one: Candidate, side: int) -> bool:
    """Return whether a condition is met by the mean, moved by its error: 1 against it, -1 in its favour;
    where it was not measured, it may be.
    """
    name, values = _values(condition, found.get(one, {}))
    if not values:
        # Too few requests for a percentile: fresh trials, which are longer, decide.
        return True
    mean = fsum(values) / len(values)
    if 0 < min(values) <= max(values) < inf and not name.startswith("error"):
        spread, freedom = _spread(condition, found)
        worse = side if condition.operator.startswith("<") else -side
        mean *= exp(worse * student_t(0.95, freedom) * spread / sqrt(len(values)))
    return condition.holds(mean)


def _surely_breaks(wish: TuneWish, found: Trials, one: Candidate) -> bool:
    return not all(_bounded(condition, found, one, -1) for condition in wish.conditions)


def _seems_to_meet(wish: TuneWish, found: Trials, one: Candidate) -> bool:
    return all(_bounded(condition, found, one, 1) for condition in wish.conditions)


def broken(conditions: Sequence[Condition], blocks: Mapping[int, Figures]) -> tuple[str, ...]:
    """Return the conditions that trials do not show to be met.

    *Definition*: the 95 % interval of the mean over blocks must meet it, of at least five of them, and each
    must have a figure: a mean that meets it may do so by chance.
    """
    return tuple(one.text for one in conditions if not _shown(one, blocks))


def _shown(condition: Condition, blocks: Mapping[int, Figures]) -> bool | None:
    """Return whether trials show that a condition is met, or that it is not; None: they show neither."""
    name, values = _values(condition, blocks)
    if len(values) < LEAST_BLOCKS:
        return None
    if max(values) == inf:
        return False
    estimate: Estimate = estimate_over(values, name)
    if estimate.low is None or estimate.high is None:
        return None
    shown = condition.shown(estimate.low, estimate.high)
    return None if shown and len(values) < len(blocks) else shown


# --- the answer -------------------------------------------------------------------------------------------


def _confirmed(search: _Search) -> Generator[Stage, Reply, Recommendation]:
    """Compare the best with the incumbent in fresh blocks; the next where it is not shown to meet a
    condition.
    """
    wish, fresh = search.wish, dict[Candidate, dict[int, Figures]]()
    order = best_first(wish, search.found, search.alive())
    order = order or best_first(wish, search.found, list(search.found))
    answer = Recommendation(Move.NOTHING, wish.incumbent, None, None, {}, search.found)
    for number, challenger in enumerate(order[:_ATTEMPTS], 1):
        pairs = search.pairs_left
        if number > 1 and pairs < LEAST_BLOCKS:
            break
        several = len(order) > 1 and wish.conditions and number == 1
        most = max(LEAST_BLOCKS, pairs * 2 // 3 if several else pairs)
        yield from _more(search, fresh, challenger, min(most, _pairs_needed(wish, search.found, challenger)))
        lacking = LEAST_BLOCKS - len(fresh.get(wish.incumbent, {}).keys() & fresh.get(challenger, {}).keys())
        if 0 < lacking < LEAST_BLOCKS and search.pairs_left:
            yield from _more(search, fresh, challenger, min(lacking, search.pairs_left))
        answer = _judged(search, challenger, fresh, number)
        if answer.advice is Move.CHANGE or not answer.unfit:
            return answer
    # Nothing is shown to meet all of it: no rate is searched for, and its trials show more.
    pairs = (search.room - search.spent) // 2
    if order and answer.advice is Move.NOTHING and pairs >= LEAST_BLOCKS:
        challenger = next((one for one in order if _meets(wish.conditions, fresh.get(one, {}))), order[0])
        yield from _more(search, fresh, challenger, pairs)
        answer = _judged(search, challenger, fresh, number)
    return answer


def _more(
    search: _Search, fresh: dict[Candidate, dict[int, Figures]], challenger: Candidate, pairs: int
) -> Generator[Stage, Reply, None]:
    """Ask for fresh pairs, and put them to those that there are."""
    known = yield from search.ask(StageName.CONFIRMATION, (challenger,), pairs)
    for one, blocks in known.items():
        fresh.setdefault(one, {}).update(blocks)


def _meets(conditions: Sequence[Condition], blocks: Mapping[int, Figures]) -> bool:
    """Return whether the means of fresh blocks meet all conditions."""
    found = [(one, _values(one, blocks)[1]) for one in conditions]
    return all(values and one.holds(fsum(values) / len(values)) for one, values in found)


def _judged(search: _Search, challenger: Candidate, fresh: Trials, number: int) -> Recommendation:
    """Return what fresh blocks say of a challenger. ``number``: its place among those compared, from 1."""
    wish = search.wish
    gain = _gain(wish, challenger, fresh, number)
    own, its = fresh.get(wish.incumbent, {}), fresh.get(challenger, {})
    both = {one: fresh[one] for one in (wish.incumbent, challenger) if one in fresh}
    return Recommendation(
        advice=_advice(wish.conditions, gain, own, its),
        incumbent=wish.incumbent,
        challenger=challenger,
        gain=gain,
        fresh=both,
        searched=search.found,
        broken=broken(wish.conditions, own),
        unfit=broken(wish.conditions, its),
    )


def _advice(
    conditions: Sequence[Condition],
    gain: Gain | None,
    own: Mapping[int, Figures],
    its: Mapping[int, Figures],
) -> Move:
    """Return what fresh trials of the incumbent and of the challenger, ``its``, say.

    *Definition*: the challenger must be shown to meet all conditions. Then it is used where it is shown to be
    better by 2 % (`LEAST_GAIN`), where the incumbent is shown to break one, and where the incumbent is not
    shown to meet all and is no faster. Else the incumbent is kept, if its means meet all of them.
    """
    incumbent = [_shown(one, own) for one in conditions]
    is_better = gain is not None and gain.low is not None and gain.low >= LEAST_GAIN
    is_no_worse = gain is not None and gain.effect >= 0
    is_fit = bool(its) and not broken(conditions, its)
    if is_fit and (is_better or False in incumbent or (is_no_worse and None in incumbent)):
        return Move.CHANGE
    return Move.KEEP if own and False not in incumbent and _meets(conditions, own) else Move.NOTHING


def _gain(wish: TuneWish, challenger: Candidate, fresh: Trials, number: int) -> Gain | None:
    base, own = (fresh.get(one, {}) for one in (wish.incumbent, challenger))
    return gain_of(log_ratios_by_block(wish.metric, base, own, is_higher=wish.higher_is_better), number)


def _pairs_needed(wish: TuneWish, found: Trials, challenger: Candidate) -> int:
    """Return how many pairs show the gain, and that conditions are met, at the noise of the search.

    *Definition*: the interval of the gain is some 2.5 % to each side, or a tenth of a larger gain (of its
    logarithm); that of a condition's metric half as wide as the way from its mean to the limit.
    """
    pairs = all_pairs(logs_of(wish, found, found))
    spreads = sorted(effect.spread for effect in pairs.values())
    usual = spreads[len(spreads) // 2] if spreads else 0.0
    gain = next(
        (abs(one.centre) for pair, one in pairs.items() if set(pair) == _words(wish, challenger)), 0.0
    )
    of_conditions = (way for one in (challenger, wish.incumbent) for way in _ways(wish, found, one))
    ways = [(usual, max(_HALF_WIDTH, 0.1 * gain)), *of_conditions]
    needed = max(1 + (2 * spread / way) ** 2 for spread, way in ways)
    return max(LEAST_BLOCKS, min(round(needed), wish.trials))


def _words(wish: TuneWish, challenger: Candidate) -> set[str]:
    return {wish.incumbent.words, challenger.words}


def _ways(wish: TuneWish, found: Trials, one: Candidate) -> Iterator[tuple[float, float]]:
    """Yield of each condition the scatter of a candidate's figure, and half of its way to the limit."""
    for condition in wish.conditions:
        name, values = _values(condition, found.get(one, {}))
        if values and 0 < min(values) <= max(values) < inf and not name.startswith("error"):
            way = abs(log(condition.limit / geometric_mean(values)))
            yield _spread(condition, found)[0], max(way / 2, _NEAREST)
