"""For an app without a contract: asks every subject once before the first block, and compares the replies.

Must not know blocks.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from prony.analysis.last_error import LastError, last_error, plain_lines
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
    def error(self) -> LastError | None:
        """The error that the log ends with."""
        return last_error(self.log)

    @property
    def error_line(self) -> str:
        """The line of the log that names the error; empty when nothing was written."""
        return self.error.line if self.error else "".join(plain_lines(self.log)[-1:])

    @property
    def lines(self) -> Sequence[str]:
        """The lines of the log that show the error, and where it happened."""
        return self.error.lines if self.error else plain_lines(self.log)[-_LOG_LINES_SHOWN:]


# The result of asking a subject once: its reply, the reason why there is none, or that it did not start.
_Probed = Reply | str | _Silent

# Of a log without an error.
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
        if probed.error_line:
            listener.notice(f"  {probed.error_line}")
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
        parts += [f"    {line}" for line in probed.lines]
    names = {probed.error.name for probed in silent.values() if probed.error}
    return SubjectError("\n".join(parts), hint=_start_hint(names))


def _start_hint(names: Set[str]) -> str:
    """Return what to try next, by the types of the errors."""
    if names & {"ModuleNotFoundError", "ImportError"}:
        return "name the packages that the app imports with --requirements FILE, its own folder with --dir"
    if "KeyError" in names:
        return "if the app needs an environment variable, set it with --env NAME=value"
    return "--dry-run shows the commands, so that you can try them by hand"


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
    finally:
        # The next subject must not find it.
        bench.run.remove_trial_folder(sandbox.folder.name)


def _described(reply: Reply | str) -> str:
    if isinstance(reply, str):
        return reply
    digest = hashlib.sha256(reply.body).hexdigest()[:12]
    return f"status {reply.status}, {len(reply.body)} bytes, SHA-256 {digest}"


def _is_success(reply: Reply | str) -> bool:
    return isinstance(reply, Reply) and 200 <= reply.status < 400
