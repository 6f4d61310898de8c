"""Archives of studies, read by the claims, notes and published figures that the catalogue has now.

Claims are corrected, and an archive of hours shall not be lost by that. For scripts that write docs/studies.
"""

from collections.abc import Sequence
from dataclasses import replace

from prony.archive import Archive
from prony.catalog.schema.loader import load_catalog
from prony.catalog.schema.studies import built_in_studies
from prony.figures.summary import TrialFigures
from prony.model.plan import Plan
from prony.model.trial import TrialRole
from prony.plan.build import PlanOptions
from prony.reading.study import StudyResults, read_archive, read_figures
from prony.study.task import plan_of_source, read_source


def read_now(archive: Archive, figures: Sequence[TrialFigures] | None = None) -> StudyResults:
    """Return what an archive says; of a study of one's own, by its own claims. ``figures``: in place of its
    trials.
    """
    plan = _as_of_now(archive.plan())
    if figures is None:
        return read_archive(archive, plan=plan)
    added = {role: archive.cells(role) for role in TrialRole if role is not TrialRole.SUBJECT}
    return read_figures(plan, archive.runs(), archive.subjects(), figures, added)


def page_name(plan: Plan) -> str:
    """Return what a study's page is called: its study, and the profile unless that is the quick one."""
    return plan.name if plan.profile in (None, "", "quick") else f"{plan.name}-{plan.profile}"


def _as_of_now(plan: Plan) -> Plan:
    if plan.name not in built_in_studies():
        return plan
    known, options = load_catalog(), PlanOptions(profile=plan.profile, blocks=plan.blocks)
    now = plan_of_source(plan.name, read_source(plan.name), known, options)
    # The notes say beside which metric a published figure stands.
    return replace(plan, claims=now.claims, originals=now.originals, notes=now.notes)
