"""What a generator on the server's CPUs takes from it: its own CPU time, and what it makes the server spend.

Over loopback the kernel does a part of a process's network work in the other one's time, and two on one CPU
drive each other out of its caches: so the generator's own time alone is no bound. How much more it is, a
reference server of known work shows. Must not know how it is loaded.
"""

from dataclasses import dataclass

from prony.analysis.environment_faults import subject_cpu_ns
from prony.model.trial import Trial

# A share from which on a figure says nothing about the server.
_MOST = 0.95


@dataclass(frozen=True, slots=True)
class Costs:
    """The CPU time that server and generator are billed for a request, in nanoseconds."""

    server_ns: float
    generator_ns: float


def loss_ratio(apart: Costs, together: Costs) -> float:
    """Return how much CPU time a server loses for each second that is billed to a generator on its CPU.

    *Definition*: (s' + g' - s) / g', at least 1: s and g as billed for a request; s' and g' where both share
    a CPU.
    *Assumptions*: a request's work is the same in both. That CPUs of their own cost a server more (it sleeps
    and wakes more often) is no reason to let it lose less than the generator used.

    >>> loss_ratio(Costs(60, 12), Costs(62, 10))
    1.2
    """
    return max(1.0, (together.server_ns + together.generator_ns - apart.server_ns) / together.generator_ns)


def generator_share(trial: Trial) -> float:
    """Return the share of the CPU time of server and generator that the generator took at most, where both
    share CPUs; else 0.

    *Definition*: t / (s + p): t is what the server lost by it (`generator.taken_ns`), s and p are the CPU
    times of the subject, and of Prony and its generator, in the window.
    """
    taken_ns = trial.counters.get("generator.taken_ns", 0)
    both_ns = subject_cpu_ns(trial.counters) + trial.counters.get("prony.cpu_ns", 0)
    return min(taken_ns / both_ns, 1.0) if both_ns else 0.0


def share_reach(share: float) -> float | None:
    """Return the factor by which a server's throughput may be higher without the generator on its CPUs; null
    from 95 % on, where nothing is known.

    *Definition*: 1 / (1 - ``share``): the same requests cost so much less.
    *Assumptions*: the server found no idle CPU while the generator ran; it is less where it did, as one
    process does on two CPUs.

    >>> round(share_reach(0.06), 3)
    1.064
    """
    return 1 / (1 - share) if share < _MOST else None
