"""What runs came to: medians, ratios with intervals, as JSON and as Markdown."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import comb
from pathlib import Path
from statistics import median
from textwrap import fill

from peers.cells import CELLS, Cell, Measure
from peers.own import PRONY
from peers.runs import Run

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
LEVEL = 0.95
# More than that of a CPU in others' hands, and figures are of no use.
MOST_OTHERS = 0.1
_WIDTH = 120
_CELLS = {cell.name: cell for cell in CELLS}


@dataclass(frozen=True)
class Result:
    """One cell: the runs of each program, one for each block; why others have none."""

    cell: str
    seconds: float
    runs: Mapping[str, Sequence[Run]]
    without: Mapping[str, str]

    def ratios(self, program: str) -> list[float]:
        """Return Prony's figure as a multiple of the program's, for each block."""
        own, other = self.runs.get(PRONY, ()), self.runs[program]
        return [mine.value / its.value for mine, its in zip(own, other, strict=False)]


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return an interval for the median; null: there are too few values.

    *Definition*: from the k-th smallest to the k-th largest, with the largest k for which so many or fewer
    heads than k - 1 of n tosses have a probability of at most 2.5 %.
    *Assumptions*: values are independent, and have one median.
    *Source*: W. J. Conover, "Practical Nonparametric Statistics" (1999), section 3.2.

    >>> interval([float(value) for value in range(1, 16)])
    (4.0, 12.0)
    """
    count, below, rank = len(values), 0.0, 0
    while below + comb(count, rank) / 2**count <= (1 - LEVEL) / 2:
        below += comb(count, rank) / 2**count
        rank += 1
    ordered = sorted(values)
    return (ordered[rank - 1], ordered[count - rank]) if rank else None


def line(result: Result, program: str) -> str:
    """Return a program's row, for a terminal."""
    found = figures(result, program)
    return f"  {program:12} {found.value:>10}  {found.rate:>9} /s  {found.ratio}"


@dataclass(frozen=True)
class Figures:
    """A row in words."""

    value: str
    rate: str
    ratio: str


def figures(result: Result, program: str) -> Figures:
    """Return a program's row under a cell."""
    runs = result.runs[program]
    value = median(run.value for run in runs)
    is_first = _CELLS[result.cell].measure is Measure.FIRST
    rates = [run.rate for run in runs if run.rate is not None]
    return Figures(
        f"{value:.0f} ms" if is_first else f"{value:,.2f} µs",
        f"{median(rates):,.0f}" if rates else "—",
        "" if program == PRONY else ratio_words(result.ratios(program)),
    )


def ratio_words(ratios: Sequence[float]) -> str:
    """Return a median with its interval."""
    if not ratios:
        return "—"
    bounds = interval(ratios)
    around = f" [{bounds[0]:.2f}, {bounds[1]:.2f}]" if bounds else " (too few pairs)"
    return f"{median(ratios):.2f}{around}"


def busy_cells(results: Iterable[Result]) -> list[str]:
    """Return the cells beside which others had more than a tenth of a CPU in half of the runs."""
    return [
        one.cell
        for one in results
        if one.runs and median(run.others for runs in one.runs.values() for run in runs) > MOST_OTHERS
    ]


# --- JSON -------------------------------------------------------------------------------------------------


def write(path: Path, machine: Mapping[str, object], results: Sequence[Result]) -> None:
    """Write results, whole or not at all."""
    document = {"machine": machine, "cells": [asdict(one) for one in results]}
    draft = path.with_name(f"{path.name}.part")
    draft.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)


def read(paths: Sequence[Path]) -> tuple[Mapping[str, object], Sequence[Result]]:
    """Return the machine and the results of several files; of one cell, the last."""
    machine: Mapping[str, object] = {}
    found: dict[str, Result] = {}
    for path in paths:
        document = json.loads(path.read_text(encoding="utf-8"))
        machine = document["machine"]
        for one in document["cells"]:
            runs = {name: [Run(**run) for run in runs] for name, runs in one["runs"].items()}
            found[one["cell"]] = Result(one["cell"], one["seconds"], runs, one["without"])
    return machine, [found[cell.name] for cell in CELLS if cell.name in found]


# --- Markdown ---------------------------------------------------------------------------------------------


def table(machine: Mapping[str, object], results: Sequence[Result]) -> str:
    """Return everything as Markdown."""
    groups: dict[str, list[Result]] = {}
    for one in results:
        groups.setdefault(_CELLS[one.cell].group, []).append(one)
    tables = [f"### {group}\n\n{rows(members)}" for group, members in groups.items()]
    lacks = f"### What could not be run\n\n{absences(results)}"
    return "\n\n".join([machine_words(machine), *tables, lacks])


def machine_words(machine: Mapping[str, object]) -> str:
    """Return the description of the machine, and what ran on it."""
    return "\n".join(item(f"{name}: {value}") for name, value in machine.items())


def item(text: str) -> str:
    """Return a line of a list, folded as pages are."""
    return fill(f"- {text}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def rows(results: Sequence[Result]) -> str:
    """Return the table of a group."""
    is_first = _CELLS[results[0].cell].measure is Measure.FIRST
    figure = "until its first request" if is_first else "CPU a request"
    lines = [f"| load | generator | {figure} | requests/s | Prony / it | pairs |", f"|{'---|' * 6}"]
    for result in results:
        cell: Cell = _CELLS[result.cell]
        for program, runs in result.runs.items():
            found = figures(result, program)
            cells = (cell.words, program, found.value, found.rate, found.ratio, str(len(runs)))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def absences(results: Sequence[Result]) -> str:
    """Return who could not run what, by program and reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for program, reason in result.without.items():
            reasons.setdefault((program, reason), []).append(result.cell)
    names = [one.cell for one in results]
    lines = []
    for (program, reason), cells in sorted(reasons.items()):
        where = "" if cells == names else f" ({', '.join(cells)})"
        lines.append(item(f"{program}: {reason}{where}"))
    return "\n".join(lines) or "Nothing."


def page_with(page: str, text: str) -> str:
    """Return a page with this between its markers.

    *Errors*: ValueError, when it has none.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for figures: {BEGIN} and {END}")
    return f"{head}{begin}\n\n{text}\n\n{end}{tail}"
