"""D23: the generator, not the server, may have limited the figures.

*Source*: the engine's own verdict (docs/reference/engine-wire.md, Generator).
"""

from collections.abc import Mapping
from types import MappingProxyType

from prony.analysis.rates import keeps_rate
from prony.diagnosis.clients import ENDED
from prony.diagnosis.evidence import Advice, Affected, Confidence, Evidence, Finding, Symptom
from prony.model.limit import Limit, Limited, LimitKind
from prony.model.recording import Recording
from prony.model.trial import Ok

_FOUND: Mapping[LimitKind, tuple[Symptom, Advice]] = MappingProxyType(
    {
        LimitKind.IN_FLIGHT: (Symptom.GENERATOR_AT_LIMIT, Advice.RAISE_CONNECTIONS),
        LimitKind.PORTS: (Symptom.GENERATOR_WITHOUT_PORTS, Advice.RAISE_PORTS),
        LimitKind.DESCRIPTORS: (Symptom.GENERATOR_WITHOUT_DESCRIPTORS, Advice.RAISE_DESCRIPTORS),
        LimitKind.BUFFERS: (Symptom.GENERATOR_WITHOUT_BUFFERS, Advice.FEWER_CONNECTIONS),
        LimitKind.THROTTLED: (Symptom.GENERATOR_THROTTLED, Advice.RAISE_GENERATOR_QUOTA),
        LimitKind.BUSY: (Symptom.GENERATOR_BUSY, Advice.ADD_GENERATOR_THREADS),
        LimitKind.KEPT_WAITING: (Symptom.GENERATOR_KEPT_WAITING, Advice.LEAVE_CPUS_TO_GENERATOR),
        LimitKind.LATE: (Symptom.GENERATOR_LATE, Advice.PACE_PRECISELY),
        LimitKind.NEAR_CEILING: (Symptom.GENERATOR_NEAR_CEILING, Advice.ADD_GENERATOR_THREADS),
        LimitKind.RATE_MISSED: (Symptom.GENERATOR_MISSED_RATE, Advice.ADD_GENERATOR_THREADS),
    }
)


_OF_ITS_CPU = frozenset(
    (LimitKind.BUSY, LimitKind.KEPT_WAITING, LimitKind.LATE, LimitKind.NEAR_CEILING, LimitKind.RATE_MISSED)
)
# Of the requests that ended.
_MOST_SENT_AWAY = 0.5


def generator_limited(evidence: Evidence) -> list[Finding]:
    """Return a finding when the engine says that it was the limit, in a trial that ran its window: the
    strongest evidence that it has.
    """
    recording = evidence.trial.recording
    if recording is None or not isinstance(evidence.trial.outcome, Ok):
        return []
    found = recording.generator.verdict.strongest
    if found is None:
        return []
    kind, advice = _FOUND[found.kind]
    return [
        Finding(
            rule="D23",
            kind=kind,
            confidence=_sure(found, recording),
            numbers=found.numbers,
            advice=advice,
            shareable=True,
            affected=_affected(recording),
        )
    ]


def _sure(found: Limit, recording: Recording) -> Confidence:
    """Return how sure it is that the generator was the limit: one that a server keeps busy with connections
    that it refuses or ends is busy with what another cause does; and one that sent all that was asked for, if
    late, kept nothing from the server.
    """
    if found.level is not Limited.YES:
        return Confidence.LIKELY
    sent_away = sum(recording.account.others.get(name) or 0 for name in ENDED)
    by_failures = sent_away > _MOST_SENT_AWAY * recording.completed.all
    doubtful = found.kind in _OF_ITS_CPU and (by_failures or keeps_rate(recording))
    return Confidence.LIKELY if doubtful else Confidence.CERTAIN


def _affected(recording: Recording) -> Affected:
    return Affected.LATENCY if keeps_rate(recording) else Affected.ALL
