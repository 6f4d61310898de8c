"""Whether two machines are similar enough to compare figures measured on them.

Pure: the caller passes fingerprints. Must not know how they were taken.

>>> one = Fingerprint({"cpu": {"model": "A", "available": 2}, "kernel": {"release": "6.1"}})
>>> comparable(one, one)
()
>>> comparable(one, Fingerprint({**one.free, "kernel": {"release": "6.6"}}))
(Difference(name='kernel', a='6.1', b='6.6'),)
"""

import hashlib
import json
from typing import NamedTuple

from prony.model.facts import Fingerprint, Unknown

WHAT_MATTERS = {
    "CPU model": ("cpu", "model"),
    "kernel": ("kernel", "release"),
    "CPU governor": ("cpu", "governor"),
    "CPUs": ("cpu", "available"),
    "memory limit": ("memory", "limit_bytes"),
}
"""What must agree before two archives are compared without pairs: a name, and where a fingerprint has it."""


class Difference(NamedTuple):
    """A relevant fact that differs. ``a`` and ``b`` are in words, ready to print."""

    name: str
    a: str
    b: str


def comparable(a: Fingerprint, b: Fingerprint) -> tuple[Difference, ...]:
    """Return the facts of WHAT_MATTERS in which two fingerprints differ; empty: they may be compared.

    *Definition*: a fact that neither machine has is no difference (a guest without frequencies has no
    governor); a fact that only one of them has is a difference.
    """
    return tuple(
        Difference(name, _in_words(one), _in_words(other))
        for name, path in WHAT_MATTERS.items()
        if _known(one := a.fact(*path)) != _known(other := b.fact(*path))
    )


def machine_key(fingerprint: Fingerprint) -> str:
    """Return twelve letters that are equal for machines without a difference in WHAT_MATTERS."""
    facts = [_known(fingerprint.fact(*path)) for path in WHAT_MATTERS.values()]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def _known(fact: object) -> object:
    """Return the value to compare: all unknown facts are equal, and differ from every known value."""
    return {"missing": None} if isinstance(fact, Unknown) else fact


def _in_words(fact: object) -> str:
    match fact:
        case Unknown(reason):
            return f"not known: {reason}"
        case dict():
            return ", ".join(f"{name}: {_in_words(value)}" for name, value in fact.items())
        case _:
            return "none" if fact is None else str(fact)
