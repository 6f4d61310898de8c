"""``prony servers``: the catalogue."""

import json
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["EPILOG", "servers"]

EPILOG = """\
Examples:

  prony servers                  every server: interface, version, what it needs here

  prony servers gunicorn         one server's facts and settings, with their sources

  prony servers --json           the same as data
"""


def servers(
    name: Annotated[str | None, typer.Argument(help="One server.", show_default=False)] = None,
    catalog: Annotated[list[Path] | None, typer.Option(help="More catalogue entries: a file or a folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the servers that Prony knows, or show what it knows of one."""
    from prony.catalog.loader import load_catalog
    from prony.report.servers import server_document, server_json, servers_document
    from prony.report.terminal import TerminalReporter

    known = load_catalog(tuple(catalog or ()))
    entries = [known.find(name)[0]] if name else list(known.servers.values())
    if as_json:
        typer.echo(json.dumps([server_json(entry) for entry in entries], indent=2))
        return
    TerminalReporter().write(server_document(entries[0]) if name else servers_document(entries))
