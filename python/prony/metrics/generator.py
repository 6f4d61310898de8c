"""What the generator did, used and waited for. Must not know the subject.

>>> next(metric.name for metric in GENERATOR)
'reconnects'
"""

from prony.metrics.metric import Better, Metric, Unit
from prony.metrics.sources import CONNECTIONS, GENERATOR_USAGE

GENERATOR = (
    Metric(
        "reconnects",
        Unit.COUNT,
        Better.NEITHER,
        "connections opened again",
        "connections that the generator opened to replace closed ones, from the start of the window on",
        CONNECTIONS,
    ),
    Metric(
        "connections_without_reply",
        Unit.COUNT,
        Better.LOWER,
        "connections without a reply",
        "connections of the generator on which no request was answered after the window opened",
        CONNECTIONS,
    ),
    Metric(
        "generator_run_queue_percent",
        Unit.PERCENT,
        Better.LOWER,
        "generator's wait for its CPU",
        "of the generator's thread that waited longest: time on the run queue / (window + drain)",
        "engine's Recording, generator (/proc/thread-self/schedstat)",
    ),
    Metric(
        "generator_cpu_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU of the generator",
        "user + system time of the generator's threads, without spinning / (window + drain); 100 = one core",
        GENERATOR_USAGE,
    ),
    Metric(
        "generator_cpu_ns_per_request",
        Unit.DURATION,
        Better.LOWER,
        "generator's CPU time per request",
        "the generator's CPU time, without spinning / requests completed",
        GENERATOR_USAGE,
    ),
    Metric(
        "generator_ok_per_cpu_s",
        Unit.RATE,
        Better.HIGHER,
        "valid replies per CPU-second of the generator",
        "valid replies in the window / the generator's CPU time in it, without spinning: what a generator "
        "does for its CPU, however many connections it has",
        GENERATOR_USAGE,
    ),
    Metric(
        "generator_rss_mean",
        Unit.BYTES,
        Better.LOWER,
        "memory of the generator (RSS)",
        "mean over the window's samples of the sum over the generator's processes of their resident set",
        "engine's Recording, generator.processes (proc_pid_stat(5))",
    ),
    Metric(
        "generator_memory_ratio",
        Unit.RATIO,
        Better.LOWER,
        "memory of the generator, share of the machine's",
        "the generator's mean resident memory / the machine's memory",
        "engine's Recording, generator.processes (proc_pid_stat(5), proc_meminfo(5))",
    ),
)
