"""What limits a subject, in words: one line for each, or for several that are alike.

The only place that has these words. Numbers are those of the report's JSON: `at` is where it has a diagnosis.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from prony.diagnosis import (
    MEANINGS,
    Confidence,
    Consequence,
    Diagnosis,
    DiagnosisKind,
    Experiment,
    Finding,
    Resource,
    Symptom,
)
from prony.report.findings import advice_words, finding_words, shared_words
from prony.report.forms import count, digits, whole_percent
from prony.report.text import EMPTY, Figure, Name, Part, Text, joined, pointer, text
from prony.units import format_rate

Placed = tuple[Diagnosis, str]
"""A diagnosis, and where the JSON has it."""

_RESOURCES: Mapping[Resource, str] = MappingProxyType(
    {
        Resource.CPU: "its CPU",
        Resource.CORES: "the cores that its processes can fill",
        Resource.SLOTS: "its workers and threads",
        Resource.POOL: "its connections to others",
        Resource.QUEUE: "its listen queue",
        Resource.GENERATOR: "the generator",
    }
)
_CAUSES: Mapping[Symptom, str] = MappingProxyType(
    {
        **{kind: "the generator" for kind in Symptom if kind.name.startswith("GENERATOR_")},
        Symptom.FIGURES_CONTRADICT: "a generator whose figures contradict each other",
        Symptom.KILLED_FOR_MEMORY: "its memory limit",
        Symptom.ENDED_UNDER_LOAD: "its own end",
        Symptom.SILENT_AFTER_ONE: "connections that it leaves after one reply",
        Symptom.CONNECTION_CAP: "its cap of open connections",
        Symptom.STARVED: "connections that keep others out",
        Symptom.STARVED_BY_SLOTS: "connections that keep its workers",
        Symptom.BACKLOG_CLIPPED: "a listen queue that the kernel cut short",
        Symptom.QUEUE_OVERFLOWED: "a full listen queue",
        Symptom.HALF_OPEN_QUEUE_FULL: "the queue of half-open connections",
        Symptom.CONNECTS_DROPPED: "dropped connects",
        Symptom.THROTTLED: "its quota",
        Symptom.KERNEL_BUSY: "the kernel's packet processing",
        Symptom.PACKETS_DROPPED: "the kernel's packet processing",
        Symptom.WAITED_FOR_MEMORY: "memory",
        Symptom.RESTARTED: "workers that are replaced",
        Symptom.LOST: "workers that ended",
        Symptom.ONE_THREAD_FULL: "one core",
        Symptom.ONE_CORE_FULL: "one core",
        Symptom.SLOTS_BUSY: "its number of workers and threads",
        Symptom.SELECT_FULL: "select()",
        Symptom.DESCRIPTORS_USED_UP: "its limit of open files",
        Symptom.SERVER_WITHOUT_PORTS: "its ports",
        Symptom.PORTS_KEPT_BY_EARLIER: "ports that earlier trials keep",
        Symptom.REPLIES_HELD_BACK: "replies that are held back",
        Symptom.DISK_WAITED: "the disk",
        Symptom.DOWNSTREAM_BUSY: "what it asks of others",
        Symptom.LOCK_HELD: "a lock",
        Symptom.UNEVEN_WORKERS: "its fullest worker",
        Symptom.UNEVEN_CONNECTIONS: "its fullest worker",
        Symptom.TRACKING_FULL: "the kernel's table of connections",
        Symptom.OTHERS_RAN: "other programs",
        Symptom.STOLEN: "the hypervisor",
    }
)
_MEANS: Mapping[Consequence, str] = MappingProxyType(
    {
        Consequence.AT_LEAST: "the server is at least as good as shown",
        Consequence.OF_BOTH: "throughput and latency describe the server and the disturbance together",
        Consequence.OF_SUCCESSES: "requests were lost, and its speed describes only the others",
        Consequence.CONNECT_WAITS: "the tail of the latency is waiting to connect",
        Consequence.OF_THE_SERVED: "throughput and latency describe only the connections that were served",
        Consequence.OF_THE_LIMIT: "throughput is that of the limit, and the tail of the latency waits for it",
        Consequence.CHANGING: "its figures change while it is measured",
        Consequence.OF_THE_WAITING: "throughput is that of what its workers wait for, not of its code",
        Consequence.OF_SOME_CPUS: "throughput is that of a part of its CPUs",
        Consequence.OF_A_QUEUE: "latency is the age of a queue that grows: the longer the load, the higher",
        Consequence.WITH_CONNECTS: "CPU and latency of each request contain a connect",
        Consequence.OF_ERRORS: "a part of the figures is of errors, not of the work",
        Consequence.WITH_A_DELAY: "latency contains a delay of the kernel's, whatever the server does",
        Consequence.WITH_TURNS: "latency contains waits for a turn on its CPUs",
        Consequence.WITH_A_PROGRAM: "CPU and latency of each request contain the start of a program",
        Consequence.OF_THE_FULLEST: "throughput and the tail of the latency are those of one worker",
        Consequence.WITH_CHECKS: "CPU for a request contains checks that production does without",
        Consequence.OF_NOTHING: "none of its figures counts",
        Consequence.OF_OTHER_WORK: "a part of a difference in speed may be of the work, not of the server",
    }
)
_CONFIRMS: Mapping[Experiment, str] = MappingProxyType(
    {
        Experiment.STRONGER_GENERATOR: "give the generator more threads and CPUs; the figures improve",
        Experiment.QUIET_MACHINE: "measure where nothing else runs; the figures improve",
        Experiment.MORE_MEMORY: "measure without the memory limit; no process is killed or waits",
        Experiment.LONGER_LIVES: "measure without its limits on a worker's time and requests; none ends",
        Experiment.MORE_QUOTA: "measure with twice the quota; throughput rises with it",
        Experiment.LONGER_QUEUE: "measure with twice the queue, or fewer connections; waits of seconds end",
        Experiment.FEWER_CONNECTIONS: "measure with as many connections as it serves; all are answered",
        Experiment.LONGER_WARM_UP: "measure with a longer warm-up; the figures no longer change",
        Experiment.MORE_THREADS: "measure with twice as many; throughput doubles, until its CPUs are full",
        Experiment.MORE_PROCESSES: "measure with a process for each CPU; throughput rises with them",
        Experiment.FEWER_PROCESSES: "measure with half as many; throughput stays, and the tail falls",
        Experiment.LOWER_RATE: "measure at a lower rate, or with --find-rate; latency no longer grows",
        Experiment.KEPT_OPEN: "measure with keep-alive on both sides; CPU for a request falls",
        Experiment.RIGHT_REPLIES: "measure a page that answers as expected; the figures change",
        Experiment.MORE_PORTS: "measure with kept connections, or a wider range of ports; failures end",
        Experiment.MORE_DESCRIPTORS: "measure with twice the limit; all connections are answered",
        Experiment.NO_DELAY: "measure with TCP_NODELAY; the delay ends",
        Experiment.LONGER_RUN: "measure for ten times as long; a leak goes on, a cache stops",
        Experiment.NO_PROGRAM: "measure a page that starts none; CPU for a request falls",
        Experiment.EVEN_CONNECTIONS: "measure with a connection for each request; its workers are alike",
        Experiment.NO_DEBUG: "measure it as in production; CPU for a request falls",
        Experiment.NO_LOCK: "measure a page without it, or more processes; throughput rises",
        Experiment.NO_LOG: "measure with its log off, or in memory; the tail of the latency falls",
        Experiment.LARGER_TABLE: "measure with twice the table, or untracked packets; none is dropped",
        Experiment.PINNED_MEMORY: "measure with huge pages by madvise, on one memory node; trials are alike",
        Experiment.FRESH_NETWORK: "measure in a network of its own, or a minute later; failures end",
        Experiment.OTHER_GENERATOR: "measure with another generator; its figures agree with each other",
        Experiment.SAME_REPLIES: "measure replies of one size; what then differs is the server's",
        Experiment.LARGER_POOL: "measure with twice the connections to others; throughput rises",
    }
)
_SURE: Mapping[Confidence, str] = MappingProxyType(
    {Confidence.CERTAIN: "", Confidence.LIKELY: "likely ", Confidence.POSSIBLE: "possibly "}
)


def diagnosis_words(found: Sequence[Placed]) -> Text:
    """Return what limits a subject, or several with diagnoses that are alike: then with ranges."""
    first, _ = found[0]
    match first.kind:
        case DiagnosisKind.CAUSE:
            return _cause(found)
        case DiagnosisKind.CPU:
            busy = _share(found, Resource.CPU)
            return text(
                "{}limited by its CPU, busy {} of the time: {}", _SURE[first.confidence], busy, _load(found)
            )
        case DiagnosisKind.NOT_AT_LIMIT:
            return text("not at its limit, carries at least {}{}", _rate(found), _next(found))
        case DiagnosisKind.UNKNOWN:
            over = text("; {}", _asked(found)) if first.overloaded else EMPTY
            return text("what limits it is unknown{}; {}{}", over, ruled_out_words(found), _to_try(found))


def _to_try(found: Sequence[Placed]) -> Text:
    """Return that more connections may carry more, where a closed loop left CPU and generator idle."""
    idle = {Resource.CPU, Resource.GENERATOR}
    if any(one.asked_per_s is not None or not idle <= {*one.ruled_out} for one, _ in found):
        return EMPTY
    return text("; more connections may carry more (-c)")


def _cause(found: Sequence[Placed]) -> Text:
    (first, at), several = found[0], len(found) > 1
    if first.cause is None:
        return EMPTY
    finding = first.cause.finding
    said = (shared_words if several else finding_words)(finding, at + pointer("cause", "finding"))
    named = text("{}limited by {}: {}", _SURE[first.confidence], _CAUSES[finding.kind], said)
    return text("{}{}", named, _full(found))


def _full(found: Sequence[Placed]) -> Text:
    """Return that all of them fill their CPUs; empty where one does not, or where nobody looked."""
    if not all(one.fills_cpu for one, _ in found):
        return EMPTY
    return text("; its CPU is full too, busy {} of the time", _share(found, Resource.CPU))


def _load(found: Sequence[Placed]) -> Text:
    return _asked(found) if found[0][0].overloaded else text("healthy saturation")


def _asked(found: Sequence[Placed]) -> Text:
    return text("{} were asked for, it did {}", _rate(found, "asked_per_s"), _rate(found))


def _next(found: Sequence[Placed]) -> Text:
    """Return which limit comes next, and at how many times the rate."""
    if not all(one.bounds for one, _ in found):
        return EMPTY
    values = [(one.bounds[0].times, at + pointer("bounds", 0, "times")) for one, at in found]
    nearest = _RESOURCES[found[0][0].bounds[0].resource]
    between = _between(*found[0]) if len(found) == 1 else EMPTY
    times = _range(values, digits(1))
    return text("; next limit: {}, at about {} times this rate{}", nearest, times, between)


def _between(found: Diagnosis, at: str) -> Text:
    """Return the interval of the next limit; empty where it looks like one value, or is not known."""
    bound, where = found.bounds[0], at + pointer("bounds", 0)
    if bound.times_low is None or bound.times_high is None:
        return EMPTY
    low = Figure(bound.times_low, digits(1), where + pointer("times_low"))
    high = Figure(bound.times_high, digits(1), where + pointer("times_high"))
    return EMPTY if str(low) == str(high) else text(" ({} to {})", low, high)


def _rate(found: Sequence[Placed], name: str = "done_per_s") -> Text:
    values = [(getattr(one, name) or 0.0, at + pointer(name)) for one, at in found]
    return _range(values, format_rate)


def _share(found: Sequence[Placed], resource: Resource) -> Text:
    return _range(
        [(one.shares[resource], at + pointer("shares", resource.value)) for one, at in found], whole_percent
    )


def resource_words(resource: Resource) -> str:
    """Return the name of a resource."""
    return _RESOURCES[resource]


def _range(values: Sequence[tuple[float, str]], form: Callable[[float], str]) -> Text:
    """Return the least and the greatest value, or one if they look alike."""
    least, most = (Figure(value, form, at) for value, at in (min(values), max(values)))
    return text("{}", least) if str(least) == str(most) else text("{} to {}", least, most)


def ruled_out_words(found: Sequence[Placed]) -> Text:
    """Return which resources were no limit, and how busy they were."""
    named: list[Part] = [
        text("{} ({})", _RESOURCES[resource], _share(found, resource)) for resource in found[0][0].ruled_out
    ]
    return text("ruled out: {}", joined(named)) if named else text("nothing is ruled out")


def _knob(finding: Finding, at: str) -> Text:
    """Return the subject's own setting that the advice is about, and its value; empty where there is none."""
    knob = finding.knob
    if knob is None:
        return EMPTY
    if not isinstance(knob.value, int) or isinstance(knob.value, bool):
        return text("its setting is {}", Name(knob.name))
    now = Figure(knob.value, count, at + pointer("knob", "value"))
    return text("its setting is {}, now {}", Name(knob.name), now)


def cause_note(finding: Finding, at: str) -> Text:
    """Return what a finding means, what to try, and what would confirm it. ``at``: of the finding."""
    advice, knob, meaning = advice_words(finding, at), _knob(finding, at), MEANINGS[finding.kind]
    tried = text("{} ({})", advice, knob) if knob else advice
    parts: list[Part] = [text("Means: {}.", _MEANS[meaning.consequence])]
    parts += [text("Try: {}.", tried)] if advice else []
    parts += [text("To confirm: {}.", _CONFIRMS[meaning.experiment])]
    return joined(parts, by=" ")
