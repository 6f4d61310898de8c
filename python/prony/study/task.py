"""What to measure, and who receives the progress.

>>> Study.__name__
'Study'

A study's name, or its file, as a plan: what ``prony run`` measures and ``prony studies`` shows.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from prony.catalog.install.environment import Declared
from prony.catalog.install.prepare import EnvironmentProgress
from prony.catalog.schema.loader import Catalog
from prony.core.errors import UsageError
from prony.core.users import RunAs
from prony.engine.fleet import Fleet
from prony.engine.generator import RequestDescriptors
from prony.machine.cpus import Cpu
from prony.model.facts import Fingerprint, GeneratorFitness
from prony.model.json_codec import Json
from prony.model.plan import Cell, Plan
from prony.model.sandbox import Placement
from prony.model.trial import Trial
from prony.sandbox.choice import Chosen
from prony.sandbox.placement import place_in

if TYPE_CHECKING:
    from prony.catalog.schema.studies import StudySource
    from prony.plan.build import PlanOptions
    from prony.plan.document import StudyDocument

# How long a trial takes besides its load: start, contract, drain, stop. Only for the estimate before the
# first trial is over.
TRIAL_OVERHEAD_S = 2.5
_AS_PLANNED = Chosen()

MOST_RETRIES = 2
"""How often to repeat a trial that the environment disturbed."""


def _unknown(machine: Fingerprint) -> GeneratorFitness | None:
    del machine
    return None


@dataclass(frozen=True, slots=True)
class OwnPackages:
    """What an app of the user's own needs; ``python``: as of `EnvironmentRequest`."""

    declared: Declared | None = None
    python: Path | None = None


def own_packages(typed: Path | None, declared: Declared | None, python: Path | None) -> OwnPackages:
    """Return what an app needs: by the file that was ``typed``, else as its folder has ``declared``."""
    return OwnPackages(Declared(file=typed) if typed else declared, python)


@dataclass(frozen=True, slots=True)
class Study:
    """What to measure, and with what.

    ``packages``: what apps of the user's own need, by their names. ``sandbox``: why the plan has its sandbox,
    and which limits must hold in it. ``ready_timeout_ns``: how long a server may take to start, null: as its
    entry says.
    ``force``: measure even if the figures cannot be valid; the archive records that. ``retries``: how often a
    trial that the machine disturbed is repeated; none where the disturbance is planted. ``cross_checks``:
    cells of other generators, measured in each block in addition to the plan's. ``resumes``: ``out`` already
    holds a part of the study. ``before_each``: the words of a command that runs before each trial of a user's
    app, in its folder; empty: none. ``fitness``: the load engine's calibration on a machine, null where there
    is none. ``fleet``: the machines of the generator ``fleet``. ``requests``: of loads that have theirs
    in a file. ``command``: what to type for the same study in a new archive; empty: nobody types it.
    ``most_ns``: for how long trials may be measured; five blocks are, and fresh trials of one rate of a
    search, whatever they take; null: no limit.
    """

    plan: Plan
    catalog: Catalog
    user: RunAs
    out: Path
    packages: Mapping[str, OwnPackages] = field(default_factory=dict)
    ready_timeout_ns: int | None = None
    sandbox: Chosen = _AS_PLANNED
    force: bool = False
    retries: int = MOST_RETRIES
    cross_checks: tuple[Cell, ...] = ()
    resumes: bool = False
    before_each: tuple[str, ...] = ()
    fitness: Callable[[Fingerprint], GeneratorFitness | None] = _unknown
    fleet: Fleet | None = None
    requests: RequestDescriptors = field(default_factory=dict)
    command: str = ""
    most_ns: int | None = None


class StudyListener(Protocol):
    """Receives the progress of a study."""

    def notice(self, text: str) -> None:
        """Show a message that stays visible to the user."""

    def environment(self, progress: EnvironmentProgress) -> None:
        """Report the progress of an environment's build."""

    def planned(self, trials: int) -> None:
        """Report the number of trials, once it is known which subjects are available."""

    def paused(self, left_s: float, words: str) -> None:
        """Report for how long nothing is measured yet, and before what; called again while it lasts."""

    def rounds_planned(self, blocks: Collection[int], seconds: float) -> None:
        """Report the blocks that lack rounds, and how long those of one take; only where there are some."""
        return

    def round_started(self, block: int, number: int, rounds: int) -> None:
        """Report that a round of short windows begins, the first is 0; listeners of no rounds need not."""
        return

    def trial_started(self, cell: Cell, block: int, blocks: int) -> None:
        """Report that a trial begins; ``blocks`` 0: in a search or a pilot, which have no blocks."""

    def trial_event(self, cell: Cell, event: Json) -> None:
        """Receive an event of the engine."""

    def trial_ended(self, cell: Cell, trial: Trial) -> None:
        """Report that a trial is over and archived."""


# --- which CPUs each subject of a plan gets ---------------------------------------------------------------


def placement_of_subject(plan: Plan, subject: str, cpus: Sequence[Cpu]) -> Placement:
    """Return the placement of the subject of this name; of one that is not the plan's: the plan's widest.

    The generator has the same CPUs in all of them.

    *Errors*: HostError as `place_in`.
    """
    return place_in(plan.sandbox_of(subject), cpus, plan.placed_threads)


def plan_of_source(name: str, source: "StudySource", known: "Catalog", options: "PlanOptions") -> "Plan":
    """Return the plan of a study that was read, by this name or from this file.

    *Errors*: UsageError for a server of this folder that nobody named.
    """
    from prony.plan.build import make_plan

    plan = make_plan(source.document, source.text, known, options, source.originals)
    # What lies in the working folder runs because its user says so, and not because a study's file does.
    unasked = [subject.server for subject in plan.subjects() if subject.server in known.unasked]
    if unasked:
        raise UsageError(
            f"`{name}` wants `{unasked[0]}` of this folder's `prony.d`, which runs only when you name it",
            hint=f"look at prony.d/{unasked[0]}.toml, then add --catalog prony.d/{unasked[0]}.toml",
        )
    return plan


def checks_of_source(source: "StudySource", plan: "Plan") -> "tuple[Cell, ...]":
    """Return the cells that the plan's profile has other generators measure once more."""
    from prony.plan.build import cross_check_cells

    _, profile = source.document.profile(plan.profile)
    wanted = profile.cross_check
    return cross_check_cells(plan, wanted.engines, wanted.under) if wanted else ()


def read_source(name: str) -> "StudySource":
    """Return the study of this name, or in this file.

    *Errors*: UsageError with all that is wrong in the file, or for a name that no study has.
    """
    from prony.catalog.schema.studies import read_study
    from prony.catalog.schema.toml_source import SourceError

    file = Path(name)
    if ("/" in name or file.suffix == ".toml") and not file.is_file():
        raise UsageError(f"`{name}`: there is no such file", hint="`prony run` takes a study's name or file")
    try:
        return read_study(name)
    except SourceError as error:
        raise UsageError(
            error.message, hint="docs/reference/study-format.md describes a study's file"
        ) from error


def check_names(study: str, document: "StudyDocument", known: "Catalog") -> None:
    """Refuse servers and apps that the catalogue does not have, and say that the study names them.

    *Errors*: UsageError for the first of them.
    """
    try:
        for part in document.subjects:
            for server, app in part.pairs:
                known.processes(known.of_app(server, app))
                known.app(app)
    except UsageError as error:
        raise UsageError(f"study `{study}`: {error.message}", hint=error.hint) from error
