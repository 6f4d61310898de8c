"""The cells of a plan again, under other generators: their figures are compared with those of Prony's engine.

Pure. Must not know how a generator works.

>>> cross_check_cells(Plan("p", "", "", "quick", (), 1, 1), ("wrk",))
()
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from prony.errors import UsageError
from prony.model.plan import Cell, Plan
from prony.model.workload import EngineChoice


def with_generator(plan: Plan, choice: EngineChoice) -> Plan:
    """Return the plan with one more generator: under each load of each subject, once.

    A program whose command does not name the connections or the rate sends one load: of those of the plan the
    one that subjects are compared at, else the first.
    """
    loads: dict[object, Cell] = {}
    for cell in plan.cells:
        loads.setdefault((cell.subject.name, cell.workload), cell)
    cells = list(loads.values())
    if choice.command and not any(name in choice.command for name in ("{connections}", "{rate}")):
        primary = [cell for cell in cells if cell.is_under(plan.design.primary)] or cells
        cells = list({cell.subject.name: cell for cell in reversed(primary)}.values())[::-1]
    taken = [cell.id for cell in (*plan.cells, *((plan.calibration,) if plan.calibration else ()))]
    added = (
        replace(cell, id=number, engine=replace(choice, pacing=cell.engine.pacing))
        for number, cell in enumerate(cells, start=max(taken, default=-1) + 1)
    )
    return replace(plan, cells=(*plan.cells, *added))


_UNDER_ALL: Mapping[str, Collection[float]] = MappingProxyType({})


def cross_check_cells(
    plan: Plan, engines: Sequence[str], under: Mapping[str, Collection[float]] = _UNDER_ALL
) -> tuple[Cell, ...]:
    """Return each cell of the built-in engine again for each of ``engines``, with ids of its own.

    ``under``: only cells whose load has one of these values, by the keys of `Cell.load`.

    They belong to the plan's blocks, like its own cells: only trials of one block are compared.

    *Errors*: UsageError when an engine is named twice, or is the built-in one.
    """
    own = EngineChoice().name
    if own in engines or len(set(engines)) < len(engines):
        raise UsageError(
            f"`--cross-check {','.join(engines)}` checks nothing; "
            f"expected other generators than `{own}`, each once"
        )
    cells = [cell for cell in plan.cells if cell.engine.name == own and _is_under(cell, under)]
    taken = [cell.id for cell in (*plan.cells, *((plan.calibration,) if plan.calibration else ()))]
    pairs = [(cell, name) for name in engines for cell in cells]
    return tuple(
        replace(cell, id=number, engine=replace(cell.engine, name=name))
        for number, (cell, name) in enumerate(pairs, start=max(taken, default=-1) + 1)
    )


def _is_under(cell: Cell, under: Mapping[str, Collection[float]]) -> bool:
    return all(cell.load.get(name) in values for name, values in under.items())
