"""Remarks on the sandbox: network, CPUs, the server's limits, and whether they held."""

from collections.abc import Iterator, Mapping, Sequence

from prony.model.sandbox import LimitHolding, LimitState, Network, SandboxChoice, SandboxFacts, SandboxKind
from prony.reading.study import StudyResults
from prony.report.forms import as_typed, byte_size, count, percent
from prony.report.text import EMPTY, Figure, Name, Part, Text, counted, joined, pointer, text

_HOLDERS = {
    SandboxKind.PROCESS: "Requested limits:",
    SandboxKind.CGROUP: "A control group limited the server to",
    SandboxKind.CONTAINER: "A container limited the server and its companions to",
}

_EXHAUSTIBLE = {"memory": "memory", "pids": "processes", "disk": "disk space"}


def sandbox_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield the remarks on the sandbox of a study."""
    yield from _network_notes(reading)
    yield from _placement_notes(reading)
    yield from _limit_notes(reading)
    whole = "CPU: {} is one core; on loopback, part of the network work is billed to the generator."
    yield text(whole, Name("100 %"))


def _limits_in_words(choice: SandboxChoice, states: Mapping[str, LimitState]) -> list[Text]:
    """Return the requested limits, each with its state (``states``: by name, as recorded)."""
    at = "/groups/0/sandbox"
    quota, memory, pids = choice.cpu_quota, choice.memory_bytes, choice.pids
    named: dict[str, Part | None] = {
        "cpus": "its CPUs" if choice.kind is not SandboxKind.PROCESS else None,
        "cpu_quota": None if quota is None else _counted_cpus(quota),
        "memory": None
        if memory is None
        else text("{} of memory", Figure(memory, byte_size, at + pointer("memory_bytes"))),
        "pids": None
        if pids is None
        else text("{} processes and threads", Figure(pids, as_typed, at + pointer("pids"))),
    }
    return [
        text("{} ({})", words, states[name].holding.value if name in states else "not tried")
        for name, words in named.items()
        if words
    ]


def _network_notes(reading: StudyResults) -> Iterator[Text]:
    records = reading.subjects.values()
    networks = {record.sandbox.network for record in records if record.sandbox.network}
    listen = reading.plan.sandbox.listen
    if listen is not None:
        yield text(
            "Servers took the load at {}, and generators sent it from other machines.",
            Name(listen),
        )
    elif Network.HOST in networks:
        yield text("Servers ran on the host's loopback: sockets of one trial may disturb the next.")
    elif networks:
        yield text("Each trial ran in a network namespace of its own, server and generator together.")


def _placement_notes(reading: StudyResults) -> Iterator[Text]:
    if len(reading.placements) != 1:
        return
    placement = reading.placements[0]
    server = _cpus(placement.server_cpus, "server_cpus")
    if reading.plan.sandbox.listen is not None:
        yield text("Server on {}, generators on other machines.", server)
    elif placement.shared:
        yield text("{}{}.", placed_together(reading), taken_words(reading))
    else:
        generator = _cpus(placement.generator_cpus, "generator_cpus")
        yield text("Server on {}, generator on {}.", server, generator)


def placed_together(reading: StudyResults) -> Text:
    """Return which CPUs the server has, and on which of them the generator is."""
    sides = reading.placements[0]
    server, generator = (_cpus(getattr(sides, name), name) for name in ("server_cpus", "generator_cpus"))
    return text("Server on {}, and the generator on {} of them", server, generator)


def taken_words(reading: StudyResults) -> Text:
    """Return what a generator took at most from a server whose CPUs it is on; empty where that is unknown."""
    shares = [
        (cell.generator_share, pointer("groups", k, "cells", place, "generator_share"))
        for k, group in enumerate(reading.groups)
        for place, cell in enumerate(group.cells)
    ]
    most, at = max(shares, default=(0.0, ""))
    if most <= 0:
        return EMPTY
    share = Figure(most, percent, at)
    return text(": it took up to {} of the CPU time of both", share)


def _limit_notes(reading: StudyResults) -> Iterator[Text]:
    known = (one.sandbox for one in reading.subjects.values() if one.sandbox != SandboxFacts())
    facts = next(known, SandboxFacts())
    for reason in facts.reasons:
        yield text("Sandbox `{}`: {}.", Name(str(facts.kind)), Name(reason))
    choices = {group.sandbox for group in reading.groups}
    if len(choices) != 1:
        return
    (choice,) = choices
    limits = _limits_in_words(choice, facts.limits)
    if limits:
        yield text(f"{_HOLDERS[choice.kind]} {{}}.", joined(limits))
    yield from _ceiling_notes(facts)
    yield from _scaling_notes(reading, choice.cpu_quota)


def _ceiling_notes(facts: SandboxFacts) -> Iterator[Text]:
    """Yield what a subject could have exhausted here, as no limit held that Prony sets by itself."""
    for name, one in facts.ceilings.items():
        if one.holding is not LimitHolding.ENFORCED:
            yield text(
                "Nothing limited the {} of a server: {}.",
                _EXHAUSTIBLE.get(name, Name(name)),
                Name(one.reason),
            )
    if facts.missing.get("files"):
        reason = Name(facts.missing["files"])
        yield text("Servers could write all files that their user may write: {}.", reason)


def _scaling_notes(reading: StudyResults, quota: float | None) -> Iterator[Text]:
    places = list(enumerate(reading.placements))
    least, given = min(places, key=lambda pair: len(pair[1].server_cpus), default=(0, None))
    if quota is None or given is None or quota <= len(given.server_cpus):
        return
    had = Figure(len(given.server_cpus), count, pointer("placements", least, "server_cpus"))
    yield text(
        "{} were requested; the server has {} on this machine, because the generator needs the other half of "
        "the cores.",
        *(_counted_cpus(quota), had),
    )


def _counted_cpus(number: float) -> Text:
    return counted(Figure(number, as_typed, "/groups/0/sandbox/cpu_quota"), "CPU")


def _cpus(cpus: Sequence[int], name: str) -> Text:
    numbers = (Figure(cpu, as_typed, pointer("placements", 0, name, k)) for k, cpu in enumerate(cpus))
    return text(f"CPU{'s' if len(cpus) != 1 else ''} {{}}", joined(numbers))
