"""Control groups: one subtree of Prony's own, a group for each named part of a trial, limits and evidence.

``tree`` opens them, ``probe`` says which limits really hold, ``remains`` removes what a killed Prony left,
``join`` is all that a child needs between fork and exec. Imports nothing, for the supervisor passes through
here. Must not know subjects, trials or plans.

>>> from prony.sandbox.cgroup.base import Limits
>>> Limits(cpu_quota=1.5, memory_bytes=512 * 1024**2).pids is None
True
"""

__all__: list[str] = []
