"""A plan -> trials -> an archive.

Prepares every subject, runs randomised blocks with a fresh server for each trial, and archives each trial as
it ends.

>>> run_study.__name__
'run_study'
"""

from prony.study.run import run_study
from prony.study.task import Study, StudyListener

__all__ = ["Study", "StudyListener", "run_study"]
