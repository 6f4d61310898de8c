"""``prony fleet``: what a fleet of generators needs before its first load."""

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from prony.cli.talk import show

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
    from prony.engine.fleet.address import CERTIFICATE, KEY, ROOT
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
