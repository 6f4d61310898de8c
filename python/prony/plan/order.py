"""In which order a plan's trials run, and what is randomised in each of them without being tested.

Pure: the same plan gives the same turns in every run.

>>> Position(block=2, position=0).role
<TrialRole.SUBJECT: 'subject'>
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from random import Random

from prony.model.plan import Cell, Plan
from prony.model.trial import TrialRole
from prony.model.workload import ClosedLoop, OpenLoop, Workload

# The padding variable of STATISTICS' designs (Mytkowicz et al. 2009): up to 4 KiB moves the stack by a page.
MAX_PADDING_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Position:
    """Where a trial stands in its study."""

    block: int
    position: int
    attempt: int = 0
    role: TrialRole = TrialRole.SUBJECT


Key = tuple[int, int, int, int, TrialRole]
"""What identifies a trial in its study: cell, block, position, attempt, role."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A trial to run: its cell, and its place in the study."""

    cell: Cell
    position: Position

    @property
    def key(self) -> Key:
        """What identifies it in its study."""
        at = self.position
        return self.cell.id, at.block, at.position, at.attempt, at.role


@dataclass(frozen=True, slots=True)
class Nuisances:
    """What is randomised in a trial without being tested, so that it cannot favour a subject.

    ``draw_seed``: the seed of the draws that depend on the machine: ports and CPUs.
    """

    padding_bytes: int
    hash_seed: int
    arrival_seed: int
    draw_seed: int

    def as_text(self) -> dict[str, str]:
        """Return the values as the archive keeps them."""
        return {name: str(value) for name, value in asdict(self).items()}

    def as_environment(self) -> dict[str, str]:
        """Return the environment variables that apply them: one moves the stack, one seeds Python's
        hashes.
        """
        return {"PRONY_PADDING": "x" * self.padding_bytes, "PYTHONHASHSEED": str(self.hash_seed)}


def block_order(plan: Plan, block: int, cross_checks: Sequence[Cell] = ()) -> tuple[Cell, ...]:
    """Return the plan's cells, and the cross-checks among them, in the random order of ``block``.

    *Definition*: a randomised complete block visits every cell once. *Source*: Fisher, 1935, The Design of
    Experiments, chapter 4.
    """
    cells = [*plan.cells, *cross_checks]
    Random(f"{plan.seed}:order:{block}").shuffle(cells)  # noqa: S311 - an experiment's order, not a secret
    return tuple(cells)


def block_turns(plan: Plan, block: int, cross_checks: Sequence[Cell] = ()) -> tuple[Turn, ...]:
    """Return the turns of ``block`` in their order, positions from 0.

    Calibration is first, last and, with two cells or more, once at a random place between two of them; in a
    block that has rounds alone there is none, nor a cross-check.
    """
    is_whole = plan.is_whole(block)
    cross_checks = cross_checks if is_whole else ()
    checks = {cell.id for cell in cross_checks}
    order = [
        (cell, TrialRole.CROSS_CHECK if cell.id in checks else TrialRole.SUBJECT)
        for cell in block_order(plan, block, cross_checks)
    ]
    if plan.calibration is not None and is_whole:
        order = _calibrated(order, (plan.calibration, TrialRole.CALIBRATION), f"{plan.seed}:inside:{block}")
    return tuple(
        Turn(cell, Position(block, position, role=role)) for position, (cell, role) in enumerate(order)
    )


_Part = tuple[Cell, TrialRole]


def _calibrated(order: list[_Part], calibration: _Part, seed: str) -> list[_Part]:
    if len(order) < 2:
        return [calibration, *order, calibration]
    place = Random(seed).randrange(1, len(order))  # noqa: S311
    return [calibration, *order[:place], calibration, *order[place:], calibration]


def balanced_orders(count: int, random: Random) -> tuple[tuple[int, ...], ...]:
    """Return orders of so many, in which each comes at each place, and after each other one, equally often.

    *Definition*: a Williams design with its numbers drawn at random: of an even count so many orders, of an
    odd one twice as many. *Source*: E. J. Williams, "Experimental designs balanced for the estimation of
    residual effects of treatments", Aust. J. Sci. Res. A 2 (1949).

    >>> len(balanced_orders(4, Random(1))), len(balanced_orders(3, Random(1)))
    (4, 6)
    """
    names = random.sample(range(count), count)
    zigzag = [place // 2 if place % 2 == 0 else count - (place + 1) // 2 for place in range(count)]
    rows = [tuple(names[(shift + step) % count] for step in zigzag) for shift in range(count)]
    orders = rows if count % 2 == 0 else [*rows, *(row[::-1] for row in rows)]
    return tuple(random.sample(orders, len(orders)))


def again(turn: Turn, position: int) -> Turn:
    """Return the next attempt of a turn, at ``position`` of its block."""
    return replace(
        turn, position=replace(turn.position, position=position, attempt=turn.position.attempt + 1)
    )


def nuisances(plan: Plan, turn: Turn) -> Nuisances:
    """Return the nuisance values of one trial, from the plan's seed.

    Arrivals are the same for all subjects of a block, because these are compared; they differ between blocks.
    *Source*: Mytkowicz et al., 2009, Producing Wrong Data Without Doing Anything Obviously Wrong!
    """
    at = turn.position
    own = f"{at.block}:{turn.cell.id}:{at.position}:{at.attempt}"
    random = Random(f"{plan.seed}:nuisance:{own}")  # noqa: S311
    arrivals = Random(f"{plan.seed}:arrivals:{at.block}:{at.attempt}")  # noqa: S311
    return Nuisances(
        padding_bytes=random.randrange(MAX_PADDING_BYTES),
        hash_seed=random.randrange(2**32),
        draw_seed=random.randrange(2**32),
        arrival_seed=arrivals.randrange(2**32),
    )


def with_arrivals(workload: Workload, seed: int) -> Workload:
    """Return the workload with its arrivals, which a closed loop has none of, and the order of a mix, drawn
    from ``seed``. In one order in all trials, what its paths cost would look like a change of the server.
    """
    mix = workload.mix and replace(workload.mix, seed=seed)
    match workload.loop:
        case OpenLoop():
            return replace(workload, loop=replace(workload.loop, seed=seed), mix=mix)
        case ClosedLoop():
            return replace(workload, mix=mix)
