"""What a Recording says of its generator's limit, as a value: the border where a sentence is read.

Recordings of engines before 0.2 have a sentence alone (`limited`); later ones have the kind and its number
beside it (`limit`). Nothing else takes the sentence apart.

>>> decode_limit({"limited": "a worker thread was busy 95 % of the time"})
Limit(kind=<LimitKind.BUSY: 'busy'>, share=0.95, lag_ns=None, reason='')
>>> decode_limit({"limit": {"kind": "late", "share": None, "lag_ns": 12000000}}).lag_ns
12000000
"""

import re

from prony.model import Json, Limit, LimitKind
from prony.units import MILLISECOND_NS

__all__ = ["decode_limit"]

_NUMBER = r"(\d+(?:\.\d+)?)"
_BUSY = re.compile(rf"a worker thread was busy {_NUMBER} % of the time")
_WAITED = re.compile(rf"others kept a worker thread waiting for its CPU {_NUMBER} % of the time")
_LATE = re.compile(rf"1 % of the requests went out more than {_NUMBER} ms late")


def decode_limit(generator: Json) -> Limit | None:
    """Return what limited the generator; null where nothing did.

    *Errors*: KeyError, TypeError or ValueError for what is no limit.
    """
    found = generator.get("limit")
    if found is not None:
        return Limit(LimitKind(found["kind"]), found["share"], found["lag_ns"])
    sentence = generator.get("limited")
    return _of_sentence(str(sentence)) if sentence else None


def _of_sentence(sentence: str) -> Limit:
    if busy := _BUSY.fullmatch(sentence):
        return Limit(LimitKind.BUSY, share=float(busy[1]) / 100)
    if waited := _WAITED.fullmatch(sentence):
        return Limit(LimitKind.KEPT_WAITING, share=float(waited[1]) / 100)
    if late := _LATE.fullmatch(sentence):
        return Limit(LimitKind.LATE, lag_ns=round(float(late[1]) * MILLISECOND_NS))
    return Limit(LimitKind.OTHER, reason=sentence)
