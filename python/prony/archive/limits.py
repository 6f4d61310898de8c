"""Limits in archives, as values: the only place that reads them from sentences.

Engines before 0.2 say what limited them as a sentence (`limited`), later ones of these also as a kind and its
number (`limit`). No other module parses the sentence.

>>> words = "a worker thread was busy 95 % of the time"
>>> decode_verdict(GeneratorCost(words, None, None, None, None, None)).strongest.share
0.95
"""

import re
from collections.abc import Mapping

from prony.model import GeneratorVerdict, Limit, Limited, LimitKind
from prony.model.recording import GeneratorCost
from prony.model.shapes import encode
from prony.units import MILLISECOND_NS

__all__ = ["decode_limit_states", "decode_step_limits", "decode_verdict"]

# No longer than a number that somebody measured: beyond, it might be infinite.
_NUMBER = r"(\d{1,15}(?:\.\d{1,15})?)"
_BUSY = re.compile(rf"a worker thread was busy {_NUMBER} % of the time")
_WAITED = re.compile(rf"others kept a worker thread waiting for its CPU {_NUMBER} % of the time")
_LATE = re.compile(rf"1 % of the requests went out more than {_NUMBER} ms late")
_VERDICTS = frozenset(Limited)
# Facts of a run, and of a trial, that hold steps.
_OF_SEARCH = ("found_rates", "find_rate")


def decode_verdict(generator: GeneratorCost) -> GeneratorVerdict:
    """Return whether a generator set the figures, and the evidence."""
    if generator.limited in _VERDICTS:
        return GeneratorVerdict(Limited(generator.limited), generator.evidence)
    found = generator.limit or (_of_sentence(generator.limited) if generator.limited else None)
    return GeneratorVerdict(found.level, (found,)) if found else GeneratorVerdict()


def _of_sentence(sentence: str) -> Limit:
    if busy := _BUSY.fullmatch(sentence):
        return Limit(LimitKind.BUSY, share=float(busy[1]) / 100)
    if waited := _WAITED.fullmatch(sentence):
        return Limit(LimitKind.KEPT_WAITING, share=float(waited[1]) / 100)
    if late := _LATE.fullmatch(sentence):
        return Limit(LimitKind.LATE, lag_ns=round(float(late[1]) * MILLISECOND_NS), percentile=99)
    return Limit(LimitKind.OTHER, reason=sentence)


def decode_step_limits(facts: Mapping[str, object]) -> dict[str, object]:
    """Return the facts of a run or a trial with the limits of a search's steps as values, as above.

    >>> decode_step_limits({"find_rate": {"rate_per_s": 9.0, "limited": "slow"}})["find_rate"]["limit"]
    {'kind': 'other', 'level': 'suspect', 'reason': 'slow'}
    """
    return {name: _with_limits(one) if name in _OF_SEARCH else one for name, one in facts.items()}


def _with_limits(found: object) -> object:
    if isinstance(found, list):
        return [_with_limits(one) for one in found]
    if not isinstance(found, Mapping):
        return found
    known = {name: _with_limits(one) if name == "steps" else one for name, one in found.items()}
    sentence = known.get("limited")
    return {**known, "limit": encode(_of_sentence(sentence))} if isinstance(sentence, str) else known


def decode_limit_states(sandbox: Mapping[str, object]) -> dict[str, object]:
    """Return the facts of a sandbox with its limits as objects: archives before 0.2 hold a text for each.

    >>> decode_limit_states({"limits": {"memory": "enforced: a hog was killed"}})
    {'limits': {'memory': {'holding': 'enforced', 'reason': 'a hog was killed'}}}
    """
    limits = sandbox.get("limits")
    if not isinstance(limits, Mapping):
        return dict(sandbox)
    return {**sandbox, "limits": {name: _limit_state(one) for name, one in limits.items()}}


def _limit_state(found: object) -> object:
    if not isinstance(found, str):
        return found
    holding, _, reason = found.partition(": ")
    return {"holding": holding, "reason": reason}
