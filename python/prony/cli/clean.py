"""``prony clean``: frees disk space of Prony's cache, and ends what a killed Prony left running."""

from typing import Annotated

import typer

from prony.cli.talk import show
from prony.core.users import RunAs, resolve_user

EPILOG = """\
Examples:
  prony clean          end processes and remove files that a killed Prony left behind
  prony clean --all    also remove all environments and copies of apps; Prony builds them again when needed
"""


def clean(
    everything: Annotated[
        bool, typer.Option("--all", help="Also remove environments and copies of apps.")
    ] = False,
    run_as: Annotated[
        str | None, typer.Option(help="The user that servers run as, when Prony is root.")
    ] = None,
) -> None:
    """End processes and remove files of interrupted runs; archives are never touched."""
    from prony.core.temporary import clear_temporary
    from prony.sandbox.journal import clear_remains
    from prony.sandbox.remains import clear_groups

    user = resolve_user(run_as)
    for remains in clear_remains(user):
        kept = (
            f"left alone: {remains.kept}"
            if remains.kept
            else f"{remains.processes_ended} processes ended, folder removed"
        )
        show(f"run {remains.run}: {kept}")
    for told in clear_groups():
        show(told)
    if cleared := clear_temporary():
        show(f"removed {cleared} temporary folders of processes that were killed")
    if everything:
        _free(user)
    else:
        show("nothing else to clean; --all removes environments")


def _free(user: "RunAs") -> None:
    """Remove what Prony can build again.

    *Errors*: HostError while another Prony uses it for a measurement.
    """
    from prony.catalog.install.status import cache_items, remove
    from prony.core.units import format_bytes
    from prony.machine.claim import claim_machine
    from prony.sandbox.container_engine import remove_images

    with claim_machine():
        if images := remove_images():
            show(f"removed {images} container image{'s' if images > 1 else ''}")
        items = [item for item in cache_items(user.cache) if item.kind != "run"]
        freed = sum(item.size_bytes for item in items if remove(item))
    show(f"freed {format_bytes(freed)}")
