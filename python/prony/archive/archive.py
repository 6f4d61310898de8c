"""The reading side of an archive: open one, and read its content."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import Any, Self

from prony.archive import codec
from prony.archive.caps import check_caps, check_subjects
from prony.archive.guard import (
    Deadline,
    check_header,
    check_pages,
    check_schema,
    check_version,
    columns,
    reading,
)
from prony.archive.leftovers import connect_to_read
from prony.archive.rows import from_columns, read_trial
from prony.model.facts import Fingerprint
from prony.model.json_codec import decode
from prony.model.plan import Cell, Plan
from prony.model.sandbox import SandboxChoice
from prony.model.trial import Run, SubjectRecord, TrialRecord, TrialRole
from prony.model.workload import EngineChoice

_CELL_COLUMNS = "cell_id, subject_json, workload_json, engine_json, sandbox_json"


class Archive:
    """The reading side: values only, nothing is ever executed or changed. A context manager.

    *Errors*: each method raises ArchiveError on a damaged row.
    """

    def __init__(self, path: Path, database: sqlite3.Connection, deadline: Deadline) -> None:
        self.path = path
        self._database = database
        self._deadline = deadline

    def _reading(self) -> AbstractContextManager[None]:
        return reading(self.path, self._deadline)

    def _rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table, each by the names of its columns."""
        found = self._database.execute(f"SELECT * FROM {table} ORDER BY rowid")  # noqa: S608 - name is ours
        return (dict(zip(columns()[table], row, strict=True)) for row in found)

    def _cells(self, role: TrialRole) -> tuple[Cell, ...]:
        found = self._database.execute(
            f"SELECT {_CELL_COLUMNS} FROM cell WHERE role = ? ORDER BY cell_id",  # noqa: S608 - constant
            (role.value,),
        )
        cells = tuple(
            Cell(
                id=cell_id,
                subject=codec.decode_subject(codec.load_object(subject)),
                workload=codec.decode_workload(codec.load_object(workload)),
                engine=decode(EngineChoice, codec.load_object(engine), "engine"),
                sandbox=decode(SandboxChoice, codec.load_object(sandbox), "sandbox"),
            )
            for cell_id, subject, workload, engine, sandbox in found
        )
        check_subjects(cells)
        return cells

    def cells(self, role: TrialRole = TrialRole.SUBJECT) -> tuple[Cell, ...]:
        """Return the cells that were measured for this reason, by id: the plan's own, or added ones."""
        with self._reading():
            return self._cells(role)

    def plan(self) -> Plan:
        """Return the plan, as it was resolved. Values of an app's environment are not stored: they read as
        empty.
        """
        with self._reading():
            (row,) = self._rows("plan")
            calibration = next(iter(self._cells(TrialRole.CALIBRATION)), None)
            plan = from_columns(Plan, row, cells=self._cells(TrialRole.SUBJECT), calibration=calibration)
            codec.check_metrics(plan.claims, plan.originals)
            return plan

    def runs(self) -> tuple[Run, ...]:
        """Return the runs that measured into the archive, oldest first."""
        with self._reading():
            found = tuple(from_columns(Run, row) for row in self._rows("run"))
            codec.check_steps(step for run in found for one in run.facts.found_rates for step in one.steps)
            return found

    def fingerprint(self) -> Fingerprint:
        """Return the first run's fingerprint of its machine."""
        runs = self.runs()
        return runs[0].fingerprint if runs else Fingerprint()

    def subjects(self) -> dict[str, SubjectRecord]:
        """Return the resolved subjects by name."""
        with self._reading():
            return {row["subject_name"]: from_columns(SubjectRecord, row) for row in self._rows("subject")}

    def trials(self) -> Iterator[TrialRecord]:
        """Yield the trials in the order in which they were run, one at a time: an archive may exceed
        memory.
        """
        with self._reading():
            rows = self._database.execute("SELECT * FROM trial ORDER BY trial_id").fetchall()
        for row in rows:
            with self._reading():
                record = read_trial(self._database, row)
            yield record

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_archive(path: Path) -> Archive:
    """Return the archive at ``path``, checked and read-only.

    *Errors*: UsageError when it is missing, or of another format; ArchiveError when it is foreign, damaged,
    or holds more than any study.
    """
    check_header(path)
    # SQLite looks for a journal beside the target of a symbolic link.
    place = Path(os.path.realpath(path))
    deadline = Deadline(path)
    with ExitStack() as undone, reading(path, deadline):
        database = undone.enter_context(closing(connect_to_read(place, deadline)))
        check_version(database, path)
        check_schema(database, path)
        check_pages(database, path)
        check_caps(database, path)
        undone.pop_all()
    return Archive(path, database, deadline)
