"""The parts of a calibration, each a function of the bench: another question is another module here.

Must not know the command line or reports.

>>> list(PARTS)
['overheads', 'sampler', 'limits', 'engine']
"""

from collections.abc import Callable, Mapping

from prony.calibration.bench import CalibrationBench
from prony.calibration.parts.engine import judge_engine
from prony.calibration.parts.limits import try_limits
from prony.calibration.parts.overheads import measure_overheads
from prony.calibration.parts.sampler import time_sampler
from prony.calibration.result import PartResult
from prony.study import StudyListener

__all__ = ["PARTS"]

PARTS: Mapping[str, Callable[[CalibrationBench, StudyListener, int], PartResult]] = {
    "overheads": measure_overheads,
    "sampler": time_sampler,
    "limits": try_limits,
    "engine": judge_engine,
}
"""Name to function; its arguments are the bench, the listener and the seed of the random order."""
