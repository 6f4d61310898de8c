"""``prony why``: what limits the subjects of an archive, and how that is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.flat import flattened
from prony.cli.options import write_answer
from prony.cli.patience import read_file, with_patience
from prony.cli.trying import WhyOptions
from prony.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from prony.reading.limits import LimitedCell

EPILOG = """\
Examples:
  prony why study.prony                    what limits each subject, under each load
  prony why study.prony gunicorn+hello     one of them
  prony why study.prony --json             the same as data (docs/reference/json.md)
  prony why study.prony gunicorn+hello --try    turn the setting that it names, and measure before and after
"""


@flattened
def why(
    file: Annotated[Path, typer.Argument(help="An archive, *.prony.", metavar="FILE")],
    asked: WhyOptions,
    subject: Annotated[
        str | None, typer.Argument(help="One subject: its name, or the beginning of it.", metavar="SUBJECT")
    ] = None,
) -> int:
    """Show what limits each subject: the cause, the evidence, what was ruled out, and what to try.

    Without --try it reads the archive, and measures nothing.
    """
    found = _found(file, subject)
    if asked.attempt:
        from prony.cli.why_try import try_cause

        return try_cause(found, asked)
    if asked.app is not None or asked.out is not None:
        raise UsageError("`--app`, `--dir` and `--out` only work with `--try`")
    from prony.report.why import why_document

    what = f"Why not more: {file.name}"
    write_answer({"subjects": found}, lambda: why_document(what, found), asked.json_to)
    return ExitCode.DONE


@with_patience
def _found(file: Path, subject: str | None) -> "tuple[LimitedCell, ...]":
    from prony.reading.limits import limited_cells

    reading = read_file(file)
    if subject is None:
        return limited_cells(reading)
    names = list(dict.fromkeys(cell.name for cell in reading.cells))
    found = [name for name in names if name == subject] or [
        name for name in names if name.startswith(subject)
    ]
    if len(found) == 1:
        return limited_cells(reading, found[0])
    fits = f"`{subject}` begins the names of {len(found)} subjects" if found else f"no subject is `{subject}`"
    raise UsageError(
        f"{fits}; expected one of {', '.join(found or names)}",
        hint="leave it out to see all of them",
    )
