"""``prony load A --compare B``: two loads in alternating short windows."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from prony.analysis.load_pairs import LoadPair, compare_load_pairs
from prony.cli.load_progress import LoadProgress
from prony.cli.options import write_output
from prony.engine.local import LocalEngine
from prony.errors import ExitCode
from prony.faces.json_load_pairs import load_pairs_json
from prony.faces.terminal import TerminalReporter
from prony.model import Address, EngineChoice, Limited, Recording, Workload
from prony.reading.load import read_load
from prony.report.load_pairs import ComparedLoads, load_pairs_document
from prony.seat import EngineSeat

__all__ = ["LoadSide", "PairedLoads", "compare_loads"]


@dataclass(frozen=True, slots=True)
class LoadSide:
    """One of two loads: as typed, and in full."""

    url: str
    workload: Workload
    address: Address


@dataclass(frozen=True, slots=True)
class PairedLoads:
    """Two loads to compare, in ``pairs`` of windows whose order the seed sets."""

    first: LoadSide
    second: LoadSide
    engine: EngineChoice
    pairs: int
    seed: int


def compare_loads(asked: PairedLoads, json_to: str | None) -> int:
    """Run both in alternating windows, show the comparison, and return the exit status."""
    dropped: list[Recording] = []
    pairs = list(_pairs(asked, dropped))
    found = compare_load_pairs(pairs)
    windows = [one for pair in pairs for one in (pair.first, pair.second)]
    limited = sum(read_load(one).verdict.limited is not Limited.NO for one in windows)
    compared = ComparedLoads(
        asked.first.url, asked.second.url, asked.seed, asked.pairs, found, limited, len(dropped)
    )
    if json_to != "-":
        TerminalReporter().write_report(load_pairs_document(compared))
    if json_to is not None:
        write_output(json.dumps(load_pairs_json(compared), indent=2), json_to)
    if dropped:
        return ExitCode.INTERRUPTED
    # A side that answered nothing has not been measured.
    answered = all(side.requests > side.errors for side in (found.first, found.second))
    return ExitCode.DONE if answered else ExitCode.COULD_NOT_MEASURE


def _pairs(asked: PairedLoads, dropped: list[Recording]) -> Iterator[LoadPair]:
    """Yield the pairs that ran to their end; ``dropped`` gets the windows of one that was interrupted."""
    order = Random(asked.seed)  # noqa: S311 - an experiment's order, not a secret
    for number in range(asked.pairs):
        second_began = order.random() < 0.5
        sides = (asked.second, asked.first) if second_began else (asked.first, asked.second)
        windows = []
        for side in sides:
            windows.append(_window(side, asked.engine, f"pair {number + 1} of {asked.pairs}  "))
            if windows[-1].window.interrupted:
                dropped.extend(windows)
                return
        first, second = reversed(windows) if second_began else windows
        yield LoadPair(first, second, second_began)


def _window(side: LoadSide, engine: EngineChoice, where: str) -> Recording:
    with LoadProgress(side.workload, where) as progress:
        return LocalEngine(engine).run(side.workload, side.address, EngineSeat(cpus=()), progress.on_event)
