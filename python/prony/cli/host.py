"""``prony host``: this machine's fingerprint, and what it lacks."""

import json
from typing import Annotated

import typer

from prony.cli.talk import show

EPILOG = """\
Examples:
  prony host                       this machine, and what to change before a study
  prony host -c 10000              would 10,000 connections fit?
  prony host --json                the fingerprint as every archive keeps it
"""


def host(
    connections: Annotated[
        int, typer.Option("-c", "--connections", min=1, help="Connections to plan for.")
    ] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show this machine, what it lacks, with the command that fixes it, and what Prony costs here."""
    from prony.cli.documents.calibration import host_document, host_json
    from prony.core.users import resolve_user
    from prony.figures.drift import machine_key
    from prony.machine.activity import watch_machine
    from prony.machine.fingerprint import fingerprint
    from prony.machine.preflight import Demand, preflight
    from prony.study.calibration import kept

    seen = watch_machine()
    facts, checks = fingerprint(seen=seen), preflight(Demand(connections), seen)
    calibration = kept(resolve_user().cache, machine_key(facts))
    if as_json:
        show(json.dumps(host_json(facts, checks, calibration), indent=2))
        return
    from prony.report.formats.terminal import TerminalReporter

    TerminalReporter().write(host_document(facts, checks, calibration))
