"""``prony doctor``: missing system packages of servers, and the command that installs them."""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.talk import show
from prony.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from prony.catalog.schema.entry import ProcessEntry
    from prony.catalog.schema.loader import Catalog

EPILOG = """\
Examples:
  prony doctor                      what the servers of the catalogue lack here
  prony doctor bjoern waitress      only these two
  prony doctor embedded-servers     what the servers of a study lack
"""


def doctor(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Servers, frontends, apps, studies, or studies' files.", show_default=False
        ),
    ] = None,
    catalog: Annotated[
        list[Path] | None, typer.Option(help="More catalogue entries: a file or a folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Print which system packages servers lack and how to get them; change nothing.

    Exits with 3 if some are missing.
    """
    from prony.catalog.install.status import has_python, works
    from prony.catalog.install.system import advise, find_system
    from prony.catalog.schema.loader import load_catalog
    from prony.cli.documents.servers import advice_document
    from prony.core.users import resolve_user
    from prony.model.shown import json_of
    from prony.report.formats.terminal import TerminalReporter

    known = load_catalog(tuple(catalog or ()))
    found = _entries(known, names) if names else known.entries()
    user = resolve_user()
    advice = advise(
        {entry.name: entry for entry in found}.values(),
        find_system(),
        partial(works, user=user),
        partial(has_python, user=user),
    )
    if as_json:
        show(json.dumps(json_of(advice), indent=2))
    else:
        TerminalReporter().write(advice_document(advice))
    return ExitCode.COULD_NOT_MEASURE if advice.missing else ExitCode.DONE


def _entries(known: "Catalog", names: Iterable[str]) -> "Iterable[ProcessEntry]":
    """Yield the entries that names of servers, frontends, services, apps and studies mean; servers win."""
    for name in names:
        if name in known.apps:
            yield from (known.service(service) for service in known.app(name).services)
            continue
        try:
            found = known.processes(name) if "@" in name else (known.entry(name),)
        except UsageError as unknown:
            yield from _of_study(known, name, unknown)
        else:
            yield from (entry.asked_for() for entry in found)


def _of_study(known: "Catalog", name: str, unknown: UsageError) -> "Iterable[ProcessEntry]":
    from prony.catalog.schema.studies import built_in_studies, read_study

    if name not in built_in_studies() and not Path(name).is_file():
        raise UsageError(f"there is no server or study `{name}`", unknown.hint)
    for part in read_study(name).document.subjects:
        for server in part.server:
            yield from known.processes(server)
        for app in part.app:
            yield from (known.service(service) for service in known.app(app).services)
