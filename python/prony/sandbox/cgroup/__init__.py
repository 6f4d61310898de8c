"""Control groups: a subtree for Prony, in it a group for each part of a trial, with limits and counters.

``scope`` opens them, ``probe`` tests which limits hold, ``join`` is what a child needs between fork and exec.
Imports nothing, because the supervisor imports this package.

>>> from prony.sandbox.cgroup.types import Limits
>>> Limits(cpu_quota=1.5, memory_bytes=512 * 1024**2).pids is None
True
"""
