"""``prony report`` of several archives: the sessions of one plan, else the same cells of each.

The one place where that is decided; what is shown is the same in every form.
"""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.options import write_html, write_output
from prony.cli.pages import names_of, write_pictures
from prony.cli.talk import say, show
from prony.errors import UsageError
from prony.escapes import escaped

if TYPE_CHECKING:
    from prony.faces.sheet import Sheet
    from prony.model.plan import Plan
    from prony.model.shapes import Json
    from prony.reading.across import SessionPart, Sessions
    from prony.reading.trend import Trend
    from prony.report.document import Document


@dataclass(frozen=True, slots=True)
class SeveralShown:
    """How archives are shown: the options of `prony report`."""

    as_json: bool = False
    markdown_to: str | None = None
    html_to: str | None = None
    csv_to: Path | None = None
    figures_to: Path | None = None
    redact: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class _Several:
    """Several archives in each form. ``page``: by the machine's name, null for one that is not redacted."""

    document: "Document"
    data: "Callable[[], Json]"
    page: Callable[[str | None], str]
    sheets: "Callable[[], tuple[Sheet, ...]]"
    pictures: Callable[[], Iterator[tuple[str, bytes]]]


def report_several(files: Sequence[Path], output: SeveralShown) -> None:
    """Report archives of one plan as its sessions; where plans differ, say in what, and show the same cells.

    *Errors*: ArchiveError; UsageError when a file is named twice, or for an output that cannot be written.
    """
    differ = _differences(files)
    if differ:
        say("\n  ".join(differ))
    several = (_same_cells if differ else _one_plan)(files, force=output.force)
    if not _write(several, output):
        _print(several, as_json=output.as_json)


def _write(several: _Several, output: SeveralShown) -> bool:
    """Write the files that are asked for; return whether there were any."""
    from prony.faces.csv_files import write_sheets
    from prony.faces.markdown import markdown
    from prony.report.redaction import redacted

    host = socket.gethostname()
    if output.csv_to is not None:
        write_sheets(several.sheets(), output.csv_to)
    if output.markdown_to is not None:
        write_output(markdown(redacted(several.document, host)).rstrip("\n"), output.markdown_to)
    if output.html_to is not None:
        write_html(several.page(host if output.redact else None), output.html_to)
    if output.figures_to is not None:
        write_pictures(several.pictures(), output.figures_to)
    asked = (output.csv_to, output.markdown_to, output.html_to, output.figures_to)
    return any(one is not None for one in asked)


def _print(several: _Several, *, as_json: bool) -> None:
    from prony.faces.terminal import TerminalReporter

    if as_json:
        show(json.dumps(several.data(), indent=2))
    else:
        TerminalReporter().write_report(several.document)


# --- the sessions of one plan -------------------------------------------------------------------------------


def _differences(files: Sequence[Path]) -> list[str]:
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
            head = f"`{files[0]}` and `{file}` are not sessions of one plan; they differ in"
            return [escaped(one) for one in (head, *found)]
    return []


def _one_plan(files: Sequence[Path], *, force: bool) -> _Several:
    from prony.faces.as_json import document_json
    from prony.faces.over_sheets import session_sheets
    from prony.page.pictures import pictures_of_sessions
    from prony.page.several import page_of_sessions
    from prony.report.sessions import sessions_report

    title, found = _sessions(files, force=force)
    return _Several(
        sessions_report(title, found),
        lambda: document_json(found, title=title),
        lambda host: page_of_sessions(title, found, host=host),
        lambda: session_sheets(found),
        lambda: pictures_of_sessions(found),
    )


def _sessions(files: Sequence[Path], *, force: bool) -> "tuple[str, Sessions]":
    from prony.reading.study import read_over

    read = [_read(file, force=force) for file in files]
    first, _ = read[0]
    parts = [part for _, found in read for part in found]
    if len({part.started_unix_ns for part in parts}) < len(parts):
        raise UsageError("two of the archives hold the same session", hint="name each archive once")
    if len(parts) < 2:
        raise UsageError("fewer than two of the archives have trials: there are no sessions to compare")
    return first.title or first.name, read_over(first, parts)


def _read(file: Path, *, force: bool) -> "tuple[Plan, tuple[SessionPart, ...]]":
    from prony.archive import open_archive
    from prony.reading.study import read_sessions

    with open_archive(file) as archive:
        return archive.plan(), read_sessions(archive, file.name, takes_unsteady=force)


# --- the same cells -----------------------------------------------------------------------------------------


def _same_cells(files: Sequence[Path], *, force: bool) -> _Several:
    from prony.faces.as_json import document_json
    from prony.faces.over_sheets import trend_sheets
    from prony.page.pictures import pictures_of_trend
    from prony.page.several import page_of_trend
    from prony.report.trend import trend_document

    trend = _trend(files, force=force)
    return _Several(
        trend_document(trend),
        lambda: document_json(trend),
        lambda host: page_of_trend(trend, host=host),
        lambda: trend_sheets(trend),
        lambda: pictures_of_trend(trend),
    )


def _trend(files: Sequence[Path], *, force: bool) -> "Trend":
    """Return what archives have in common, the oldest first."""
    from prony.archive import open_archive
    from prony.reading.study import read_archive
    from prony.reading.trend import trend_of

    readings = []
    for file, name in zip(files, names_of(files), strict=True):
        with open_archive(file) as archive:
            reading = read_archive(archive, takes_unsteady=force)
        readings.append((name, reading))
    return trend_of(readings)
