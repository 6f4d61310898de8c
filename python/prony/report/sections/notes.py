"""Remarks below the tables: causes, versions, where it ran, and how figures are to be read."""

from collections.abc import Iterable, Iterator, Sequence, Set

from prony.metrics import METRICS
from prony.reading.study import Found, Reading
from prony.report.document import Notes, Section
from prony.report.sections.checks import calibration_notes
from prony.report.sections.pace import evidence_notes, pace_notes
from prony.report.sections.sandbox import sandbox_notes
from prony.units import format_percent

__all__ = ["notes"]


def _versions(reading: Reading) -> Iterator[str]:
    servers = {subject.name: subject.server for subject in reading.plan.subjects()}
    own = set(servers)
    records = [(name, record) for name, record in reading.subjects.items() if name in own]
    measured = [record for _, record in records if record.server_version]
    on = {record.interpreter or "" for record in measured if record.interpreter != record.server_version}
    known: dict[str, str] = {}
    remarks: dict[str, str] = {}
    for name, record in records:
        remarks |= record.facts.remarks
        known |= {service: version for service, version in record.facts.services.items() if version}
        front = record.facts.frontend
        if front and front.version:
            known[front.name.partition("-")[0]] = front.version
        if record.server_version:
            # One interpreter for all is told once.
            other = len(on) > 1 and record.interpreter not in (None, "", record.server_version)
            known[servers.get(name, name)] = record.server_version + (
                f" on {record.interpreter}" if other else ""
            )
    if known:
        alike = f", on {next(iter(on))}" if len(on) == 1 and "" not in on else ""
        yield (
            "Versions: " + ", ".join(f"{server} {version}" for server, version in known.items()) + f"{alike}."
        )
    for server, remark in remarks.items():
        yield f"{server}: {remark}."


def _finding_notes(reading: Reading) -> Iterator[str]:
    advised: set[str | None] = {None}
    ran = {cell.name for group in reading.groups for cell in group.cells if cell.total}
    for alike in _alike(reading.findings):
        finding, of = alike[0].finding, sum(found.of for found in alike)
        often = f" ({sum(found.trials for found in alike)} of {of} trials)" if of > 1 else ""
        advice = "" if finding.advice in advised else f" Advice: {finding.advice}."
        advised.add(finding.advice)
        yield f"{_whose(alike, ran)}: {_said(alike)}{often}.{advice}"


def _alike(findings: Iterable[Found]) -> Iterable[list[Found]]:
    """Return the findings that say the same of several subjects together, in the order of the first."""
    together: dict[tuple[str, str], list[Found]] = {}
    for found in findings:
        said = found.finding.shared or found.finding.sentence
        together.setdefault((found.finding.rule, said), []).append(found)
    return together.values()


def _said(alike: Sequence[Found]) -> str:
    finding = alike[0].finding
    return (finding.shared or finding.sentence) if len(alike) > 1 else finding.sentence


def _whose(alike: Sequence[Found], ran: Set[str]) -> str:
    names = [found.subject for found in alike]
    return "all subjects" if len(names) > 1 and ran <= set(names) else ", ".join(names)


def _floor_notes(reading: Reading) -> Iterator[str]:
    floors = {(one.answer.metric, one.noise_floor) for one in reading.groups if one.noise_floor > 0}
    for metric, floor in sorted((metric, floor) for metric, floor in floors if metric):
        yield (
            f"This machine shows differences of up to {format_percent(floor)} in {METRICS[metric].title} "
            "where there is none (prony selftest aa): verdicts ask for more."
        )


def notes(reading: Reading) -> Section:
    """Return the remarks on all of a study."""
    items = (
        *_finding_notes(reading),
        *pace_notes(reading),
        *evidence_notes(reading),
        *calibration_notes(reading),
        *_floor_notes(reading),
        *_versions(reading),
        *sandbox_notes(reading),
    )
    if any(cell.ok > 1 for group in reading.groups for cell in group.cells):
        items = (
            *items,
            "±: half of the 95 % interval of the mean over trials; n: trials that count of those run.",
        )
    return Section("Notes", (Notes(tuple(("", item) for item in items)),))
