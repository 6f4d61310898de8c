"""The golden archives of the present format, made anew: ``python tests/golden/archives.py FILE``.

That of a mix of paths: ``python tests/golden/archives.py FILE mix``.

Those of older formats were made in the same way by the Prony that wrote them, and are never made again.
"""

import gzip
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

import histograms

histograms.stand_in_for_the_engine()

from golden import build  # noqa: E402 - needs the stand-in
from mixes import study_of_mix  # noqa: E402
from prony.analysis.validity import in_words  # noqa: E402
from prony.archive import open_archive, resume  # noqa: E402
from prony.model import Fault, FaultKind, Invalid, Ok  # noqa: E402

FAULTS = (
    Fault(FaultKind.SLEPT, slept_ns=3_000_000_000),
    Fault(FaultKind.STOLEN_TIME, share=0.12),
    Fault(FaultKind.OTHER_LOAD, share=0.26),
    Fault(FaultKind.SANDBOX, text="no control group can be made"),
    Fault(FaultKind.GENERATOR, text="it ended with status 1"),
    Fault(FaultKind.NO_RECORDING),
    Fault(FaultKind.INTERRUPTED),
    Fault(FaultKind.LITTLES_LAW, share=-0.12),
    Fault(FaultKind.PRONY, text="KeyError: 'x'"),
)


def make(path: Path) -> None:
    """Write a small study, with a trial that was spoilt for each reason."""
    build.study_two(path, blocks=1)
    with open_archive(path) as archive:
        measured = next(one.trial for one in archive.trials() if isinstance(one.trial.outcome, Ok))
    small = replace(measured, recording=None, samples=(), threads=(), block=3)
    with resume(path, build.FINGERPRINT) as writer:
        for number, fault in enumerate(FAULTS):
            writer.append(replace(small, attempt=number, outcome=Invalid(in_words(fault)), fault=fault))
        writer.finish()
    with closing(sqlite3.connect(path)) as database:
        database.execute("VACUUM")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        made = Path(folder, "made.prony")
        study_of_mix(made) if sys.argv[2:] == ["mix"] else make(made)
        Path(sys.argv[1]).write_bytes(gzip.compress(made.read_bytes(), 9, mtime=0))
