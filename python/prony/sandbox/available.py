"""Which kinds of sandbox this machine offers, found without disturbing other measurements.

It changes nothing, except that it may move this process into a scope of systemd (``gain_cgroups``). Whether
limits hold is tested later, when the machine is claimed. Must not know what the user wants.

>>> sorted(look(()).absent)
[]
"""

from collections.abc import Collection

from prony.model.sandbox import SandboxKind
from prony.sandbox.cgroup.base import NoCgroups
from prony.sandbox.cgroup.scope import gain_cgroups
from prony.sandbox.choice import Absent, Available
from prony.sandbox.containers.found import find_engine


def look(kinds: Collection[SandboxKind]) -> Available:
    """Return which of these kinds are available."""
    if SandboxKind.CONTAINER in kinds:
        engine = find_engine()
        return Available({SandboxKind.CONTAINER: engine} if isinstance(engine, Absent) else {})
    if SandboxKind.CGROUP not in kinds:
        return Available()
    tree = gain_cgroups()
    if isinstance(tree, NoCgroups):
        return Available({SandboxKind.CGROUP: Absent(tree.reason, tree.hint)})
    try:
        return Available(missing=tree.missing)
    finally:
        tree.close()
