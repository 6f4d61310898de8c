"""What a study has measured so far: while it runs, and when it goes on.

By turn: no trial is run twice, and disturbed ones are repeated. A study goes on where it is still the same:
its plan, its machine and its subjects. If half of a block were measured on another machine or with another
version, comparisons would be meaningless.
"""

import hashlib
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from prony.archive import ArchiveWriter, codec, open_archive
from prony.archive.codec import encode_subject
from prony.catalog.install.environment import Environment
from prony.catalog.schema.entry import ProcessEntry
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import resolved_settings
from prony.core.errors import HostError
from prony.figures.drift import comparable
from prony.figures.validity import disturbed_reach
from prony.model.facts import Fingerprint, TrialFacts
from prony.model.json_codec import Json, encode
from prony.model.observation import Slice
from prony.model.plan import Cell, Plan
from prony.model.subject import Subject
from prony.model.trial import Fault, Outcome, SubjectRecord, Trial, TrialRole
from prony.plan.order import Key, Turn


@dataclass(frozen=True, slots=True)
class ArchivedTrial:
    """What is remembered of an archived trial; ``length_ns``: how long it took until ``ended_unix_ns``.
    ``is_bounded``: it was disturbed, and its figures are bounds.
    """

    outcome: Outcome
    fault: Fault | None
    is_bounded: bool
    facts: TrialFacts
    length_ns: int
    ended_unix_ns: int
    has_slices: bool = False

    @property
    def is_disturbed(self) -> bool:
        """Whether the environment disturbed it."""
        return self.fault is not None and self.fault.kind.is_of_environment


def entry_of(trial: Trial) -> tuple[Key, ArchivedTrial]:
    """Return a trial's key, and what is remembered of it."""
    key = trial.cell_id, trial.block, trial.position, trial.attempt, trial.role
    is_bounded = disturbed_reach(trial) is not None
    return key, ArchivedTrial(
        trial.outcome,
        trial.fault,
        is_bounded,
        trial.facts,
        length_of(trial),
        trial.ended_unix_ns,
        has_slices=bool(trial.slices),
    )


def length_of(trial: Trial) -> int:
    """Return how long a trial took with its slices, in nanoseconds."""
    return trial.ended_unix_ns - trial.started_unix_ns + length_of_slices(trial.slices)


def length_of_slices(slices: Iterable[Slice]) -> int:
    """Return how long turns in rounds took, in nanoseconds."""
    return sum(one.ended_ns - one.began_ns for one in slices)


@dataclass(slots=True)
class Ledger:
    """The archive as the measuring side sees it: what it holds, and where to add trials. ``more_ns``: what
    this run took beside them.
    """

    writer: ArchiveWriter
    entries: dict[Key, ArchivedTrial] = field(default_factory=dict)
    more_ns: int = 0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Within the block all time counts as measured: that in which servers start for rounds too."""
        began_ns, before_ns = time.monotonic_ns(), self.measured_ns
        yield
        self.more_ns += max(0, time.monotonic_ns() - began_ns - (self.measured_ns - before_ns))

    def has(self, turn: Turn) -> bool:
        """Return whether the turn's trial is in the archive."""
        return turn.key in self.entries

    def append(self, *trials: Trial) -> None:
        """Archive trials together; when this returns, they are on the disk."""
        self.writer.append_together(trials)
        self.entries |= dict(map(entry_of, trials))

    def append_slices(self, block: int, slices: Mapping[int, Sequence[Slice]]) -> None:
        """Archive what the rounds of a block showed, by cell."""
        self.writer.append_slices(block, slices)
        for cell_id, each in slices.items():
            attempts = [
                key for key in self.entries if (key[0], key[1], key[4]) == (cell_id, block, TrialRole.SUBJECT)
            ]
            if attempts:
                last = max(attempts, key=lambda key: key[3])
                entry = self.entries[last]
                length_ns = entry.length_ns + length_of_slices(each)
                self.entries[last] = replace(entry, has_slices=bool(each), length_ns=length_ns)

    def disturbed(self, turns: Iterable[Turn]) -> tuple[Turn, ...]:
        """Return those of ``turns`` whose trial the environment disturbed."""
        return tuple(turn for turn in turns if self.has(turn) and self.entries[turn.key].is_disturbed)

    def latest(self, turn: Turn) -> ArchivedTrial:
        """Return the last attempt at a turn."""
        cell, block, _, _, role = turn.key
        attempts = [
            (key[3], entry)
            for key, entry in self.entries.items()
            if (key[0], key[1], key[4]) == (cell, block, role)
        ]
        return max(attempts, key=lambda one: one[0])[1]

    def has_after(self, block: int) -> bool:
        """Return whether the archive holds a trial of a later block: then this one was not the last."""
        return any(key[1] > block for key in self.entries)

    def has_slices(self, block: int, cells: Collection[int]) -> bool:
        """Return whether the rounds of these cells in this block have been measured."""
        own = (entry for key, entry in self.entries.items() if key[1] == block and key[0] in cells)
        return any(entry.has_slices for entry in own)

    def has_any(self, block: int) -> bool:
        """Return whether the archive holds a trial of this block."""
        return any(key[1] == block for key in self.entries)

    @property
    def last_ended_ns(self) -> int:
        """When the last trial ended, of this run or an earlier one (Unix time); 0 before the first."""
        return max((entry.ended_unix_ns for entry in self.entries.values()), default=0)

    @property
    def measured_ns(self) -> int:
        """How long all trials took together, including those of earlier runs, and what came with rounds."""
        return self.more_ns + sum(entry.length_ns for entry in self.entries.values())

    @property
    def pilot_ns(self) -> int:
        """How long the pilot's trials of these took."""
        return sum(entry.length_ns for key, entry in self.entries.items() if key[-1] is TrialRole.PILOT)


@dataclass(frozen=True, slots=True)
class Earlier:
    """What was measured before: trials by key, subjects as they were resolved, the machine's facts.

    ``rate_cells``: the cells that a search for rates had created; ``pilot_cells``: those of a pilot;
    ``close_cells``: those of close looks.
    ``measured``: the subjects that have trials.
    """

    entries: Mapping[Key, ArchivedTrial]
    subjects: Mapping[str, SubjectRecord]
    fingerprint: Fingerprint
    rate_cells: tuple[Cell, ...]
    pilot_cells: tuple[Cell, ...]
    close_cells: tuple[Cell, ...]
    measured: frozenset[str]


def read_earlier(path: Path) -> Earlier:
    """Return what ``path`` holds.

    *Errors*: ArchiveError when it cannot be read.
    """
    with open_archive(path) as archive:
        entries = dict(entry_of(record.trial) for record in archive.trials())
        names = {cell.id: cell.subject.name for role in TrialRole for cell in archive.cells(role)}
        return Earlier(
            entries=entries,
            subjects=archive.subjects(),
            fingerprint=archive.fingerprint(),
            rate_cells=archive.cells(TrialRole.FIND_RATE),
            pilot_cells=archive.cells(TrialRole.PILOT),
            close_cells=archive.cells(TrialRole.CONFIRMATION),
            measured=frozenset(names[cell] for cell, *_ in entries if cell in names),
        )


def other_plan(path: Path, plan: Plan, checks: Sequence[Cell]) -> tuple[str, ...]:
    """Return in words how the plan in ``path`` differs from this one; nothing: it is the same.

    Secrets are not compared, since no archive has them, nor is the text that describes the plan.

    *Errors*: ArchiveError or UsageError when it cannot be read.
    """
    with open_archive(path) as archive:
        kept = _plan_json(archive.plan(), archive.cells(TrialRole.CROSS_CHECK))
    return tuple(changed_values(kept, _plan_json(plan, checks)))


def _plan_json(plan: Plan, checks: Sequence[Cell]) -> Json:
    """Return all that an archive keeps of a plan."""
    calibration = () if plan.calibration is None else (plan.calibration,)
    roles = {"cell": plan.cells, "calibration": calibration, "cross_check": checks}
    words = ("seed", "blocks", "profile", "name", "title", "question", "source", "design", "claims")
    told = {name: encode(getattr(plan, name)) for name in (*words, "originals", "notes")}
    for role, cells in roles.items():
        told[role] = {str(cell.id): _cell_json(cell) for cell in cells}
    written: Json = json.loads(codec.dump(told))
    return written


def _cell_json(cell: Cell) -> Json:
    return {
        "subject": codec.encode_subject(cell.subject),
        "workload": codec.encode_workload(cell.workload),
        "engine": encode(cell.engine),
        "sandbox": encode(cell.sandbox),
    }


def changes(earlier: Earlier, fingerprint: Fingerprint, records: Sequence[SubjectRecord]) -> tuple[str, ...]:
    """Return in words what has changed: of the machine, and of each of the subjects in ``records``."""
    machine = [f"{one.name}: was {one.a}, is {one.b}" for one in comparable(earlier.fingerprint, fingerprint)]
    said = [(new.name, change) for new in records for change in _changes_of(earlier, new)]
    return (*machine, *(f"{name}: {change}" for name, change in said))


def _changes_of(earlier: Earlier, new: SubjectRecord) -> Iterator[str]:
    """Yield what has changed of a subject.

    A measured subject is recorded in the archive. If the record is missing, somebody removed it, and there is
    no way to check that this is the same subject.
    """
    old = earlier.subjects.get(new.name)
    if old is not None and (old.entry_digest or new.name not in earlier.measured):
        yield from _changes(old, new)
    elif new.name in earlier.measured:
        yield "was measured, but its record is missing from the archive"


def _changes(old: SubjectRecord, new: SubjectRecord) -> Iterator[str]:
    # A subject that was unavailable stays left out, so that all blocks have the same subjects.
    if old.unavailable is not None or old.entry_digest == new.entry_digest:
        return
    if new.unavailable is not None:
        yield f"is unavailable now: {new.unavailable}"
        return
    told = [*_versions(old, new), *_settings(old, new)]
    yield from told or _entries(old, new) or ["its catalogue entry or its app has changed"]


def _versions(old: SubjectRecord, new: SubjectRecord) -> Iterator[str]:
    for name in ("server_version", "interpreter", "lock_digest", "command_line"):
        before, now = getattr(old, name), getattr(new, name)
        if before != now:
            yield f"{name.replace('_', ' ')} was {before}, is {now}"
    for name in ("frontend", "services"):
        before, now = encode(getattr(old.facts, name)), encode(getattr(new.facts, name))
        if before != now:
            yield f"{name} was {json.dumps(before)}, is {json.dumps(now)}"
    for name in sorted(old.packages.keys() | new.packages.keys()):
        before, now = old.packages.get(name, "not installed"), new.packages.get(name, "not installed")
        if before != now:
            yield f"{name} was {before}, is {now}"


def _entries(old: SubjectRecord, new: SubjectRecord) -> list[str]:
    """Return what has changed in its entries or its app; nothing if the archive does not hold them."""
    before, now = old.facts.entry, new.facts.entry
    if before is None or now is None:
        return []
    return [f"of its entries or its app, {one}" for one in changed_values(before, now)]


def _settings(old: SubjectRecord, new: SubjectRecord) -> Iterator[str]:
    for name in sorted(old.settings.keys() | new.settings.keys()):
        before, now = old.settings.get(name), new.settings.get(name)
        if before != now:
            yield f"setting {name} was {before}, is {now}"


def refuse(path: Path, found: Sequence[str]) -> HostError:
    """Return the refusal to resume the study at ``path``; ``found``: what has changed."""
    head = f"`{path}` cannot go on: the study has changed since it began:"
    return HostError(
        "\n".join([head, *(f"  {one}" for one in found)]),
        hint="undo the changes, or start a new study with another --out; --force goes on anyway, and the "
        "archive records that",
    )


# --- what makes a subject the same one in another run -----------------------------------------------------


_ABSENT = object()
_LONGEST_VALUE = 80


def identity(catalog: Catalog, subject: Subject, cpus: int, built: Iterable[Environment]) -> Json:
    """Return what ``subject`` is in ``catalog``.

    *Definition*: the entries of the server, the frontend and the services, the subject with its app (its
    digest, and the names but not the values of its environment), all settings with ``cpus`` CPUs, and
    version, interpreter and lock of each environment in ``built``. The paths of files are not part of it.
    """
    front = subject.frontend
    return {
        "subject": _without_places(encode_subject(subject)),
        "server": _said(catalog.server(subject.server)),
        "settings": resolved_settings(catalog.server(subject.server), subject, cpus),
        "frontend": front and _said(catalog.frontends[front.entry]),
        "frontend_settings": front and resolved_settings(catalog.frontends[front.entry], front, cpus),
        "services": {name: _said(catalog.service(name)) for name in subject.app.services},
        "built": [[one.key, one.version, one.interpreter, one.lock_digest] for one in built],
    }


def digest(said: Json) -> str:
    """Return the SHA-256, in hexadecimal, of one JSON text with sorted keys."""
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def changed_values(old: object, new: object, at: str = "") -> Iterator[str]:
    """Yield the differences between two JSON values in words, each with its place.

    >>> list(changed_values({"a": {"b": 1}, "c": [2]}, {"a": {"b": 3}, "c": [2], "d": None}))
    ['a.b was 1, is 3', 'd was absent, is null']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted(old.keys() | new.keys()):
            yield from changed_values(
                old.get(name, _ABSENT), new.get(name, _ABSENT), f"{at}.{name}" if at else name
            )
    elif old != new:
        yield f"{at} was {_in_words(old)}, is {_in_words(new)}"


def _in_words(value: object) -> str:
    if value is _ABSENT:
        return "absent"
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _said(entry: ProcessEntry) -> Json:
    return entry.model_dump(mode="json", by_alias=True)


def _without_places(subject: Json) -> Json:
    return {**subject, "app": {**subject["app"], "folder": ""}}
