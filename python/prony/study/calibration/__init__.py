"""Calibration: what Prony itself costs, and which limits hold; measured and stored for each machine.

The result of a calibration, as values, and as the JSON in which it is stored.

>>> PartFigure("a sample", "duration", 5.0, 4.0, 6.0, 40).half_width
1.0

The calibration of each machine, in the cache: ``calibration/KEY/calibration.json``.

KEY identifies what must agree between two machines before their figures are compared: after an update of the
kernel, or with another CPU set, the machine must be calibrated again.

>>> file_of(Path("/cache"), "abc")
PosixPath('/cache/calibration/abc/calibration.json')
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prony.core.atomic_files import write_whole
from prony.core.errors import HostError
from prony.core.users import RunAs
from prony.figures.drift import machine_key
from prony.model.facts import Fingerprint, Floor, GeneratorFitness
from prony.model.json_codec import Json, decode, encode

VERSION = 1
"""The version of the JSON. A calibration of another version must be measured again."""


@dataclass(frozen=True, slots=True)
class Change:
    """What something costs: the change of a metric with it, compared with the same setup without it.

    ``effect`` is relative, ``low`` and ``high`` its interval at 1 - ``level`` (null below two blocks);
    ``verdict`` as `prony.figures.statistics.compare` gives it.
    """

    name: str
    against: str
    metric: str
    blocks: int
    effect: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    verdict: str


@dataclass(frozen=True, slots=True)
class PartFigure:
    """One absolute figure with its 95 % interval. ``unit``: ``duration`` (ns), ``rate`` (/s) or ``ratio``."""

    name: str
    unit: str
    value: float
    low: float
    high: float
    count: int

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Holding:
    """How far a limit of a control group holds on this machine, and the evidence."""

    name: str
    holding: str
    reason: str


@dataclass(frozen=True, slots=True)
class PartResult:
    """The result of one part of the calibration. ``missing``: what is unavailable, with the reason;
    ``fitness``: of the load engine, in its part.
    """

    title: str
    changes: tuple[Change, ...] = ()
    figures: tuple[PartFigure, ...] = ()
    holdings: tuple[Holding, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    fitness: GeneratorFitness | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """The calibration of one machine. ``key``: from `analysis.fingerprints.machine_key`; ``effort``: how much
    was measured, in words.
    """

    key: str
    machine: str
    prony_version: str
    made_unix_s: int
    effort: str
    parts: Mapping[str, PartResult]


def to_json(calibration: Calibration) -> Json:
    """Return the calibration as JSON."""
    return {"version": VERSION, **encode(calibration)}


def from_json(data: object) -> Calibration:
    """Return the calibration from the JSON of `to_json`.

    *Errors*: ValueError for anything else, and for another version.
    """
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ValueError("not a calibration of this version")
    return decode(Calibration, data, "calibration")


def file_of(cache: Path, key: str) -> Path:
    """Return where the calibration of a machine is stored."""
    return cache / "calibration" / key / "calibration.json"


def keep(calibration: Calibration, cache: Path) -> Path:
    """Write the calibration atomically, replacing an older one, and return the file.

    *Errors*: HostError when the cache cannot be written.
    """
    return _kept_in(file_of(cache, calibration.key), to_json(calibration), "calibration")


def _kept_in(file: Path, value: Json, what: str) -> Path:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(value, indent=1))
    except OSError as error:
        raise HostError(
            f"cannot write the {what} to `{file.parent}`: {error.strerror}",
            hint="choose another place with the environment variable PRONY_CACHE",
        ) from error
    return file


def kept_fitness(cache: Path, machine: Fingerprint) -> GeneratorFitness | None:
    """Return the load engine's fitness on a machine; None when it was not calibrated."""
    found = kept(cache, machine_key(machine))
    part = found and found.parts.get("engine")
    return part.fitness if part else None


def kept(cache: Path, key: str) -> Calibration | None:
    """Return the calibration of a machine; None when there is none of this version."""
    try:
        return from_json(json.loads(file_of(cache, key).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


# --- the noise floors of machines, kept in the cache ------------------------------------------------------


def kept_floors(cache: Path, fingerprint: Fingerprint) -> tuple[Floor, ...]:
    """Return the floors of the machine with this fingerprint; none when it was never tested, or the file
    cannot be read.
    """
    try:
        rows = json.loads(_file_of_floors(cache, fingerprint).read_text(encoding="utf-8"))
        found = decode(tuple[Floor, ...], rows, "floors")
    except (OSError, ValueError):
        return ()
    return found if all(one.effect >= 0 for one in found) else ()


def keep_floors(user: RunAs, fingerprint: Fingerprint, floors: Iterable[Floor]) -> Path:
    """Store floors for reports of this machine; they replace those of the same metric, load and blocks.
    Return the file.

    *Errors*: HostError when the cache cannot be written.
    """
    every = (*kept_floors(user.cache, fingerprint), *floors)
    latest = {(one.metric, one.load, one.blocks): one for one in every}
    return _kept_in(_file_of_floors(user.cache, fingerprint), encode(tuple(latest.values())), "noise floors")


def _file_of_floors(cache: Path, fingerprint: Fingerprint) -> Path:
    return cache / "noise-floors" / machine_key(fingerprint) / "floors.json"
