"""D32: subjects that are compared do not send the same: who sends fewer bytes has less to do.

The only rule that needs more than one trial: the mean sizes of all subjects' replies under one load. It is no
limit of a subject, but a part of a difference between two. *Source*: RFC 9110, 6.3 and 8: a server chooses
which header fields it sends.

>>> unequal_work(100.0, {"b": 105.0}) is None
True
>>> unequal_work(100.0, {"b": 105.0, "c": 250.0}).names
{'other': 'c'}
"""

from collections.abc import Mapping

from prony.diagnosis.evidence import Confidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom

OF_OTHER_WORK = Consequence(
    "of other work too", "a part of a difference in speed may be of the work, not of the server"
)
SAME_REPLIES = Experiment(
    "the same replies", "measure replies of one size; what then differs is the server's"
)
SEND_THE_SAME = Advice(
    "send the same", "let all send the same page and header fields, or say it beside the figures"
)
UNEQUAL_WORK = Symptom(
    "unequal work",
    Meaning(Bearing.ADDS, OF_OTHER_WORK, SAME_REPLIES, SEND_THE_SAME),
    "its replies have {own_bytes:bytes}, heads included, and those of {other} {other_bytes:bytes}",
)
"""``own_bytes`` of its replies, heads included, and ``other_bytes`` of those of the subject named
    ``other``."""


ALIKE = 1.1
"""Up to such a ratio of their sizes replies are of one size: `Date` and `Server` fields differ by so much."""


def unequal_work(own_bytes: float, others: Mapping[str, float]) -> Finding | None:
    """Return a finding about a subject whose replies are a tenth larger or smaller than another's; None: none
    is. ``others``: mean bytes of their replies, heads included, by name; that which differs most is named.

    Likely: the sizes are counted, but not how much of a difference in speed they explain.
    """
    if not others or own_bytes <= 0 or min(others.values()) <= 0:
        return None
    name = max(others, key=lambda other: (_apart(own_bytes, others[other]), other))
    if _apart(own_bytes, others[name]) <= ALIKE:
        return None
    return Finding(
        UNEQUAL_WORK,
        Confidence.LIKELY,
        {"own_bytes": own_bytes, "other_bytes": others[name]},
        {"other": name},
        rule="D32",
    )


def _apart(one: float, another: float) -> float:
    return max(one, another) / min(one, another)
