"""``prony compare``: two archives, two subjects of one archive, or saved loads.

``prony compare`` of saved loads: a file of ``prony load --json`` a side, or a folder of them.
"""

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.flat import flattened, option
from prony.cli.options import read_option, write_answer, write_output
from prony.cli.pages import proved
from prony.cli.patience import read_file, with_patience
from prony.core.errors import ExitCode, UsageError
from prony.core.units import MIB

if TYPE_CHECKING:
    from prony.figures.load_pairs import SavedLoad, SavedLoads
    from prony.figures.summary import CellSummary
    from prony.figures.versus import Match, Versus
    from prony.reading.study import StudyResults

EPILOG = """\
Examples:
  prony compare before.prony after.prony                    the same subjects, measured twice
  prony compare study.prony gunicorn+hello uwsgi+hello      two subjects of one study, paired by block
  prony compare before.json after.json                      two loads saved by load --json
  prony compare before after                                folders of them: each is a run
  prony compare before.prony after.prony --fail-if 'rps < -5%'    for CI: 1 if shown, 3 if undecided
  prony compare before.prony after.prony --fail-if 'cpu > 5%' --junit limits.xml --markdown change.md
"""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What fails, and what is written."""

    fail_if: list[str] | None = option(
        None, "A change that counts as a failure, such as 'rps < -5%'; may be repeated."
    )
    force: bool = option(
        False, "Compare even if machines or apps differ, or a pace was not steady.", "--force"
    )
    as_json: bool = option(False, "Print JSON.", "--json")
    markdown_to: str | None = option(
        None, "Write Markdown to a file, or to - (standard output).", "--markdown", metavar="OUT"
    )
    junit_to: str | None = option(
        None, "Write each --fail-if as a test of JUnit's, for CI.", "--junit", metavar="OUT"
    )


@flattened
@with_patience
def compare(
    file: Annotated[Path, typer.Argument(help="The first archive, *.prony, or saved load, *.json.")],
    others: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE | SUBJECT SUBJECT",
            help="A second archive, or two subjects; after a saved load, or a folder of them, another one.",
        ),
    ],
    asked: CompareOptions,
) -> int:
    """Show what changed between archives or loads, or how two subjects differ, and how sure that is."""
    from prony.figures.versus import held, parse_limit

    limits = tuple(read_option("--fail-if", text, parse_limit) for text in asked.fail_if or ())
    if len(others) not in (1, 2):
        raise UsageError(
            f"{len(others)} names after `{file}`; expected another archive, or two subjects of this one",
            hint="prony compare --help",
        )
    if asked.junit_to is not None and not limits:
        raise UsageError("`--junit` writes what `--fail-if` asks; expected at least one of them")
    outputs = (("--markdown", asked.markdown_to), ("--junit", asked.junit_to))
    said = [name for name, to in outputs if to == "-"]
    if len(said) + asked.as_json > 1:
        raise UsageError(f"`{said[0]} -`: something else goes to standard output; expected a file")
    found = _found(file, others, [name for limit in limits for name in limit.metrics], force=asked.force)
    found = replace(found, limits=tuple(held(limit, load) for limit in limits for load in found.loads))
    _write(found, asked, is_said=bool(said))
    return _status(found)


def _write(found: "Versus", asked: CompareOptions, *, is_said: bool) -> None:
    from prony.report.compare import compare_document
    from prony.report.formats.junit import junit
    from prony.report.formats.markdown import markdown
    from prony.report.publication import redaction_of_loads

    if not is_said:
        write_answer(found, lambda: compare_document(found), "-" if asked.as_json else None)
    if asked.markdown_to is not None:
        # Markdown is to pass on.
        redaction = redaction_of_loads((load.workload for load in found.loads), socket.gethostname())
        page = markdown(compare_document(redaction(found)))
        write_output(proved(page.rstrip("\n"), redaction), asked.markdown_to)
    if asked.junit_to is not None:
        write_output(junit(found), asked.junit_to)


def _found(file: Path, others: Sequence[str], primary: Sequence[str], *, force: bool) -> "Versus":
    """Return the comparison. ``primary``: the metrics that it is made for, where limits name any."""

    if len(others) == 2:
        return _subjects(file, others, primary, force=force)
    sides = file, Path(others[0])
    saved = [are_saved_loads(side) for side in sides]
    if all(saved):
        return compared_saved_loads(*sides, force=force)
    if any(saved):
        raise UsageError(
            f"`{sides[0]}` and `{sides[1]}` are not of one kind; expected two archives, or two saved loads",
            hint="a saved load is a file of prony load --json, or a folder of such files named *.json",
        )
    return _archives(file, Path(others[0]), primary, force=force)


def _subjects(file: Path, names: Sequence[str], primary: Sequence[str], *, force: bool) -> "Versus":
    from prony.figures.versus import matches

    reading = read_file(file, force=force)
    first, second = (_cells(reading, name, file) for name in names)
    found = matches(first, second, alike=False)
    sides = first[0].cell.subject.name, second[0].cell.subject.name
    return _compared(reading, sides, found, primary, is_paired=True)


def _cells(reading: "StudyResults", name: str, file: Path) -> list["CellSummary"]:
    """Return the cells of the one subject that a name or a pattern matches."""
    from prony.model.subject import is_named

    names = [subject.name for subject in reading.plan.subjects()]
    meant = [name] if name in names else [one for one in names if is_named(one, name)]
    if len(meant) != 1:
        problem = f"matches {', '.join(meant)} of" if meant else "matches no subject of"
        raise UsageError(f"`{name}` {problem} `{file}`", hint=f"its subjects are {', '.join(names)}")
    return [cell for cell in reading.cells if cell.cell.subject.name == meant[0]]


def _archives(first: Path, second: Path, primary: Sequence[str], *, force: bool) -> "Versus":
    from prony.figures.versus import matches

    before, after = read_file(first, force=force), read_file(second, force=force)
    single = all(len(reading.plan.subjects()) == 1 for reading in (before, after))
    found = matches(before.cells, after.cells, alike=not single)
    differ = _differences(before, after, found)
    if differ and not force:
        raise UsageError(
            f"`{first}` and `{second}` cannot be compared, because they differ: {'; '.join(differ)}",
            hint="measure both in one study on one machine, or add --force and read the result with care",
        )
    return _compared(after, (str(first), str(second)), found, primary, is_paired=False, forced=differ)


def _differences(before: "StudyResults", after: "StudyResults", found: Sequence["Match"]) -> tuple[str, ...]:
    from prony.figures.drift import comparable
    from prony.figures.versus import differing_parts

    machines = [
        f"{one.name}: {one.a} and {one.b}" for one in comparable(before.fingerprint, after.fingerprint)
    ]
    cells = {what: None for match in found for what in differing_parts(match)}
    return (*machines, *(f"the {what} of what was measured" for what in cells))


def _compared(
    reading: "StudyResults",
    sides: tuple[str, str],
    found: Sequence["Match"],
    primary: Sequence[str],
    *,
    is_paired: bool,
    forced: tuple[str, ...] = (),
) -> "Versus":
    from prony.figures.versus import Versus, compared_loads, then_of
    from prony.reading.groups import terms

    first, second = sides
    if not found:
        raise UsageError(
            f"`{first}` and `{second}` have no load in common",
            hint="prony report FILE shows the content of an archive",
        )
    by_session = any(cell.by_session is not None for match in found for cell in (match.first, match.second))
    agreed = replace(terms(reading.plan, reading.blocks), by_session=by_session)
    # Only a study has looks: two archives are compared once. Sessions are counted as they are.
    agreed = agreed if is_paired and not by_session else replace(agreed, look=None)
    loads = compared_loads(found, is_paired, agreed, primary)
    units = "sessions" if by_session else "blocks"
    return Versus(
        first=first,
        second=second,
        paired=is_paired,
        by_session=by_session,
        forced=forced,
        loads=loads,
        then=then_of(loads, f"more {units}" if is_paired else "one study of both, in which they take turns"),
    )


def _status(found: "Versus") -> int:
    shown = [one.shown for one in found.limits]
    if True in shown:
        return ExitCode.VERDICT_NEGATIVE
    return ExitCode.COULD_NOT_MEASURE if None in shown else ExitCode.DONE


# --- saved loads ------------------------------------------------------------------------------------------


# A load of a day has 86,400 seconds of some hundred bytes each; read as JSON it takes ten times as much.
_MOST_BYTES = 64 * MIB
_ARCHIVE = b"SQLite format 3\0"
_HINT = "prony load URL --json FILE saves a load; prony compare --help has examples"


def are_saved_loads(path: Path) -> bool:
    """Return whether this is a folder with such files, or a file that is no archive but begins as JSON."""
    if path.is_dir():
        return any(path.glob("*.json"))
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            head = file.read(len(_ARCHIVE))
    except OSError:
        return False  # what reads archives says what is wrong with it
    return head != _ARCHIVE and head.lstrip()[:1] == b"{"


def compared_saved_loads(first: Path, second: Path, *, force: bool) -> "Versus":
    """Return the comparison of two sides of saved loads.

    *Errors*: UsageError for a file that is none, and, without ``force``, for loads that differ.
    """
    from prony.figures.load_pairs import compare_saved_loads

    sides = _side(first), _side(second)
    differ = tuple(dict.fromkeys(_differing_loads(sides)))
    if differ and not force:
        raise UsageError(
            f"`{first}` and `{second}` cannot be compared, because their loads differ: {'; '.join(differ)}",
            hint="load both alike, or add --force and read the result with care",
        )
    return compare_saved_loads(*sides, differ)


def _differing_loads(sides: Sequence["SavedLoads"]) -> Iterator[str]:
    from prony.figures.load_pairs import differing_loads

    every = [load for side in sides for load in side.loads.values()]
    for one in every[1:]:
        yield from differing_loads(every[0], one)


def _side(path: Path) -> "SavedLoads":
    from prony.figures.load_pairs import SavedLoads

    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return SavedLoads(str(path), {str(file): _load(file) for file in files})


def _load(file: Path) -> "SavedLoad":
    from prony.figures.load_pairs import decode_saved_load

    try:
        if not file.is_file():
            raise ValueError("it is no file")
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError("it is too large for one")
        return decode_saved_load(json.loads(file.read_bytes()))
    except OSError as error:
        raise UsageError(f"cannot read `{file}`: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"`{file}` is no saved load: {error}", hint=_HINT) from None
