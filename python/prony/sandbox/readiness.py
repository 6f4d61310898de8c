"""Waits until a subject is ready: asks repeatedly, and stops at once when the subject has ended.

Must not know how the subject was started.

>>> last_lines("a\\nb\\nc\\n", 2)
'b\\nc'
"""

import http.client
import time
from collections.abc import Callable, Sequence
from functools import partial

from prony.errors import FailureStage, SubjectError
from prony.model.address import Address
from prony.model.exchange import Request
from prony.model.launch import Launch
from prony.sandbox.base import RunningSubject
from prony.sandbox.exchange import NobodyThereError, connect, exchange
from prony.sandbox.linux import in_network
from prony.units import format_duration, seconds

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.1
# A frontend may answer 502 or 503 until its workers are up; an application that always fails is caught by the
# contract.
_SERVER_ERRORS_S = 2.0
_LOG_LINES = 20


def wait_until_ready(
    subject: RunningSubject, launches: Sequence[Launch], request: Request | None = None
) -> int:
    """Wait until each process of the subject accepts a connection; return the total time in ns.

    A process with the readiness ``http`` must also answer ``request``, over its own wire.

    *Errors*: SubjectError, with the last lines of the log, when one ends or its time-out is over.
    """
    started_ns = time.monotonic_ns()
    for launch in launches:
        trouble = in_network(
            subject.seat.network_namespace, partial(_poll, subject, launch, request or Request())
        )
        if trouble is not None:
            raise SubjectError(
                trouble,
                hint="see the last lines of the subject's output",
                stage=FailureStage.START,
                log=last_lines(subject.log().text),
            )
    return time.monotonic_ns() - started_ns


def last_lines(text: str, count: int = _LOG_LINES) -> str:
    """Return the last lines of a log."""
    return "\n".join(text.rstrip().splitlines()[-count:])


def _poll(subject: RunningSubject, launch: Launch, request: Request) -> str | None:
    attempt = _attempt(subject, launch, request)
    timeout_ns = launch.readiness.timeout_ns
    deadline_s = time.monotonic() + seconds(timeout_ns)
    pause_s = _FIRST_PAUSE_S
    while True:
        trouble = attempt(deadline_s)
        if trouble is None:
            return None
        reason = subject.exit_reason()
        if reason is not None:
            return f"{reason} before it was ready"
        if time.monotonic() + pause_s >= deadline_s:
            return f"the {launch.name} was not ready within {format_duration(timeout_ns)}: {trouble}"
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def _attempt(subject: RunningSubject, launch: Launch, request: Request) -> Callable[[float], str | None]:
    """Return a function that tries once and returns null, or what failed."""
    errors_since_s: list[float] = []

    def once(deadline_s: float) -> str | None:
        try:
            if not launch.readiness.http:
                connect(launch.address, deadline_s - time.monotonic()).close()
                return None
            reply = exchange(launch.address, request, deadline_s, lambda: subject.exit_reason() is None)
        except NobodyThereError:
            return "it ended"
        except (OSError, http.client.HTTPException) as error:
            return _say(error, launch.address)
        if reply.status < 500:
            return None
        errors_since_s.append(time.monotonic())
        return (
            None
            if time.monotonic() - errors_since_s[0] >= _SERVER_ERRORS_S
            else f"it answered {reply.status}"
        )

    return once


def _say(error: Exception, address: Address) -> str:
    where = f"{address.host}:{address.port}" if address.port else address.host
    match error:
        case TimeoutError():
            return f"it accepted a connection on {where} but did not answer"
        case ConnectionRefusedError() | FileNotFoundError():
            return f"nothing listens on {where}"
        case _:
            return f"{where}: {error}"
