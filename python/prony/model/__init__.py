"""The central types: what is measured, how, and what came of it.

Frozen values without I/O. A measuring side fills them and writes one Archive; a reading side reads them from
it. Times are integer nanoseconds; monotonic stamps are CLOCK_MONOTONIC. Prony imports each type from its
module; a script finds it here too.

>>> from prony.model.workload import DurationStop, OpenLoop, Workload
>>> Workload(loop=OpenLoop(rate_per_s=550.0), stop=DurationStop(10_000_000_000)).describe()
'open loop, 550/s constant, 10 s'
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a type of one of these modules."""
        found = iter_modules(__path__) if name[:1].isupper() else ()
        modules = (import_module(f"{__name__}.{one.name}") for one in found)
        for module in modules:
            if getattr(vars(module).get(name), "__module__", "") == module.__name__:
                return vars(module)[name]
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
