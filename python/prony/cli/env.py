"""``prony env``: what Prony's cache contains."""

import json
from typing import Annotated

import typer

from prony.cli.talk import show

EPILOG = """\
Examples:
  prony env           environments, apps and runs in the cache, with their sizes
  prony env --json    the same as data
"""


def env(
    run_as: Annotated[
        str | None, typer.Option(help="The user that servers run as, when Prony is root.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the content of Prony's cache; `prony clean` empties it."""
    from prony.catalog.install.status import cache_items
    from prony.core.units import format_bytes
    from prony.core.users import resolve_user

    user = resolve_user(run_as)
    items = cache_items(user.cache)
    if as_json:
        rows = [{"kind": item.kind, "name": item.path.name, "bytes": item.size_bytes} for item in items]
        show(json.dumps({"cache": str(user.cache), "items": rows}, indent=2))
        return
    show(f"{user.cache}  (servers run as {user.name})")
    for item in items:
        show(f"  {format_bytes(item.size_bytes):>10}  {item.kind:12} {item.path.name}")
    show(f"  {format_bytes(sum(item.size_bytes for item in items)):>10}  total")
