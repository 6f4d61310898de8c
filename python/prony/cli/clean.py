"""``prony clean``: frees what Prony keeps on disk, and ends what a killed one left."""

from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.talk import show

if TYPE_CHECKING:
    from prony.runas import RunAs

__all__ = ["EPILOG", "clean"]

EPILOG = """\
Examples:

  prony clean          end and remove what a Prony that was killed left behind

  prony clean --all    and remove all environments and copies of apps; they are built again when needed
"""


def clean(
    everything: Annotated[
        bool, typer.Option("--all", help="Remove environments and copies of apps too.")
    ] = False,
    run_as: Annotated[
        str | None, typer.Option(help="The user that servers run as, when Prony is root.")
    ] = None,
) -> None:
    """End and remove what is left of interrupted runs; archives are never touched."""
    from prony.runas import resolve_user
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
    if everything:
        _free(user)
    else:
        show("nothing else to clean; --all removes environments")


def _free(user: "RunAs") -> None:
    """Remove what can be had again.

    *Errors*: HostError while another Prony measures with it.
    """
    from prony.catalog.install.cache import cache_items, remove
    from prony.host import claim_machine
    from prony.sandbox.containers.image import remove_images
    from prony.units import format_bytes

    with claim_machine():
        if images := remove_images():
            show(f"removed {images} image{'s' if images > 1 else ''} of containers")
        items = [item for item in cache_items(user.cache) if item.kind != "run"]
        freed = sum(item.size_bytes for item in items if remove(item))
    show(f"freed {format_bytes(freed)}")
