"""``prony servers``: the catalogue."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.catalog.entry import ServerEntry

__all__ = ["EPILOG", "servers"]

EPILOG = """\
Examples:

  prony servers                  every server: interface, version, what it needs here

  prony servers gunicorn         one server's facts and settings, with their sources

  prony servers tornado --file serve.py > serve.py    the script that Prony starts it with

  prony servers --json           the same as data
"""


def servers(
    name: Annotated[str | None, typer.Argument(help="One server.", show_default=False)] = None,
    catalog: Annotated[
        list[Path] | None, typer.Option(help="More catalogue entries: a file or a folder.")
    ] = None,
    file: Annotated[
        str | None, typer.Option(help="Print this file of the server's, as Prony starts it with.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the servers that Prony knows, or show what it knows of one."""
    from prony.catalog.loader import load_catalog
    from prony.report.servers import server_document, server_json, servers_document
    from prony.report.terminal import TerminalReporter

    known = load_catalog(tuple(catalog or ()))
    entries = [known.find(name)[0]] if name else list(known.servers.values())
    if file is not None:
        typer.echo(_file_of(entries, file), nl=False)
        return
    if as_json:
        typer.echo(json.dumps([server_json(entry) for entry in entries], indent=2))
        return
    TerminalReporter().write(server_document(entries[0]) if name else servers_document(entries))


def _file_of(entries: "list[ServerEntry]", file: str) -> str:
    files = entries[0].files if len(entries) == 1 else {}
    if file not in files:
        raise UsageError(
            f"`--file {file}`: no such file; expected {' or '.join(files) or 'the name of one server first'}"
        )
    return files[file]
