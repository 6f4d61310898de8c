"""The role of a load generator, and what is asked of the compiled engine.

Must not know how a generator works.

>>> Engine.__name__
'Engine'
"""

from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from prony.model import Address, Json, Workload
from prony.sandbox.base import EngineSeat

__all__ = ["Engine", "Native", "OnEvent", "load_native"]

OnEvent = Callable[[Json], None]


class Engine(Protocol):
    """Puts a load on an address."""

    def run(self, workload: Workload, address: Address, seat: EngineSeat, on_event: OnEvent) -> Json:
        """Run the load to its end and return the Recording; ``on_event`` gets each event as it comes.

        *Errors*: EngineError when it could not run; what ``on_event`` raises, after the load is stopped.
        """
        ...

    def cancel(self) -> None:
        """End the load that runs, from any thread: ``run`` returns a Recording marked as interrupted."""
        ...


class Native(Protocol):
    """What Prony uses of the compiled module ``prony._engine``."""

    def run(self, spec: str, on_event: Callable[[str], None] | None) -> str:
        """Run a specification and return the Recording; both are JSON."""
        ...


def load_native() -> Native:
    """Return the compiled module: loaded where it is used, for it is not needed to read archives.

    *Errors*: ImportError when it was not built.
    """
    return cast(Native, import_module("prony._engine"))
