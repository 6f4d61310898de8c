"""What a claim is about, as a sentence: the quantity whose interval decides. Must not know verdicts.

>>> estimand(Claim("c", "sentence", ClaimKind.RATIO, "ok_per_s", "a*", against="b*", low=2.0))
'the ratio of valid replies per second of a* to b*, block by block'
"""

from fnmatch import fnmatchcase

from prony.analysis.rates import QUALIFIED_ERROR_RATIO
from prony.metrics import METRICS
from prony.model.claims import Claim, ClaimKind
from prony.units import format_percent


def estimand(claim: Claim) -> str:
    """Return the quantity that the claim is tested on, in words."""
    of = f" of the role {claim.role}" if claim.role else ""
    metric, own = f"{METRICS[claim.metric].title}{of}", _own(claim)
    match claim.kind:
        case ClaimKind.HIGHEST | ClaimKind.LOWEST | ClaimKind.RATIO:
            words = f"the ratio of {metric} of {own} to {_rival(claim)}, block by block"
        case ClaimKind.STEADIER:
            of = f"{metric} from its median over blocks, of {own} to {_rival(claim)}"
            words = f"the ratio of the mean distance of {of}"
        case ClaimKind.GROWS:
            words = f"the growth of {metric} of {own} from the lightest to the heaviest load, in each block"
        case ClaimKind.SINGLE_CORE:
            words = f"the mean of {metric} of {own} over blocks, with more than one core"
        case _ if claim.counts_trials:
            words = f"the share of trials of {own} in which {_failing(claim)}"
        case _:
            words = f"the mean of {metric} of {own} over blocks"
    return words


def _own(claim: Claim) -> str:
    return claim.engine if claim.engine != "*" else _each(claim.subject)


def _rival(claim: Claim) -> str:
    if claim.against_engine:
        return (
            "each other generator"
            if fnmatchcase(claim.engine, claim.against_engine)
            else claim.against_engine
        )
    if claim.against_load and claim.against in ("*", claim.subject):
        return "itself under " + ", ".join(f"{size:g} {name}" for name, size in claim.against_load.items())
    return _each(claim.against) if claim.against != "*" else "each other one under the same load"


def _each(glob: str) -> str:
    return "each subject" if glob == "*" else glob


def _failing(claim: Claim) -> str:
    if claim.kind is not ClaimKind.FAILS:
        return f"{_bounded(claim)} of the requests fail"
    least = format_percent(QUALIFIED_ERROR_RATIO if claim.low is None else claim.low)
    against = "" if claim.against == "*" else f", against that of {claim.against}"
    return f"more than {least} of the requests fail{against}"


def _bounded(claim: Claim) -> str:
    low, high = (None if one is None else format_percent(one) for one in (claim.low, claim.high))
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"
