"""``prony report`` of several archives: the sessions of one plan."""

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.floors import floors_of
from prony.cli.talk import show
from prony.errors import UsageError
from prony.escapes import escaped

if TYPE_CHECKING:
    from prony.model import Plan
    from prony.reading.across import SessionPart, Sessions

__all__ = ["SessionsOutput", "differences_of", "report_sessions"]


@dataclass(frozen=True, slots=True)
class SessionsOutput:
    """How sessions are shown: the options of `prony report`."""

    as_json: bool = False
    markdown_to: str | None = None
    csv_to: Path | None = None
    force: bool = False


def report_sessions(files: Sequence[Path], output: SessionsOutput) -> None:
    """Report several archives as sessions of the one plan that they have.

    *Errors*: UsageError when a file is named twice.
    """
    from prony.faces.csv_files import write_sheets
    from prony.faces.json_sessions import sessions_json
    from prony.faces.sheets import session_sheets
    from prony.faces.terminal import TerminalReporter
    from prony.report.sessions import sessions_report

    title, found = _sessions(files, force=output.force)
    if output.csv_to is not None:
        write_sheets(session_sheets(found), output.csv_to)
    if output.markdown_to is not None:
        _write_markdown(title, found, output.markdown_to)
    if output.csv_to is not None or output.markdown_to is not None:
        return
    if output.as_json:
        show(json.dumps(sessions_json(title, found), indent=2))
    else:
        TerminalReporter().write_report(sessions_report(title, found))


def _write_markdown(title: str, found: "Sessions", out: str) -> None:
    from prony.cli.options import write_output
    from prony.faces.markdown import markdown
    from prony.report.redaction import redacted
    from prony.report.sessions import sessions_report

    page = redacted(sessions_report(title, found), socket.gethostname())
    write_output(markdown(page).rstrip("\n"), out)


def _sessions(files: Sequence[Path], *, force: bool) -> "tuple[str, Sessions]":
    from prony.reading.across import over_sessions

    read = [_read(file, force=force) for file in files]
    first, _ = read[0]
    parts = [part for _, found in read for part in found]
    if len({part.started_unix_ns for part in parts}) < len(parts):
        raise UsageError("two of the archives hold the same session", hint="name each archive once")
    if len(parts) < 2:
        raise UsageError("fewer than two of the archives have trials: there are no sessions to compare")
    return first.title or first.name, over_sessions(parts, first.design.margin)


def _read(file: Path, *, force: bool) -> "tuple[Plan, tuple[SessionPart, ...]]":
    from prony.archive import open_archive
    from prony.reading.study import read_sessions

    with open_archive(file) as archive:
        floors = floors_of(archive.fingerprint())
        return archive.plan(), read_sessions(archive, file.name, floors, takes_unsteady=force)


def differences_of(files: Sequence[Path]) -> list[str]:
    """Return in words what keeps archives from being sessions of one plan; empty when nothing does."""
    from prony.archive import open_archive
    from prony.reading.across import differences_of_plans

    plans = []
    for file in files:
        with open_archive(file) as archive:
            plans.append(archive.plan())
    for file, plan in zip(files[1:], plans[1:], strict=True):
        found = differences_of_plans(plans[0], plan)
        if found:
            head = f"`{files[0]}` and `{file}` are no sessions of one plan; they differ in"
            return [escaped(one) for one in (head, *found)]
    return []
