"""What the rules make of planted trials: what each names first, and whether its fault hurt at all. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from lab.cause import Harm, PlanPart, Plant
from lab.harm import hurts, mean_gain
from lab.kept import Kept
from prony.diagnosis import observe
from prony.diagnosis.conclusion import Diagnosis, DiagnosisKind, Frequent, conclude
from prony.diagnosis.evidence import Confidence
from prony.diagnosis.kinds import Symptom
from prony.diagnosis.listen_queue import SOME_QUEUE_OVERFLOWED
from prony.diagnosis.machine import HEAT, OTHERS_RAN, OTHERS_RAN_BESIDE_GENERATOR, PAGES_MOVED, STOLEN
from prony.diagnosis.memory import MACHINE_WAITED_FOR_MEMORY
from prony.diagnosis.uneven_work import unequal_work
from prony.figures.account import QUALIFIED_ERROR_RATIO, answered
from prony.figures.missing import Missing
from prony.figures.trial_metrics import reply_bytes
from prony.model.recording import Recording

MOST_OF_A_CPU = 0.1
"""What a generator may use beside a server that has all CPUs: with more, it may be the fault itself."""

# What disturbs a machine is not planted, but where a neighbour is; small disturbances are everywhere.
_OF_MACHINE = frozenset(
    (
        *(STOLEN, HEAT, MACHINE_WAITED_FOR_MEMORY, PAGES_MOVED),
        *(OTHERS_RAN, OTHERS_RAN_BESIDE_GENERATOR, SOME_QUEUE_OVERFLOWED),
    )
)


@dataclass(frozen=True, slots=True)
class Named:
    """What is named first of one trial: a ``symptom``, or null: nothing is wrong, ``known`` or not.

    ``certain``: the kinds of findings that were called certain.
    """

    plant: str
    healthy: bool
    block: int
    symptom: Symptom | None
    known: bool
    certain: tuple[Symptom, ...]


@dataclass(frozen=True, slots=True)
class JudgedPlant:
    """A plant: whether it ``hurt`` (null: it was not measured), and what was named of each trial of its twin
    and of its fault. ``gain``: how many times better its twin is, where that is a ratio. ``disturbed``:
    trials that do not count, for other work on the machine. ``generator_cpus``: the most of a CPU that the
    generator used in one trial; null where server and generator have CPUs of their own.
    """

    plant: Plant
    hurt: bool | None
    healthy: tuple[Named, ...]
    faulty: tuple[Named, ...]
    disturbed: int
    gain: float | None = None
    generator_cpus: float | None = None

    @property
    def right(self) -> tuple[Named, ...]:
        """The trials of the fault in which it was named."""
        return tuple(one for one in self.faulty if one.symptom in self.plant.cause.named)

    @property
    def false_alarms(self) -> tuple[Named, ...]:
        """The trials of the twin with a finding that is called certain, and is none; of two faults at once
        the twin has the other one.
        """
        if self.plant.part is PlanPart.DOUBLE:
            return ()
        return tuple(one for one in self.healthy if one.certain)


def judge_plants(plants: Iterable[Plant], trials: Iterable[Kept]) -> tuple[JudgedPlant, ...]:
    """Return what became of each plant that has trials, in the order of the plan."""
    by_plant: dict[str, list[Kept]] = {}
    for one in trials:
        by_plant.setdefault(one.plant, []).append(one)
    return tuple(_judged(plant, by_plant[plant.name]) for plant in plants if plant.name in by_plant)


def _judged(plant: Plant, trials: Sequence[Kept]) -> JudgedPlant:
    counting = [one for one in trials if not one.disturbed]
    found = [
        _named(one, _reply_bytes(twin for twin in counting if twin.healthy and twin is not one))
        for one in counting
    ]
    pairs, harm = _pairs(counting), plant.cause.harm
    return JudgedPlant(
        plant,
        hurts(harm, pairs) if plant.cause.named else None,
        tuple(one for one in found if one.healthy or not plant.cause.named),
        tuple(one for one in found if not one.healthy and plant.cause.named),
        len(trials) - len(counting),
        None if harm is Harm.FAILED else mean_gain(harm, pairs),
        _generator_cpus(plant, counting),
    )


def _generator_cpus(plant: Plant, trials: Iterable[Kept]) -> float | None:
    pair = plant.pair
    beside = (one for one in trials if (pair.healthy if one.healthy else pair.faulty).shares_cpus)
    known = (_cpus_of(one.evidence.trial.recording) for one in beside)
    return max((one for one in known if one is not None), default=None)


def _cpus_of(recording: Recording | None) -> float | None:
    """Return how many CPUs' time a generator used in its window, with what it spins."""
    length_ns = recording.window.length_ns if recording else None
    if recording is None or not length_ns:
        return None
    return sum(one.user_ns + one.system_ns for one in recording.generator.threads) / length_ns


def _pairs(trials: Sequence[Kept]) -> list[tuple[float, float]]:
    by_side: Mapping[bool, dict[int, float]] = {True: {}, False: {}}
    for one in trials:
        if one.harmed is not None:
            by_side[one.healthy][one.block] = one.harmed
    both = sorted(by_side[True].keys() & by_side[False].keys())
    return [(by_side[True][block], by_side[False][block]) for block in both]


def _reply_bytes(trials: Iterable[Kept]) -> float | None:
    """Return how large valid replies are on average; None where no trial says: bytes are counted of all
    replies, and those of pages for errors are another fault.
    """
    recordings = (one.evidence.trial.recording for one in trials)
    sizes = [reply_bytes(one) for one in recordings if one is not None and _are_valid(one)]
    known = [size for size in sizes if not isinstance(size, Missing)]
    return fmean(known) if known else None


def _are_valid(recording: Recording) -> bool:
    replies = answered(recording.account)
    return replies - recording.account.ok <= QUALIFIED_ERROR_RATIO * replies


def _named(one: Kept, twin_bytes: float | None) -> Named:
    """Return what is named of a trial; ``twin_bytes``: how large replies are with which it is compared, those
    of the twin's trials; for one of these the others.
    """
    observed = observe(one.evidence)
    diagnosis = _compared(conclude([observed]), _reply_bytes([one]), twin_bytes)
    certain = tuple(
        found.kind
        for found in observed.findings
        if found.confidence is Confidence.CERTAIN and found.kind not in _OF_MACHINE
    )
    known = diagnosis is not None and diagnosis.kind is not DiagnosisKind.UNKNOWN
    first = None if diagnosis is None else named_by(diagnosis)
    return Named(one.plant, one.healthy, one.block, first, known, certain)


def _compared(found: Diagnosis | None, own_bytes: float | None, twin_bytes: float | None) -> Diagnosis | None:
    """Return a diagnosis with what only a comparison shows: valid replies of another size than the twin's."""
    if found is None or own_bytes is None or twin_bytes is None:
        return found
    finding = unequal_work(own_bytes, {"its twin": twin_bytes})
    return found if finding is None else replace(found, beside=(*found.beside, Frequent(finding, 1)))


def named_by(diagnosis: Diagnosis) -> Symptom | None:
    """Return what a diagnosis names first: its cause, else the first likely finding beside it; None: none.

    Of a server that its CPU limits the line says so, and names no generator that may have been the limit too.
    """
    if diagnosis.cause is not None:
        return diagnosis.cause.finding.kind
    likely = (
        one.finding.kind
        for one in diagnosis.beside
        if one.finding.confidence is not Confidence.POSSIBLE
        and one.finding.kind not in _OF_MACHINE
        and not (diagnosis.kind is DiagnosisKind.CPU and one.finding.affected is not None)
    )
    return next(likely, None)
