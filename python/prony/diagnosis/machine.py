"""D24 to D29: what the machine did to a trial: its CPUs, its network work, its memory, other programs.

D24: processes of the server may run on the generator's CPUs.

*Source*: sched_getaffinity(2) of each of them when the window closed. A server can choose its own CPUs; only
a control group confines it to those that it was given. The report itself names CPUs shared on request.

D25: the kernel's own network work, and not the server, was the limit.

*Source*: proc_stat(5), softirq; kernel, net/core/net-procfs.c: packets dropped because the queue
of a CPU was full (net.core.netdev_max_backlog).

D26: the hypervisor gave the trial's CPUs to others.

*Source*: proc_stat(5), steal.

D27: CPUs were hot and slowed down.

*Source*: /sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count.

D28: other programs ran on the trial's CPUs: the server's, or those that the generator has alone.

Beside the generator they limit no server by themselves: whether they kept it waiting is its own verdict.
*Source*: proc_stat(5) and proc_pid_stat(5): the CPUs' busy time that is neither the subject's nor Prony's.

D29: memory changed its form within the window: huge pages came or went, or pages went to another node.

Trials of one subject then differ by what the kernel happened to do. The kernel counts for the whole machine,
so this is never more than possible.
*Source*: kernel, Documentation/admin-guide/mm/transhuge.rst; proc_vmstat(5).
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Closely, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_BOTH, OF_THE_LIMIT, QUIET_MACHINE
from prony.figures.account import QUALIFIED_ERROR_RATIO
from prony.figures.missing import Missing
from prony.figures.validity import counted_apart, load_beside_generator, other_load, steal_share
from prony.model.trial import Trial

HOLD_TO_CPUS = Advice(
    "hold it to its CPUs", "turn off its own choice of CPUs, or confine it with --sandbox cgroup"
)
STRAYED = Symptom(
    "strayed to other CPUs",
    Meaning(Bearing.ADDS, OF_BOTH, QUIET_MACHINE, HOLD_TO_CPUS),
    "{strays} of its processes chose CPUs outside the server's set, perhaps the generator's: "
    "throughput and latency describe both",
    shared="processes of it chose CPUs outside the server's set, perhaps the generator's: throughput and "
    "latency describe both",
    traits=Traits(of_machine=True),
)
"""``strays``: processes of the server that chose other CPUs than the server's."""


def shared_cpus(evidence: Evidence) -> list[Finding]:
    """Return a finding when a process of the server could run on CPUs outside the server's set."""
    strays = evidence.trial.facts.strays or 0
    placement = evidence.trial.placement
    if not strays or placement is None or placement.shared:
        return []
    return [Finding(STRAYED, Confidence.CERTAIN, {"strays": strays})]


# --- D25 --------------------------------------------------------------------------------------------------

RAISE_NETDEV_BACKLOG = Advice("raise the queue of packets", "raise net.core.netdev_max_backlog")
PACKETS_DROPPED = Symptom(
    "packets dropped",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_LIMIT, QUIET_MACHINE, RAISE_NETDEV_BACKLOG),
    "the kernel's packet processing may have been the limit: it dropped {dropped:n packet}",
    shared="the kernel's packet processing may have been the limit",
    traits=Traits(cause="the kernel's packet processing"),
)
"""``dropped`` packets, ``softirq_share``: of the window, of the CPU that did most of this work."""
KERNEL_BUSY = Symptom(
    "kernel busy with packets",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_LIMIT, QUIET_MACHINE),
    "the kernel's packet processing may have been the limit: one CPU did nothing else for "
    "{softirq_share:.0%} of the time",
    shared="the kernel's packet processing may have been the limit",
    traits=Traits(cause="the kernel's packet processing"),
)
"""As before."""


_MOST_OF_A_CPU = 0.5
# For each request, as of failures: fewer move no figure. Each costs its connection 200 ms or more.
_LEAST_DROPPED = QUALIFIED_ERROR_RATIO


def network_limit(evidence: Evidence) -> list[Finding]:
    """Return a finding when a CPU did interrupts for over half of the window, or packets were dropped.

    Possible: fewer were dropped than one for a thousand requests.
    """
    counters, length_ns = evidence.trial.counters, evidence.sampled_ns
    dropped = counters.get("softnet.dropped", 0)
    share = counters.get("cpus.softirq_most_ns", 0) / length_ns if length_ns > 0 else 0.0
    if share <= _MOST_OF_A_CPU and dropped <= 0:
        return []
    numbers = {"softirq_share": share, "dropped": dropped}
    sure = Confidence.LIKELY if share > _MOST_OF_A_CPU or _matters(evidence, dropped) else Confidence.POSSIBLE
    return [Finding(PACKETS_DROPPED if dropped > 0 else KERNEL_BUSY, sure, numbers)]


def _matters(evidence: Evidence, dropped: int) -> bool:
    recording = evidence.trial.recording
    return recording is not None and dropped >= _LEAST_DROPPED * recording.completed.all


# --- D26 --------------------------------------------------------------------------------------------------

REPEAT_ELSEWHERE = Advice(
    "repeat it elsewhere", "repeat the study at another time, or on a machine of its own"
)
STOLEN = Symptom(
    "stolen time",
    Meaning(Bearing.LIMITS_IDLE, OF_BOTH, QUIET_MACHINE, REPEAT_ELSEWHERE),
    "the hypervisor gave CPU time of this machine to others: compare only within a block ({share:.1%})",
    shared="the hypervisor gave CPU time of this machine to others: compare only within a block",
    traits=Traits(cause="the hypervisor", closely=Closely.OTHERS, least_share=0.1, of_machine=True),
)
"""``share``: of the time of the trial's CPUs."""


# One per cent is half of the margin of interest.
_MOST_STOLEN = 0.01


def stolen_time(evidence: Evidence) -> list[Finding]:
    """Return a finding when over one per cent of the time of server's and generator's CPUs was stolen."""
    share = steal_share(evidence.trial.counters)
    if isinstance(share, Missing) or share <= _MOST_STOLEN:
        return []
    return [Finding(STOLEN, Confidence.CERTAIN, {"share": share})]


# --- D27 --------------------------------------------------------------------------------------------------

COOL = Advice("cool it", "cool the machine, or limit its CPU frequency to one that it can hold")
HEAT = Symptom(
    "slowed down for heat",
    Meaning(Bearing.ADDS, OF_BOTH, QUIET_MACHINE, COOL),
    "CPUs of this machine were hot and slowed down: compare only within a block ({times:n time})",
    shared="CPUs of this machine were hot and slowed down: compare only within a block",
    traits=Traits(of_machine=True),
)
"""``times``."""


def heat(evidence: Evidence) -> list[Finding]:
    """Return a finding when a CPU of the machine was hot and slowed down within the window."""
    times = evidence.trial.counters.get("machine.throttles", 0)
    if times <= 0:
        return []
    return [Finding(HEAT, Confidence.LIKELY, {"times": times})]


# --- D28 --------------------------------------------------------------------------------------------------

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


# --- D29 --------------------------------------------------------------------------------------------------

PINNED_MEMORY = Experiment(
    "pinned memory", "measure with huge pages by madvise, on one memory node; trials are alike"
)
PIN_MEMORY = Advice(
    "pin memory", "set transparent_hugepage to madvise, and bind the server to one memory node"
)
PAGES_MOVED = Symptom(
    "memory changed its form",
    Meaning(Bearing.ADDS, OF_BOTH, PINNED_MEMORY, PIN_MEMORY),
    "memory of this machine changed its form within the window: {huge_pages:n huge page} came or "
    "went, {migrated:n page} went to another node",
    shared="memory of this machine changed its form within the window",
)
"""``huge_pages`` that came or went, ``migrated`` pages that went to another node, on the machine."""


# 32 MiB of huge pages, 8 MiB of pages of 4 KiB: a server's memory, and not a few pages of a daemon.
_HUGE_PAGES, _MIGRATED = 16, 2048


def moved_pages(evidence: Evidence) -> list[Finding]:
    """Return a finding when as much memory changed its form as a server has."""
    counters = evidence.trial.counters
    huge, migrated = counters.get("machine.huge_pages", 0), counters.get("machine.migrated_pages", 0)
    if evidence.trial.recording is None or (huge < _HUGE_PAGES and migrated < _MIGRATED):
        return []
    return [Finding(PAGES_MOVED, Confidence.POSSIBLE, {"huge_pages": huge, "migrated": migrated})]
