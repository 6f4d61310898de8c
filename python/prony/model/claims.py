"""What a published experiment said, in a form that a repeat of it can test.

>>> Needs(server_cpus=2).blocks
5
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prony.model.json_codec import OPTIONAL
from prony.model.subject import is_named

ERROR_RATIO = "error_ratio"
"""The metric that has one value for each trial, and is tested by counting trials."""


class ClaimKind(StrEnum):
    """What a claim says: a closed list, each with its estimand and its test (analysis.claims)."""

    HIGHEST = "highest"
    LOWEST = "lowest"
    RATIO = "ratio"
    VALUE = "value"
    GROWS = "grows"
    FAILS = "fails"
    SINGLE_CORE = "single-core"
    STEADIER = "steadier"


TOLERANT = (ClaimKind.HIGHEST, ClaimKind.LOWEST, ClaimKind.SINGLE_CORE)
"""The kinds that have a tolerance; the tolerance of the others is in their bounds."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a test of the claim needs: CPUs of the server and of the generator, a load, repeats, and a least
    window and time-out. A window that ends after a number of requests needs ``requests`` in place of
    ``duration_ns``.
    """

    server_cpus: int = 1
    generator_cpus: int = 1
    connections: int = 0
    blocks: int = 5
    duration_ns: int = 0
    timeout_ns: int = 0
    requests: int = field(default=0, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a published experiment, in a form that a repeat can test. ``text`` is the sentence.
    ``subject`` and ``against`` are globs of subjects' names, ``engine`` and ``against_engine`` of generators'
    names; ``metric`` is one of METRICS, limited to the processes of ``role`` if that is set. ``load`` (as
    `Cell.load`) selects the cells; empty: every load. They are compared with cells of the same generator and
    the same load, unless ``against_engine`` or ``against_load`` is set. ``low`` and ``high`` bound a ratio, a
    value or growth; null: no bound. Of ``fails``, ``low`` is the share of a trial's requests beyond which it
    fails.
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
    """The class of requests that fail."""
    needs: Needs = Needs()
    tolerance: float = 0.0
    """The least relative difference that an order must exceed, or by how much a single core may be exceeded.
    """
    among: tuple[str, ...] = ()
    """Globs of the subjects that it is about, on both sides; empty: all of the study."""
    place: str = ""
    """Where it stands in its source."""

    @property
    def counts_trials(self) -> bool:
        """Whether the figure is a share of trials: of failures, and of shares of failed requests.

        Requests of one trial fail together, so that only trials are independent.
        """
        return self.kind is ClaimKind.FAILS or (self.kind is ClaimKind.VALUE and self.metric == ERROR_RATIO)

    def is_about(self, subject: str) -> bool:
        """Return whether the claim is about the subject of this name, on either side."""
        return not self.among or any(is_named(subject, glob) for glob in self.among)


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
