"""D28: other programs ran on the trial's CPUs: the server's, or those that the generator has alone.

Beside the generator they limit no server by themselves: whether they kept it waiting is its own verdict.
*Source*: proc_stat(5) and proc_pid_stat(5): the CPUs' busy time that is neither the subject's nor Prony's.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Closely, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_BOTH, QUIET_MACHINE
from prony.figures.missing import Missing
from prony.figures.validity import counted_apart, load_beside_generator, other_load
from prony.model.trial import Trial

END_OTHERS = Advice("end other programs", "stop the other programs, and repeat the study")
OTHERS_RAN = Symptom(
    "other programs ran",
    Meaning(Bearing.LIMITS_IDLE, OF_BOTH, QUIET_MACHINE, END_OTHERS),
    "other programs ran on its CPUs, for {share:.0%} of their time",
    shared="other programs ran on its CPUs",
    traits=Traits(cause="other programs", closely=Closely.OTHERS, least_share=0.2, of_machine=True),
)
"""``share``: of the time of the server's CPUs; of all of the trial's, where nobody counted them apart."""
OTHERS_RAN_BESIDE_GENERATOR = Symptom(
    "other programs ran beside the generator",
    Meaning(Bearing.ADDS, OF_BOTH, QUIET_MACHINE, END_OTHERS),
    "other programs ran on the generator's CPUs, for {share:.0%} of the time of the trial's CPUs",
    shared="other programs ran on the generator's CPUs",
    traits=Traits(of_machine=True),
)
"""``share``: of the time of the trial's CPUs; on those that the generator has alone."""


# The kernel's two accounts differ by up to 3 % of it where nothing else runs.
LEAST_OTHERS = 0.05
"""Of the time of all CPUs of the trial: where other programs used no more, they are not spoken of."""
# Of the window: threads that were ready for less of it, all together, did not miss what others used.
_LEAST_READY = 0.01


def other_programs(evidence: Evidence) -> list[Finding]:
    """Return a finding when other programs used over 5 % of the time of server's and generator's CPUs: of
    both kinds, where each is as much. What ran on the server's is a share of their time alone.
    """
    share = other_load(evidence.trial.counters)
    if isinstance(share, Missing) or share <= LEAST_OTHERS:
        return []
    beside = load_beside_generator(evidence.trial)
    shares = {OTHERS_RAN: share - beside, OTHERS_RAN_BESIDE_GENERATOR: beside}
    found = {kind: part for kind, part in shares.items() if part > LEAST_OTHERS}
    # Less than that on both: where more of it was, which may be the accounts' difference.
    most = max(shares, key=lambda kind: shares[kind])
    sure = Confidence.LIKELY if found and _had_to_wait(evidence) else Confidence.POSSIBLE
    own = _servers_part(evidence.trial)
    return [
        Finding(kind, sure, {"share": min(1.0, part / own) if kind is OTHERS_RAN else part})
        for kind, part in (found or {most: shares[most]}).items()
    ]


def _had_to_wait(evidence: Evidence) -> bool:
    """Return whether its threads were ready and had no CPU for some time; also where nobody looked."""
    ready_ns, length_ns = evidence.trial.counters.get("threads.queue_ns"), evidence.length_ns
    return ready_ns is None or not length_ns or ready_ns >= _LEAST_READY * length_ns


def _servers_part(trial: Trial) -> float:
    """Return the part of the trial's CPUs that is the server's: all where the generator has none alone, or
    where what ran on these was not counted apart.
    """
    placement = trial.placement
    if placement is None or not placement.server_cpus or not counted_apart(trial):
        return 1.0
    alone = set(placement.generator_cpus) - set(placement.server_cpus)
    return len(placement.server_cpus) / (len(placement.server_cpus) + len(alone))
