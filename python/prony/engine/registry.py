"""The load generators by name, and why one is unavailable.

To import it takes every kind with it.

>>> sorted(ENGINES)[:4]
['ab', 'fortio', 'h2load', 'hey']
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prony.core.errors import EngineError, UsageError
from prony.engine.external import TOOLS
from prony.engine.external.tool import refusal
from prony.engine.generator import Engine, RequestDescriptors
from prony.engine.scripts import SCRIPTS
from prony.model.address import Address
from prony.model.workload import ELSEWHERE, LOCAL, EngineChoice, Workload

if TYPE_CHECKING:
    # Who starts one generator has none of what a fleet needs.
    from prony.engine.fleet import Fleet
    from prony.sandbox.cgroup.scope import OwnGroup


@dataclass(frozen=True, slots=True)
class Means:
    """What a trial has for its generator.

    ``ceiling_per_s``: what the built-in one can reach on this machine under its load, if known; ``machines``:
    of the generator ``fleet``; ``group``: makes a control group of a name, where there are groups;
    ``requests``: of loads that have theirs in a file; ``counts``: whether the subject's own counts are
    believed, as only those of Prony's reference server are.
    """

    ceiling_per_s: float | None = None
    machines: "Fleet | None" = None
    group: "Callable[[str], OwnGroup] | None" = None
    requests: RequestDescriptors = field(default_factory=dict)
    counts: bool = False


_WITHOUT = Means()


def _prony(choice: EngineChoice, means: Means) -> Engine:
    from prony.engine.process import ProcessEngine

    return ProcessEngine(choice, ceiling_per_s=means.ceiling_per_s, requests=means.requests)


def _external(choice: EngineChoice, means: Means) -> Engine:
    del means
    from prony.engine.external.engine import ExternalEngine

    return ExternalEngine(choice, TOOLS[choice.name])


def _script(choice: EngineChoice, means: Means) -> Engine:
    del means
    from prony.engine.external.engine import ExternalEngine
    from prony.engine.own_program import find_script

    return ExternalEngine(choice, SCRIPTS[choice.name], find_script)


def _own(choice: EngineChoice, means: Means) -> Engine:
    from prony.engine.external.engine import ExternalEngine
    from prony.engine.own_program import find_own, own_tool

    return ExternalEngine(choice, own_tool(choice), lambda _tool: find_own(choice), counts=means.counts)


def _is_several(choice: EngineChoice) -> bool:
    return choice.name == ELSEWHERE or choice.name.startswith(LOCAL)


def _fleet(choice: EngineChoice, means: Means) -> Engine:
    from prony.engine.fleet import fleet_of
    from prony.engine.fleet.process import FleetProcessEngine
    from prony.engine.pipe import PipeEngine

    if choice.name != ELSEWHERE:
        return FleetProcessEngine(choice, fleet_of(choice.name), means.group)
    if means.machines is None:
        raise UsageError("the generator `fleet` has no machines", hint="name them: --fleet hosts.toml")
    if means.machines.pipe is not None:
        return PipeEngine(choice, means.machines.pipe)
    return FleetProcessEngine(choice, means.machines)


ENGINES: Mapping[str, Callable[[EngineChoice, Means], Engine]] = {
    "prony": _prony,
    **dict.fromkeys(TOOLS, _external),
    **dict.fromkeys(SCRIPTS, _script),
}


def open_engine(choice: EngineChoice, means: Means = _WITHOUT) -> Engine:
    """Return the generator of a study's trials.

    *Errors*: UsageError for an unknown name, or without the machines.
    """
    if choice.command:
        return _own(choice, means)
    if _is_several(choice):
        return _fleet(choice, means)
    if choice.name not in ENGINES:
        known = f"one of: {', '.join(sorted(ENGINES))}; or local:N, so many of Prony's own"
        raise UsageError(f"there is no engine `{choice.name}`", hint=known)
    return ENGINES[choice.name](choice, means)


def cannot_make(choice: EngineChoice, workload: Workload, address: Address) -> str | None:
    """Return why a generator cannot send a load to an address, in words; None: it can."""
    from prony.engine.own_program import own_tool

    known = TOOLS.get(choice.name) or SCRIPTS.get(choice.name)
    tool = own_tool(choice) if choice.command else known
    return refusal(tool, workload, address) if tool else None


def not_here(choice: EngineChoice) -> str | None:
    """Return why a generator is unavailable on this machine, and how to get it; None: it is available.

    The environment of the Python scripts is built if it does not exist. *Errors*: HostError as
    `prony.catalog.install.environment.prepare`.
    """
    from prony.engine.own_program import find_script

    if choice.name in SCRIPTS and not choice.command:
        return _lacking(lambda: find_script(SCRIPTS[choice.name]))
    return not_installed(choice)


def not_installed(choice: EngineChoice) -> str | None:
    """Return why a tool is not on this machine, and how to get it; None: it is, or Prony installs it.

    Builds nothing: what the Python scripts lack is installed when they are first used.
    """
    from prony.engine.external.engine import find_tool
    from prony.engine.fleet import find_fleet
    from prony.engine.own_program import find_own

    if choice.command:
        return _lacking(lambda: find_own(choice))
    if _is_several(choice):
        return _lacking(find_fleet)
    return _lacking(lambda: find_tool(TOOLS[choice.name])) if choice.name in TOOLS else None


def _lacking(find: Callable[[], object]) -> str | None:
    try:
        find()
    except EngineError as error:
        return f"{error.message}; {error.hint}" if error.hint else error.message
    return None
