"""The plans of ``prony selftest``: one subject in cells that are equal, or that differ in planted work."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import TYPE_CHECKING

from prony.errors import UsageError
from prony.units import parse_percent

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.model.plan import Cell, Plan
    from prony.model.subject import Subject
    from prony.plan import PlanOptions

_WORK_US = 1000
"""The work of each request of the base: most of a small server's time for a request, so that the plant is
about that share of the whole.
"""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The common part of all cells: load and profile as in a study's document."""

    load: Mapping[str, object]
    profile: Mapping[str, object]
    catalog: "Catalog"
    options: "PlanOptions"


def several(server: str, app: str, names: int, same: Conditions) -> "Plan":
    """Return the plan of one subject under several names: all else is equal, and drawn again for each."""
    plan = _alone("aa", f"{server} against itself", (server, app), same)
    (cell,) = plan.cells
    labels = ascii_uppercase[:names]
    return replace(plan, cells=tuple(_named(cell, k, label) for k, label in enumerate(labels)))


def planted_plan(server: str, plants: Sequence[float], same: Conditions) -> "Plan":
    """Return the plan of one subject without added work, and with each of ``plants``, shares of its work.

    *Errors*: UsageError when the server serves several requests at once, or no fixed number.
    """
    from prony.analysis.planted import APP

    title = f"{server} with planted effects"
    plan = _alone("planted", title, (server, APP), same)
    (cell,) = plan.cells
    _one_at_a_time(cell.subject, same.catalog)
    works = sorted({_WORK_US, *(round(_WORK_US * (1 + plant)) for plant in plants)})
    return replace(plan, cells=tuple(_working(cell, k, work) for k, work in enumerate(works)))


def planted_shares(text: str) -> tuple[float, ...]:
    """Return the shares of ``--plants`` (such as ``2%,5%,10%``), each once and in ascending order.

    *Errors*: UsageError for a share that is not between 0.1 % and 1000 %.
    """
    return tuple(sorted({_share(part.strip()) for part in text.split(",")}))


def _share(text: str) -> float:
    try:
        share = parse_percent(text)
    except ValueError as error:
        raise UsageError(f"`--plants {text}`: {error}", hint="such as `2%,5%,10%`") from error
    if not 0.001 <= share <= 10:
        raise UsageError(f"`--plants {text}`: expected 0.1% to 1000%", hint="such as `2%,5%,10%`")
    return share


def _alone(kind: str, title: str, subject: tuple[str, str], same: Conditions) -> "Plan":
    from prony.plan import make_plan
    from prony.study_document import StudyDocument

    server, app = subject
    document = StudyDocument.model_validate(
        {
            "name": f"selftest-{kind}",
            "title": title,
            "subjects": [{"server": server, "app": app}],
            "workloads": [same.load],
            "profiles": {"quick": same.profile},
        }
    )
    return make_plan(document, shlex.join(["prony", *sys.argv[1:]]), same.catalog, same.options)


def _named(cell: "Cell", number: int, label: str) -> "Cell":
    return replace(cell, id=number, subject=replace(cell.subject, name=f"{cell.subject.name} ({label})"))


def _working(cell: "Cell", number: int, work_us: int) -> "Cell":
    """Return the cell whose requests ask for this much work; the replies are equal."""
    from prony.analysis.planted import work_path

    request = replace(cell.workload.request, path=work_path(work_us))
    named = _named(cell, number, f"{work_us} us")
    return replace(named, workload=replace(cell.workload, request=request))


def _one_at_a_time(subject: "Subject", catalog: "Catalog") -> None:
    """*Errors*: UsageError when the effect of a plant on throughput would be unknown."""
    from prony.catalog.launch.declared import declared_facts

    slots = declared_facts(catalog.server(subject.server), subject, os.cpu_count() or 1).slots
    if slots != 1:
        served = f"{slots} requests at a time" if slots else "no fixed number of requests at a time"
        raise UsageError(
            f"`{subject.name}` serves {served}: the effect of added work on its throughput is unknown",
            hint="prony selftest planted --server gunicorn",
        )
