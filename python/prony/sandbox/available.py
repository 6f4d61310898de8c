"""Which kinds of sandbox this machine has, found without disturbing what others measure.

Only looks, but may move this process into a scope of systemd's (``gain_cgroups``): whether limits really
hold is tried when the machine is claimed. Must not know what is wanted.

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
    """Return what there is of these kinds."""
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
