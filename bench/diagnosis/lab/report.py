"""What became of planted faults, as Markdown: which causes are named, and what else is. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from lab import CAUSES
from lab.cause import PlanPart
from lab.coverage import Coverage, coverage_of
from lab.dominance import JudgedDouble, judge_doubles, share_of
from lab.doubles import DOUBLES
from lab.judge import MOST_OF_A_CPU, JudgedPlant
from lab.matrix import HEALTHY, CauseRow, Macro, Matrix, Share, matrix_of
from lab.sessions import SessionFacts

_PARTS = {
    PlanPart.HELD_OUT: "Held out",
    PlanPart.CALIBRATION: "Calibrated on",
    PlanPart.MUSEUM: "Museum: cases that users reported",
}
_NOTES = """\
- A fault counts where it hurt: against its twin without it, in the same blocks.
- Recall: of the trials of a cause, those in which it is named first; precision: of all trials in which it \
is named first, healthy ones too, those in which it was planted. Both with exact 95 % intervals.
"""
_MARK = "\\*"


def planted_faults(
    judged: Sequence[JudgedPlant], sessions: Iterable[SessionFacts] = (), outdated: Sequence[str] = ()
) -> str:
    """Return what became of planted faults. ``sessions``: when and where they were measured; ``outdated``:
    plants of which there is only evidence of an earlier form.
    """
    parts = (
        _section(heading, _part(matrix_of(judged, CAUSES, part)))
        for part, heading in _PARTS.items()
        if any(one.plant.part is part for one in judged)
    )
    sections = (
        *parts,
        _section("Two faults at once", _doubles(judge_doubles(DOUBLES, judged))),
        _section("Where the server has all CPUs", _beside_the_server(judged)),
        _section("Healthy trials with a certain finding", _alarms(judged)),
        _section("Where it was measured", _measured(sessions, outdated)),
        _section("Notes", _NOTES.splitlines()),
    )
    return "\n".join(filter(None, sections))


def _section(heading: str, lines: Iterable[str]) -> str:
    body = "\n".join(lines)
    return f"### {heading}\n\n{body}\n" if body else ""


def _part(found: Matrix) -> Iterator[str]:
    healthy = found.false_certain
    yield (
        f"**Macro recall {_macro(found.recall)}, macro precision {_macro(found.precision)}; of "
        f"{healthy.total} healthy trials {healthy.count} have a certain finding, at most "
        f"{_percent(healthy.interval[1])}. {found.disturbed} disturbed trials did not count.**"
    )
    yield "\n| cause | rule | faults that hurt | recall | precision | also named |"
    yield "|---|---|---:|---:|---:|---|"
    yield from map(_row, found.rows)


def _row(one: CauseRow) -> str:
    others = (
        f"{count} {'nothing' if name == HEALTHY else name}"
        for name, count in one.named.items()
        if name != one.cause.name
    )
    return (
        f"| {one.cause.title} | {one.cause.rule} | {one.plants} of {one.tried} | {_share(one.recall)} "
        f"| {_share(one.precision)} | {', '.join(others)} |"
    )


def _doubles(doubles: Sequence[JudgedDouble]) -> Iterator[str]:
    if not doubles:
        return
    yield f"The fault that hurts more is named first in {_share(share_of(doubles))} trials."
    yield "\n| faults | better without the first | without the second | named first |\n|---|---:|---:|---:|"
    for one in doubles:
        right = "neither hurts more" if one.right is None else _share(one.right)
        yield f"| {one.double.name} | {one.first:.2f} times | {one.second:.2f} times | {right} |"


def _beside_the_server(judged: Sequence[JudgedPlant]) -> Iterator[str]:
    """Yield how much of a CPU the generator used beside servers that have all of them, and where too much."""
    used = {one.plant.name: one.generator_cpus for one in judged if one.generator_cpus is not None}
    if used:
        most = _percent(max(used.values()))
        yield (
            f"Beside servers that may use every CPU the generator used {most} of one at most; "
            f"{_percent(MOST_OF_A_CPU)} is allowed."
        )
    above = [name for name, share in used.items() if share > MOST_OF_A_CPU]
    if above:
        yield f"\nIt used more, so that these may be faults of its own: {', '.join(above)}."


def _alarms(judged: Sequence[JudgedPlant]) -> Iterator[str]:
    for one in judged:
        kinds = dict.fromkeys(kind.value for trial in one.false_alarms for kind in trial.certain)
        if kinds:
            yield f"- {one.plant.name}: {', '.join(kinds)}"


def _measured(sessions: Iterable[SessionFacts], outdated: Sequence[str]) -> Iterator[str]:
    """Yield the machines, with how many sessions each had; and what is to be measured again."""
    machines = Counter((_machine(one), one.prony) for one in sessions)
    for (machine, version), count in machines.items():
        yield f"- {count} session{'s' * (count > 1)} of Prony {version} on {machine}"
    if outdated:
        yield f"\nLeft out, for what is planted has changed since: {', '.join(outdated)}."


def _machine(one: SessionFacts) -> str:
    return "; ".join(f"{name}: {fact}" for name, fact in one.machine.items()) or "an unknown machine"


def _macro(one: Macro) -> str:
    if one.value is None:
        return "—"
    interval = f" ({one.low:.0%} to {one.high:.0%})" if one.low is not None and one.high is not None else ""
    return f"{one.value:.0%}{interval}"


def _share(one: Share) -> str:
    if not one.total:
        return "—"
    low, high = one.interval
    return f"{one.count} of {one.total} ({low:.0%} to {high:.0%})"


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.3g} %"


def where_planted() -> str:
    """Return of each cause of the campaign the servers, by kind, and the kinds that cannot have it."""
    lead = f"{_MARK}: thresholds were set on it, at the first severity of the cause; the rest is held out.\n"
    return "\n".join((lead, *map(_where, coverage_of(CAUSES)))) + "\n"


def _where(one: Coverage) -> str:
    rule = f" ({one.cause.rule})" if one.cause.rule else ""
    kinds = (f"{kind.value} {_names(one, names)}" for kind, names in one.servers.items())
    reasons = (f" Not {kind.value}: {why}." for kind, why in one.cannot.items())
    return f"- {one.cause.title}{rule}: {'; '.join(kinds)}.{''.join(reasons)}"


def _names(one: Coverage, names: Sequence[str]) -> str:
    return ", ".join(name + _MARK * (name in one.calibrated_on) for name in names)
