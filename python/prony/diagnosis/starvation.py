"""D10: only some connections were answered in the window.

*Source*: cheroot issue 91; cherrypy issues 1344 and 1764.
"""

from prony.diagnosis.clients import slow_share
from prony.diagnosis.connection_cap import connection_cap
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Concerns, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.listen_queue import turned_away
from prony.diagnosis.shared import FEWER_CONNECTIONS, OF_THE_SERVED
from prony.figures.accept_queue import Starvation, are_many, starvation
from prony.figures.generator import closes_each
from prony.model.facts import SubjectFacts
from prony.model.recording import Recording

ADD_WORKERS = Advice(
    "add workers",
    "give it more workers or threads, or put a proxy in front",
    turned=(Turned.THREADS, Turned.PROCESSES),
)
ADD_WORKERS_OR_CLOSE = Advice(
    "add workers, or turn keep-alive off",
    "give it more workers or threads, turn keep-alive off, or put a proxy in front",
    turned=(Turned.THREADS, Turned.PROCESSES),
)
RAISE_CAP = Advice(
    "raise its cap of connections",
    "raise its limit of connections, or its number of workers",
)
LET_MORE_IN = Advice(
    "let more connections in",
    "raise its limit of connections, or put a proxy in front: its workers and threads are not used up",
)
STARVED = Symptom(
    "starved",
    Meaning(Bearing.LIMITS, OF_THE_SERVED, FEWER_CONNECTIONS),
    "only {served} of {connections} connections were answered in the window: throughput and latency "
    "describe only those",
    traits=Traits(cause="connections that keep others out", concerns=Concerns.EITHER),
)
"""``served`` of ``connections``."""
STARVED_BY_SLOTS = Symptom(
    "starved by slots",
    Meaning(Bearing.LIMITS, OF_THE_SERVED, FEWER_CONNECTIONS),
    "only {served} of {connections} connections were answered in the window, as many as it has "
    "workers and threads: throughput and latency describe only those",
    traits=Traits(cause="connections that keep its workers", concerns=Concerns.EITHER),
)
"""As before, and as many were served as there are workers and threads."""


# Of those served, on average. In a random order 0.7 % of the connections are then without any (Poisson).
_LEAST_REPLIES = 5
_MOST_SLOW = 0.05
# Of the workers and threads: where fewer connections are served, more of them serve no more.
_MANY_SLOTS = 0.8


def starved(evidence: Evidence) -> list[Finding]:
    """Return a finding when a closed loop's connections starved in a trial that ran its window; none where a
    cap of open connections explains it, or a full queue that turned all but a tenth of them away; nor where
    each connection is closed after one reply, and so keeps nobody out.

    Likely: one of twenty pages took a quarter of the window or more; who waits for one has none either.
    Possible: the others had few replies each. In a random order as many connections may have had none.
    """
    found, recording = starvation(evidence.trial.recording), evidence.trial.recording
    if found is None or recording is None or not evidence.is_ok:
        return []
    waiting = found.connections - found.served - turned_away(evidence)
    if not are_many(waiting, found.connections) or connection_cap(evidence) or closes_each(recording):
        return []
    facts = evidence.facts
    slots, kept = facts.declared.slots, facts.declared.keep_alive is True
    numbers = {"served": found.served, "connections": found.connections}
    kind = STARVED_BY_SLOTS if slots == found.served else STARVED
    advice = _advice(facts, found.served, kept=kept)
    return [Finding(kind, _sure(recording, found), numbers, advice=advice)]


def _advice(facts: SubjectFacts, served: int, *, kept: bool) -> Advice:
    slots = facts.declared.slots
    if slots is None:
        return RAISE_CAP
    if served < _MANY_SLOTS * slots:
        return LET_MORE_IN
    return ADD_WORKERS_OR_CLOSE if kept else ADD_WORKERS


def _sure(recording: Recording, found: Starvation) -> Confidence:
    if recording.completed.ok < _LEAST_REPLIES * found.served:
        return Confidence.POSSIBLE
    return Confidence.LIKELY if slow_share(recording) > _MOST_SLOW else Confidence.CERTAIN
