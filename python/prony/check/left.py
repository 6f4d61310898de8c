"""Which processes of a stopped subject still run: processes seen before, or ones that work in its folder.

Must not know why the subject was started.

>>> still_running((), Path("/nowhere"))
[]
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from prony.model.observation import Sample
from prony.sandbox.identity import Identity, boot_id


def still_running(samples: Sequence[Sample], folder: Path) -> list[str]:
    """Return the processes that were seen under load and still run, and all whose folder is this one."""
    boot = boot_id()
    seen = {
        Identity(row.pid, row.start_time_ticks, boot): row.command
        for sample in samples
        for row in sample.processes
    }
    alive = {one.pid: command for one, command in seen.items() if one.is_alive()}
    return [f"{command} ({pid})" for pid, command in {**_working_in(folder), **alive}.items()]


def _working_in(folder: Path) -> dict[int, str]:
    own = str(folder)
    found: dict[int, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            place = str((process / "cwd").readlink())
            if place == own or place.startswith(f"{own}/"):
                found[int(process.name)] = (process / "comm").read_text().strip()
    return found
