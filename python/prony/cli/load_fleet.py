"""`prony load --fleet`: which generators share a load."""

from dataclasses import replace
from os import sched_getaffinity

from prony.cli.load_options import FleetOptions, PaceOptions
from prony.core.errors import UsageError
from prony.engine.allowed_hosts import is_loopback
from prony.engine.fleet.address import Fleet, fleet_of
from prony.engine.generator import Engine
from prony.model.address import Address, AddressKind
from prony.model.workload import EngineChoice, Pacing


def fleet_engine(options: FleetOptions, address: Address, choice: EngineChoice, pace: PaceOptions) -> Engine:
    """Return the generators that were asked for, as one.

    *Errors*: UsageError for what cannot be a fleet, and for an address that is another one on each machine.
    """
    from prony.engine.fleet.engine import FleetEngine

    fleet = fleet_of(options.fleet or "", options.fleet_certificates)
    is_own = address.kind is AddressKind.UNIX or is_loopback(address.host)
    if is_own and not fleet.is_here:
        raise UsageError(
            f"`{address.host}` is another server on each machine of the fleet `{options.fleet}`",
            hint="give the address of the server in the network, and allow it: --allow-host HOST",
        )
    if fleet.quota is not None:
        raise UsageError(
            f"`--fleet {options.fleet}`: a limit for each generator needs control groups, as `prony run` has",
            hint=f"leave it out: --fleet local:{fleet.workers}",
        )
    own = _shared(fleet, choice, pace)
    return FleetEngine(fleet, own, options.on_loss, pace.threads if fleet.workers is None else own.threads)


def _shared(fleet: Fleet, choice: EngineChoice, pace: PaceOptions) -> EngineChoice:
    """Return what one generator of several on this machine is: together they take as much of it as one."""
    if fleet.workers is None:
        return choice
    threads = pace.threads or max(1, choice.threads // fleet.workers)
    spinning = fleet.workers * threads
    if pace.pacing is None and spinning > len(sched_getaffinity(0)) // 2:
        return replace(choice, threads=threads, pacing=Pacing.ECONOMICAL)
    return replace(choice, threads=threads)
