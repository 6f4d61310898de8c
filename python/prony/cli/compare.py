"""``prony compare``: two archives, or two subjects of one archive."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.talk import show
from prony.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from prony.analysis.change import ChangeLimit, LimitResult
    from prony.analysis.compare import Terms
    from prony.analysis.summary import CellSummary
    from prony.analysis.versus import Match
    from prony.reading.study import Reading
    from prony.report.compare import Sides

__all__ = ["EPILOG", "compare"]

EPILOG = """\
Examples:

  prony compare before.prony after.prony                    the same subjects, measured twice

  prony compare study.prony gunicorn+hello uwsgi+hello      two subjects of one study, paired by block

  prony compare before.prony after.prony --fail-if 'rps < -5%'    for CI: 1 if shown, 3 if undecided
"""


def compare(
    file: Annotated[Path, typer.Argument(help="The first archive, *.prony.")],
    others: Annotated[
        list[str], typer.Argument(metavar="FILE | SUBJECT SUBJECT", help="A second archive, or two subjects.")
    ],
    fail_if: Annotated[
        list[str] | None,
        typer.Option(help="A change that counts as a failure, such as 'rps < -5%'; may be repeated."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Compare even if machines or apps differ, or a pace was not steady."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show what changed between two archives, or how two subjects of one differ, and how sure that is."""
    limits = tuple(_limit(text) for text in fail_if or ())
    if len(others) == 1:
        return _archives(file, Path(others[0]), limits, force=force, as_json=as_json)
    if len(others) == 2:
        return _subjects(file, (others[0], others[1]), limits, force=force, as_json=as_json)
    raise UsageError(
        f"{len(others)} names after `{file}`; expected another archive, or two subjects of this one",
        hint="prony compare --help",
    )


def _limit(text: str) -> "ChangeLimit":
    from prony.analysis.change import parse_limit

    try:
        return parse_limit(text)
    except ValueError as error:
        raise UsageError(f"`--fail-if`: {error}") from None


def _read(file: Path, *, force: bool) -> "Reading":
    from prony.archive import open_archive
    from prony.reading.study import read_archive

    with open_archive(file) as archive:
        return read_archive(archive, takes_unsteady=force)


def _subjects(
    file: Path, names: tuple[str, str], limits: Sequence["ChangeLimit"], *, force: bool, as_json: bool
) -> int:
    from prony.analysis.versus import matches
    from prony.report.compare import Sides

    reading = _read(file, force=force)
    first, second = (_cells(reading, name, file) for name in names)
    found = matches(first, second, alike=False)
    sides = Sides(first[0].cell.subject.name, second[0].cell.subject.name)
    return _printed(reading, sides, found, limits, is_paired=True, as_json=as_json)


def _cells(reading: "Reading", name: str, file: Path) -> list["CellSummary"]:
    """Return the cells of the one subject that a name or a pattern matches."""
    from prony.model import is_named

    names = [subject.name for subject in reading.plan.subjects()]
    meant = [name] if name in names else [one for one in names if is_named(one, name)]
    if len(meant) != 1:
        problem = f"matches {', '.join(meant)} of" if meant else "matches no subject of"
        raise UsageError(f"`{name}` {problem} `{file}`", hint=f"its subjects are {', '.join(names)}")
    return [cell for cell in reading.cells if cell.cell.subject.name == meant[0]]


def _archives(
    first: Path, second: Path, limits: Sequence["ChangeLimit"], *, force: bool, as_json: bool
) -> int:
    from prony.analysis.versus import matches
    from prony.report.compare import Sides

    before, after = _read(first, force=force), _read(second, force=force)
    single = all(len(reading.plan.subjects()) == 1 for reading in (before, after))
    found = matches(before.cells, after.cells, alike=not single)
    differ = _differences(before, after, found)
    if differ and not force:
        raise UsageError(
            f"`{first}` and `{second}` cannot be compared, because they differ: {'; '.join(differ)}",
            hint="measure both in one study on one machine, or add --force and read the result with care",
        )
    sides = Sides(str(first), str(second), differ)
    return _printed(after, sides, found, limits, is_paired=False, as_json=as_json)


def _differences(before: "Reading", after: "Reading", found: Sequence["Match"]) -> tuple[str, ...]:
    from prony.analysis.fingerprints import comparable
    from prony.analysis.versus import differing_parts

    machines = [
        f"{one.name}: {one.a} and {one.b}" for one in comparable(before.fingerprint, after.fingerprint)
    ]
    cells = {what: None for match in found for what in differing_parts(match)}
    return (*machines, *(f"the {what} of what was measured" for what in cells))


def _printed(
    reading: "Reading",
    sides: "Sides",
    found: Sequence["Match"],
    limits: Sequence["ChangeLimit"],
    *,
    is_paired: bool,
    as_json: bool,
) -> int:
    from prony.analysis.change import held
    from prony.analysis.versus import versus
    from prony.faces.json_compare import compare_json
    from prony.faces.terminal import TerminalReporter
    from prony.report.compare import compare_document

    if not found:
        raise UsageError(
            f"`{sides.first}` and `{sides.second}` have no load in common",
            hint="prony report FILE shows the content of an archive",
        )
    primary = tuple(metric for limit in limits for metric in limit.metrics)
    by_session = any(cell.by_session is not None for match in found for cell in (match.first, match.second))
    agreed = _terms(reading, is_paired=is_paired, by_session=by_session)
    compared = versus(found, is_paired, agreed, primary)
    results = [result for limit in limits for result in held(limit, compared)]
    if as_json:
        show(json.dumps(compare_json(sides, compared, results), indent=2))
    else:
        TerminalReporter().write_report(compare_document(sides, compared, results))
    return _status(results)


def _terms(reading: "Reading", *, is_paired: bool, by_session: bool) -> "Terms":
    """Return the margin and levels of the study.

    Only a study has looks: two archives are compared once. Sessions are counted as they are.
    """
    from prony.reading.groups import terms

    agreed = terms(reading.plan, reading.blocks)
    agreed = agreed if is_paired else replace(agreed, look=None)
    return replace(agreed, by_session=True, look=None) if by_session else agreed


def _status(results: Sequence["LimitResult"]) -> int:
    shown = [result.shown for result in results]
    if True in shown:
        return ExitCode.VERDICT_NEGATIVE
    return ExitCode.COULD_NOT_MEASURE if None in shown else ExitCode.DONE
