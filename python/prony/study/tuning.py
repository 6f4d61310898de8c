"""The stages of a search for settings as ordinary studies: what can be turned, a stage's plan, its figures.

Each stage has an archive of its own in one folder. A plan never grows, so an archive is complete or goes on
as any other; the search asks for the same stages again when it is given the same figures.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import median

from prony.archive import open_archive
from prony.catalog.schema.entry import IntSetting, ServerEntry
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import resolved_settings
from prony.core.units import seconds
from prony.figures.missing import Missing, Value
from prony.figures.objective import Condition, parse_objective
from prony.figures.statistics.effects import geometric_mean
from prony.figures.summary import CellSummary
from prony.model.plan import Cell, Plan
from prony.model.subject import Interface, Subject
from prony.model.trial import Failed
from prony.model.workload import ClosedLoop, DurationStop
from prony.plan.factors import name_with
from prony.reading.study import StudyResults, read_archive
from prony.study.rates import searching, workload_at
from prony.tune.race import Figures, Stage, StageName, Trials, TuneWish, costs_of
from prony.tune.space import Candidate, Cost, Knobs, slots_needed

_WORKERS, _THREADS = ("workers", "processes"), ("threads", "blocking_threads")
USUAL_CONNECTIONS, _MOST_CONNECTIONS = 64, 1024
"""As many as sixteen threads in four workers answer at once."""


def server_of(subject: Subject) -> str:
    """Return the name by which a subject's server is asked for, with variant and frontend."""
    return subject.name.removesuffix(f"+{subject.app.name}")


def knobs_of(subject: Subject, known: Catalog, cpus: int) -> Knobs:
    """Return what can be turned on a subject's server; nothing of one whose entry has no such settings."""
    entry = known.server(subject.server)
    values = resolved_settings(entry, subject, cpus)
    threads = () if subject.interface is Interface.ASGI else _THREADS
    workers, turned = (next((key for key in keys if _most(entry, key)), "") for keys in (_WORKERS, threads))
    counts = [int(values[key]) if key in values else None for key in (workers, turned)]
    default = Candidate(server_of(subject), *counts)
    return Knobs(default, workers, turned, _most(entry, workers), _most(entry, turned))


def _most(entry: ServerEntry, key: str) -> int:
    """Return the largest value of a setting that is a number; 0 where there is none."""
    setting = entry.settings.get(key)
    return setting.max if isinstance(setting, IntSetting) else 0


@dataclass(frozen=True, slots=True)
class StageLoad:
    """What trials have in place of the plan's: the length of the window, connections; None: as there."""

    window_ns: int | None = None
    connections: int | None = None

    def of(self, cell: Cell) -> Cell:
        """Return a cell with this load."""
        workload = cell.workload
        if self.window_ns is not None:
            workload = replace(workload, stop=DurationStop(self.window_ns))
        if self.connections is not None and isinstance(workload.loop, ClosedLoop):
            workload = replace(workload, loop=ClosedLoop(self.connections))
        return replace(cell, workload=workload)


def connections_for(cost: Cost, cpus: float, conditions: Sequence[Condition]) -> int:
    """Return how many connections of a closed loop fill the CPUs, at a latency that conditions may allow.

    *Definition*: twice the requests that must be worked on at once, at least 64. Where a condition limits the
    latency, no more than are there at full speed (`cpus` / CPU time a request) if each request takes what it
    takes alone and a third of what is left to the limit (Little's law), for tails are longer than means; but
    two a CPU. At most 1,024.
    """
    usual = max(USUAL_CONNECTIONS, 2 * slots_needed(cost, cpus))
    alone_s = cost.cpu_s + cost.wait_s
    limits_s = [seconds(round(one.limit)) for one in conditions if _is_latency(one)]
    stay_s = [alone_s + max(0.0, limit_s - alone_s) / 3 for limit_s in limits_s]
    allowed = [max(2 * cpus, cpus / cost.cpu_s * one) for one in stay_s]
    return max(1, round(min(_MOST_CONNECTIONS, usual, *allowed)))


def _is_latency(condition: Condition) -> bool:
    return condition.operator.startswith("<") and any(
        name.startswith(("response_", "service_")) for name in condition.metrics
    )


def stage_plan(plan: Plan, stage: Stage, wish: TuneWish, load: StageLoad = StageLoad()) -> Plan:
    """Return the plan of a stage. ``plan``: a cell of each server, as it starts where nothing is set."""
    cells = {server_of(cell.subject): cell for cell in plan.cells}
    chosen = [_cell(k, cells[one.server], wish.knobs_of(one), one) for k, one in enumerate(stage.candidates)]
    if stage.name is StageName.PROFILE:
        chosen = [replace(cell, workload=replace(cell.workload, loop=ClosedLoop(1))) for cell in chosen]
    else:
        chosen = [load.of(cell) for cell in chosen]
    made = replace(
        plan,
        cells=tuple(chosen),
        blocks=stage.blocks,
        title=f"{plan.name}: {stage.name}",
        question="Which settings serve best?",
    )
    if stage.name is not StageName.CAPACITY:
        return made
    return searching(
        made, ", ".join(one.text for one in wish.conditions if not one.text.startswith("memory"))
    )


def _cell(number: int, cell: Cell, knobs: Knobs, one: Candidate) -> Cell:
    levels, plain = knobs.settings(one), cell.subject
    subject = replace(
        plain, name=name_with(plain.name, levels), settings={**plain.settings, **levels}, levels=levels
    )
    return replace(cell, id=number, subject=subject)


def read_stage(path: Path) -> StudyResults:
    """Return what the archive of a stage says."""
    with open_archive(path) as archive:
        return read_archive(archive)


def trials_of(reading: StudyResults, stage: Stage) -> Trials:
    """Return the figures of a stage's trials that count."""
    cells = {cell.cell.id: cell for cell in reading.cells}
    return {one: figures_by_block(cells[k]) for k, one in enumerate(stage.candidates) if k in cells}


def figures_by_block(cell: CellSummary) -> dict[int, Figures]:
    """Return the figures of a cell's trials by block: of those that count, and of each that failed that all
    its requests were lost. What other programs disturbed has none.
    """
    failed: dict[int, Figures] = {
        trial.block: {"error_ratio": 1.0} for trial in cell.others if isinstance(trial.outcome, Failed)
    }
    return failed | {
        block: {name: number for name, value in metrics.items() if (number := _number(value)) is not None}
        for block, metrics in cell.by_block.items()
    }


def _number(value: Value) -> float | None:
    """Return a metric as a number; a latency that requests without a reply made infinite is infinite."""
    if isinstance(value, Missing):
        return inf if value.infinite else None
    return float(value)


def window_s(rate_per_s: float, conditions: Sequence[Condition]) -> float:
    """Return how long a window must be for the percentiles of conditions, at this rate: ten requests beyond
    each, and as many again for trials that are slower; 0 where there are none.
    """
    shares = [1 - int(found[1]) / 10 ** len(found[1]) for one in conditions if (found := _percentile(one))]
    return max((20 / share / max(rate_per_s, 1e-4) for share in shares), default=0.0)


def expected_rate(trials: Trials, stage: Stage, cpus: float) -> float:
    """Return the rate to expect of good settings: the best mean of a stage; with one connection, what fills
    half of the CPUs.
    """
    if stage.name is StageName.PROFILE:
        return max((cpus / 2 / cost.cpu_s for cost in costs_of(trials).values()), default=0.0)
    rates = (
        [row["ok_per_s"] for row in blocks.values() if row.get("ok_per_s")] for blocks in trials.values()
    )
    return max((geometric_mean(own) for own in rates if own), default=0.0)


def _percentile(condition: Condition) -> re.Match[str] | None:
    return re.search(r"_p(\d+)$", condition.metrics[0])


def more_s(plan: Plan, rate_per_s: float) -> float:
    """Return how much longer a window of a search for a rate is at this one than the plan's: its percentiles
    need so many requests.
    """
    load = plan.cells[0].workload
    at = workload_at(load, rate_per_s, parse_objective(plan.design.find_rate))
    lengths = [one.stop.duration_ns for one in (load, at) if isinstance(one.stop, DurationStop)]
    return seconds(lengths[-1] - lengths[0])


def taken_s(reading: StudyResults) -> float:
    """Return how long the runs of a stage took, after all was built; of one that was killed, until its last
    trial began. No pause between them counts.
    """
    starts = [one.started_unix_ns for one in reading.trials]
    total_ns = 0
    for place, run in enumerate(reading.runs):
        until = [one.started_unix_ns for one in reading.runs[place + 1 :]]
        own = [one for one in starts if run.started_unix_ns <= one < min(until, default=inf)]
        end_ns = run.ended_unix_ns or max(own, default=run.started_unix_ns)
        total_ns += max(0, end_ns - run.started_unix_ns)
    return seconds(total_ns)


def trial_s(reading: StudyResults) -> float | None:
    """Return from how long to how long trials of a stage began, as a rule; None of fewer than two."""
    starts = sorted(one.started_unix_ns for one in reading.trials)
    return seconds(round(median(b - a for a, b in pairwise(starts)))) if len(starts) > 1 else None
