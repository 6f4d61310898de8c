"""``prony report``: the report of an archive.

``prony report`` of several archives: the sessions of one plan, else the same cells of each.

The one place where that is decided; what is shown is the same in every form.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.options import write_answer, write_html, write_output
from prony.cli.pages import (
    names_of,
    passed_on,
    place_beside,
    proved,
    write_figures,
    write_page,
    write_pictures,
    write_site,
)
from prony.cli.patience import read_file, with_patience
from prony.cli.talk import say, show
from prony.core.errors import UsageError
from prony.core.safe_text import escaped
from prony.model.json_codec import Json

if TYPE_CHECKING:
    from prony.model.plan import Plan
    from prony.model.trial import TrialRecord
    from prony.reading.across import SessionPart, Sessions
    from prony.reading.study import StudyResults
    from prony.reading.trend import Trend
    from prony.report.brief import Places
    from prony.report.document import Document
    from prony.report.formats.over_sheets import Sheet
    from prony.report.publication import Redaction


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
    """Several archives in each form."""

    document: "Document"
    data: Callable[[], Json]
    page: Callable[[], str]
    sheets: Callable[[], "tuple[Sheet, ...]"]
    pictures: Callable[[], Iterator[tuple[str, bytes]]]
    redaction: "Redaction | None"


def report_several(files: Sequence[Path], output: SeveralShown) -> None:
    """Report archives of one plan as its sessions; where plans differ, say in what, and show the same cells.

    *Errors*: ArchiveError; UsageError when a file is named twice, or for an output that cannot be written.
    """
    differ = _differences(files)
    if differ:
        say("\n  ".join(differ))
    read = _same_cells if differ else _one_plan
    several = read(files, output)
    if output.markdown_to is not None:
        # Markdown is to pass on.
        redacted = several if output.redact else read(files, replace(output, redact=True))
        _write_document(redacted.document, output.markdown_to, redacted.redaction)
    if not _write(several, output):
        _print(several, as_json=output.as_json)


def _write(several: _Several, output: SeveralShown) -> bool:
    """Write the files that are asked for; return whether there were any."""
    from prony.report.formats.csv_files import write_sheets

    if output.csv_to is not None:
        write_sheets(several.sheets(), output.csv_to, partial(proved, redaction=several.redaction))
    if output.html_to is not None:
        write_html(proved(several.page(), several.redaction), output.html_to)
    if output.figures_to is not None:
        write_pictures(several.pictures(), output.figures_to, several.redaction)
    asked = (output.csv_to, output.markdown_to, output.html_to, output.figures_to)
    return any(one is not None for one in asked)


def _print(several: _Several, *, as_json: bool) -> None:
    from prony.report.formats.terminal import TerminalReporter

    if as_json:
        _show_data(several.data(), several.redaction)
    else:
        proved(str(several.document), several.redaction)
        TerminalReporter().write_report(several.document)


def _show_data(data: "Json", redaction: "Redaction | None") -> None:
    proved(json.dumps(data, ensure_ascii=False), redaction)
    show(json.dumps(data, indent=2))


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


def _one_plan(files: Sequence[Path], output: SeveralShown) -> _Several:
    from prony.report.formats.as_json import document_json
    from prony.report.formats.over_sheets import session_sheets
    from prony.report.page.pictures import pictures_of_sessions
    from prony.report.page.several import page_of_sessions
    from prony.report.trend import sessions_report

    plan, found = _sessions(files, force=output.force, redact=output.redact)
    (plan, found), redaction = passed_on((plan, found), [plan], redact=output.redact)
    title = plan.title or plan.name
    return _Several(
        sessions_report(title, found),
        lambda: document_json(found, title=title),
        lambda: page_of_sessions(title, found),
        lambda: session_sheets(found),
        lambda: pictures_of_sessions(found),
        redaction,
    )


def _sessions(files: Sequence[Path], *, force: bool, redact: bool) -> "tuple[Plan, Sessions]":
    from prony.reading.study import read_over

    names = names_of(files, redact=True) if redact else [file.name for file in files]
    read = [_read(file, name, force=force) for file, name in zip(files, names, strict=True)]
    first, _ = read[0]
    parts = [part for _, found in read for part in found]
    if len({part.started_unix_ns for part in parts}) < len(parts):
        raise UsageError("two of the archives hold the same session", hint="name each archive once")
    if len(parts) < 2:
        raise UsageError("fewer than two of the archives have trials: there are no sessions to compare")
    return first, read_over(first, parts)


def _read(file: Path, name: str, *, force: bool) -> "tuple[Plan, tuple[SessionPart, ...]]":
    from prony.archive import open_archive
    from prony.reading.study import read_sessions

    with open_archive(file) as archive:
        return archive.plan(), read_sessions(archive, name, takes_unsteady=force)


# --- the same cells -----------------------------------------------------------------------------------------


def _same_cells(files: Sequence[Path], output: SeveralShown) -> _Several:
    from prony.report.formats.as_json import document_json
    from prony.report.formats.over_sheets import trend_sheets
    from prony.report.page.pictures import pictures_of_trend
    from prony.report.page.several import page_of_trend
    from prony.report.trend import trend_document

    trend, redaction = _trend(files, force=output.force, redact=output.redact)
    return _Several(
        trend_document(trend),
        lambda: document_json(trend),
        lambda: page_of_trend(trend),
        lambda: trend_sheets(trend),
        lambda: pictures_of_trend(trend),
        redaction,
    )


def _trend(files: Sequence[Path], *, force: bool, redact: bool) -> "tuple[Trend, Redaction | None]":
    """Return what archives have in common, the oldest first, and what was taken out of it."""
    from prony.reading.trend import trend_of

    named = zip(files, names_of(files, redact=redact), strict=True)
    readings = [(name, read_file(file, force=force)) for file, name in named]
    trend = trend_of(readings)
    return passed_on(trend, [reading.plan for _, reading in readings], redact=redact)


EPILOG = """\
Examples:
  prony report embedded-servers.prony           the answer, on one screen
  prony report embedded-servers.prony --full    all tables, claims and notes, then the answer
  prony report embedded-servers.prony --json    the same as data (docs/reference/json.md)
  prony report --schema > report.schema.json    the JSON Schema of it
  prony report embedded-servers.prony --markdown report.md    the same as a page or for an issue
  prony report embedded-servers.prony --html report.html    with charts, for a browser: one file, no network
  prony report embedded-servers.prony --html report.html --redact    to pass on
  prony report embedded-servers.prony --figures pictures    every chart as SVG and PNG
  prony report monday.prony tuesday.prony wednesday.prony    sessions of one plan: what differs between them
  prony report monday.prony tuesday.prony --html sessions.html    the same with charts
  prony report v1.prony v2.prony --html trend.html    of other plans: the same cells over versions or days
  prony report v1.prony v2.prony --figures pictures --csv figures    its charts and tables, as of one archive
  prony report archives --site public    the pages of all archives of a folder, with an index
  prony report embedded-servers.prony --csv figures    each table as a file (docs/reference/report-csv.md)
  prony report shop-tune --html tune.html       the search of `prony tune`: who was dropped when, and why
"""


def _print_schema(asked: bool) -> None:
    if asked:
        from prony.report.formats.schema import report_schema

        show(json.dumps(report_schema(), indent=2))
        raise typer.Exit


@with_patience
def report(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="An archive, *.prony, or a folder of `prony tune`; several archives: the sessions of one "
            "plan, or the same cells over versions or days.",
            metavar="FILE...",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Print the JSON Schema of --json, and nothing else.",
            is_eager=True,
            callback=_print_schema,
        ),
    ] = False,
    markdown_to: Annotated[
        str | None,
        typer.Option(
            "--markdown", help="Write Markdown to a file, or to standard output for -.", metavar="OUT"
        ),
    ] = None,
    html_to: Annotated[
        str | None,
        typer.Option("--html", help="Write a page with charts to a file, or to -.", metavar="OUT"),
    ] = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="In any form: leave out paths and this machine's name; in a page also its facts, and logs.",
        ),
    ] = False,
    figures_to: Annotated[
        Path | None,
        typer.Option("--figures", help="Write every chart as SVG and PNG into a new folder.", metavar="DIR"),
    ] = None,
    site_to: Annotated[
        Path | None,
        typer.Option(
            "--site",
            help="Write the pages of all archives, or of folders of them, with an index into a new folder.",
            metavar="DIR",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print all tables, claims and notes, not the answer alone.")
    ] = False,
    csv_to: Annotated[
        Path | None,
        typer.Option("--csv", help="Write every table as a CSV file into a new folder.", metavar="DIR"),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Let subjects whose pace was not steady enter verdicts.")
    ] = False,
) -> None:
    """Report the figures, the verdicts and the answer of one or more archives; execute nothing from them."""
    if site_to is not None:
        write_site(files, site_to, redact=redact, force=force)
        return
    if len(files) > 1:
        if full:
            raise UsageError(
                "`--full` takes one archive; of several, everything is always printed",
                hint="leave it out, or report each archive alone",
            )
        report_several(files, SeveralShown(as_json, markdown_to, html_to, csv_to, figures_to, redact, force))
        return
    (file,) = files
    if file.is_dir():
        refused = {"--markdown": markdown_to, "--redact": redact, "--figures": figures_to, "--csv": csv_to}
        _report_search(file, html_to, [name for name, value in refused.items() if value], as_json=as_json)
        return
    if csv_to is not None:
        _write_csv(file, csv_to, force=force, redact=redact)
    if markdown_to is not None:
        _write_markdown(file, markdown_to, _page_of(full), force=force)
    if html_to is not None:
        write_page(file, html_to, redact=redact, force=force)
    if figures_to is not None:
        write_figures(file, figures_to, redact=redact, force=force)
    if any(one is not None for one in (csv_to, markdown_to, html_to, figures_to)):
        return
    if as_json:
        from prony.report.formats.as_json import reading_json

        reading, redaction = _reading(file, force=force, redact=redact)
        _show_data(reading_json(reading), redaction)
    else:
        show_report(file, full=full, force=force, redact=redact)


def _report_search(folder: Path, html_to: str | None, refused: Sequence[str], *, as_json: bool) -> None:
    """Report the search of a folder that `prony tune` wrote.

    *Errors*: UsageError for a folder without one, or forms that it does not have; ArchiveError for a file
    that is no answer.
    """
    from prony.cli.tune_search import read_search
    from prony.report.page.tune import page_of_tune
    from prony.report.tune import answer_document

    found = read_search(folder)
    if refused:
        raise UsageError(f"`{refused[0]}`: a search for settings has text, --json and --html alone")
    if html_to is not None:
        write_html(page_of_tune(found), html_to)
    else:
        write_answer(found, lambda: answer_document(found), "-" if as_json else None)


def _page_of(full: bool) -> "Callable[[StudyResults], Document]":
    from prony.report.brief import brief_report
    from prony.report.study import full_page

    return full_page if full else brief_report


def _write_markdown(
    file: Path, out: str, page_of: "Callable[[StudyResults], Document]", *, force: bool
) -> None:
    reading, redaction = _reading(file, force=force, redact=True)
    _write_document(page_of(reading), out, redaction)


def _write_document(document: "Document", out: str, redaction: "Redaction | None") -> None:
    from prony.report.formats.markdown import markdown

    write_output(proved(markdown(document).rstrip("\n"), redaction), out)


def _write_csv(file: Path, folder: Path, *, force: bool, redact: bool) -> None:
    from prony.archive import open_archive
    from prony.reading.study import read_archive
    from prony.report.formats.csv_files import write_csv

    with open_archive(file) as archive:
        reading = read_archive(archive, takes_unsteady=force)
        reading, redaction = passed_on(reading, [reading.plan], redact=redact)

        def trials() -> "Iterator[TrialRecord]":
            return map(redaction, archive.trials()) if redaction else archive.trials()

        write_csv(trials, reading, folder, partial(proved, redaction=redaction))


def report_data(file: Path) -> Json:
    """Return the report of an archive as data."""
    from prony.report.formats.as_json import reading_json

    return reading_json(_reading(file, force=False)[0])


def show_report(file: Path, *, full: bool = False, force: bool = False, redact: bool = False) -> None:
    """Print the short report of an archive, and where the rest is; ``full``: the whole, of which the answer
    is the end. ``force``, ``redact``: as the options.
    """
    from prony.report.brief import brief_report
    from prony.report.formats.terminal import TerminalReporter
    from prony.report.study import study_report

    reading, redaction = _reading(file, force=force, redact=redact)
    document = study_report(reading) if full else brief_report(reading, None if redact else _places(file))
    proved(str(document), redaction)
    (TerminalReporter().write_report if full else TerminalReporter().write)(document)


def _places(file: Path) -> "Places":
    from prony.report.brief import Places

    page = place_beside(file)
    full = shlex.join(["prony", "report", str(file), "--full"])
    return Places(str(file), str(page) if page.exists() else None, full)


def _reading(file: Path, *, force: bool, redact: bool = False) -> "tuple[StudyResults, Redaction | None]":
    """Return the results of an archive; ``redact``: as it may be passed on, and what was taken out."""
    reading = read_file(file, force=force)
    return passed_on(reading, [reading.plan], redact=redact)
