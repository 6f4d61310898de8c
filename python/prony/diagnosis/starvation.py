"""D10: only some connections were answered in the window.

*Source*: cheroot issue 91; cherrypy issues 1344 and 1764.
"""

from prony.analysis.starvation import Starvation, are_many, starvation
from prony.diagnosis.clients import slow_share
from prony.diagnosis.connection_cap import connection_cap
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.diagnosis.listen_queue import turned_away
from prony.model.facts import SubjectFacts
from prony.model.recording import Recording
from prony.model.trial import Ok

# Of those served, on average. In a random order 0.7 % of the connections are then without any (Poisson).
_LEAST_REPLIES = 5
_MOST_SLOW = 0.05


def starved(evidence: Evidence) -> list[Finding]:
    """Return a finding when a closed loop's connections starved in a trial that ran its window; none where a
    cap of open connections explains it, or a full queue that turned all but a tenth of them away.

    Likely: one of twenty pages took a quarter of the window or more; who waits for one has none either.
    Possible: the others had few replies each. In a random order as many connections may have had none.
    """
    found, recording = starvation(evidence.trial.recording), evidence.trial.recording
    if found is None or recording is None or not isinstance(evidence.trial.outcome, Ok):
        return []
    waiting = found.connections - found.served - turned_away(evidence)
    if not are_many(waiting, found.connections) or connection_cap(evidence):
        return []
    facts = evidence.subject.facts if evidence.subject else SubjectFacts()
    slots, kept = facts.declared.slots, facts.declared.keep_alive is True
    return [
        Finding(
            rule="D10",
            kind=Symptom.STARVED_BY_SLOTS if slots == found.served else Symptom.STARVED,
            confidence=_sure(recording, found),
            numbers={"served": found.served, "connections": found.connections},
            advice=Advice.ADD_WORKERS_OR_CLOSE if kept else Advice.ADD_WORKERS,
        )
    ]


def _sure(recording: Recording, found: Starvation) -> Confidence:
    if recording.completed.ok < _LEAST_REPLIES * found.served:
        return Confidence.POSSIBLE
    return Confidence.LIKELY if slow_share(recording) > _MOST_SLOW else Confidence.CERTAIN
