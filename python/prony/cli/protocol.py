"""The options of a study's protocol: how many blocks, which looks, a search for rates, what is checked."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prony.cli.options import duration_of
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.model import Cell, Plan, Precision

__all__ = ["ProtocolOptions", "cross_checks_of", "with_protocol"]

LOOKS = (10, 15, 20)
"""After how many blocks a study may look at its figures: planned, since each look costs some confidence."""


@dataclass(frozen=True, slots=True)
class ProtocolOptions:
    """What was typed; null: nothing."""

    precision: str | None = None
    max_repeats: int | None = None
    budget: str | None = None
    find_rate: str | None = None
    cross_check: str | None = None
    repeats: int | None = None


def with_protocol(plan: "Plan", typed: ProtocolOptions) -> "Plan":
    """Return the plan with its looks, or its search.

    *Errors*: UsageError for values that mean nothing, or options that contradict each other.
    """
    if typed.precision is None:
        _refuse(("--max-repeats", typed.max_repeats), ("--budget", typed.budget), without="--precision 2%")
    elif typed.repeats is not None:
        raise UsageError(
            f"`--repeats {typed.repeats}`: with `--precision` the figures decide how many blocks there are",
            hint="--max-repeats 15 bounds them",
        )
    if typed.find_rate is None:
        return plan if typed.precision is None else _looking(plan, typed.precision, typed)
    if typed.precision is not None or typed.cross_check is not None:
        other = "--precision" if typed.precision is not None else "--cross-check"
        raise UsageError(f"`{other}` and `--find-rate`: expected one of them", hint="run them one by one")
    return _searching(plan, typed.find_rate)


def _refuse(*given: tuple[str, object], without: str) -> None:
    for option, value in given:
        if value is not None:
            raise UsageError(f"`{option} {value}`: bounds looks, and there are none", hint=f"add {without}")


def _looking(plan: "Plan", text: str, typed: ProtocolOptions) -> "Plan":
    precision = _precision(text, typed)
    return replace(plan, blocks=precision.looks[-1], design=replace(plan.design, precision=precision))


def _precision(text: str, typed: ProtocolOptions) -> "Precision":
    from prony.model import Precision
    from prony.units import parse_percent

    try:
        target = parse_percent(text)
    except ValueError as error:
        raise UsageError(f"`--precision {text}`: {error}") from None
    if not 0 < target < 1:
        raise UsageError(f"`--precision {text}`: expected more than 0 % and less than 100 %, such as `2%`")
    most = LOOKS[-1] if typed.max_repeats is None else typed.max_repeats
    if most not in LOOKS:
        planned = ", ".join(map(str, LOOKS[:-1]))
        raise UsageError(
            f"`--max-repeats {most}`: a study looks only after {planned} and {LOOKS[-1]} blocks; "
            "expected one of them"
        )
    budget = None if typed.budget is None else duration_of("--budget", typed.budget)
    return Precision(target, tuple(look for look in LOOKS if look <= most), budget)


def _searching(plan: "Plan", objective: str) -> "Plan":
    from prony.study.rates import searching

    try:
        return searching(plan, objective)
    except ValueError as error:
        raise UsageError(f"`--find-rate`: {error}") from None


def cross_checks_of(plan: "Plan", names: str | None) -> "tuple[Cell, ...]":
    """Return the cells that other generators measure beside the plan's.

    *Errors*: UsageError for a generator that there is not.
    """
    if names is None:
        return ()
    from prony.cross_check import cross_check_cells
    from prony.engine import open_engine
    from prony.model import EngineChoice

    engines = tuple(name.strip() for name in names.split(",") if name.strip())
    for name in engines:
        open_engine(EngineChoice(name))
    return cross_check_cells(plan, engines)
