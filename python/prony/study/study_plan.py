"""A study's name, or its file, as a plan: what ``prony run`` measures and ``prony studies`` shows."""

from pathlib import Path
from typing import TYPE_CHECKING

from prony.core.errors import UsageError

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.catalog.schema.studies import StudySource
    from prony.model.plan import Cell, Plan
    from prony.plan.build import PlanOptions
    from prony.plan.document import StudyDocument


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
