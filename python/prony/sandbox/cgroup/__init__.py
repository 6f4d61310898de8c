"""Control groups: a subtree for Prony, in it a group for each part of a trial, with limits and counters.

``tree`` opens them, ``probe`` tests which limits hold, ``remains`` removes what a killed Prony left, ``join``
is what a child needs between fork and exec. Imports nothing, because the supervisor imports this package.
Must not know subjects, trials or plans.

>>> from prony.sandbox.cgroup.base import Limits
>>> Limits(cpu_quota=1.5, memory_bytes=512 * 1024**2).pids is None
True
"""

__all__: list[str] = []
