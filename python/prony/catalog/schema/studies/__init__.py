"""Built-in studies: one TOML file for each, with the published figures next to it; and how to read them.

The published figures of a study: a table next to its file, a row for each figure.

Errors name file, line, column, what was found and what was expected.
"""

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

from prony.catalog import DATA, readable
from prony.catalog.schema.studies.check import Grid, check_study, grid_of
from prony.catalog.schema.toml_source import SourceError, problems_error, read_toml, validate
from prony.core.errors import UsageError
from prony.core.metrics import METRICS
from prony.core.units import MIB
from prony.figures.trial_metrics import has_roles
from prony.model.plan import Original
from prony.plan.document import StudyDocument

FOLDER = DATA / "studies"


@dataclass(frozen=True, slots=True)
class StudySource:
    """A study: its document, its text verbatim, and the published figures."""

    document: StudyDocument
    text: str
    originals: tuple[Original, ...] = ()


@readable()
def built_in_studies() -> dict[str, Path]:
    """Return the built-in studies' files by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.toml"))}


def read_study(name: str) -> StudySource:
    """Return the study ``name``: a built-in one, or a file's path.

    *Errors*: UsageError with all problems of the file, or with the most similar name.
    """
    built_in = built_in_studies()
    file = built_in.get(name) or Path(name)
    if name not in built_in and not file.is_file():
        near = get_close_matches(name, built_in, n=1)
        hint = (
            f"did you mean `{near[0]}`?"
            if near
            else f"built-in studies: {', '.join(built_in)}; or name a TOML file"
        )
        raise UsageError(f"there is no study `{name}`", hint=hint)
    return _read(file)


def _read(file: Path) -> StudySource:
    source = read_toml(file)
    document = validate(source, StudyDocument)
    grid = grid_of(document)
    problems = check_study(document, grid)
    if problems:
        raise problems_error(source, problems)
    originals = read_originals(file.parent / document.originals, grid) if document.originals else ()
    return StudySource(document, source.text, originals)


# --- the published figures --------------------------------------------------------------------------------


LOADS = ("connections", "rate", "streams", "requests", "threads")
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "subject": "the name of one of the study's subjects",
        "engine": "the generator that put the load on it; empty: any",
        "metric": "one of METRICS",
        "role": "the role of the processes that the figure describes; empty: all",
        **dict.fromkeys(LOADS, "a number that identifies the load; empty: not known"),
        "value": "the figure, in the metric's unit: nanoseconds, bytes, 1 for all, 100 for one core",
        "note": "what a reader must know about it",
    }
)
"""The columns that a table may have, and their content."""

_REQUIRED = ("subject", "metric", "value")
# A thousand times the largest table that comes with Prony.
_LARGEST_FILE_BYTES = 64 * MIB


def read_originals(file: Path, grid: Grid) -> tuple[Original, ...]:
    """Return the figures in ``file``; each must be of a cell that some profile of the study has.

    *Errors*: SourceError with all problems of the file.
    """
    rows = list(_rows(file))
    problems = [problem for line, row in rows for problem in _problems(row, f"{file}:{line}", grid)]
    if problems:
        raise SourceError(problems)
    return tuple(_original(row) for _, row in rows)


def _rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        if file.stat().st_size > _LARGEST_FILE_BYTES:
            raise SourceError([f"{file}: is larger than {_LARGEST_FILE_BYTES} bytes"])
        with file.open(encoding="utf-8", newline="") as opened:
            reader = csv.DictReader(opened, strict=True, restkey="", restval="")
            wrong = _wrong_columns(reader.fieldnames or ())
            if wrong:
                raise SourceError([f"{file}:1 {wrong}"])
            for row in reader:
                if "" in row:
                    raise SourceError([f"{file}:{reader.line_num} has more cells than the first line"])
                yield reader.line_num, row
    except OSError as error:
        raise SourceError([f"{file}: cannot be read: {error.strerror}"]) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError([f"{file}: is not a table of UTF-8 text: {error}"]) from error


def _wrong_columns(names: object) -> str:
    found = tuple(str(name) for name in names) if isinstance(names, list | tuple) else ()
    for name in _REQUIRED:
        if name not in found:
            return f"{name}: the column is missing"
    unknown = next((name for name in found if name not in COLUMNS), None)
    return (
        f"found the column `{unknown}`; expected some of {', '.join(COLUMNS)}" if unknown is not None else ""
    )


def _problems(row: Mapping[str, str], where: str, grid: Grid) -> Iterator[str]:
    if row["subject"] not in grid.subjects:
        yield f"{where} subject: found `{row['subject']}`; expected one of {', '.join(grid.subjects)}"
    if row["metric"] not in METRICS:
        yield f"{where} metric: found `{row['metric']}`; expected one of METRICS (docs/reference/metrics.md)"
    yield from _role_problems(row, where)
    engine = row.get("engine") or "*"
    if engine != "*" and engine not in grid.engines:
        yield f"{where} engine: found `{engine}`; expected one of {', '.join(grid.engines)}"
    wrong = [name for name in (*LOADS, "value") if row.get(name) and _number(row[name]) is None]
    for name in (*wrong, *(() if row["value"] else ("value",))):
        yield f"{where} {name}: found `{row[name]}`; expected a number"
    known = row["subject"] in grid.subjects and engine in ("*", *grid.engines)
    if known and not wrong and not grid.has(row["subject"], engine, _load_original(row)):
        described = ", ".join(f"{name} {value:g}" for name, value in _load_original(row).items())
        yield f"{where} found {described} of {engine}; expected a load that some profile has for this subject"


def _role_problems(row: Mapping[str, str], where: str) -> Iterator[str]:
    if row.get("role") and row["metric"] in METRICS and not has_roles(row["metric"]):
        metric = row["metric"]
        yield f"{where} role: found `{row['role']}`; expected no role: `{metric}` is not measured by role"


def _original(row: Mapping[str, str]) -> Original:
    return Original(
        subject=row["subject"],
        metric=row["metric"],
        value=float(row["value"]),
        load=_load_original(row),
        engine=row.get("engine") or "*",
        note=row.get("note") or "",
        role=row.get("role") or "",
    )


def _load_original(row: Mapping[str, str]) -> dict[str, float]:
    return {name: float(row[name]) for name in LOADS if row.get(name)}


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
