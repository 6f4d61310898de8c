"""The calibration of each machine, in the cache: ``calibration/KEY/calibration.json``.

KEY identifies what must agree between two machines before their figures are compared: after an update of the
kernel, or with another CPU set, the machine must be calibrated again. Must not know what was measured.

>>> file_of(Path("/cache"), "abc")
PosixPath('/cache/calibration/abc/calibration.json')
"""

import json
from pathlib import Path

from prony.analysis.fingerprints import machine_key
from prony.calibration.result import Calibration, from_json, to_json
from prony.drafts import write_whole
from prony.errors import HostError
from prony.model.facts import Fingerprint, GeneratorFitness


def file_of(cache: Path, key: str) -> Path:
    """Return where the calibration of a machine is stored."""
    return cache / "calibration" / key / "calibration.json"


def keep(calibration: Calibration, cache: Path) -> Path:
    """Write the calibration atomically, replacing an older one, and return the file.

    *Errors*: HostError when the cache cannot be written.
    """
    path = file_of(cache, calibration.key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(to_json(calibration), indent=1))
    except OSError as error:
        raise HostError(
            f"cannot write the calibration to `{path.parent}`: {error.strerror}",
            hint="choose another place with the environment variable PRONY_CACHE",
        ) from error
    return path


def kept_fitness(cache: Path, machine: Fingerprint) -> GeneratorFitness | None:
    """Return the load engine's fitness on a machine; null when it was not calibrated."""
    found = kept(cache, machine_key(machine))
    part = found and found.parts.get("engine")
    return part.fitness if part else None


def kept(cache: Path, key: str) -> Calibration | None:
    """Return the calibration of a machine; null when there is none of this version."""
    try:
        return from_json(json.loads(file_of(cache, key).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
