"""A study's trials as a table that is small enough for a repository: one value a row, compressed.

Columns: `table` (plan, cell, run, subject, trial, curve), `row` in it, `path` of the value in that row, and
`value` as JSON. A trial's paths are those of `prony.figures.summary.TrialFigures`: `metrics/ok_per_s` is its
valid replies per second. Numbers have nine digits, paths of the machine are shortened, logs are left out.
Claims and pictures can be made from it, but not what needs the samples of trials: findings and diagnoses.
"""

import csv
import io
import json
import lzma
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from prony.archive import Archive, open_archive
from prony.archive.guard import APPLICATION_ID, FORMAT_VERSION, schema
from prony.figures.account import RequestClass
from prony.figures.summary import TrialFigures
from prony.model.observation import LogTail
from prony.reading.study import StudyResults
from prony.reading.traces import PercentileCurve, Traces, traces
from prony.report.publication import Redaction, redaction_for

ENDING = ".csv.xz"
COLUMNS = ("table", "row", "path", "value")
VERBATIM = ("meta", "plan", "cell", "run", "subject")
# What requests ask for looks like a path of the machine.
ASKED = "workload_json"
DIGITS, LONGEST = 9, 2**24

Take = Callable[[Archive, tuple[TrialFigures, ...]], StudyResults]
"""Reads a study from an archive without trials, and from their figures."""


# --- writing ----------------------------------------------------------------------------------------------


def write(archive: Path, reading: StudyResults, file: Path) -> None:
    """Write the table of an archive that was read."""
    with open_archive(archive) as opened:
        curves = traces(reading, opened.trials()).curves
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerow(("archive", 0, "sha256", json.dumps(sha256(archive.read_bytes()).hexdigest())))
    redaction = redaction_for([reading.plan], "")
    lines.writerows(_verbatim(archive, redaction))
    for number, trial in enumerate(reading.trials):
        lines.writerows(_rows("trial", number, plain(redaction(replace(trial, log=LogTail(""))))))
    for cell, found in curves.items():
        lines.writerows(_rows("curve", cell, [plain(redaction(one)) for one in found]))
    file.write_bytes(lzma.compress(out.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME))


def _verbatim(archive: Path, redaction: Redaction) -> Iterator[tuple[str, int, str, str]]:
    database = sqlite3.connect(f"{archive.absolute().as_uri()}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    for table in VERBATIM:
        for number, row in enumerate(database.execute(f"SELECT * FROM {table}")):  # noqa: S608 - table is ours
            for name, value in dict(row).items():
                kept = value if name == ASKED else redaction(value)
                yield table, number, name, json.dumps(kept, ensure_ascii=False)
    database.close()


def plain(value: object) -> Any:  # noqa: PLR0911 - a kind of value each
    """Return a value as JSON: a class of requests by its two parts, another dataclass as its fields."""
    match value:
        case bool() | int() | None:
            return value
        case float():
            return float(f"{value:.{DIGITS}g}")
        case Enum():
            return value.value
        case str():
            return value
        case RequestClass(name, status):
            return f"{name} {status or ''}"
        case Mapping():
            return {str(plain(key)): plain(one) for key, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case _:
            own = {one.name: plain(getattr(value, one.name)) for one in fields(value) if one.init}  # type: ignore[arg-type]
            return {"is": type(value).__name__, **own}


def _rows(table: str, row: int, value: Any, path: str = "") -> Iterator[tuple[str, int, str, str]]:
    """Yield a row for each value within ``value``, and one for each that holds nothing."""
    pairs = enumerate(value) if isinstance(value, list) else ()
    within = list(value.items() if isinstance(value, dict) else pairs)
    for key, one in within:
        name = str(key).replace("~", "~0").replace("/", "~1")
        yield from _rows(table, row, one, f"{path}/{name}" if path else name)
    if not within:
        yield table, row, path, json.dumps(value, ensure_ascii=False)


# --- reading ----------------------------------------------------------------------------------------------


def read(file: Path, take: Take) -> tuple[StudyResults, Traces, str]:
    """Return what a table says, its curves, and its archive's digest."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    # A plan's published figures stand in one field.
    csv.field_size_limit(LONGEST)
    for row in csv.DictReader(io.StringIO(lzma.decompress(file.read_bytes()).decode())):
        place = found.setdefault(row["table"], {}).setdefault(int(row["row"]), {})
        place[row["path"]] = json.loads(row["value"])
    trials = tuple(typed(TrialFigures, _nested(one)) for one in found.get("trial", {}).values())
    lines = found.get("curve", {})
    curves = {cell: typed(tuple[PercentileCurve, ...], _nested(one)) for cell, one in lines.items()}
    with TemporaryDirectory() as folder, open_archive(_rebuilt(Path(folder) / "a.prony", found)) as archive:
        reading = take(archive, trials)
    return reading, Traces(curves), str(found["archive"][0]["sha256"])


def _rebuilt(file: Path, found: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> Path:
    """Return an archive with the plan, its cells, the runs and the subjects, and without trials."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(schema())
        database.execute(f"PRAGMA application_id={APPLICATION_ID}")
        database.execute(f"PRAGMA user_version={FORMAT_VERSION}")
        for table in VERBATIM:
            for row in found.get(table, {}).values():
                into = f"INSERT INTO {table} ({','.join(row)}) VALUES ({','.join('?' * len(row))})"  # noqa: S608
                database.execute(into, tuple(row.values()))
        database.commit()
        file.write_bytes(database.serialize())
    return file


def _nested(flat: Mapping[str, Any]) -> Any:
    """Return what `_rows` took apart; an array as an object with its places as keys."""
    if set(flat) == {""}:
        return flat[""]
    found: dict[str, Any] = {}
    for path, value in flat.items():
        *above, last = path.split("/")
        place = found
        for key in above:
            place = place.setdefault(_unescaped(key), {})
        place[_unescaped(last)] = value
    return found


def _unescaped(key: str) -> str:
    return key.replace("~1", "/").replace("~0", "~")


def typed(hint: Any, value: Any) -> Any:
    """Return JSON of `plain` as the type that ``hint`` says."""
    options = [one for one in get_args(hint) if one is not NoneType]
    match get_origin(hint):
        case origin if origin in (Union, UnionType):
            if value is None:
                return None
            kind = value.get("is") if isinstance(value, dict) else None
            own = [one for one in options if is_dataclass(one) == (kind is not None)]
            return typed(next(one for one in own if kind in (None, one.__name__)), value)
        case origin if origin is tuple or (origin is not None and len(options) == 1):
            values = list(value.values()) if isinstance(value, dict) else value
            kinds = [options[0]] * len(values) if origin is not tuple or options[-1] is Ellipsis else options
            return tuple(typed(kind, one) for kind, one in zip(kinds, values, strict=True))
        case origin if origin is not None:
            key_kind, kind = options
            return {_key(key_kind, key): typed(kind, one) for key, one in (value or {}).items()}
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(**{name: typed(hints[name], one) for name, one in value.items() if name != "is"})
    return hint(value) if isinstance(hint, type) and issubclass(hint, Enum) else value


def _key(kind: Any, key: str) -> Any:
    if kind is RequestClass:
        name, _, status = key.partition(" ")
        return RequestClass(name, status or None)
    return key if kind is str else kind(key)
