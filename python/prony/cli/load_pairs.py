"""``prony load A --compare B``: two loads in alternating short windows."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from time import monotonic

from prony.cli.load_progress import SAY_EVERY_S, LoadProgress
from prony.cli.options import write_answer
from prony.cli.talk import say
from prony.core.errors import ExitCode
from prony.core.units import format_duration
from prony.engine.generator import Engine
from prony.figures.load_pairs import LoadPair, LoadSide, PairedLoads, compare_load_pairs
from prony.model.recording import Recording
from prony.model.sandbox import EngineSeat
from prony.model.workload import DurationStop, OpenLoop
from prony.plan.order import with_arrivals
from prony.report.compare import compare_document
from prony.study.rounds import LEAD_NS, WINDOW_NS, mean_reply_ns, why_long


def why_long_windows(sides: Sequence[LoadSide], engine: Engine) -> str | None:
    """Return why windows of half a second do not show what long ones do, by the loads and a first look at
    each side; None: they do.

    *Errors*: KeyboardInterrupt when the look is interrupted.
    """
    for side in sides:
        if isinstance(side.workload.loop, OpenLoop):
            return "a percentile of an open loop needs many requests"
        if reason := why_long(side.workload, with_tls=side.address.tls is not None):
            return reason
    for side in sides:
        load = replace(side.workload, stop=DurationStop(WINDOW_NS), warmup_ns=LEAD_NS)
        seen = _window(replace(side, workload=load), engine, "first look  ")
        if seen.window.interrupted:
            raise KeyboardInterrupt
        if mean_reply_ns(load.loop, seen, WINDOW_NS) > LEAD_NS:
            return f"replies of {side.url} take more than {format_duration(LEAD_NS)}"
    return None


def compare_loads(asked: PairedLoads, engine: Engine, json_to: str | None) -> int:
    """Run both in alternating windows, show the comparison, and return the exit status."""
    dropped: list[Recording] = []
    pairs = list(_pairs(asked, engine, dropped))
    found = compare_load_pairs(asked, pairs, len(dropped))
    write_answer(found, lambda: compare_document(found), json_to)
    if dropped:
        return ExitCode.INTERRUPTED
    # A side that answered nothing has not been measured.
    answered = all(side.requests > side.errors for side in found.sides)
    return ExitCode.DONE if answered else ExitCode.COULD_NOT_MEASURE


def _pairs(asked: PairedLoads, engine: Engine, dropped: list[Recording]) -> Iterator[LoadPair]:
    """Yield the pairs that ran to their end; ``dropped`` gets the windows of one that was interrupted."""
    order = Random(asked.seed)  # noqa: S311 - an experiment's order, not a secret
    said_s = monotonic()
    for number in range(asked.pairs):
        if not sys.stderr.isatty() and monotonic() - said_s >= SAY_EVERY_S:
            said_s = monotonic()
            say(f"pair {number + 1} of {asked.pairs}")
        second_began = order.random() < 0.5
        sides = (asked.second, asked.first) if second_began else (asked.first, asked.second)
        windows = []
        for one in sides:
            # With one seed each window would ask for the same first requests of a mix.
            side = replace(one, workload=with_arrivals(one.workload, asked.seed + number))
            windows.append(_window(side, engine, f"pair {number + 1} of {asked.pairs}  "))
            if windows[-1].window.interrupted:
                dropped.extend(windows)
                return
        first, second = reversed(windows) if second_began else windows
        yield LoadPair(first, second, second_began)


def _window(side: LoadSide, engine: Engine, where: str) -> Recording:
    with LoadProgress(side.workload, where) as progress:
        return engine.run(side.workload, side.address, EngineSeat(cpus=()), progress.on_event)
