"""What an archive holds of a study that goes on, and whether this is still the same study.

A study is the same when machine and subjects are: a block half of which was measured elsewhere, or with
another version, would compare nothing. Must not know how a study is run.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.analysis.fingerprints import comparable
from prony.archive import open_archive
from prony.errors import HostError
from prony.model import Cell, Fingerprint, SubjectRecord, TrialRole
from prony.model.shapes import encode
from prony.schedule import Key
from prony.study.identity import differences
from prony.study.ledger import Entry, entry_of

__all__ = ["Earlier", "changes", "read_earlier", "refuse"]


@dataclass(frozen=True, slots=True)
class Earlier:
    """What was measured before: trials by key, subjects as they were resolved, the machine as it was.

    ``rate_cells``: the cells that a search for rates had come to need.
    """

    entries: Mapping[Key, Entry]
    subjects: Mapping[str, SubjectRecord]
    fingerprint: Fingerprint
    rate_cells: tuple[Cell, ...]


def read_earlier(path: Path) -> Earlier:
    """Return what ``path`` holds.

    *Errors*: ArchiveError when it cannot be read.
    """
    with open_archive(path) as archive:
        return Earlier(
            entries=dict(entry_of(record.trial) for record in archive.trials()),
            subjects=archive.subjects(),
            fingerprint=archive.fingerprint(),
            rate_cells=archive.cells(TrialRole.FIND_RATE),
        )


def changes(earlier: Earlier, fingerprint: Fingerprint, records: Sequence[SubjectRecord]) -> tuple[str, ...]:
    """Return in words what is not as it was: of the machine, and of each of the subjects in ``records``."""
    machine = [f"{one.name}: was {one.a}, is {one.b}" for one in comparable(earlier.fingerprint, fingerprint)]
    known = [(earlier.subjects[record.name], record) for record in records if record.name in earlier.subjects]
    return (*machine, *(f"{new.name}: {change}" for old, new in known for change in _changes(old, new)))


def _changes(old: SubjectRecord, new: SubjectRecord) -> Iterator[str]:
    # What was not there stays left out, so that all blocks have the same subjects.
    if old.unavailable is not None or old.entry_digest == new.entry_digest:
        return
    if new.unavailable is not None:
        yield f"is unavailable now: {new.unavailable}"
        return
    told = [*_versions(old, new), *_settings(old, new)]
    yield from told or _entries(old, new) or ["its catalogue entry or its app is another one"]


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
    """Return what its entries or its app say otherwise; nothing of an archive that does not hold them."""
    before, now = old.facts.entry, new.facts.entry
    if before is None or now is None:
        return []
    return [f"of its entries or its app, {one}" for one in differences(before, now)]


def _settings(old: SubjectRecord, new: SubjectRecord) -> Iterator[str]:
    for name in sorted(old.settings.keys() | new.settings.keys()):
        before, now = old.settings.get(name), new.settings.get(name)
        if before != now:
            yield f"setting {name} was {before}, is {now}"


def refuse(path: Path, found: Sequence[str]) -> HostError:
    """Return the refusal to go on with the study at ``path``, in which this was ``found`` to have changed."""
    head = f"`{path}` cannot be continued: this is not the study any more that it holds:"
    return HostError(
        "\n".join([head, *(f"  {one}" for one in found)]),
        hint="undo the changes, or begin anew with another --out; --force goes on, and the archive says so; "
        "what was begun with --requirements or --python goes on with the same",
    )
