"""Calibration: what Prony itself costs, and which limits hold; measured and stored for each machine.

Each question is a part of its own.

>>> sorted(PARTS)
['engine', 'limits', 'overheads', 'sampler']
"""

from prony.calibration.bench import QUICK, USUAL, Effort
from prony.calibration.parts import PARTS
from prony.calibration.result import (
    Calibration,
    Change,
    Holding,
    PartFigure,
    PartResult,
    keep,
    kept,
    kept_fitness,
    to_json,
)
from prony.calibration.run import Commission, run_calibration

__all__ = [
    "PARTS",
    "QUICK",
    "USUAL",
    "Calibration",
    "Change",
    "Commission",
    "Effort",
    "Holding",
    "PartFigure",
    "PartResult",
    "keep",
    "kept",
    "kept_fitness",
    "run_calibration",
    "to_json",
]
