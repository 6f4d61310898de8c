"""What a published experiment said, as something that its repeat can be held against.

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
    """What a claim needs to be tested at all: CPUs of the server and of the generator, a load, repeats."""

    server_cpus: int = 1
    generator_cpus: int = 1
    connections: int = 0
    blocks: int = 5


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a published experiment, as something that a repeat can hold against it.

    ``text`` is the sentence. ``subject`` and ``against`` are globs of subjects' names, ``engine`` and
    ``against_engine`` of generators'; ``metric`` is one of METRICS, of the processes of ``role`` where one is
    named. ``load`` (as `Cell.load`) chooses the cells, empty: every load. What they are compared with has the
    same generator and the same load, unless ``against_engine`` or ``against_load`` says otherwise. ``low``
    and ``high`` bound a ratio or a value, null: open. ``failure``: the class of requests that fail.
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
    """One published figure: context beside a new one, never a claim.

    ``value`` is in the metric's unit, of the processes of ``role`` where one is named.
    """

    subject: str
    metric: str
    value: float
    load: Mapping[str, float] = field(default_factory=dict)
    engine: str = "*"
    note: str = ""
    role: str = ""
