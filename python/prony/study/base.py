"""What is to be measured, and who is told how it goes.

Must not know how a study is run.

>>> Study.__name__
'Study'
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from prony.catalog.install.prepare import EnvironmentProgress
from prony.catalog.schema.loader import Catalog
from prony.model import Cell, Json, Plan, Trial
from prony.runas import RunAs
from prony.sandbox.choice import Chosen

__all__ = ["Study", "StudyListener"]


_AS_PLANNED = Chosen()


@dataclass(frozen=True, slots=True)
class Study:
    """What is to be measured, and with what.

    ``requirements_file`` and ``python`` are a user app's own (see `EnvironmentRequest`); ``jobs``:
    environments built at a time. ``sandbox``: why the plan's sandbox is what it is, and what must hold in it.
    ``force``: measure also where the figures cannot be valid; the archive says so. ``cross_checks``: cells of
    other generators, beside the plan's, measured in each block. ``resumes``: ``out`` has some of it already.
    """

    plan: Plan
    catalog: Catalog
    user: RunAs
    out: Path
    requirements_file: Path | None = None
    python: Path | None = None
    jobs: int = 2
    sandbox: Chosen = _AS_PLANNED
    force: bool = False
    cross_checks: tuple[Cell, ...] = ()
    resumes: bool = False


class StudyListener(Protocol):
    """Who is told how a study goes."""

    def notice(self, text: str) -> None:
        """Tell something that the user should see and keep."""

    def environment(self, progress: EnvironmentProgress) -> None:
        """Tell how an environment gets on."""

    def planned(self, trials: int) -> None:
        """Tell how many trials there will be, now that it is known which subjects are available."""

    def trial_started(self, cell: Cell, block: int, blocks: int) -> None:
        """Tell that a trial begins; ``blocks`` 0: in a search, which has none."""

    def trial_event(self, cell: Cell, event: Json) -> None:
        """Pass on an event of the engine."""

    def trial_ended(self, cell: Cell, trial: Trial) -> None:
        """Tell that a trial is over and archived."""
