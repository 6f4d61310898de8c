"""The evidence of a rule and its findings: values (`prony.diagnosis.kinds`: what is said of them).

And whether clients noticed anything in a trial, and whether its pages alone explain how long they waited.
A symptom of the server is certain to be the limit only where somebody went without: several rules ask. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean

from prony.diagnosis.kinds import Advice, Symptom
from prony.diagnosis.knobs import Knob
from prony.figures.accept_queue import starvation
from prony.figures.account import KEPT_RATE, QUALIFIED_ERROR_RATIO
from prony.figures.latency import read_distribution
from prony.figures.resources import window_length_ns, window_samples
from prony.model.facts import SubjectFacts
from prony.model.observation import Sample, ThreadUsage
from prony.model.plan import Cell
from prony.model.recording import Recording
from prony.model.sandbox import Network
from prony.model.shown import INTERNAL
from prony.model.trial import Ok, SubjectRecord, Trial


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

    @property
    def is_ok(self) -> bool:
        """Whether the trial counts."""
        return isinstance(self.trial.outcome, Ok)

    @property
    def facts(self) -> SubjectFacts:
        """What is known of the subject; nothing where it is not recorded."""
        return self.subject.facts if self.subject else SubjectFacts()

    @property
    def samples(self) -> Sequence[Sample]:
        """The samples of the window."""
        return window_samples(self.trial.samples)

    @property
    def sampled_ns(self) -> int:
        """How long it was from the window's first sample to its last; 0 without one."""
        return window_length_ns(self.samples)

    @property
    def unread(self) -> float | None:
        """On how many connections lay a request that the server had not read, on average over the looks of
        the window; None: not looked at.
        """
        seen = [one.gauges["unread.server"] for one in self.samples if "unread.server" in one.gauges]
        return fmean(seen) if seen else None

    @property
    def threads(self) -> Sequence[ThreadUsage]:
        """The threads that used CPU in the window, without those of a frontend and of what it asks."""
        rows = (row for one in self.samples for row in one.processes)
        others = {row.pid for row in rows if row.role not in SERVER_ROLES}
        return [one for one in self.trial.threads if one.pid not in others]

    @property
    def length_ns(self) -> int | None:
        """How long the window was; None: it has no length."""
        return self.trial.recording.window.length_ns if self.trial.recording else None


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a rule: its kind, its numbers and names, and advice: its kind's, where none is given."""

    rule: str = field(default="", kw_only=True)
    """The number under which the rule is listed."""
    kind: Symptom
    confidence: Confidence
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Behind it, by name."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Behind it, by what they name."""
    advice: Advice | None = field(default=None, metadata=INTERNAL)
    affected: Affected | None = field(default=None, metadata=INTERNAL)
    """What a limit of the generator may have moved."""
    knob: Knob | None = None
    """The subject's setting that the advice turns."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "advice", self.advice or self.kind.meaning.advice)

    @property
    def alike(self) -> object:
        """The key that findings with the same meaning share."""
        numbers = {} if self.kind.is_shareable else self.numbers
        named = (tuple(sorted(one.items())) for one in (self.names, numbers))
        return self.kind, self.confidence, self.affected, *named


SERVER_ROLES = ("server", "master", "worker", "other")
"""Roles of the server's own processes: not of its frontend, nor of a service."""

Rule = Callable[[Evidence], list[Finding]]
"""A rule returns no finding when nothing is wrong, or when it lacks the numbers to decide."""


_MOST_OF_WINDOW = 0.25
# Requests in flight for each core in use: one that is worked on uses one at most, one on its way none.
_MOST_A_CORE = 1.2

ENDED = ("connect_refused", "reset", "eof")
"""The classes of failures by which a server sends requests away, or takes them along when it ends."""


def carried_its_rate(recording: Recording | None) -> bool:
    """Return whether 99 % of what was due in an open loop had a valid reply."""
    if recording is None or not recording.is_open:
        return False
    due = recording.account.scheduled
    return due > 0 and recording.completed.ok >= KEPT_RATE * due


def in_flight(recording: Recording) -> float | None:
    """Return how many requests were in flight, on average; None where nobody knows."""
    integral_ns, length_ns = recording.little.within_window_ns, recording.window.length_ns
    return integral_ns / length_ns if integral_ns and length_ns else None


def each_had_a_core(recording: Recording, cores: float) -> bool:
    """Return whether each request in flight had one of the ``cores`` in use to itself, so that none waited
    for another. Not where nobody knows how many there were.
    """
    known = in_flight(recording)
    return known is not None and known <= _MOST_A_CORE * cores


def lost_requests(recording: Recording) -> int:
    """Return how many requests failed, or had to be sent again, for a connection that ended; of generators
    that do not say why any failed, all that did.
    """
    known = [recording.account.others.get(name) for name in ENDED]
    failed = sum(one or 0 for one in known)
    told = any(one is not None for one in known)
    return (failed if told else recording.completed.failed) + (recording.connections.retried or 0)


def went_without(trial: Trial) -> bool:
    """Return whether one of a thousand requests failed or had to be sent again, connections starved, or the
    trial did not end well.
    """
    recording = trial.recording
    if recording is None or not isinstance(trial.outcome, Ok):
        return True
    lost = recording.completed.failed + (recording.connections.retried or 0)
    often = lost > 0 and lost >= QUALIFIED_ERROR_RATIO * recording.completed.all
    return often or starvation(recording) is not None


def slow_share(recording: Recording, *, with_open: bool = False) -> float:
    """Return the share of replies that took more than a quarter of the window, of those still open too if
    ``with_open``; 0 where nobody knows.
    """
    found, length_ns = recording.distributions, recording.window.length_ns
    parts = (found.ok_service, found.censored_service) if with_open else (found.ok_service,)
    times = [one for one in map(read_distribution, parts) if one is not None and one.histogram is not None]
    count = sum(one.count for one in times)
    if not count or length_ns is None:
        return 0.0
    edge = round(_MOST_OF_WINDOW * length_ns)
    quick = sum(one.histogram.count_below(edge) for one in times if one.histogram is not None)
    return 1.0 - quick / count
