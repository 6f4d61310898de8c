"""What ``prony run`` checks before it builds or starts anything: files, folders, CPUs.

`prony run --fleet`: which generators share the loads of a study, and where servers wait for them.
"""

import os
import socket
import time
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.run_options import AppOptions
from prony.core.errors import PronyError, UsageError
from prony.core.safe_text import escaped
from prony.model.sandbox import Network, SandboxKind
from prony.model.workload import ELSEWHERE, EngineChoice, is_fleet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prony.catalog.schema.loader import Catalog
    from prony.cli.run_options import LoadOptions
    from prony.cli.sandbox_options import SandboxOptions
    from prony.core.users import RunAs
    from prony.engine.fleet import Fleet
    from prony.model.plan import Cell, Plan
    from prony.model.sandbox import Placement
    from prony.sandbox.choice import Chosen


def placement_of(plan: "Plan") -> "Placement":
    """Return the CPUs of server and generator; where limits of CPUs differ, the most that a server gets.

    *Errors*: HostError when there are too few.
    """
    from prony.machine.cpus import available_cpus
    from prony.sandbox.placement import place_in

    return place_in(plan.sandbox, available_cpus(), plan.placed_threads)


def cpus_of(plan: "Plan") -> dict[str, int]:
    """Return how many CPUs each subject's server gets.

    *Errors*: as `placement_of`.
    """
    from prony.machine.cpus import available_cpus
    from prony.study.task import placement_of_subject

    cpus = available_cpus()
    return {
        subject.name: len(placement_of_subject(plan, subject.name, cpus).server_cpus)
        for subject in plan.subjects()
    }


def check_threads(plan: "Plan", threads: int) -> None:
    """Refuse ``--engine-threads`` above the CPUs; a study may set more on purpose.

    *Errors*: UsageError with the largest possible number.
    """
    cpus = len(placement_of(plan).generator_cpus)
    if threads > cpus:
        raise UsageError(
            f"`--engine-threads {threads}`: the generator has {cpus} CPU{'s' if cpus != 1 else ''} here; "
            f"expected at most {cpus}"
        )


def check_mix(plan: "Plan", engine: str | None) -> None:
    """Refuse a typed generator that cannot send the mix of a load: nothing would be measured.

    *Errors*: UsageError naming the generator.
    """
    others = (cell for cell in plan.cells if cell.workload.mix and not cell.engine.is_built_in)
    if engine is not None and any(cell.engine.named(engine) == cell.engine for cell in others):
        raise UsageError(
            f"`--engine {engine}` cannot send a mix of paths",
            hint="leave out --engine: Prony's own generator sends mixes; or ask for one --path",
        )


def check_streams(plan: "Plan", known: "Catalog", streams: int | None) -> None:
    """Refuse typed streams that no subject takes: nothing would be measured.

    *Errors*: UsageError with a server that takes them.
    """
    from prony.study.admission import ONE_AT_A_TIME, to_leave_out

    absent = to_leave_out(plan.cells, known) if streams is not None and streams > 1 else {}
    if absent and all(absent.get(cell.id) == ONE_AT_A_TIME for cell in plan.cells):
        raise UsageError(
            f"`--streams {streams}` needs a server that speaks HTTP/2, and none of these does",
            hint="--servers hypercorn --set hypercorn.wire=http2; `prony servers` lists the wires of each",
        )


def check_files(own: AppOptions, user: "RunAs") -> None:
    """Refuse requirements or an environment that do not exist, or that ``user`` cannot read.

    *Errors*: UsageError naming the option.
    """
    for option, file in (("--requirements", own.requirements), ("--python", own.python)):
        if file is not None and not file.exists():
            raise UsageError(f"`{option} {file}`: there is no such file")
    if own.requirements is not None and not own.requirements.is_file():
        raise UsageError(
            f"`--requirements {own.requirements}`: is no file; "
            "expected a requirements.txt or a pyproject.toml"
        )
    if own.python is not None and not (own.python.is_file() or own.python.is_dir()):
        raise UsageError(
            f"`--python {own.python}`: is no file; expected a virtual environment or an interpreter"
        )
    if own.python is not None:
        _check_readable(own.python, user)


def _check_readable(python: Path, user: "RunAs") -> None:
    from prony.core.users import first_unreadable

    blocked = first_unreadable(python, user)
    if blocked is not None:
        raise UsageError(
            f"`--python {python}`: the user `{user.name}`, which servers run as, cannot read it "
            f"(`{blocked}` is closed to it)",
            hint="choose another user with --run-as, or an environment in a folder that this user can read",
        )


_ANOTHER_FILE = "name another file with `--out`, or move this one"


def archive_to_write(plan: "Plan", out: Path | None) -> Path:
    """Return the file to write; refuse an impossible one before servers are installed.

    *Errors*: UsageError for a folder that cannot be written to.
    """
    file = out or Path(f"{plan.name}-{time.strftime('%Y%m%d-%H%M%S')}.prony")
    if not (file.parent.is_dir() and os.access(file.parent, os.W_OK | os.X_OK)):
        raise UsageError(f"`{file}`: `{file.parent}` is not a writable folder")
    return file


def goes_on(file: Path, plan: "Plan", checks: "Sequence[Cell]") -> bool:
    """Return whether a file holds a part of this study already.

    Only what the study is compared with is read from it: a stranger's archive decides nothing.

    *Errors*: UsageError for a file that holds something else.
    """
    from prony.study.ledger import other_plan

    if not os.path.lexists(file):
        return False
    try:
        others = other_plan(file, plan, checks)
    except PronyError as error:
        raise UsageError(f"`{file}` exists already; {error.message}", hint=_ANOTHER_FILE) from error
    if others:
        more = f"; and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        shown = "; ".join(escaped(one) for one in others[:_SHOWN])
        raise UsageError(f"`{file}` holds another study: {shown}{more}", hint=_ANOTHER_FILE)
    return True


_SHOWN = 3
"""How many differences are shown: the first says what was typed otherwise."""


def is_complete(file: Path) -> bool:
    """Return whether the study in ``file`` ran to its end."""
    from prony.archive import open_archive
    from prony.model.trial import RunStatus

    with open_archive(file) as archive:
        return any(run.status is RunStatus.FINISHED for run in archive.runs())


# --- generators: --fleet and --listen ---------------------------------------------------------------------


def asked_fleet(load: "LoadOptions") -> "Fleet | None":
    """Return the typed generators; None: one alone.

    *Errors*: UsageError for what cannot be a fleet, and for options without use.
    """
    from prony.engine.fleet import fleet_of

    if load.fleet is None:
        wrong = [("--listen", load.listen), ("--fleet-certificates", load.fleet_certificates)]
        for option, value in wrong:
            if value is not None:
                raise UsageError(f"`{option}` only works with `--fleet`", hint="add --fleet, or leave it out")
        return None
    if load.engine is not None:
        raise UsageError("`--engine` and `--fleet` exclude each other: a fleet is of Prony's own generators")
    return fleet_of(load.fleet, load.fleet_certificates)


def shared_by(choice: EngineChoice, text: str | None) -> EngineChoice:
    """Return the generator of the loads: the typed fleet, where there is one."""
    if text is None:
        return choice
    return replace(choice, name=text if is_fleet(text) else ELSEWHERE)


def reached_by(
    fleet: "Fleet | None", chosen: "Chosen", load: "LoadOptions", sandbox: "SandboxOptions"
) -> "Chosen":
    """Return the sandbox in which servers listen where the fleet reaches them.

    *Errors*: UsageError without an address for generators elsewhere, and for a sandbox that they do not
    reach.
    """
    if fleet is None or fleet.workers is not None:
        if load.listen is not None:
            raise UsageError(f"`--listen {load.listen}` is of no use: the generators are on this machine")
        return chosen
    if sandbox.net is Network.ISOLATED or chosen.choice.kind is SandboxKind.CONTAINER:
        raise UsageError(
            "generators elsewhere do not reach a network of the trial's own",
            hint="leave out `--net isolated` and `--sandbox container`; or load from here: --fleet local:4",
        )
    if load.listen is None and not fleet.is_here:
        there = fleet.hosts.listen if fleet.hosts else "ADDRESS"
        raise UsageError(
            f"the generators of `--fleet {load.fleet}` do not reach this machine's loopback",
            hint=f"name the address that servers listen on during their trials: --listen {there}",
        )
    if load.listen is not None:
        check_address(load.listen)
    choice = replace(chosen.choice, network=Network.HOST, listen=load.listen)
    return replace(chosen, choice=choice)


def check_address(text: str) -> None:
    """Refuse what is no IPv4 address of this machine.

    *Errors*: UsageError.
    """
    shown = escaped(text)
    try:
        address = IPv4Address(text)
    except ValueError:
        raise UsageError(f"`--listen {shown}`: expected an IPv4 address of this machine") from None
    if address.is_unspecified:
        raise UsageError(f"`--listen {shown}`: expected one address of this machine, not all of them")
    with socket.socket(socket.AF_INET) as tried:
        try:
            tried.bind((text, 0))
        except OSError as error:
            raise UsageError(
                f"`--listen {shown}` is no address of this machine: {error.strerror}",
                hint="ip -brief address",
            ) from error
