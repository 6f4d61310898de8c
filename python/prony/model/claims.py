"""What a published experiment said, in a form that a repeat of it can test.

Must not know how a claim is tested (analysis.claims).

>>> Needs(server_cpus=2).blocks
5
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Claim", "ClaimKind", "Needs", "Original"]


class ClaimKind(StrEnum):
    """What a claim says: a closed list, each with its estimand and its test (analysis.claims)."""

    HIGHEST = "highest"
    LOWEST = "lowest"
    RATIO = "ratio"
    VALUE = "value"
    GROWS = "grows"
    FAILS = "fails"
    SINGLE_CORE = "single-core"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a test of the claim needs: CPUs of the server and of the generator, a load, repeats."""

    server_cpus: int = 1
    generator_cpus: int = 1
    connections: int = 0
    blocks: int = 5


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a published experiment, in a form that a repeat can test.

    ``text`` is the sentence. ``subject`` and ``against`` are globs of subjects' names, ``engine`` and
    ``against_engine`` of generators' names; ``metric`` is one of METRICS, limited to the processes of
    ``role`` if that is set. ``load`` (as `Cell.load`) selects the cells; empty: every load. They are compared
    with cells of the same generator and the same load, unless ``against_engine`` or ``against_load`` is set.
    ``low`` and ``high`` bound a ratio or a value; null: no bound. ``failure``: the class of requests that
    fail.
    """

    name: str
    text: str
    kind: ClaimKind
    metric: str
    subject: str = "*"
    against: str = "*"
    engine: str = "*"
    role: str = ""
    load: Mapping[str, float] = field(default_factory=dict)
    against_engine: str = ""
    against_load: Mapping[str, float] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    failure: str | None = None
    needs: Needs = Needs()


@dataclass(frozen=True, slots=True)
class Original:
    """One published figure: shown beside the new one, never tested.

    ``value`` is in the metric's unit, of the processes of ``role`` if that is set.
    """

    subject: str
    metric: str
    value: float
    load: Mapping[str, float] = field(default_factory=dict)
    engine: str = "*"
    note: str = ""
    role: str = ""
