"""Where subjects run: started, placed on CPUs, kept apart, stopped, and nothing left behind.

Must not know plans or trials. Imports little, for the supervisor starts through this package: a kind of
sandbox when it is opened.

>>> sorted(SANDBOXES)
['process']
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from prony.model import SandboxChoice
from prony.runas import RunAs
from prony.sandbox.base import EngineSeat, RunningSubject, Sandbox, SandboxFacts, StopReport

__all__ = [
    "SANDBOXES",
    "EngineSeat",
    "RunningSubject",
    "Sandbox",
    "SandboxFacts",
    "StopReport",
    "describe",
    "open_sandbox",
]


def _process(choice: SandboxChoice, user: RunAs, folder: Path) -> Sandbox:
    from prony.sandbox.process import ProcessSandbox

    return ProcessSandbox(choice, user, folder)


SANDBOXES: Mapping[str, Callable[[SandboxChoice, RunAs, Path], Sandbox]] = {
    "process": _process,
}


def open_sandbox(choice: SandboxChoice, user: RunAs, folder: Path) -> Sandbox:
    """Return the sandbox of one trial; ``folder`` is its own: the subject's working directory."""
    return SANDBOXES[choice.kind](choice, user, folder)


def describe(choice: SandboxChoice, user: RunAs) -> SandboxFacts:
    """Return what such a sandbox keeps apart on this machine, and the reason for each thing it does not."""
    return open_sandbox(choice, user, user.cache).facts
