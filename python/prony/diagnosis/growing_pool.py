"""D37: the server was still starting workers while it was measured.

*Source*: the sampler; servers that start processes on demand, such as Apache's prefork and flup's.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Meaning, Symptom
from prony.diagnosis.shared import CHANGING, LONGER_WARM_UP
from prony.figures.resources import Turnover, turnover

WARM_UP_LONGER = Advice("warm up longer", "use a longer warm-up, or start the pool at its full size")
POOL_GREW = Symptom(
    "pool grew",
    Meaning(Bearing.ADDS, CHANGING, LONGER_WARM_UP, WARM_UP_LONGER),
    "{more} more processes of the role {role} ran at the end of the window than at its beginning: the"
    " pool was still growing",
    shared="its pool of processes was still growing within the window",
)
"""``more`` processes of the name ``role`` at the window's end than at its beginning."""


_SERVING = ("server", "worker", "frontend-worker")


def growing_pool(evidence: Evidence) -> list[Finding]:
    """Return a finding for each role with more processes at the window's end than at its beginning, where
    some of those that were started were seen again: else they live for one request.

    Likely: only one was, which may be a helper; or others ended, so that it may only have replaced some.
    """
    found = turnover(evidence.samples)
    return [
        Finding(POOL_GREW, _sure(one), {"more": _more(one)}, {"role": role})
        for role, one in found.items()
        if role in _SERVING and one.lasting and _more(one) > 0
    ]


def _more(one: Turnover) -> int:
    return one.started - one.ended


def _sure(one: Turnover) -> Confidence:
    return Confidence.CERTAIN if one.lasting > 1 and not one.ended else Confidence.LIKELY
