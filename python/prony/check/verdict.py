"""The result of one row of a check, and why it failed. Pure.

Must not know how servers are started.

>>> ServerCheck("wsgiref", Interface.WSGI, reason="no request was answered").passed
False
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from prony.analysis.account import RequestClass, Tally, tally
from prony.errors import FailureStage
from prony.model.address import TlsKey, Wire
from prony.model.subject import Interface
from prony.model.trial import Failed, Invalid, Ok, Trial
from prony.sandbox import StopReport
from prony.trial import Stay
from prony.units import seconds

CONNECTIONS = 4
"""How many connections a check uses."""

# With a higher share of failures a trial's speed is not shown: the same bound as in reports.
MAX_ERROR_RATIO = 0.001
# Failures that no load excuses: a reply that is not the app's.
_WRONG = ("bad_status", "failed_validation", "short_body", "parse")
# Failures that the generator could not classify.
_UNNAMED = RequestClass("client_other")

_LOG_LINES = 20


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """The result for one server, variant, interface and wire, perhaps behind a frontend.

    ``clients``: what is spoken to clients, by the frontend if there is one. ``tls``: the key of the
    certificate with which that was TLS, null without TLS.
    ``ready_s`` null: it did not become ready. ``failures``: requests by how they ended. ``stage`` null
    and ``reason`` empty: it passed; ``log`` has the last lines of the server's or its installation's output.
    """

    server: str
    interface: Interface
    wire: Wire = Wire.HTTP
    tls: TlsKey | None = None
    clients: Wire = Wire.HTTP
    version: str | None = None
    interpreter: str | None = None
    ready_s: float | None = None
    ok: int = 0
    failures: Mapping[RequestClass, int] = field(default_factory=dict)
    stopped: StopReport | None = None
    stage: FailureStage | None = None
    reason: str = ""
    log: str = ""

    @property
    def passed(self) -> bool:
        """Whether everything was right."""
        return not self.reason

    @property
    def failed(self) -> int:
        """Requests without a correct reply."""
        return sum(self.failures.values())


def verdict_of(
    found: ServerCheck,
    stay: Stay,
    left: Sequence[str] = (),
) -> ServerCheck:
    """Return ``found`` with the trial's result: whether it passed, else at which stage it failed and why.

    ``left``: what still ran after it was stopped.
    """
    trial = stay.trial
    account = tally(trial.recording.account) if trial.recording else Tally()
    failures = dict(account.failed)
    unnamed = account.lost - sum(failures.values())
    if unnamed:
        failures[_UNNAMED] = failures.get(_UNNAMED, 0) + unnamed
    stage, reason = _fault(trial, account.ok, failures, left)
    return replace(
        found,
        ready_s=None if stay.ready_ns is None else seconds(stay.ready_ns),
        ok=account.ok,
        failures=failures,
        stopped=stay.stopped,
        stage=stage,
        reason=reason,
        log=log_end(trial.log.text) if reason else "",
    )


def _fault(
    trial: Trial, ok: int, failures: Mapping[RequestClass, int], left: Sequence[str]
) -> tuple[FailureStage | None, str]:
    match trial.outcome:
        case Failed(stage, reason):
            return stage, reason
        case Invalid(reason):
            return FailureStage.LOAD, f"not measured: {reason}"
        case Ok():
            pass
    reason = _fault_under_load(ok, failures)
    if reason:
        return FailureStage.LOAD, reason
    if left:
        return FailureStage.STOP, f"still running after it was stopped: {'; '.join(left)}"
    return None, ""


def _fault_under_load(ok: int, failures: Mapping[RequestClass, int]) -> str:
    wrong = sum(count for ending, count in failures.items() if ending.name in _WRONG)
    failed = sum(failures.values())
    if wrong:
        return f"{wrong} of {ok + failed} replies were wrong"
    if failures.get(_UNNAMED):
        return f"{failures[_UNNAMED]} requests failed for an unknown reason"
    if not ok:
        return "no request was answered"
    if failed > ok:
        return f"{failed} of {ok + failed} requests failed"
    # One failure on each connection is allowed: a server that serves one connection at a time starves the
    # rest.
    many = failed > max(CONNECTIONS, MAX_ERROR_RATIO * (ok + failed))
    return f"{failed} of {ok + failed} requests failed" if many else ""


def log_end(log: str) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.rstrip().splitlines()[-_LOG_LINES:])
