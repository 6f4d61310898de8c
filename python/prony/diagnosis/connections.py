"""D09 to D12, D48: how many connections a server takes, which it answers, and which it closes.

D09: the server has as many connections open as it may, and takes no more: the others wait in its queue.

*Source*: waitress/adjustments.py, connection_limit; gunicorn/workers/gthread.py, worker_connections; what is
taken: sock_diag(7), connections at its address less those that wait to be accepted.

D10: only some connections were answered in the window.

*Source*: cheroot issue 91; cherrypy issues 1344 and 1764.

D11: each connection was answered once, and then neither closed nor answered again.

Server and clients differ in their notion of keep-alive: clients send the next request on a connection that
nobody reads any more, and wait until they give up.
*Source*: uwsgi issue 1804 and its `--http` router without `--http-keepalive`.

D12: the server closed each connection after one reply, though clients offered to keep it open.

Every request then pays for a connect, on both sides, and leaves a socket in TIME_WAIT with whoever closed.
*Source*: RFC 9112, section 9.3.

D48: the server closes connections beyond a number at once, before it reads or answers their request.

nginx does so where `worker_connections` are used up, and says so in its log. *Source*: nginx,
ngx_get_connection; sock_diag(7) for the open ones.
"""

import re
from collections.abc import Sequence
from statistics import median_low

from prony.core.units import MICROSECOND_NS
from prony.diagnosis.consumption import Resource, consumption_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding, slow_share
from prony.diagnosis.kinds import Advice, Bearing, Concerns, Consequence, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned, declared_entry
from prony.diagnosis.listen_queue import turned_away
from prony.diagnosis.shared import (
    FEWER_CONNECTIONS,
    FULL_CPU,
    KEEP_ALIVE,
    KEPT_OPEN,
    OF_ERRORS,
    OF_THE_SERVED,
)
from prony.figures.accept_queue import Starvation, accept_queues, are_many, entrance, overflows_of, starvation
from prony.figures.generator import closes_each
from prony.figures.resources import turnover
from prony.model.facts import SubjectFacts
from prony.model.observation import Sample
from prony.model.recording import Recording
from prony.model.workload import ClosedLoop

RAISE_CONNECTION_CAP = Advice(
    "raise the cap of connections",
    "raise the number of connections that it may have open, or put a proxy in front",
    turned=(Turned.CONNECTIONS,),
)
CONNECTION_CAP = Symptom(
    "connections at a cap",
    Meaning(Bearing.LIMITS, OF_THE_SERVED, FEWER_CONNECTIONS, RAISE_CONNECTION_CAP),
    "it had {cap:n connection} open of {connections}, no more and no fewer, and {waiting} or more "
    "waited in its listen queue all the time: throughput and latency describe only those it took",
    traits=Traits(cause="its cap of open connections", concerns=Concerns.CLIENTS),
)
"""``cap``: how many it has open at most, of ``connections``; ``waiting``: those in its queue, always."""


# Of the cap: what a plateau may vary by, and how far what was served may be from it.
_FLAT = 0.01
_LEAST_LOOKS = 2
# Sockets of its own that a server counts as well.
_MOST_OF_ITS_OWN = 2


def connection_cap(evidence: Evidence) -> list[Finding]:
    """Return a finding when connections starve in the queue, while the server holds a number of others that
    never changes, serves all of these, and works on fewer at once.

    Certain: one of its settings says so many connections.
    """
    found = starvation(evidence.trial.recording)
    if found is None or not evidence.is_ok:
        return []
    taken, waiting = _taken(evidence.samples)
    if len(taken) < _LEAST_LOOKS:
        return []
    cap = max(taken)
    sure = _how_sure(evidence, cap)
    if sure is None or not (_alike(min(taken), cap) and _alike(found.served, cap)):
        return []
    return [Finding(CONNECTION_CAP, sure, {"cap": cap, "waiting": waiting, "connections": found.connections})]


def _taken(window: Sequence[Sample]) -> tuple[list[int], int]:
    """Return how many connections it had taken at each look, and the fewest that waited; none where the queue
    was empty once, or several sockets share the address. Clients that gave up stay in the queue, and are no
    connections any more: looks at a longer queue say nothing.
    """
    process = entrance(window)
    names = (f"established.{process}", f"listen.{process}.queued", f"listen.{process}.sockets")
    looks = [[one.gauges.get(name) for name in names] for one in window]
    known = [
        (held, queued)
        for held, queued, sockets in looks
        if held is not None and queued is not None and sockets == 1
    ]
    shortest = min((queued for _, queued in known), default=0)
    return [held - queued for held, queued in known if shortest and _alike(queued, shortest)], shortest


def _how_sure(evidence: Evidence, cap: int) -> Confidence | None:
    """Return how sure it is that a cap keeps others out; None where its workers and threads may: each holds a
    connection, and each process may have accepted another one. Of a server whose workers nobody knows only
    its settings say.
    """
    declared = evidence.facts.declared
    if cap > (declared.slots or 0) and _is_set(evidence, cap):
        return Confidence.CERTAIN
    if declared.slots is None or cap <= declared.slots + (declared.processes or 1):
        return None
    return Confidence.LIKELY


def _is_set(evidence: Evidence, cap: int) -> bool:
    facts = evidence.facts
    settings = {**declared_entry(facts, "settings"), **evidence.cell.subject.settings}
    limits = [value for name, value in settings.items() if "connection" in name and type(value) is int]
    own = [one * (facts.declared.processes or 1) - cap for one in limits]
    return any(0 <= one <= _MOST_OF_ITS_OWN for one in own)


def _alike(count: int, cap: int) -> bool:
    return abs(count - cap) <= max(1, _FLAT * cap)


# --- D10 --------------------------------------------------------------------------------------------------

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
_LEAST_REPLIES_EACH = 5
_MOST_SLOW_PAGES = 0.05
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
    if recording.completed.ok < _LEAST_REPLIES_EACH * found.served:
        return Confidence.POSSIBLE
    return Confidence.LIKELY if slow_share(recording) > _MOST_SLOW_PAGES else Confidence.CERTAIN


# --- D11 --------------------------------------------------------------------------------------------------

SILENT_AFTER_ONE = Symptom(
    "silent after one reply",
    Meaning(Bearing.LIMITS, OF_THE_SERVED, KEPT_OPEN, KEEP_ALIVE),
    "no connection was answered a second time, and none was closed: {waited:n request} waited in vain",
    traits=Traits(cause="connections that it leaves after one reply", concerns=Concerns.CLIENTS),
)
"""Of ``served`` connections no one got a second reply; ``waited``: requests in vain."""


_LEAST_IN_VAIN = 0.9
_LEAST_SERVED = 4
_MOST_SLOW_FIRST = 0.5
# A server that is only slow leaves some connections without any reply, or takes long for the first ones too.
_MOST_WITHOUT_REPLY = 0.1


def silent_after_one(evidence: Evidence) -> list[Finding]:
    """Return a finding when no connection of a closed loop got a second reply, and its next request failed
    for want of one, though the first replies came soon and on nearly all of them.

    *Assumptions*: a fair server whose round of all connections is as long as the window answers each once
    too, but half of them only after a half of it.
    """
    recording = evidence.trial.recording
    if not evidence.cell.workload.request.keep_alive:
        return []
    answered = recording.connections.answered if recording and not recording.is_open else None
    if recording is None or answered is None or not evidence.is_ok:
        return []
    served = answered.connections - answered.without_reply
    waited = recording.account.count("timed_out") + recording.account.count("in_flight_at_end")
    if answered.max != 1 or served < _LEAST_SERVED or waited < _LEAST_IN_VAIN * served:
        return []
    many = answered.without_reply > _MOST_WITHOUT_REPLY * answered.connections
    if many or slow_share(recording) > _MOST_SLOW_FIRST:
        return []
    return [Finding(SILENT_AFTER_ONE, Confidence.LIKELY, {"served": served, "waited": waited})]


# --- D12 --------------------------------------------------------------------------------------------------

WITH_CONNECTS = Consequence("with connects", "CPU and latency of each request contain a connect")
CLOSED_AFTER_EACH = Symptom(
    "closed after each reply",
    Meaning(Bearing.ADDS, WITH_CONNECTS, KEPT_OPEN, KEEP_ALIVE),
    "it closed each connection after one reply: {reconnects:n connect} for {done:n request}",
    shared="it closed each connection after one reply: each request pays for a connect",
    traits=Traits(concerns=Concerns.CLIENTS),
)
"""``reconnects``, for ``done`` requests."""
CONNECTS_FILL_CPU = Symptom(
    "connects fill its CPU",
    Meaning(Bearing.LIMITS, WITH_CONNECTS, KEPT_OPEN, KEEP_ALIVE),
    "it closed each connection after one reply: {reconnects:n connect} for {done:n request} of "
    "{page_cpu_ns:duration} of CPU each, of which a connect is a large part",
    shared="it closed each connection after one reply, and connects are a large part of what fills its CPU",
    traits=Traits(cause="the connects that it makes necessary", concerns=Concerns.CLIENTS),
)
"""As before; ``page_cpu_ns``: its CPU time for a valid reply."""


_LEAST_REPLIES = 20
# Node.js needed 186 us for a page with a connect here, and 62 us without.
_CHEAP_NS = 200 * MICROSECOND_NS


def closed_after_each(evidence: Evidence) -> list[Finding]:
    """Return a finding when almost every valid reply was followed by a new connection in place of its own.

    Connections that ended with a failure do not count: of a time-out the generator closes them itself.
    """
    recording, offered = evidence.trial.recording, evidence.cell.workload.request.keep_alive
    if recording is None or not offered or not evidence.is_ok:
        return []
    if recording.completed.ok < _LEAST_REPLIES or not closes_each(recording):
        return []
    page_cpu_ns = _of_full_cpu(evidence)
    more = {} if page_cpu_ns is None else {"page_cpu_ns": page_cpu_ns}
    numbers = {"reconnects": recording.connections.reconnects or 0, "done": recording.completed.all, **more}
    sure = Confidence.LIKELY if more else Confidence.CERTAIN
    return [Finding(CONNECTS_FILL_CPU if more else CLOSED_AFTER_EACH, sure, numbers)]


def _of_full_cpu(evidence: Evidence) -> float | None:
    """Return the CPU time for a valid reply, where a connect is a large part of it, and the CPU is full; else
    None.
    """
    usage = consumption_of(evidence)
    if usage is None or usage.page_cpu_ns is None or usage.page_cpu_ns > _CHEAP_NS:
        return None
    full = max(usage.shares.get(one, 0.0) for one in (Resource.CPU, Resource.CORES)) >= FULL_CPU
    return usage.page_cpu_ns if full else None


# --- D48 --------------------------------------------------------------------------------------------------

CLOSED_BEYOND = Symptom(
    "closes connections beyond a number",
    Meaning(Bearing.LIMITS, OF_ERRORS, FEWER_CONNECTIONS, RAISE_CONNECTION_CAP),
    "{share:.0%} of its requests had their connection closed without a reply, and it held "
    "{held:n connection} of {connections:.0f} all the time: it closes what comes beyond",
    shared="most of its requests had their connection closed without a reply, and it held few connections "
    "all the time: it closes what comes beyond",
    traits=Traits(cause="a cap of connections, beyond which it closes them", concerns=Concerns.CLIENTS),
)
"""``share`` of the requests; it ``held`` so many of ``connections``."""

# A listener that is full refuses or drops: that is no end of a connection that was accepted.
_ENDED = ("reset", "eof")
# Of the requests; looks; of what it holds: how much that may vary; of the connections, and how many of them
# make it unlikely that a look finds as many by chance.
_MOST, _LOOKS_AT_HELD, _ABOUT, _FEWER, _LEAST_CONNECTIONS = 0.5, 3, 0.1, 0.8, 20
# Of the looks; lines of its log: single ones may be of its start.
_MOSTLY, _LEAST_LINES = 0.75, 20
_IN_LOG = re.compile(r"worker_connections are not enough")


def closed_beyond(evidence: Evidence) -> list[Finding]:
    """Return a finding when half of a closed loop's requests were ended without a reply, others answered, the
    server held about the same number of connections at most looks, clearly fewer than there are, its queue
    had room, and no worker died.

    Certain: its log says so, again and again. Of fewer than twenty connections only that shows it.
    """
    recording, loop = evidence.trial.recording, evidence.cell.workload.loop
    if recording is None or not isinstance(loop, ClosedLoop) or not evidence.is_ok:
        return []
    ended = sum(recording.account.others.get(name) or 0 for name in _ENDED)
    if not recording.account.ok or ended <= _MOST * recording.completed.all or _explained(evidence):
        return []
    is_logged = len(_IN_LOG.findall(evidence.trial.log.text)) >= _LEAST_LINES
    held = _held(evidence)
    if held is None or held > _FEWER * loop.connections:
        return []
    if loop.connections < _LEAST_CONNECTIONS and not is_logged:
        return []
    sure = Confidence.CERTAIN if is_logged else Confidence.LIKELY
    numbers = {"share": ended / recording.completed.all, "held": held, "connections": loop.connections}
    return [Finding(CLOSED_BEYOND, sure, numbers)]


def _held(evidence: Evidence) -> int | None:
    """Return how many connections it had, where that is about the same number at three of four looks: one
    finds some that are about to be closed.
    """
    name = f"established.{entrance(evidence.samples)}"
    held = [one.gauges[name] for one in evidence.samples if name in one.gauges]
    middle = median_low(held) if held else 0
    alike = sum(abs(one - middle) <= max(1, _ABOUT * middle) for one in held)
    return middle if middle and len(held) >= _LOOKS_AT_HELD and alike >= _MOSTLY * len(held) else None


def _explained(evidence: Evidence) -> bool:
    """Return whether a worker ended in the window, which takes its connections along, or a queue was full."""
    ended = any(one.restarts or one.lost for one in turnover(evidence.samples).values())
    full = any(one.longest >= one.limit for one in accept_queues(evidence.samples).values())
    return ended or full or overflows_of(evidence.trial) > 0
