"""Calibration: what Prony itself costs on this machine, and what holds here; kept for each machine.

Later questions (the generator's ceiling and accuracy, a noise floor) are further parts.

>>> sorted(PARTS)
['limits', 'overheads', 'sampler']
"""

from prony.calibration.bench import QUICK, USUAL, Effort
from prony.calibration.parts import PARTS
from prony.calibration.result import Calibration, Change, Figure, Holding, PartResult, to_json
from prony.calibration.run import Commission, run_calibration
from prony.calibration.store import keep, kept

__all__ = [
    "PARTS",
    "QUICK",
    "USUAL",
    "Calibration",
    "Change",
    "Commission",
    "Effort",
    "Figure",
    "Holding",
    "PartResult",
    "keep",
    "kept",
    "run_calibration",
    "to_json",
]
