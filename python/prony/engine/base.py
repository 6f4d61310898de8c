"""The role of a load generator, and what is asked of the compiled engine.

Must not know how a generator works.

>>> Engine.__name__
'Engine'
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Protocol, cast

from prony.model import Address, Json, Workload
from prony.sandbox.base import EngineSeat

__all__ = ["Engine", "Native", "NativeMemory", "NativeProcess", "NativeSampler", "OnEvent", "load_native"]

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


class NativeProcess(Protocol):
    """One process as the compiled sampler sees it."""

    pid: int
    parent_pid: int
    start_time_ticks: int
    command: str
    user_ns: int
    system_ns: int
    rss_bytes: int
    vsz_bytes: int
    threads: int


class NativeMemory(Protocol):
    """A process's memory, shared pages divided among those who share them (PSS) or left out (USS)."""

    pss_bytes: int
    uss_bytes: int


class NativeSampler(Protocol):
    """Samples the processes below a root."""

    def sample(self) -> Sequence[NativeProcess]:
        """Return them as they are now."""
        ...


class Native(Protocol):
    """What Prony uses of the compiled module ``prony._engine``."""

    def run(self, spec: str, on_event: Callable[[str], None] | None) -> str:
        """Run a specification and return the Recording; both are JSON."""
        ...

    def ProcessSampler(self, root_pid: int, include_root: bool = False) -> NativeSampler:  # noqa: N802
        """Return a sampler of the processes below ``root_pid``."""
        ...

    def process_memory(self, pid: int) -> NativeMemory | None:
        """Return a process's memory; null when it is gone or may not be read."""
        ...


def load_native() -> Native:
    """Return the compiled module: loaded where it is used, for it is not needed to read archives.

    *Errors*: ImportError when it was not built.
    """
    return cast(Native, import_module("prony._engine"))
