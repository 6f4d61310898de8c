"""The evidence of one planted trial, small enough to be kept beside the code: what rules read of it, as JSON.

From this the rules can judge again, when they or their thresholds change. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from prony.archive.codec import decode_subject, decode_workload, encode_subject, encode_workload
from prony.core.errors import FailureStage
from prony.core.units import KIB, MILLISECOND_NS
from prony.diagnosis.delayed_replies import may_be_held_back
from prony.diagnosis.evidence import Evidence
from prony.diagnosis.listen_queue import may_be_a_ladder
from prony.model.facts import SubjectFacts, TrialFacts
from prony.model.json_codec import OPTIONAL, Json, decode, encode
from prony.model.observation import LogTail, Phase, ProcessRow, Sample, ThreadUsage
from prony.model.plan import Cell
from prony.model.recording import Distributions, Recording
from prony.model.sandbox import Placement, SandboxChoice, SandboxFacts
from prony.model.trial import Failed, Invalid, Ok, SubjectRecord, Trial, TrialRole
from prony.model.workload import EngineChoice

# All of a window of nine seconds. Of a longer one both edges and some between: which workers came and went
# is then known less well.
_MOST_SAMPLES = 20
_MOST_LOG, _MOST_LINES = 200, 5
_DIGITS = re.compile(r"\d+")
_SIGN = re.compile(r"(?i)error|errno|debug|reload|select\(|open files|address|development|warning")
_MOST_THREADS = 12
_GAUGES = ("listen.", "established.", "unread.", "downstream.")


@dataclass(frozen=True, slots=True)
class Kept:
    """A trial of the plant ``plant``: of its ``healthy`` twin or of the fault, in a ``block``.

    ``harmed``: the figure that the fault makes worse; null where it is missing. ``disturbed``: other work on
    the machine, so that it does not count. ``planted``: the digest of what was planted; empty: not known.
    """

    plant: str
    healthy: bool
    block: int
    harmed: float | None
    disturbed: bool
    evidence: Evidence
    planted: str = ""


@dataclass(frozen=True, slots=True)
class _Stored:
    """A trial as it is written. ``stage`` and ``reason``: of one that is not ok."""

    plant: str
    healthy: bool
    block: int
    harmed: float | None
    disturbed: bool
    cell: Mapping[str, object]
    placement: Placement | None
    recording: Recording | None
    samples: tuple[Sample, ...]
    counters: Mapping[str, int]
    threads: tuple[ThreadUsage, ...]
    facts: TrialFacts
    subject: SubjectFacts
    sandbox: SandboxFacts
    command: tuple[str, ...] = ()
    log: str = ""
    stage: str = field(default="", metadata=OPTIONAL)
    reason: str = field(default="", metadata=OPTIONAL)
    planted: str = field(default="", metadata=OPTIONAL)


def slimmed(one: Kept) -> Kept:
    """Return it with no more than rules read: fewer samples, no time-outs' histograms, a short log."""
    trial, record = one.evidence.trial, one.evidence.subject
    window = tuple(sample for sample in trial.samples if sample.phase is Phase.WINDOW)
    small = replace(
        trial,
        recording=trial.recording and _small(trial.recording),
        samples=_thinned(window),
        threads=trial.threads[:_MOST_THREADS],
        log=LogTail(_signs(trial.log.text)),
        events=(),
        counters={name: max(value, 0) for name, value in trial.counters.items()},
        nuisances={},
        missing={},
        command=tuple(word for word in trial.command if "/" not in word),
    )
    return replace(one, evidence=replace(one.evidence, trial=small, subject=record and _named(record)))


def _signs(log: str) -> str:
    """Return the lines of a log that may say what is wrong, each kind once, and its end."""
    lines = {_DIGITS.sub("#", line): line.strip()[:200] for line in log.splitlines() if _SIGN.search(line)}
    return "\n".join([*list(lines.values())[-_MOST_LINES:], log[-_MOST_LOG:]])


def _small(recording: Recording) -> Recording:
    times = recording.distributions
    seconds = tuple(replace(second, latency=None, body_bytes=0) for second in recording.series)
    # Of all times only those of held replies and lost requests to connect are asked for, and a histogram is
    # most of a trial's bytes.
    needed = Distributions(
        ok_service=times.ok_service if may_be_held_back(times.ok_service) else None,
        connect=times.connect if may_be_a_ladder(times.connect) else None,
    )
    engine = replace(recording.engine, command=None, caveats=(), missing={})
    return replace(
        recording, spec=None, series=seconds, distributions=needed, error_samples=(), engine=engine, stages=()
    )


def _thinned(window: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """Return the samples of both edges, those with the longest queues, and some between."""
    if not window:
        return ()
    opened_ns = window[0].monotonic_ns
    if len(window) <= _MOST_SAMPLES:
        return tuple(_shown(one, opened_ns) for one in window)
    step = (len(window) - 1) / (_MOST_SAMPLES - 2)
    places = {round(step * k) for k in range(_MOST_SAMPLES - 1)}
    fullest = max(range(len(window)), key=lambda k: window[k].gauges.get("listen.server.queued", 0))
    return tuple(_shown(window[k], opened_ns) for k in sorted(places | {fullest, len(window) - 1}))


def _shown(sample: Sample, opened_ns: int) -> Sample:
    """Return a sample with what rules read of it, to the millisecond and the page of memory."""
    return Sample(
        _whole(sample.monotonic_ns - opened_ns, MILLISECOND_NS),
        sample.phase,
        tuple(
            ProcessRow(
                row.pid,
                row.start_time_ticks,
                row.role,
                "",
                _whole(row.user_ns, MILLISECOND_NS),
                _whole(row.system_ns, MILLISECOND_NS),
                _whole(row.rss_bytes, 4 * KIB),
                0,
                row.threads,
            )
            for row in sample.processes
        ),
        *(0, 0, 0),
        {name: value for name, value in sample.gauges.items() if name.startswith(_GAUGES)},
    )


def _whole(value: int, step: int) -> int:
    return value // step * step


def _named(record: SubjectRecord) -> SubjectRecord:
    """Return a record with what knobs and resources need of its entry."""
    entry = record.facts.entry or {}
    server = entry.get("server")
    known = server if isinstance(server, Mapping) else {}
    declared = {name: known[name] for name in ("name", "language") if name in known}
    facts = replace(record.facts, entry={"server": declared}, remarks={}, free={})
    return SubjectRecord(record.name, sandbox=SandboxFacts(record.sandbox.network), facts=facts)


def encode_kept(one: Kept) -> Json:
    """Return it as JSON."""
    cell, trial, record = one.evidence.cell, one.evidence.trial, one.evidence.subject
    stored = _Stored(
        one.plant,
        one.healthy,
        one.block,
        one.harmed,
        one.disturbed,
        {
            "subject": encode_subject(cell.subject),
            "workload": encode_workload(cell.workload),
            "engine": encode(cell.engine),
            "sandbox": encode(cell.sandbox),
        },
        trial.placement,
        trial.recording,
        trial.samples,
        trial.counters,
        trial.threads,
        trial.facts,
        record.facts if record else SubjectFacts(),
        record.sandbox if record else SandboxFacts(),
        trial.command,
        trial.log.text,
        trial.outcome.stage if isinstance(trial.outcome, Failed) else "",
        "" if isinstance(trial.outcome, Ok) else trial.outcome.reason,
        one.planted,
    )
    found: Json = encode(stored)
    return found


def decode_kept(value: object) -> Kept:
    """Return what ``encode_kept`` wrote.

    *Errors*: ShapeError, ValueError.
    """
    stored = decode(_Stored, value, "trial")
    cell = stored.cell
    subject = decode_subject(_object(cell["subject"]))
    known = Cell(
        0,
        subject,
        decode_workload(_object(cell["workload"])),
        decode(EngineChoice, cell["engine"], "engine"),
        decode(SandboxChoice, cell["sandbox"], "sandbox"),
    )
    trial = Trial(
        cell_id=0,
        block=stored.block,
        position=0,
        attempt=0,
        role=TrialRole.SUBJECT,
        outcome=_outcome(stored),
        started_unix_ns=0,
        ended_unix_ns=0,
        command=stored.command,
        placement=stored.placement,
        recording=stored.recording,
        samples=stored.samples,
        counters=stored.counters,
        log=LogTail(stored.log),
        threads=stored.threads,
        facts=stored.facts,
    )
    record = SubjectRecord(subject.name, sandbox=stored.sandbox, facts=stored.subject)
    evidence = Evidence(known, trial, record)
    return Kept(
        stored.plant, stored.healthy, stored.block, stored.harmed, stored.disturbed, evidence, stored.planted
    )


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _outcome(stored: _Stored) -> Ok | Failed | Invalid:
    if stored.stage:
        return Failed(FailureStage(stored.stage), stored.reason)
    return Invalid(stored.reason) if stored.reason else Ok()
