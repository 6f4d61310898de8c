"""Archives of studies, read by the claims, notes and published figures that the catalogue has now.

Claims are corrected, and an archive of hours shall not be lost by that. For scripts that write docs/studies.
"""

from dataclasses import replace

from prony.archive import Archive
from prony.catalog.schema.loader import load_catalog
from prony.catalog.schema.studies import built_in_studies
from prony.plan import PlanOptions
from prony.reading.study import Reading, read_archive
from prony.study.named import plan_of_study


def read_now(archive: Archive) -> Reading:
    """Return what an archive says; of a study of one's own, by its own claims."""
    plan = archive.plan()
    if plan.name not in built_in_studies():
        return read_archive(archive)
    now = plan_of_study(plan.name, load_catalog(), PlanOptions(profile=plan.profile, blocks=plan.blocks))
    # The notes say beside which metric a published figure stands.
    current = replace(plan, claims=now.claims, originals=now.originals, notes=now.notes)
    return read_archive(archive, plan=current)
