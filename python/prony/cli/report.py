"""``prony report``: the report of an archive.

``prony report`` of several archives: the sessions of one plan, else the same cells of each.

The one place where that is decided; what is shown is the same in every form.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.flat import flattened, option
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
    from prony.model.trial import TrialRecord
    from prony.reading.across import Across
    from prony.reading.study import StudyResults
    from prony.report.brief import Places
    from prony.report.document import Document
    from prony.report.publication import Redaction

    _Readings = Sequence[tuple[Path, StudyResults]]


def _print_schema(asked: bool) -> None:
    if asked:
        from prony.report.formats.as_json import report_schema

        show(json.dumps(report_schema(), indent=2))
        raise typer.Exit


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How archives are shown, and what is written."""

    as_json: bool = option(False, "Print JSON.", "--json")
    schema: bool = option(
        False,
        "Print the JSON Schema of --json, and nothing else.",
        "--schema",
        is_eager=True,
        callback=_print_schema,
    )
    markdown_to: str | None = option(
        None, "Write Markdown to a file, or to standard output for -.", "--markdown", metavar="OUT"
    )
    html_to: str | None = option(
        None, "Write a page with charts to a file, or to -.", "--html", metavar="OUT"
    )
    redact: bool = option(
        False,
        "In any form: leave out paths and this machine's name; in a page also its facts, and logs.",
        "--redact",
    )
    figures_to: Path | None = option(
        None, "Write every chart as SVG and PNG into a new folder.", "--figures", metavar="DIR"
    )
    site_to: Path | None = option(
        None,
        "Write the pages of all archives, or of folders of them, with an index into a new folder.",
        "--site",
        metavar="DIR",
    )
    full: bool = option(False, "Print all tables, claims and notes, not the answer alone.", "--full")
    csv_to: Path | None = option(
        None, "Write every table as a CSV file into a new folder.", "--csv", metavar="DIR"
    )
    force: bool = option(False, "Let subjects whose pace was not steady enter verdicts.", "--force")

    @property
    def writes(self) -> bool:
        """Whether files are asked for: nothing is printed then."""
        files = (self.csv_to, self.markdown_to, self.html_to, self.figures_to)
        return any(one is not None for one in files)


def report_several(files: Sequence[Path], asked: ReportOptions) -> None:
    """Report archives of one plan as its sessions; where plans differ, say in what, and show the same cells.

    *Errors*: ArchiveError; UsageError when a file is named twice, or for an output that cannot be written.
    """
    from prony.report.across import across_document
    from prony.report.formats.as_json import document_json
    from prony.report.formats.terminal import TerminalReporter

    readings = [(file, read_file(file, force=asked.force)) for file in files]
    differ = _differences(readings)
    if differ:
        say("\n  ".join(differ))
    found, redaction = _across(readings, asked, is_one_plan=not differ)
    if asked.markdown_to is not None:
        # Markdown is to pass on.
        redacted = _across(readings, replace(asked, redact=True), is_one_plan=not differ)
        _write_document(across_document(redacted[0]), asked.markdown_to, redacted[1])
    if asked.writes:
        _write(found, asked, redaction)
    elif asked.as_json:
        _show_data(document_json(found), redaction)
    else:
        document = across_document(found)
        proved(str(document), redaction)
        TerminalReporter().write_report(document)


def _write(found: "Across", asked: ReportOptions, redaction: "Redaction | None") -> None:
    from prony.report.formats.csv_files import write_sheets
    from prony.report.formats.sheets import over_sheets
    from prony.report.page.study import page_of_several, pictures_of_several

    if asked.csv_to is not None:
        write_sheets(over_sheets(found), asked.csv_to, partial(proved, redaction=redaction))
    if asked.html_to is not None:
        write_html(proved(page_of_several(found), redaction), asked.html_to)
    if asked.figures_to is not None:
        write_pictures(pictures_of_several(found), asked.figures_to, redaction)


def _show_data(data: "Json", redaction: "Redaction | None") -> None:
    proved(json.dumps(data, ensure_ascii=False), redaction)
    show(json.dumps(data, indent=2))


def _differences(readings: "_Readings") -> list[str]:
    """Return in words what keeps archives from being sessions of one plan; empty when nothing does."""
    from prony.reading.across import differences_of_plans

    first, own = readings[0]
    for file, reading in readings:
        if found := differences_of_plans(own.plan, reading.plan):
            head = f"`{first}` and `{file}` are not sessions of one plan; they differ in"
            return [escaped(one) for one in (head, *found)]
    return []


def _across(
    readings: "_Readings", asked: ReportOptions, *, is_one_plan: bool
) -> "tuple[Across, Redaction | None]":
    """Return archives side by side, the oldest first, and what was taken out of it."""
    from prony.reading.across import over_archives
    from prony.reading.study import read_over, sessions_in, side_of

    names = names_of([file for file, _ in readings], redact=asked.redact)
    read = [(reading, name) for (_, reading), name in zip(readings, names, strict=True)]
    if is_one_plan:
        sides = [side for one in read for side in sessions_in(*one, takes_unsteady=asked.force)]
        if len({side.started_unix_ns for side in sides}) < len(sides):
            raise UsageError("two of the archives hold the same session", hint="name each archive once")
        if len(sides) < 2:
            raise UsageError("fewer than two of the archives have trials: there are no sessions to compare")
    found = read_over(sides) if is_one_plan else over_archives(side_of(*one) for one in read)
    return passed_on(found, [reading.plan for _, reading in readings], redact=asked.redact)


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


@flattened
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
    asked: ReportOptions,
) -> None:
    """Report the figures, the verdicts and the answer of one or more archives; execute nothing from them."""
    if asked.site_to is not None:
        write_site(files, asked.site_to, redact=asked.redact, force=asked.force)
    elif len(files) > 1:
        if asked.full:
            raise UsageError(
                "`--full` takes one archive; of several, everything is always printed",
                hint="leave it out, or report each archive alone",
            )
        report_several(files, asked)
    elif files[0].is_dir():
        _report_search(files[0], asked)
    else:
        _report_one(files[0], asked)


def _report_one(file: Path, asked: ReportOptions) -> None:
    from prony.report.brief import brief_report
    from prony.report.study import full_page

    redact, force = asked.redact, asked.force
    if asked.csv_to is not None:
        _write_csv(file, asked.csv_to, force=force, redact=redact)
    if asked.markdown_to is not None:
        reading, redaction = _reading(file, force=force, redact=True)
        document = full_page(reading) if asked.full else brief_report(reading)
        _write_document(document, asked.markdown_to, redaction)
    if asked.html_to is not None:
        write_page(file, asked.html_to, redact=redact, force=force)
    if asked.figures_to is not None:
        write_figures(file, asked.figures_to, redact=redact, force=force)
    if asked.writes:
        return
    if asked.as_json:
        from prony.report.formats.as_json import reading_json

        reading, redaction = _reading(file, force=force, redact=redact)
        _show_data(reading_json(reading), redaction)
    else:
        show_report(file, full=asked.full, force=force, redact=redact)


def _report_search(folder: Path, asked: ReportOptions) -> None:
    """Report the search of a folder that `prony tune` wrote.

    *Errors*: UsageError for a folder without one, or forms that it does not have; ArchiveError for a file
    that is no answer.
    """
    from prony.cli.tune_search import read_search
    from prony.report.page.tune import page_of_tune
    from prony.report.tune import answer_document

    found = read_search(folder)
    other = {"markdown": asked.markdown_to, "redact": asked.redact, "figures": asked.figures_to}
    for name, value in {**other, "csv": asked.csv_to}.items():
        if value:
            raise UsageError(f"`--{name}`: a search for settings has text, --json and --html alone")
    if asked.html_to is not None:
        write_html(page_of_tune(found), asked.html_to)
    else:
        write_answer(found, lambda: answer_document(found), "-" if asked.as_json else None)


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
