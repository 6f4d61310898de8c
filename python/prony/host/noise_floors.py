"""The noise floors of machines, kept in the cache: one file for each machine, named after its fingerprint.

Must not know how floors are measured.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from prony.analysis.drift import machine_key
from prony.drafts import write_whole
from prony.errors import HostError
from prony.model.facts import Fingerprint, Floor
from prony.model.shapes import decode, encode
from prony.runas import RunAs

_KIND = "noise-floors"
_FILE = "floors.json"


def kept_floors(cache: Path, fingerprint: Fingerprint) -> tuple[Floor, ...]:
    """Return the floors of the machine with this fingerprint; none when it was never tested, or the file
    cannot be read.
    """
    try:
        rows = json.loads((_folder(cache, fingerprint) / _FILE).read_text(encoding="utf-8"))
        found = decode(tuple[Floor, ...], rows, "floors")
    except (OSError, ValueError):
        return ()
    return found if all(one.effect >= 0 for one in found) else ()


def keep_floors(user: RunAs, fingerprint: Fingerprint, floors: Iterable[Floor]) -> Path:
    """Store floors for reports of this machine; they replace those of the same metric, load and blocks.
    Return the file.

    *Errors*: HostError when the cache cannot be written.
    """
    kept = {_key(one): one for one in (*kept_floors(user.cache, fingerprint), *floors)}
    file = _folder(user.cache, fingerprint) / _FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(encode(list(kept.values())), indent=1))
    except OSError as error:
        raise HostError(f"cannot write the noise floors to `{file}`: {error.strerror}") from error
    return file


def _folder(cache: Path, fingerprint: Fingerprint) -> Path:
    return cache / _KIND / machine_key(fingerprint)


def _key(floor: Floor) -> tuple[str, str, int]:
    return floor.metric, floor.load, floor.blocks
