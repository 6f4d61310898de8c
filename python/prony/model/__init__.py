"""The central types: what is measured, how, and what came of it.

Frozen values without I/O. A measuring side fills them and writes one Archive; a reading side reads them
from it. Times are integer nanoseconds; monotonic stamps are CLOCK_MONOTONIC. Must not know catalogue,
archive or engine.

>>> from prony.model.workload import DurationStop, OpenLoop, Workload
>>> Workload(loop=OpenLoop(rate_per_s=550.0), stop=DurationStop(10_000_000_000)).describe()
'open loop, 550/s constant, 10 s'
"""
