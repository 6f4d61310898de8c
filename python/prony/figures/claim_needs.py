"""The needs of a claim, compared with the cells of a plan or of a run.

>>> unmet(Claim("c", "sentence", ClaimKind.VALUE, "ok_per_s", "a+*"), Tested((), 5, lambda cell: None)).words
'a+* measured'
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from math import inf

from prony.core.units import seconds
from prony.figures.missing import Missing
from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.figures.summary import CellSummary
from prony.model.plan import Cell, Claim, ClaimKind, Plan
from prony.model.sandbox import SandboxChoice
from prony.model.subject import is_named
from prony.model.workload import CountStop

_OF_GENERATORS = "generator_"
_COMPARING = (ClaimKind.HIGHEST, ClaimKind.LOWEST, ClaimKind.RATIO, ClaimKind.STEADIER)
_OF_BLOCKS = (*_COMPARING, ClaimKind.GROWS)
# As many as the interval of a ratio of spreads needs at 95 %.
_OF_SPREADS = 8


class Lack(StrEnum):
    """What would have to be another one for a claim to be testable."""

    PROFILE = "profile"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class UnmetNeed:
    """A need that is not met, in words, and what lacks it."""

    words: str
    of: Lack = Lack.PROFILE


@dataclass(frozen=True, slots=True)
class Cpus:
    """How many CPUs server and generator have, and both together: the fewest of all trials."""

    server: float
    generator: float
    together: float = 0


@dataclass(frozen=True, slots=True)
class Tested:
    """Cells, their blocks, and the CPUs of each; null: not known."""

    cells: Sequence[Cell]
    blocks: int
    cpus: Callable[[Cell], Cpus | None]


def planned(plan: Plan, cpus: Cpus) -> Tested:
    """Return what a plan will test on a machine that gives server and generator so many CPUs."""
    return Tested(plan.cells, plan.blocks, lambda cell: _limited(cpus, cell.sandbox))


def tested(claim: Claim, cells: Sequence[CellSummary]) -> Tested:
    """Return what a run has tested: of its blocks, the most of any of the claim's own cells."""
    known = {cell.cell.id: cell for cell in cells}
    blocks = max((cell.total for cell in cells if is_claimed(claim, cell.cell)), default=0)
    return Tested([cell.cell for cell in cells], blocks, lambda cell: _of_trials(known[cell.id]))


def blocks_needed(claim: Claim) -> int:
    """Return the fewest blocks of which the claim can be tested."""
    least = LEAST_BLOCKS if claim.kind in _OF_BLOCKS else 0
    return max(_OF_SPREADS if claim.kind is ClaimKind.STEADIER else least, claim.needs.blocks)


def unmet(claim: Claim, what: Tested) -> UnmetNeed | None:
    """Return what the claim needs and ``what`` lacks; None: it can be tested.

    *Definition*: CPUs are those of the server, and for ``needs.generator_cpus`` those of the generator. A
    single core needs two of whichever its metric is about. Window, requests and time-out must suffice in the
    claim's own cells and in those that they are compared with.
    """
    own = [cell for cell in what.cells if is_claimed(claim, cell)]
    if not own:
        load = ", ".join(f"{size:g} {name}" for name, size in claim.load.items())
        return UnmetNeed(f"{claim.subject} measured" + (f" at {load}" if load else ""))
    compares = claim.kind in _COMPARING or (claim.kind is ClaimKind.FAILS and claim.against != "*")
    every = what.cells if compares else ()
    rivals = [other for other in every if any(is_rival(claim, cell, other) for cell in own)]
    return (
        _alone(claim, rivals)
        or _too_few_connections(claim, own)
        or _too_short(claim, [*own, *rivals])
        or _too_few_requests(claim, [*own, *rivals])
        or _too_few_blocks(claim, what.blocks)
        or _too_few_cpus(claim, own, what)
    )


def _alone(claim: Claim, rivals: Sequence[Cell]) -> UnmetNeed | None:
    if rivals or claim.kind not in _COMPARING:
        return None
    load = ", ".join(f"{size:g} {name}" for name, size in claim.against_load.items())
    return UnmetNeed(f"{_other(claim)} to compare with" + (f" at {load}" if load else ""))


def _other(claim: Claim) -> str:
    glob = claim.against_engine or claim.against
    return "another one" if glob == "*" else glob


def _too_few_connections(claim: Claim, own: Sequence[Cell]) -> UnmetNeed | None:
    most = max(cell.load.get("connections", 0.0) for cell in own)
    if most >= claim.needs.connections:
        return None
    return UnmetNeed(f"{claim.needs.connections:,} connections; the most here are {most:,.0f}")


def _too_short(claim: Claim, cells: Sequence[Cell]) -> UnmetNeed | None:
    loads = [cell.workload for cell in cells]
    windows = [load.stop.duration_ns for load in loads if not isinstance(load.stop, CountStop)]
    for what, wanted, found in (
        ("window", claim.needs.duration_ns, windows),
        ("time-out", claim.needs.timeout_ns, [load.timeout_ns for load in loads]),
    ):
        if found and min(found) < wanted:
            return UnmetNeed(f"a {what} of {seconds(wanted):g} s; it has {seconds(min(found)):g} s")
    return None


def _too_few_requests(claim: Claim, cells: Sequence[Cell]) -> UnmetNeed | None:
    stops = [cell.workload.stop for cell in cells]
    fewest = min((stop.requests for stop in stops if isinstance(stop, CountStop)), default=None)
    if fewest is None or fewest >= claim.needs.requests:
        return None
    return UnmetNeed(f"{claim.needs.requests:,} requests; it has {fewest:,}")


def _too_few_blocks(claim: Claim, blocks: int) -> UnmetNeed | None:
    least = blocks_needed(claim)
    return UnmetNeed(f"{least} blocks; it has {blocks}") if blocks < least else None


def _too_few_cpus(claim: Claim, own: Sequence[Cell], what: Tested) -> UnmetNeed | None:
    server, generator = cpus_wanted(claim)
    known = [cpus for cell in own if (cpus := what.cpus(cell)) is not None]
    fewest = (
        ("server", server, [cpus.server for cpus in known]),
        ("generator", generator, [cpus.generator for cpus in known]),
    )
    for side, wanted, found in fewest:
        # What is not known is at least one.
        if wanted > min(found, default=1):
            has = f"it has {min(found):g}" if found else "the number here is unknown"
            shared = min((cpus.together for cpus in known), default=0)
            cure = f"; `--share-cpus` gives it {shared:g}" if shared >= wanted else ""
            return UnmetNeed(f"{wanted} CPUs for the {side}; {has}{cure}", Lack.MACHINE)
    return None


def more_with_cpus(claim: Claim, cell: CellSummary) -> float:
    """Return the factor by which a cell's throughput can be higher at most with the CPUs that the claim
    needs; 1 where it had them, infinite where nobody knows.

    *Definition*: needed / busy CPUs of whichever side had too few, by the trial that kept the fewest busy,
    / (1 - the share of its requests that failed). At 81 us of CPU a request, two CPUs make at most 24,700 a
    second.
    *Assumptions*: on more CPUs a request costs as much CPU time, one that fails no more than one that is
    answered, and no server is slower.
    """
    has = _of_trials(cell) or Cpus(1, 1)
    sides = zip(cpus_wanted(claim), (has.server, has.generator), _BUSY, strict=True)
    factors = [_most(cell, wanted, metric) for wanted, own, metric in sides if wanted > own]
    return min(factors, default=1.0)


_BUSY = ("cpu_percent", "generator_cpu_percent")


def _most(cell: CellSummary, wanted: int, metric: str) -> float:
    busy = [trial.metrics.get(metric) for trial in cell.counted]
    known = [float(value) for value in busy if value is not None and not isinstance(value, Missing)]
    served = 1 - (cell.error_ratio or 0.0)
    if not known or len(known) < len(busy) or min(known) * served <= 0:
        return inf
    return max(1.0, 100.0 * wanted / min(known) / served)


def cpus_wanted(claim: Claim) -> tuple[int, int]:
    """Return how many CPUs server and generator must have."""
    server, generator = claim.needs.server_cpus, claim.needs.generator_cpus
    if claim.kind is not ClaimKind.SINGLE_CORE:
        return server, generator
    if claim.metric.startswith(_OF_GENERATORS):
        return server, max(2, generator)
    return max(2, server), generator


def _of_trials(cell: CellSummary) -> Cpus | None:
    """Return the fewest CPUs of the cell's trials; None where no trial knows its own."""
    found = [one.placement for one in (*cell.counted, *cell.others) if one.placement is not None]
    if not found:
        return None
    server = min(len(one.server_cpus) for one in found)
    generator = min(len(one.generator_cpus) for one in found)
    together = min(len({*one.server_cpus, *one.generator_cpus}) for one in found)
    return _limited(Cpus(server, generator, together), cell.cell.sandbox)


def _limited(cpus: Cpus, sandbox: SandboxChoice) -> Cpus:
    """Return the CPUs with those of the server at most its quota."""
    quota = sandbox.cpu_quota
    if quota is None:
        return cpus
    return replace(cpus, server=min(cpus.server, quota), together=min(cpus.together, quota))


# --- the subject of a claim -------------------------------------------------------------------------------


def is_claimed(claim: Claim, cell: Cell) -> bool:
    """Return whether a cell is one of the claim's own."""
    return (
        claim.is_about(cell.subject.name)
        and is_named(cell.subject.name, claim.subject)
        and fnmatchcase(cell.engine.name, claim.engine)
        and cell.is_under(claim.load)
    )


def is_rival(claim: Claim, cell: Cell, other: Cell) -> bool:
    """Return whether ``cell``, one of the claim's own, is compared with the cell ``other``.

    *Definition*: those of other cells that fit ``against``, with the same generator (else
    ``against_engine``) and the same load (else ``against_load``). Where ``subject`` and ``against`` each
    begin with their only ``*``, as in `*+falcon` against `*+flask`, it stands for the same text in both.
    """
    return (
        not is_claimed(claim, other)
        and claim.is_about(other.subject.name)
        and is_named(other.subject.name, claim.against)
        and _alike(claim, cell.subject.name, other.subject.name)
        and _same_engine(claim, cell, other)
        and _same_load(claim, cell, other)
    )


def claimed(claim: Claim, cells: Sequence[CellSummary]) -> list[CellSummary]:
    """Return the claim's own cells."""
    return [cell for cell in cells if is_claimed(claim, cell.cell)]


def rivals(claim: Claim, cell: CellSummary, cells: Sequence[CellSummary]) -> list[CellSummary]:
    """Return the cells that ``cell``, one of the claim's own, is compared with."""
    return [other for other in cells if is_rival(claim, cell.cell, other.cell)]


def _star(glob: str, name: str) -> str | None:
    """Return what the leading ``*`` of a glob stands for in ``name``; None if there are more wildcards."""
    end = glob.removeprefix("*")
    if end in ("", glob) or "*" in end:
        return None
    return name.removesuffix(end) if name.endswith(end) else None


def _alike(claim: Claim, name: str, other: str) -> bool:
    mine, theirs = _star(claim.subject, name), _star(claim.against, other)
    return mine is None or theirs is None or mine == theirs


def _same_engine(claim: Claim, cell: Cell, other: Cell) -> bool:
    wanted = claim.against_engine
    return fnmatchcase(other.engine.name, wanted) if wanted else other.engine.name == cell.engine.name


def _same_load(claim: Claim, cell: Cell, other: Cell) -> bool:
    if claim.against_load:
        return other.is_under(claim.against_load)
    # The number of threads belongs to the generator: another generator has another number.
    load = {name: size for name, size in cell.load.items() if name != "threads"}
    return other.is_under(load if claim.against_engine else cell.load)


Place = tuple[int, int]
"""A session and a block in it."""


def by_block(cell: CellSummary, claim: Claim) -> dict[Place, float]:
    """Return the claim's metric by session and block, of the processes of its role where it names one."""
    found = {}
    for trial in cell.counted:
        metrics = trial.roles.get(claim.role, {}) if claim.role else trial.metrics
        value = metrics.get(claim.metric)
        if value is not None and not isinstance(value, Missing):
            found[trial.session, trial.block] = float(value)
    return found


def unsampled(claim: Claim, cell: CellSummary) -> str | None:
    """Return that more CPU may be that of the claim's role, because no sample shows whose it was; None if it
    is known, or the claim is not about it.
    """
    more = cell.without_role(claim.role) if claim.metric == "cpu_percent" else 0.0
    if not more:
        return None
    return f"up to {more:.0f} % of a core more may be its, of processes that lived between two samples"


def where(cell: CellSummary) -> str:
    """Return subject and load in words; the name of a generator says its load."""
    if cell.name != cell.cell.subject.name:
        return cell.name
    return f"{cell.name}, {cell.cell.workload.describe()}"
