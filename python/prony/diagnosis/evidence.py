"""The evidence of a rule and its findings: values (`prony.diagnosis.kinds`: what is said of them)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prony.diagnosis.kinds import Advice, Symptom
from prony.diagnosis.knobs import Knob
from prony.model.plan import Cell
from prony.model.sandbox import Network
from prony.model.shown import INTERNAL
from prony.model.trial import SubjectRecord, Trial


class Confidence(StrEnum):
    """How sure a finding is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Affected(StrEnum):
    """Which figures a generator's limit may have moved."""

    LATENCY = "latency"
    """The rate was kept, so throughput is as asked for."""
    ALL = "throughput and latency"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One trial, its cell, and its subject as resolved (null: not recorded)."""

    cell: Cell
    trial: Trial
    subject: SubjectRecord | None = None

    @property
    def is_on_host(self) -> bool:
        """Whether the network's counters are the whole machine's."""
        return self.subject is not None and self.subject.sandbox.network is Network.HOST


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a rule: its kind, its numbers and names, and advice, if there is any."""

    rule: str
    kind: Symptom
    confidence: Confidence
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Behind it, by name."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Behind it, by what they name."""
    advice: Advice | None = field(default=None, metadata=INTERNAL)
    shareable: bool = field(default=False, metadata=INTERNAL)
    """Without the numbers of one trial it says the same of several subjects."""
    affected: Affected | None = field(default=None, metadata=INTERNAL)
    """What a limit of the generator may have moved."""
    knob: Knob | None = None
    """The subject's setting that the advice turns."""

    @property
    def alike(self) -> object:
        """The key that findings with the same meaning share."""
        numbers = () if self.shareable else tuple(sorted(self.numbers.items()))
        return (
            self.rule,
            self.kind,
            self.confidence,
            self.affected,
            tuple(sorted(self.names.items())),
            numbers,
        )


SERVER_ROLES = ("server", "master", "worker", "other")
"""Roles of the server's own processes: not of its frontend, nor of a service."""

Rule = Callable[[Evidence], list[Finding]]
"""A rule returns no finding when nothing is wrong, or when it lacks the numbers to decide."""
