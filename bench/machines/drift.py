"""Preloaded by a worker of Dask: its clock gains some parts in a million, for whoever asks the time of it.

`PRONY_DRIFT_PPM=-50 dask worker ... --preload drift.py`. The clock that loads are timed by stays as it is.
"""

import os
import time
from typing import Any

from prony.engine.fleet.cluster import CLOCK

VARIABLE = "PRONY_DRIFT_PPM"
_MILLION = 1_000_000


def drifted_ns(at_ns: int, ppm: int) -> int:
    """Return what a clock shows that was right when it showed 0."""
    return at_ns + at_ns * ppm // _MILLION


def dask_setup(worker: Any) -> None:
    """Give the worker such a clock."""
    ppm = int(os.environ[VARIABLE])
    worker.extensions[CLOCK] = lambda: drifted_ns(time.monotonic_ns(), ppm)
