"""For an app without a contract: asks every subject once before the first block, and compares the replies.

Must not know blocks.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prony.errors import SubjectError
from prony.model import Cell, Check
from prony.sandbox.contract import probe
from prony.sandbox.exchange import Reply
from prony.schedule import Position, Turn, nuisances
from prony.study.base import StudyListener
from prony.study.bench import Bench

__all__ = ["compare_replies"]


@dataclass(frozen=True, slots=True)
class _Silent:
    """A subject that did not start: why, and the last lines that it wrote."""

    reason: str
    log: str

    @property
    def error(self) -> str:
        """The line of the log that names the error; empty when nothing was written."""
        return _up_to_error(self.log)[-1]


# The result of asking a subject once: its reply, the reason why there is none, or that it did not start.
_Probed = Reply | str | _Silent

# The last line of a traceback; what a server writes after it is less useful.
_ERROR_LINE = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit)(?::.*)?")
# Enough to see where in the app it happened.
_LOG_LINES_SHOWN = 6


def compare_replies(bench: Bench, listener: StudyListener) -> None:
    """If an app has no contract, ask every subject once and report how their replies differ.

    Two servers that answer differently do different work: comparing their speed would mean nothing.

    *Errors*: SubjectError when no subject of the study starts.
    """
    cells = list(_first_cells(bench))
    found = {
        cell.subject.name: _probed(bench, cell) for cell in cells if not cell.subject.app.contract.checks
    }
    silent = {name: probed for name, probed in found.items() if isinstance(probed, _Silent)}
    if cells and len(silent) == len(cells):
        raise _nothing_starts(silent)
    for name, probed in silent.items():
        listener.notice(f"{name} does not start: {probed.reason}")
        if probed.error:
            listener.notice(f"  {probed.error}")
    _report_replies(
        {name: probed for name, probed in found.items() if not isinstance(probed, _Silent)}, listener
    )


def _report_replies(replies: Mapping[str, Reply | str], listener: StudyListener) -> None:
    described = {name: _described(reply) for name, reply in replies.items()}
    if len(set(described.values())) > 1:
        listener.notice(
            "servers reply differently to the probe; set the right reply with --expect-status and "
            "--expect-body:"
        )
        for name, reply in described.items():
            listener.notice(f"  {name}: {reply}")
    elif any(not _is_success(reply) for reply in replies.values()):
        listener.notice(f"every subject gives this reply to the probe: {next(iter(described.values()))}")
        listener.notice(
            "if that is right, confirm it with --expect-status; if not, set another --path, or set how the "
            "app is called with --interface"
        )


def _nothing_starts(silent: Mapping[str, _Silent]) -> SubjectError:
    parts = ["no server starts"]
    for name, probed in silent.items():
        parts.append(f"  {name}: {probed.reason}")
        parts += [f"    {line}" for line in _up_to_error(probed.log)[-_LOG_LINES_SHOWN:] if line]
    return SubjectError("\n".join(parts), hint=_start_hint([probed.error for probed in silent.values()]))


def _start_hint(told: Sequence[str]) -> str:
    if any(line.startswith(("ModuleNotFoundError", "ImportError")) for line in told):
        return (
            "list the packages that the app imports with --requirements FILE, and name its own folder with "
            "--dir"
        )
    if any(line.startswith("KeyError") for line in told):
        return "if the app needs an environment variable, set it with --env NAME=value"
    return "--dry-run shows the commands, so that you can try them by hand"


def _up_to_error(log: str) -> list[str]:
    """Return the log's lines up to the end of the last traceback, else all; never an empty list."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()] or [""]
    ends = [number for number, line in enumerate(lines) if _ERROR_LINE.fullmatch(line)]
    return lines[: ends[-1] + 1] if ends else lines


def _first_cells(bench: Bench) -> Iterator[Cell]:
    seen: set[str] = set()
    for cell in bench.study.plan.cells:
        if cell.subject.name in bench.ready and cell.subject.name not in seen:
            seen.add(cell.subject.name)
            yield cell


def _probed(bench: Bench, cell: Cell) -> _Probed:
    sandbox = bench.sandbox(f"probe-{cell.id}", cell.sandbox)
    try:
        turn = Turn(cell, Position(block=-1, position=0))
        launch = bench.launch(cell.subject, sandbox, nuisances(bench.study.plan, turn))
        with sandbox.start(launch, bench.placement) as subject:
            subject.wait_until_ready(cell.workload.request)
            return probe(Check(cell.workload.request), subject.address, subject.seat.network_namespace)
    except SubjectError as error:
        return _Silent(error.message, error.log)


def _described(reply: Reply | str) -> str:
    if isinstance(reply, str):
        return reply
    digest = hashlib.sha256(reply.body).hexdigest()[:12]
    return f"status {reply.status}, {len(reply.body)} bytes, SHA-256 {digest}"


def _is_success(reply: Reply | str) -> bool:
    return isinstance(reply, Reply) and 200 <= reply.status < 400
