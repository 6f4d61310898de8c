"""D31 and D38: replies that are no page.

D31: replies had another status, or another body, than was expected; where most had, that is the answer.

An error is often made faster than a page: the figures describe other work. *Source*: oha and others that
count any reply as a success.

D38: server or app refuses the request as such: its form, its size, its host, its method.

The page was never made; what was measured is how quickly a request is refused.
*Source*: RFC 9110, 15.5 and 15.6; RFC 6585, 5.
"""

import re
from collections import Counter

from prony.diagnosis.evidence import Confidence, Evidence, Finding, in_flight
from prony.diagnosis.kinds import Advice, Bearing, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_ERRORS, RIGHT_REPLIES
from prony.figures.account import QUALIFIED_ERROR_RATIO
from prony.figures.resources import turnover

READ_LOG_FOR_ERRORS = Advice("read its log for errors", "read its log, and ask for such a page by hand")
LIFT_LIMIT = Advice(
    "lift the limit for the load", "turn that limit off for this measurement, or ask at a rate that it allows"
)
RAISE_LIMIT = Advice(
    "raise its limit of requests",
    "raise its limit of requests or connections at a time (Uvicorn: limit_concurrency), or ask over fewer "
    "(-c)",
)
SHARE_CONNECTIONS = Advice(
    "share its connections",
    "open fewer connections to it (a pool that all share, and wait for), or let it take more (PostgreSQL: "
    "max_connections, or the limit of the role)",
)
WRONG_REPLIES = Symptom(
    "wrong replies",
    Meaning(Bearing.ADDS, OF_ERRORS, RIGHT_REPLIES, READ_LOG_FOR_ERRORS),
    "{wrong:n reply} of {done} had another status or body than expected, {share:.1%}",
    shared="replies had another status or body than expected",
)
"""``wrong`` of ``done`` replies; ``share``."""
MOSTLY_ERRORS = Symptom(
    "mostly errors",
    Meaning(Bearing.LIMITS, OF_ERRORS, RIGHT_REPLIES, READ_LOG_FOR_ERRORS),
    "{share:.0%} of its replies were {status}, and no page{error:; its log has it as}",
    shared="most of its replies were {status}, and no page{error:; its log has it as}",
    traits=Traits(cause="its errors"),
)
"""``share`` of the replies; name ``status``: the commonest, ``error``: the commonest exception in the end of
its log, if it has any.
"""
RATE_LIMITED = Symptom(
    "rate limited",
    Meaning(Bearing.LIMITS, OF_ERRORS, RIGHT_REPLIES, LIFT_LIMIT),
    "{share:.0%} of its replies were 429: it refused what it takes for too many requests of one client",
    shared="most of its replies were 429: it refused what it takes for too many requests of one client",
    traits=Traits(cause="a limit of requests for each client"),
)
"""``share`` of the replies."""


TURNED_AWAY = Symptom(
    "turned away beyond a number",
    Meaning(Bearing.LIMITS, OF_ERRORS, RIGHT_REPLIES, RAISE_LIMIT),
    "{share:.0%} of its replies were {status}, given at once: it worked on {at_a_time:.1f} requests at a "
    "time, and turned the rest away",
    shared="most of its replies were {status}, given at once: it works on few requests at a time, and turns "
    "the rest away",
    traits=Traits(cause="a limit on requests or connections, beyond which it turns them away"),
)
"""``share`` of the replies, and it worked on ``at_a_time``; name ``status``: the commonest."""


REFUSED_BY_ASKED = Symptom(
    "refused by what it asks",
    Meaning(Bearing.LIMITS, OF_ERRORS, RIGHT_REPLIES, SHARE_CONNECTIONS),
    "{share:.0%} of its replies were {status}: its log says that what it asks takes no more connections"
    "{error:, such as}",
    shared="most of its replies were {status}: its log says that what it asks takes no more connections"
    "{error:, such as}",
    traits=Traits(cause="a limit on connections of what it asks, which refuses the others"),
)
"""As of `MOSTLY_ERRORS`."""


_CLASSES = ("bad_status", "failed_validation")
# Replies. Single ones may be a server's way to say that it is busy.
_LEAST = 5
_MOST, _TOO_MANY = 0.5, "429"
# Of one: fewer are let through at a rate. Of a page's time: a refusal.
_LEAST_AT_A_TIME, _AT_ONCE = 0.8, 0.5
# So a server, or a frontend before it, refuses what it cannot do: why it cannot is the answer.
_REFUSALS = ("502", "503", "504")
# The last line of a traceback: a class and what it says.
_EXCEPTION = re.compile(
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Timeout|Exhausted|Full)\b: ?[ -~]*)", re.MULTILINE
)
_MOST_CHARACTERS, _LEAST_LINES = 160, 20
# As PostgreSQL, PgBouncer, MySQL and Redis refuse a connection; a client's own pool has other words.
_NO_MORE_CONNECTIONS = re.compile(
    r"too many (?:clients already|connections for (?:role|database))|connection slots are reserved"
    r"|no more connections allowed|1040, .?Too many connections|exceeded the .?max_user_connections"
    r"|max number of clients reached",
    re.IGNORECASE,
)


def wrong_replies(evidence: Evidence) -> list[Finding]:
    """Return a finding when more than one reply in a thousand was not as expected."""
    recording = evidence.trial.recording
    if recording is None or not evidence.is_ok:
        return []
    wrong = sum(recording.account.count(name) for name in _CLASSES)
    done = recording.account.ok + wrong
    if wrong < _LEAST or wrong <= QUALIFIED_ERROR_RATIO * done:
        return []
    numbers = {"wrong": wrong, "done": done, "share": wrong / done}
    kind, names = WRONG_REPLIES, {}
    status = max(recording.account.bad_status.items(), key=lambda one: one[1], default=("", 0))
    mostly, refuses = status[1] > _MOST * done, status[0] in _REFUSALS
    if mostly and refuses and (few := _worked_on(evidence, wrong)):
        turned = {"share": status[1] / done, "at_a_time": few}
        return [Finding(TURNED_AWAY, Confidence.LIKELY, turned, {"status": status[0]})]
    # Of one that answers no page at all nothing else shows why it refuses.
    if mostly and not (refuses and recording.account.ok) and not _died(evidence, wrong):
        numbers = {"share": status[1] / done}
        log = evidence.trial.log.text
        kind, names = MOSTLY_ERRORS, {"status": status[0]} | _error(log)
        if status[0].startswith("5") and _refused_by_asked(log):
            kind = REFUSED_BY_ASKED
        if status[0] == _TOO_MANY:
            kind, names = RATE_LIMITED, {}
    sure = Confidence.LIKELY if kind is MOSTLY_ERRORS and refuses else Confidence.CERTAIN
    return [Finding(kind, sure, numbers, names)]


def _worked_on(evidence: Evidence, wrong: int) -> float | None:
    """Return how many requests a server without a frontend worked on that it answered as it should, where it
    gave wrong replies much quicker; None: it did not, or it is not known.

    *Source*: Little's law: open requests are those that it works on, and those that it turns away.
    """
    recording, length_ns = evidence.trial.recording, evidence.length_ns
    service = recording.distributions.ok_service if recording else None
    if recording is None or service is None or not service.count or not length_ns or evidence.facts.frontend:
        return None
    page_ns = (service.sum_ns or 0) / service.count
    at_a_time = recording.account.ok * page_ns / length_ns
    refusal_ns = max((in_flight(recording) or 0.0) - at_a_time, 0.0) * length_ns / wrong
    return at_a_time if at_a_time >= _LEAST_AT_A_TIME and refusal_ns <= _AT_ONCE * page_ns else None


def _died(evidence: Evidence, wrong: int) -> bool:
    """Return whether workers ended for half of the wrong replies: some answer their requests first."""
    found = turnover(evidence.samples).values()
    return sum(one.restarts + one.lost for one in found) >= _MOST * wrong


def _refused_by_asked(log: str) -> bool:
    """Return whether half of the exceptions in the end of a log, or more, say that what is asked takes no
    more connections. In a log without any that Python wrote single lines may be of its start.

    >>> _refused_by_asked("psycopg2.OperationalError: FATAL:  sorry, too many clients already\\n")
    True
    >>> _refused_by_asked("redis.exceptions.ConnectionError: Too many connections\\n")
    False
    >>> _refused_by_asked("pq: sorry, too many clients already\\n")
    False
    """
    refusals, exceptions = len(_NO_MORE_CONNECTIONS.findall(log)), len(_EXCEPTION.findall(log))
    return refusals >= (_MOST * exceptions if exceptions else _LEAST_LINES) and refusals > 0


def _error(log: str) -> dict[str, str]:
    """Return the commonest exception in the end of a log, as Python writes it; empty where there is none.

    >>> _error("  File 'a.py'\\nredis.exceptions.ConnectionError: Too many connections\\n")
    {'error': 'redis.exceptions.ConnectionError: Too many connections'}
    >>> _error("nothing of that kind")
    {}
    """
    found = Counter(_EXCEPTION.findall(log)).most_common(1)
    return {"error": found[0][0][:_MOST_CHARACTERS]} if found else {}


# --- D38 --------------------------------------------------------------------------------------------------

CHANGE_REQUEST = Advice(
    "change the request",
    "send such a request by hand, and change its Host (-H), its method (-m), its headers or its size",
)
REFUSED = Symptom(
    "requests refused",
    Meaning(Bearing.ADDS, OF_ERRORS, RIGHT_REPLIES, CHANGE_REQUEST),
    "it refused {refused:n request} of {done} as they were sent, most with status {status:d}",
)
"""``refused`` of ``done`` replies, most of them with ``status``."""


# Bad request, method not allowed, content too large, URI too long, misdirected request, upgrade required,
# header fields too large, method not implemented, HTTP version not supported.
_REFUSED = (400, 405, 413, 414, 421, 426, 431, 501, 505)


def refused(evidence: Evidence) -> list[Finding]:
    """Return a finding when more than one reply in a thousand refuses the request as it was sent."""
    recording = evidence.trial.recording
    if recording is None or not evidence.is_ok:
        return []
    account = recording.account
    counts = {status: account.bad_status.get(str(status), 0) for status in _REFUSED}
    count, done = sum(counts.values()), account.ok + sum(account.bad_status.values())
    if count < _LEAST or count <= QUALIFIED_ERROR_RATIO * done:
        return []
    numbers = {"refused": count, "done": done, "status": max(counts, key=lambda one: counts[one])}
    return [Finding(REFUSED, Confidence.LIKELY, numbers)]
