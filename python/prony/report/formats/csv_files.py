"""A study's tables as CSV files in a folder of their own: RFC 4180, UTF-8, a header line.

An apostrophe stands before text that a spreadsheet would read as a formula: text may come from servers and
logs. Numbers stay numbers. *Source*: RFC 4180; OWASP, "CSV Injection".

*Source*: G. Tene, HdrHistogram, "Histogram log format version 1.3", as `HistogramLogReader` reads it.

>>> written("=1+1"), written(-1.5), written(None)
("'=1+1", '-1.5', '')

A new folder of files, whole or not at all.

>>> interval_log.__name__
'interval_log'
"""

import csv
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.core.atomic_files import draft_of
from prony.core.errors import UsageError
from prony.core.safe_text import plain
from prony.core.units import MILLISECOND_NS, seconds
from prony.model.recording import Recording
from prony.model.trial import TrialRecord
from prony.reading.study import StudyResults
from prony.report.formats.sheets import Sheet, sheets


@contextmanager
def new_folder(folder: Path, proof: Callable[[str], object] | None = None) -> Iterator[Path]:
    """Give a folder to write into, which takes its name at the end; after an error nothing is left of it.
    ``proof``: is given each file that is a text, its name first, and may refuse it.

    *Errors*: UsageError when the folder exists already, or cannot be written.
    """
    unfinished: Path | None = None
    try:
        folder = folder.absolute()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(
                f"`{folder}` exists already", hint="name a folder that does not exist yet, or an empty one"
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = draft_of(folder)
        draft.mkdir()
        unfinished = draft
        yield draft
        if proof is not None:
            for file in draft.iterdir():
                content = "" if file.suffix == ".png" else file.read_text(encoding="utf-8")
                proof(f"{file.name}\n{content}")
        draft.replace(folder)
    except OSError as error:
        raise UsageError(f"cannot write `{folder}`: {error.strerror}") from None
    finally:
        if unfinished is not None:
            shutil.rmtree(unfinished, ignore_errors=True)


_FORMULA = ("=", "+", "-", "@")


def written(value: str | float | None) -> str:
    """Return a cell's text: nothing for a missing value, text without control characters."""
    match value:
        case None:
            return ""
        case str():
            text = plain(value)
            return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
        case _:
            return repr(value)


def write_csv(
    trials: Callable[[], Iterable[TrialRecord]],
    reading: StudyResults,
    folder: Path,
    proof: Callable[[str], object] | None = None,
) -> None:
    """Write all tables of a study into a new folder, whole or not at all. ``trials``: all, at each call;
    ``proof``: as of `new_folder`.

    *Errors*: UsageError when the folder exists already, or cannot be written.
    """
    write_sheets(sheets(reading, trials), folder, proof)


def write_sheets(found: Iterable[Sheet], folder: Path, proof: Callable[[str], object] | None = None) -> None:
    """Write tables into a new folder, whole or not at all; ``proof`` and errors as `write_csv`."""
    with new_folder(folder, proof) as unfinished:
        for sheet in found:
            _write(sheet, unfinished / f"{sheet.name}.csv")


def _write(sheet: Sheet, file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out)
        lines.writerow(sheet.columns)
        lines.writerows([written(value) for value in row] for row in sheet.rows)


# --- an interval log of HdrHistogram ----------------------------------------------------------------------


_HEADER = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


def interval_log(recording: Recording) -> str:
    """Return the log of a load: the latencies of the valid replies of each second, in nanoseconds.

    They are response times in an open loop and service times in a closed one. Time-stamps are seconds from
    the opening of the window, and `Interval_Max` is in milliseconds, as the format has it. A second without a
    valid reply has no line.
    """
    return "\n".join([*_head(recording), *_intervals(recording)])


def _head(recording: Recording) -> Iterator[str]:
    start_s = seconds(recording.window.open_unix_ns or 0)
    kind = "response" if recording.is_open else "service"
    yield f"#[Logged with prony {recording.engine.version}: {kind} times of valid replies, in nanoseconds]"
    yield "#[Histogram log format version 1.3]"
    yield f"#[StartTime: {start_s:.3f} (seconds since epoch)]"
    yield f"#[BaseTime: {start_s:.3f} (seconds since epoch)]"
    yield _HEADER


def _intervals(recording: Recording) -> Iterator[str]:
    end_s = seconds(recording.window.drained_length_ns or 0)
    for one in recording.series:
        if one.latency is not None and one.latency.histogram is not None:
            encoded = b64encode(one.latency.histogram).decode()
            longest_ms = (one.latency.max_ns or 0) / MILLISECOND_NS
            # The last second ends with the load.
            length_s = min(1.0, end_s - one.second) if end_s > one.second else 1.0
            yield f"{one.second:.3f},{length_s:.3f},{longest_ms:.3f},{encoded}"
