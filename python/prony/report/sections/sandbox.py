"""Remarks on where it ran: network, CPUs, what the server was held to, and how far that held.

Must not know other remarks.

>>> limits_in_words(SandboxChoice(memory_bytes=2**29), {"memory": "absent: no control groups"})
['512 MiB of memory (absent)']
"""

from collections.abc import Iterator, Mapping

from prony.model import Network, SandboxChoice, SandboxFacts, SandboxKind
from prony.reading.study import Reading
from prony.units import format_bytes

__all__ = ["limits_in_words", "sandbox_notes"]

_HOLDERS = {
    SandboxKind.PROCESS: "Limits that were asked for:",
    SandboxKind.CGROUP: "The server was held by a control group to",
    SandboxKind.CONTAINER: "The server, with all that ran beside it, was held by a container to",
}


def sandbox_notes(reading: Reading) -> Iterator[str]:
    """Return what is to be said of the sandbox that a study ran in."""
    yield from _network_notes(reading)
    yield from _placement_notes(reading)
    yield from _limit_notes(reading)
    yield "CPU: 100 % is one core; on loopback, part of the network work is billed to the generator."


def limits_in_words(choice: SandboxChoice, states: Mapping[str, str]) -> list[str]:
    """Return the limits that were asked for, each with how far it held (``states``: by name, as recorded)."""
    told = {
        "cpus": "its CPUs" if choice.kind is not SandboxKind.PROCESS else None,
        "cpu_quota": None if choice.cpu_quota is None else _counted_cpus(choice.cpu_quota),
        "memory": None if choice.memory_bytes is None else f"{format_bytes(choice.memory_bytes)} of memory",
        "pids": None if choice.pids is None else f"{choice.pids} processes and threads",
    }
    return [
        f"{words} ({str(states.get(name, 'not tried')).partition(':')[0]})"
        for name, words in told.items()
        if words
    ]


def _network_notes(reading: Reading) -> Iterator[str]:
    records = reading.subjects.values()
    networks = {record.sandbox.network for record in records if record.sandbox.network}
    if Network.HOST in networks:
        yield "Servers ran on the host's loopback: sockets left by one trial may be met by the next."
    elif networks:
        yield "Each trial ran in a network namespace of its own, server and generator together."


def _placement_notes(reading: Reading) -> Iterator[str]:
    if len(reading.placements) != 1:
        return
    placement = reading.placements[0]
    if placement.shared:
        yield f"Server and generator shared {_cpus(placement.server_cpus)}: they slow each other."
    else:
        yield f"Server on {_cpus(placement.server_cpus)}, generator on {_cpus(placement.generator_cpus)}."


def _limit_notes(reading: Reading) -> Iterator[str]:
    told = (one.sandbox for one in reading.subjects.values() if one.sandbox != SandboxFacts())
    facts = next(told, SandboxFacts())
    yield from (f"Sandbox `{facts.kind}`: {reason}." for reason in facts.reasons)
    choices = {group.sandbox for group in reading.groups}
    if len(choices) != 1:
        return
    (choice,) = choices
    limits = limits_in_words(choice, facts.limits)
    if limits:
        yield f"{_HOLDERS[choice.kind]} {', '.join(limits)}."
    yield from _scaling_notes(reading, choice.cpu_quota)


def _scaling_notes(reading: Reading, quota: float | None) -> Iterator[str]:
    given = min((len(placement.server_cpus) for placement in reading.placements), default=None)
    if quota is None or given is None or quota <= given:
        return
    yield (
        f"{_counted_cpus(quota)} were asked for; the server has {given} on this machine, "
        "where the other half of the cores is the generator's."
    )


def _counted_cpus(number: float) -> str:
    return f"{number:g} CPU{'' if number == 1 else 's'}"


def _cpus(cpus: tuple[int, ...]) -> str:
    return f"CPU{'s' if len(cpus) != 1 else ''} {', '.join(map(str, cpus))}"
