"""Archives and loads for programs and notebooks: what ``import prony`` offers.

A frame is made by the library that is installed; none is required.

>>> [load.__name__, open.__name__]
['load', 'open']
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from prony.archive import open_archive
from prony.core.errors import UsageError
from prony.core.units import SECOND_NS, nanoseconds
from prony.engine.process import LocalEngine
from prony.engine.target import target_of
from prony.figures.latency import Times, read_distribution
from prony.figures.summary import CellSummary
from prony.model.exchange import Request
from prony.model.plan import Plan
from prony.model.recording import Recording
from prony.model.sandbox import EngineSeat
from prony.model.trial import SubjectRecord, TrialRecord
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, OpenLoop, Pacing, Workload
from prony.reading.brief import Brief, brief_of
from prony.reading.study import StudyResults, read_archive
from prony.report.formats.sheets import Sheet, sheets


class Library(StrEnum):
    """A library of frames."""

    PANDAS = "pandas"
    POLARS = "polars"
    ARROW = "arrow"


class TimesOf(StrEnum):
    """Times that a Recording has, by the field of its distributions."""

    OK_RESPONSE = "ok_response"
    OK_SERVICE = "ok_service"
    CENSORED_RESPONSE = "censored_response"
    CENSORED_SERVICE = "censored_service"
    SEND_LAG = "send_lag"
    CONNECT = "connect"


_MODULES = {Library.PANDAS: "pandas", Library.POLARS: "polars", Library.ARROW: "pyarrow"}


@dataclass(frozen=True, slots=True)
class MeasuredStudy:
    """A study that was measured: the archive at ``path``, read. ``reading``: all that its reports say."""

    path: Path
    reading: StudyResults

    @property
    def plan(self) -> Plan:
        """What was asked."""
        return self.reading.plan

    @property
    def subjects(self) -> Mapping[str, SubjectRecord]:
        """The subjects as they were resolved: versions, settings, command lines."""
        return self.reading.subjects

    @property
    def cells(self) -> tuple[CellSummary, ...]:
        """The cells with their figures: ``cell.metrics["ok_per_s"].mean``."""
        return self.reading.cells

    @property
    def answer(self) -> Brief | None:
        """The short answer: the main load, its subjects ranked; None for a plan without cells."""
        return brief_of(self.reading)

    def trials(self) -> Iterator[TrialRecord]:
        """Yield every trial in the order in which they ran, with its Recording and its samples.

        They are read one by one: a study may have more than memory holds.
        *Errors*: UsageError, ArchiveError when the archive went or is damaged.
        """
        with open_archive(self.path) as archive:
            yield from archive.trials()

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `frame` makes: those of ``prony report --csv``."""
        return tuple(sheet.name for sheet in sheets(self.reading, lambda: ()))

    def columns(self, table: str) -> dict[str, list[str | int | float | None]]:
        """Return a table as lists by column; names end in the unit, a missing value is None.

        *Errors*: UsageError for a name that is none of `tables`.
        """
        with open_archive(self.path) as archive:
            sheet = self._sheet(sheets(self.reading, archive.trials), table)
            rows = list(sheet.rows)
        return {name: [row[k] for row in rows] for k, name in enumerate(sheet.columns)}

    def _sheet(self, found: Sequence[Sheet], table: str) -> Sheet:
        for sheet in found:
            if sheet.name == table:
                return sheet
        raise UsageError(f"`{table}` is no table; expected one of {', '.join(self.tables)}")

    def frame(self, table: str, library: Library | str = Library.PANDAS) -> Any:
        """Return a table as a frame: of pandas or polars, or a table of Arrow.

        *Errors*: UsageError for another library or table, and for a library that is not installed.
        """
        kind = _library(library)
        module = _imported(kind)
        columns = self.columns(table)
        match kind:
            case Library.PANDAS:
                return module.DataFrame(columns)
            case Library.POLARS:
                return module.DataFrame(columns, strict=False)
            case Library.ARROW:
                return module.table(columns)


def _library(name: Library | str) -> Library:
    try:
        return Library(name)
    except ValueError:
        known = ", ".join(f"`{one}`" for one in Library)
        raise UsageError(f"`{name}` makes no frames; expected one of {known}") from None


def _imported(library: Library) -> Any:
    name = _MODULES[library]
    try:
        return import_module(name)
    except ImportError:
        raise UsageError(f"`{name}` is not installed", hint=f"pip install {name}") from None


def open(path: str | os.PathLike[str]) -> MeasuredStudy:
    """Return the study in an archive; nothing of it is executed or changed.

    *Errors*: UsageError when it is missing; ArchiveError when it is foreign or damaged.
    """
    file = Path(path)
    with open_archive(file) as archive:
        return MeasuredStudy(file, read_archive(archive))


def histogram(recording: Recording, population: TimesOf | str = TimesOf.OK_SERVICE) -> Times | None:
    """Return a distribution of a Recording: count, extremes and a histogram that gives any quantile.

    *Units*: nanoseconds. Null where the Recording has none, such as response times in a closed loop.
    *Errors*: ValueError for another population; ArchiveError when the histogram is damaged.
    """
    return read_distribution(getattr(recording.distributions, TimesOf(population)))


def load(
    url: str,
    *,
    rate: float | None = None,
    connections: int = 10,
    duration_s: float = 10.0,
    allow_hosts: Sequence[str] = (),
) -> Recording:
    """Load a URL and return the Recording: an open loop with ``rate`` (1/s), else a closed one with so many
    ``connections``.

    *Errors*: UsageError, HostError for a URL that may not be loaded; EngineError.
    """
    target = target_of(url)
    workload = Workload(
        loop=ClosedLoop(connections) if rate is None else OpenLoop(rate),
        stop=DurationStop(nanoseconds(duration_s)),
        request=Request(path=target.path, headers=target.headers),
        warmup_ns=0 if rate is None else SECOND_NS,
    )
    cpus = len(os.sched_getaffinity(0))
    engine = LocalEngine(EngineChoice(threads=max(1, cpus // 2), pacing=Pacing.usual(shares_cpus=cpus == 1)))
    return engine.run(workload, target.address(allow_hosts), EngineSeat(cpus=()), lambda _: None)
