"""`prony run --fleet`: which generators share the loads of a study, and where servers wait for them."""

import socket
from dataclasses import replace
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from prony.core.errors import UsageError
from prony.core.safe_text import escaped
from prony.model.sandbox import Network, SandboxKind
from prony.model.workload import ELSEWHERE, EngineChoice, is_fleet

if TYPE_CHECKING:
    from prony.cli.run_options import LoadOptions
    from prony.cli.sandbox_options import SandboxOptions
    from prony.engine.fleet.address import Fleet
    from prony.sandbox.choice import Chosen


def asked_fleet(load: "LoadOptions") -> "Fleet | None":
    """Return the typed generators; None: one alone.

    *Errors*: UsageError for what cannot be a fleet, and for options without use.
    """
    from prony.engine.fleet.address import fleet_of

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
