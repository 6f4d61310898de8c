"""When a subject is ready: asked again and again, and given up at once when it has died.

Must not know how the subject was started.

>>> last_lines("a\\nb\\nc\\n", 2)
'b\\nc'
"""

import http.client
import time
from collections.abc import Callable

from prony.errors import SubjectError
from prony.model import Readiness, Request, Wire
from prony.sandbox.base import RunningSubject
from prony.sandbox.exchange import NobodyThereError, connect, exchange
from prony.sandbox.linux import in_network
from prony.units import format_duration

__all__ = ["last_lines", "wait_until_ready"]

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.1
# A frontend may answer 502 or 503 until its workers are up; an application that always fails is the
# contract's business.
_SERVER_ERRORS_S = 2.0
_LOG_LINES = 20


def wait_until_ready(subject: RunningSubject, readiness: Readiness, request: Request | None = None) -> int:
    """Wait until the subject accepts a connection and answers ``request``; return how many ns that took.

    Without ``readiness.http``, or for another wire than HTTP, a connection is enough.

    *Errors*: SubjectError when it ends before that or the time is over, with its last lines of log.
    """
    started_ns = time.monotonic_ns()
    trouble = in_network(
        subject.seat.network_namespace, lambda: _poll(subject, readiness, request or Request())
    )
    if trouble is None:
        return time.monotonic_ns() - started_ns
    raise SubjectError(
        trouble,
        hint="see the subject's last lines of output",
        stage="start",
        log=last_lines(subject.log().text),
    )


def last_lines(text: str, count: int = _LOG_LINES) -> str:
    """Return the last lines of a log."""
    return "\n".join(text.rstrip().splitlines()[-count:])


def _poll(subject: RunningSubject, readiness: Readiness, request: Request) -> str | None:
    attempt = _attempt(subject, readiness, request)
    deadline_s = time.monotonic() + readiness.timeout_ns / 1e9
    pause_s = _FIRST_PAUSE_S
    while True:
        trouble = attempt(deadline_s)
        if trouble is None:
            return None
        reason = subject.exit_reason()
        if reason is not None:
            return f"the server {reason} before it was ready"
        if time.monotonic() + pause_s >= deadline_s:
            return f"the server was not ready within {format_duration(readiness.timeout_ns)}: {trouble}"
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def _attempt(
    subject: RunningSubject, readiness: Readiness, request: Request
) -> Callable[[float], str | None]:
    """Return a function that tries once and returns null, or what was in the way."""
    errors_since_s: list[float] = []

    def once(deadline_s: float) -> str | None:
        try:
            if not readiness.http or subject.address.wire is not Wire.HTTP:
                connect(subject.address, deadline_s - time.monotonic()).close()
                return None
            reply = exchange(subject.address, request, deadline_s, lambda: subject.exit_reason() is None)
        except NobodyThereError:
            return "it ended"
        except (OSError, http.client.HTTPException) as error:
            return _say(error, subject)
        if reply.status < 500:
            return None
        errors_since_s.append(time.monotonic())
        return (
            None
            if time.monotonic() - errors_since_s[0] >= _SERVER_ERRORS_S
            else f"it answered {reply.status}"
        )

    return once


def _say(error: Exception, subject: RunningSubject) -> str:
    where = (
        subject.address.host if not subject.address.port else f"{subject.address.host}:{subject.address.port}"
    )
    match error:
        case TimeoutError():
            return f"it accepted a connection on {where} and did not answer"
        case ConnectionRefusedError() | FileNotFoundError():
            return f"nothing listens on {where}"
        case _:
            return f"{where}: {error}"
