"""What the machine did besides the subject and the generator.

>>> [metric.name for metric in MACHINE][3:]
['machine_steal_percent', 'other_load_percent']

What the generator did, used and waited for.

>>> next(metric.name for metric in GENERATOR)
'reconnects'
"""

from prony.core.metrics.metric import CONNECTIONS, GENERATOR_USAGE, PROC, STAT, Better, Metric, Unit

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


MACHINE = (
    Metric(
        "machine_cpu_percent",
        Unit.PERCENT,
        Better.NEITHER,
        "CPU of the machine",
        "busy time of all CPUs between the first and the last sample of the window / time "
        "between; 100 = one core",
        STAT,
    ),
    Metric(
        "machine_cpu_ratio",
        Unit.RATIO,
        Better.NEITHER,
        "CPU of the machine, share of all its CPUs",
        "busy time of all CPUs between the first and the last sample of the window / the time of all CPUs",
        STAT,
    ),
    Metric(
        "machine_memory_ratio",
        Unit.RATIO,
        Better.NEITHER,
        "memory of the machine in use, share of all of it",
        "mean over the window's samples of 1 - available / all memory",
        "proc_meminfo(5), MemTotal and MemAvailable",
    ),
    Metric(
        "machine_steal_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU stolen from the machine",
        "time that the hypervisor gave to other guests, as a share of all CPUs' time in the window; 100 = "
        "all of it",
        STAT,
    ),
    Metric(
        "other_load_percent",
        Unit.PERCENT,
        Better.LOWER,
        "other load on the trial's CPUs",
        "time of the server's and the generator's CPUs that was used by programs other than the subject, the "
        "generator and Prony, as a share of all those CPUs' time in the window; 100 = all of it; accurate to "
        "about 3",
        f"{STAT}; {PROC}",
    ),
)
