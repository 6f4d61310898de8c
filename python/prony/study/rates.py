"""Finds the highest rate of each subject that meets an objective, and confirms it in fresh trials.

Every rate that is tried, and every confirming trial, gets a fresh server. The state of the search is in the
facts of its trials, so that it can be resumed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from prony.core.errors import ArchiveError
from prony.core.metrics import format_metric
from prony.core.units import SECOND_NS, seconds
from prony.figures.account import rates_of
from prony.figures.find_rate import found_rate, judge_rate, least_rate, next_rate, next_test, window_for
from prony.figures.objective import Objective, parse_objective
from prony.model.facts import FoundRate, RateStep, SearchPart, TrialStep
from prony.model.plan import Cell, Plan
from prony.model.trial import Trial, TrialRole
from prony.model.workload import DurationStop, OpenLoop, Workload
from prony.plan.order import Position, Turn, block_turns
from prony.study.bench import StudyBench
from prony.study.blocks import run_turns
from prony.study.ledger import Ledger
from prony.study.pilot import glance
from prony.study.task import StudyListener

FIRST_RATE_PER_S = 100.0
"""Where the search begins when the plan names no rate and nothing was served in a short closed loop."""
MOST_RATE_PER_S = 1e6
"""More than one generator can send on one machine."""

TYPICAL_STEPS = 10
"""Half of what a closed loop served, all of it, and some between (tests/searches.py). Only for estimates."""

# The highest rate of an open loop lies mostly between this share of what a closed loop served, and its
# double.
_OF_CLOSED_LOOP = 0.5

_LENGTH_NS = 10 * SECOND_NS


@dataclass(slots=True)
class _Search:
    """One search over the subjects of a plan, with the cells that it has created."""

    bench: StudyBench
    ledger: Ledger
    listener: StudyListener
    objective: Objective
    cells: list[Cell]
    turns: int = 0
    found: dict[str, tuple[RateStep, ...]] = field(default_factory=dict)

    def cell(self, template: Cell, rate_per_s: float) -> Cell:
        """Return the cell of a subject at a rate; it is added to the archive."""
        load = workload_at(template.workload, rate_per_s, self.objective)
        known = (one for one in self.cells if one.subject.name == template.subject.name)
        same = next((one for one in known if one.workload == load), None)
        if same is not None:
            return same
        taken = [one.id for one in (*_planned(self.bench.study.plan), *self.cells)]
        made = replace(template, id=max(taken) + 1, workload=load)
        self.ledger.writer.record_cell(made, TrialRole.FIND_RATE)
        self.cells.append(made)
        return made

    def run(self, turns: Sequence[Turn]) -> None:
        """Run turns of one block, and judge each by the objective."""
        run_turns(self.bench, turns, self.ledger, self.listener, partial(_judged, self.objective, self.cells))

    def has_time(self) -> bool:
        """Return whether one more rate, and the fresh trials after it, end within the time of the study, if
        they take as long as those before.
        """
        most_ns, done = self.bench.study.most_ns, len(self.ledger.entries)
        if most_ns is None or not done:
            return True
        more = 1 + self.bench.study.plan.blocks
        return self.ledger.measured_ns * (done + more) <= most_ns * done

    def step(self, turn: Turn) -> RateStep:
        """Return the result of a turn."""
        known, loop = self.ledger.latest(turn).facts.find_rate, turn.cell.workload.loop
        if known is None or not isinstance(loop, OpenLoop):
            load = turn.cell.workload.describe()
            raise ArchiveError(f"the archive's trial under {load} does not say whether it met the objective")
        # What an archive says of its trial may not send the search elsewhere: the rate is the cell's.
        return replace(known.step, rate_per_s=loop.rate_per_s)


def find_rates(
    bench: StudyBench, ledger: Ledger, known: Sequence[Cell], listener: StudyListener
) -> tuple[FoundRate, ...]:
    """Find every subject's highest rate, then test the rates found in randomised blocks; what these do not
    settle, in further ones.

    ``known``: the cells that a resumed search has already created.
    """
    objective = parse_objective(bench.study.plan.design.find_rate)
    looking = _Search(bench, ledger, listener, objective, list(_of_plan(known, bench.study.plan)))
    ready = [cell for cell in bench.study.plan.cells if cell.subject.name in bench.ready]
    listener.planned(len(ready) * (TYPICAL_STEPS + bench.study.plan.blocks))
    for cell in ready:
        _search(looking, cell)
    fresh = _tested(looking, ready)
    return tuple(found_rate(name, steps, fresh.get(name, ())) for name, steps in looking.found.items())


def _of_plan(known: Iterable[Cell], plan: Plan) -> Iterator[Cell]:
    """Yield cells of an archive as the plan's own at their rates, without those that are of no such subject.

    The plan has been looked through before it goes on; a cell's own app, sandbox and request have not, and
    are not taken.
    """
    templates = {cell.subject.name: cell for cell in plan.cells}
    objective = parse_objective(plan.design.find_rate)
    for cell in known:
        template, loop = templates.get(cell.subject.name), cell.workload.loop
        if template is not None and isinstance(loop, OpenLoop):
            load = workload_at(template.workload, loop.rate_per_s, objective)
            yield replace(template, id=cell.id, workload=load)


def searching(plan: Plan, objective: str) -> Plan:
    """Return the plan that searches for each subject's highest rate: a subject's first cell is its template,
    and the plan's blocks confirm what is found.

    *Errors*: ValueError for a text that is not an objective.
    """
    parse_objective(objective)
    first = {cell.subject.name: cell for cell in reversed(plan.cells)}
    cells = tuple(cell for cell in plan.cells if cell is first[cell.subject.name])
    return replace(plan, cells=cells, design=replace(plan.design, find_rate=objective))


def workload_at(workload: Workload, rate_per_s: float, objective: Objective) -> Workload:
    """Return the load as an open loop at a rate; a fixed number of requests becomes a fixed time, and a
    window with too few requests for the objective's percentiles becomes longer.
    """
    loop = workload.loop if isinstance(workload.loop, OpenLoop) else OpenLoop(rate_per_s)
    stop = DurationStop(round(window_for(objective, rate_per_s, _window_s(workload)) * SECOND_NS))
    return replace(workload, loop=replace(loop, rate_per_s=rate_per_s), stop=stop)


def _window_s(workload: Workload) -> float:
    stop = workload.stop
    return seconds(stop.duration_ns if isinstance(stop, DurationStop) else _LENGTH_NS)


def _planned(plan: Plan) -> tuple[Cell, ...]:
    return (*plan.cells, *([plan.calibration] if plan.calibration else []))


def _judged(objective: Objective, cells: Sequence[Cell], trial: Trial) -> Trial:
    """Return a trial with its judgement by the objective among its facts; a calibration unchanged."""
    cell = next((one for one in cells if one.id == trial.cell_id), None)
    if cell is None or not isinstance(cell.workload.loop, OpenLoop):
        return trial
    step = judge_rate(trial, objective, cell.workload.loop.rate_per_s)
    part = SearchPart.SEARCH if trial.block == 0 else SearchPart.CONFIRMATION
    return replace(trial, facts=replace(trial.facts, find_rate=TrialStep(part, step)))


def _search(looking: _Search, template: Cell) -> None:
    """Try rates, each in one valid trial, until the boundary is known, a trial decides nothing, or time is
    up.

    Where the generator alone leaves a trial open, lower rates can show more: the search goes on.
    """
    name, steps = template.subject.name, tuple[RateStep, ...]()
    first = _first_rate(looking, template)
    while (rate := next_rate(steps, first, MOST_RATE_PER_S)) is not None and looking.has_time():
        steps = looking.found[name] = (*steps, _tried(looking, template, rate))
        if steps[-1].met is None and steps[-1].limit is None:
            return


def _tried(looking: _Search, template: Cell, rate: float) -> RateStep:
    turn = Turn(
        looking.cell(template, rate), Position(block=0, position=looking.turns, role=TrialRole.FIND_RATE)
    )
    looking.turns += 1
    looking.run([turn])
    step = looking.step(turn)
    looking.listener.notice(f"{template.subject.name} at {rate:.5g}/s: {_in_words(step)}")
    return step


def _in_words(step: RateStep) -> str:
    if step.met or step.unmet is None:
        return "meets it" if step.met else step.reason
    missed = step.unmet
    found = missed.reason if missed.value is None else f"it was {format_metric(missed.metric, missed.value)}"
    doubt = f"; undecided: {step.reason}" if step.met is None else ""
    return f"not `{missed.condition}`: {found}{doubt}"


def _first_rate(looking: _Search, template: Cell) -> float:
    """Return where a subject's search begins: at the rate that was asked for, where it began before it was
    interrupted, else near what a short closed loop served.
    """
    workload = template.workload
    asked = workload.loop.rate_per_s if isinstance(workload.loop, OpenLoop) else None
    first = asked or _began_at(looking, template) or _served(looking, template) or FIRST_RATE_PER_S
    return min(max(first, least_rate(looking.objective, _window_s(workload))), MOST_RATE_PER_S)


def _began_at(looking: _Search, template: Cell) -> float | None:
    own = [cell for cell in looking.cells if cell.subject.name == template.subject.name]
    first = min(own, key=lambda cell: cell.id, default=None)
    return first.workload.loop.rate_per_s if first and isinstance(first.workload.loop, OpenLoop) else None


def _served(looking: _Search, template: Cell) -> float | None:
    """Return the share of what the subject serves in a short closed loop at which its search begins; None: it
    serves nothing.
    """
    trial = glance(looking.bench, template, looking.listener)
    rate = rates_of(trial.recording)["ok_per_s"] if trial.recording else None
    if not rate:
        return None
    looking.listener.notice(f"{template.subject.name}: {rate:.5g}/s in a short closed loop")
    return _OF_CLOSED_LOOP * rate


def _tested(looking: _Search, ready: Sequence[Cell]) -> dict[str, tuple[RateStep, ...]]:
    """Return the results of fresh trials of each subject, a rate for all blocks of the plan at a time."""
    steps: dict[str, tuple[RateStep, ...]] = {}
    blocks = looking.bench.study.plan.blocks
    first = 1
    while (not steps or looking.has_time()) and (cells := tuple(_to_test(looking, ready, steps))):
        for block in range(first, first + blocks):
            for name, step in _block(looking, cells, block):
                steps[name] = (*steps.get(name, ()), step)
        first += blocks
    return steps


def _to_test(
    looking: _Search, ready: Sequence[Cell], fresh: Mapping[str, Sequence[RateStep]]
) -> Iterator[Cell]:
    for template in ready:
        name = template.subject.name
        rate = next_test(looking.found.get(name, ()), fresh.get(name, ()))
        if rate is not None:
            yield looking.cell(template, rate)


def _block(looking: _Search, cells: tuple[Cell, ...], block: int) -> list[tuple[str, RateStep]]:
    turns = [_as_search(turn) for turn in block_turns(replace(looking.bench.study.plan, cells=cells), block)]
    looking.run(turns)
    own = (turn for turn in turns if turn.position.role is TrialRole.FIND_RATE)
    return [(turn.cell.subject.name, looking.step(turn)) for turn in own]


def _as_search(turn: Turn) -> Turn:
    if turn.position.role is TrialRole.CALIBRATION:
        return turn
    return replace(turn, position=replace(turn.position, role=TrialRole.FIND_RATE))
