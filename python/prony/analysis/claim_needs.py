"""The needs of a claim, compared with what a study had. Must not know verdicts.

>>> unmet(Claim("c", "sentence", ClaimKind.VALUE, "ok_per_s", "a+*"), [])
'a+* measured'
"""

from collections.abc import Callable, Sequence

from prony.analysis.summary import CellSummary
from prony.model import Claim, ClaimKind, Placement

__all__ = ["unmet"]

_OF_GENERATORS = "generator_"


def unmet(claim: Claim, own: Sequence[CellSummary]) -> str | None:
    """Return what the claim needs and its cells ``own`` lack, in words; null: it can be tested.

    *Definition*: CPUs are those of the server, and for ``needs.generator_cpus`` those of the generator, the
    fewest over the cells' trials. A single core needs two of whichever its metric is about.
    """
    if not own:
        load = ", ".join(f"{size:g} {name}" for name, size in claim.load.items())
        return f"{claim.subject} measured" + (f" at {load}" if load else "")
    if not any(cell.total for cell in own):
        return f"{own[0].cell.subject.name}, which has no trial"
    most = max((cell.cell.load.get("connections", 0.0) for cell in own), default=0.0)
    if most < claim.needs.connections:
        return f"{claim.needs.connections:,} connections; the most here are {most:,.0f}"
    server, generator = _cpus_wanted(claim)
    return _fewer("server", server, own, _server_cpus) or _fewer("generator", generator, own, _generator_cpus)


def _cpus_wanted(claim: Claim) -> tuple[int, int]:
    """Return how many CPUs server and generator must have."""
    server, generator = claim.needs.server_cpus, claim.needs.generator_cpus
    if claim.kind is not ClaimKind.SINGLE_CORE:
        return server, generator
    if claim.metric.startswith(_OF_GENERATORS):
        return server, max(2, generator)
    return max(2, server), generator


_Cpus = Callable[[Placement, CellSummary], float]


def _fewer(what: str, wanted: int, own: Sequence[CellSummary], cpus: _Cpus) -> str | None:
    """Return that some trial had fewer CPUs than needed; a trial of unknown CPUs had at least one."""
    known = [
        cpus(trial.placement, cell)
        for cell in own
        for trial in (*cell.counted, *cell.others)
        if trial.placement is not None
    ]
    if wanted <= min(known, default=1):
        return None
    has = f"it had {min(known):g}" if known else "the number here is unknown"
    return f"{wanted} CPUs for the {what}; {has}"


def _server_cpus(placement: Placement, cell: CellSummary) -> float:
    """Return the server's CPUs, at most its quota."""
    quota = cell.cell.sandbox.cpu_quota
    many = float(len(placement.server_cpus))
    return many if quota is None else min(many, quota)


def _generator_cpus(placement: Placement, _: CellSummary) -> float:
    return float(len(placement.generator_cpus))
