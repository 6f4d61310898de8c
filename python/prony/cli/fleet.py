"""``prony fleet``: what a fleet of generators needs before its first load; and which generators then share it
(``prony load --fleet``).
"""

import shlex
from dataclasses import replace
from enum import StrEnum
from os import sched_getaffinity
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.talk import show
from prony.core.errors import UsageError

if TYPE_CHECKING:
    from prony.cli.load_options import FleetOptions, PaceOptions
    from prony.engine.fleet import Fleet
    from prony.engine.generator import Engine
    from prony.model.address import Address
    from prony.model.workload import EngineChoice

EPILOG = """\
Examples:
  prony fleet certificates ~/fleet                  for the scheduler, its workers and `prony load`
  prony fleet certificates ~/fleet --days 7         for a week
"""

# Otherwise Dask's worker samples its threads all the time, beside the load.
_PROFILE_OFF = "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False"


class FleetWork(StrEnum):
    """What is to be made."""

    CERTIFICATES = "certificates"


def fleet(
    work: Annotated[FleetWork, typer.Argument(help="certificates: mutual TLS for one fleet.")],
    folder: Annotated[Path, typer.Argument(help="A new folder for them; copy it to each machine.")],
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long they are valid.")] = 365,
) -> None:
    """Make certificates for generators on several machines (prony load --fleet)."""
    from prony.engine.fleet import CERTIFICATE, KEY, ROOT
    from prony.engine.fleet.certificates import write_certificates

    del work  # there is one
    write_certificates(folder, days)
    options = (("--tls-ca-file", ROOT), ("--tls-cert", CERTIFICATE), ("--tls-key", KEY))
    files = shlex.join(word for option, name in options for word in (option, str(folder / name)))
    show(
        f"{folder}: whoever holds these can run code on every machine of the fleet. Copy it there, and start:"
    )
    show(f"  dask scheduler --protocol tls --no-dashboard {files}")
    show(f"  {_PROFILE_OFF} dask worker tls://SCHEDULER:8786 --nthreads 1 --no-nanny --no-dashboard {files}")
    show(f"  prony load URL --fleet tls://SCHEDULER:8786 --fleet-certificates {shlex.quote(str(folder))}")


def fleet_engine(
    options: "FleetOptions", address: "Address", choice: "EngineChoice", pace: "PaceOptions"
) -> "Engine":
    """Return the generators that were asked for, as one.

    *Errors*: UsageError for what cannot be a fleet, and for an address that is another one on each machine.
    """
    from prony.engine.allowed_hosts import is_loopback
    from prony.engine.fleet import fleet_of
    from prony.engine.fleet.engine import FleetEngine
    from prony.model.address import AddressKind

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


def _shared(fleet: "Fleet", choice: "EngineChoice", pace: "PaceOptions") -> "EngineChoice":
    """Return what one generator of several on this machine is: together they take as much of it as one."""
    from prony.model.workload import Pacing

    if fleet.workers is None:
        return choice
    threads = pace.threads or max(1, choice.threads // fleet.workers)
    spinning = fleet.workers * threads
    if pace.pacing is None and spinning > len(sched_getaffinity(0)) // 2:
        return replace(choice, threads=threads, pacing=Pacing.ECONOMICAL)
    return replace(choice, threads=threads)
