"""Which CPUs each subject of a plan gets: a limit of CPUs may be its own.

Must not know how CPUs are placed.
"""

from collections.abc import Sequence

from prony.host.cpus import Cpu
from prony.model.plan import Plan
from prony.model.sandbox import Placement
from prony.sandbox.placement import place_in


def placement_of_subject(plan: Plan, subject: str, cpus: Sequence[Cpu]) -> Placement:
    """Return the placement of the subject of this name; of one that is not the plan's: the plan's widest.

    The generator has the same CPUs in all of them.

    *Errors*: HostError as `place_in`.
    """
    return place_in(plan.sandbox_of(subject), cpus, plan.engine_threads)
