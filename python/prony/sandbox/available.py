"""Which kinds of sandbox this machine offers, found without disturbing other measurements.

It changes nothing, except that it may move this process into a scope of systemd (``gain_cgroups``). Whether
limits hold is tested later, when the machine is claimed. Must not know what the user wants.

>>> sorted(look(()).absent)
[]
"""

from collections.abc import Collection

from prony.sandbox.cgroup.base import NoCgroups
from prony.sandbox.cgroup.scope import gain_cgroups
from prony.sandbox.choice import Absent, Available, Kind
from prony.sandbox.containers.found import find_engine

__all__ = ["look"]


def look(kinds: Collection[Kind]) -> Available:
    """Return which of these kinds are available."""
    if "container" in kinds:
        engine = find_engine()
        return Available({"container": engine} if isinstance(engine, Absent) else {})
    if "cgroup" not in kinds:
        return Available()
    tree = gain_cgroups()
    if isinstance(tree, NoCgroups):
        return Available({"cgroup": Absent(tree.reason, tree.hint)})
    try:
        return Available(missing=tree.missing)
    finally:
        tree.close()
