"""What the subject used: CPU, memory, processes, accept queues and connections.

>>> next(metric.name for metric in SUBJECT)
'cpu_percent'

What the machine did besides the subject and the generator.

>>> [metric.name for metric in MACHINE][3:]
['machine_steal_percent', 'other_load_percent']

What the generator did, used and waited for.

>>> next(metric.name for metric in GENERATOR)
'reconnects'
"""

from prony.core.metrics.metric import (
    ACCOUNT,
    CONNECTIONS,
    DESCRIPTORS,
    GENERATOR_USAGE,
    GROUPS,
    PROC,
    SMAPS,
    SOCK_DIAG,
    STAT,
    STATUS,
    TASK,
    Better,
    Metric,
    Unit,
)

_EACH = {
    "rss_per_process": ("resident memory", "resident set", PROC),
    "pss_per_process": ("memory (PSS)", "proportional set", SMAPS),
    "vsz_per_process": ("virtual memory", "virtual size", PROC),
}


def _per_process_metrics() -> list[Metric]:
    return [
        Metric(
            name,
            Unit.BYTES,
            Better.NEITHER if name.startswith("vsz") else Better.LOWER,
            f"{title} of a process",
            f"mean over the subject's processes (of a role, where one is named) of their {what}, at the end "
            "of the load",
            source,
        )
        for name, (title, what, source) in _EACH.items()
    ]


SUBJECT = (
    Metric(
        "cpu_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU",
        "user + system time of all the subject's processes between the first and the last sample of the "
        "window / time between them; or what the control groups counted in the window, if that is more; 100 "
        "= one core. Without control groups: what its processes, and the children that they waited for, "
        "used. For one role: what the samples show, and what was counted beside of its part of the subject "
        "(server, frontend, services) where no other role of that part can have used it",
        PROC,
    ),
    Metric(
        "cpu_unsampled_percent",
        Unit.PERCENT,
        Better.NEITHER,
        "CPU without a role",
        "the subject's CPU minus that of its roles: used by processes that lived between two samples, and by "
        "others after their last sample, where several roles may have had them; 100 = one core. For one "
        "role: how much of it may be its, at most",
        PROC,
    ),
    Metric(
        "cpu_percent_peak",
        Unit.PERCENT,
        Better.LOWER,
        "CPU, peak",
        "the most CPU that samples of the subject's processes show over half a second, or the shortest time "
        "between samples that is longer; 100 = one core. Benchmarks that note the largest figure of `docker "
        "stats` report this",
        PROC,
    ),
    Metric(
        "cpu_user_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU in user mode",
        "as CPU, but only time in user mode, as far as samples show it; the kernel estimates the split by "
        "sampling",
        PROC,
    ),
    Metric(
        "cpu_system_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU in the kernel",
        "as CPU, but only time in the kernel, as far as samples show it; the kernel estimates the split by "
        "sampling",
        PROC,
    ),
    Metric(
        "busiest_thread_percent",
        Unit.PERCENT,
        Better.NEITHER,
        "CPU of the busiest thread",
        "user + system time in the window of the subject's busiest thread / time between the window's first "
        "and last sample; 100 = one core",
        TASK,
    ),
    Metric(
        "cpu_ns_per_request",
        Unit.DURATION,
        Better.LOWER,
        "CPU time per request",
        "the subject's CPU per second x window / complete replies. On loopback part of the "
        "network work is billed "
        "to the generator",
        f"{PROC}; {ACCOUNT}",
    ),
    Metric(
        "rss_peak",
        Unit.BYTES,
        Better.LOWER,
        "resident memory, peak",
        "largest sum over the subject's processes of their resident set, over the window's "
        "samples; shared pages "
        "count once for each process",
        PROC,
    ),
    Metric(
        "pss_end",
        Unit.BYTES,
        Better.LOWER,
        "memory (PSS) at the end",
        "sum over the subject's processes of their proportional set at the end of the load; a "
        "page shared by k "
        "processes counts 1/k in each",
        SMAPS,
    ),
    Metric(
        "uss_end",
        Unit.BYTES,
        Better.LOWER,
        "private memory (USS) at the end",
        "sum over the subject's processes of the pages that no other process maps, at the end of the load",
        SMAPS,
    ),
    Metric(
        "rss_high_water",
        Unit.BYTES,
        Better.LOWER,
        "resident memory, high-water marks",
        "sum over the subject's processes at the end of the load of the kernel's peak of each one's resident "
        "set since its start; an upper bound: the peaks may not have coincided",
        STATUS,
    ),
    Metric(
        "memory_peak",
        Unit.BYTES,
        Better.LOWER,
        "memory with files, peak",
        "sum over the subject's control groups of the kernel's peak since their start: its processes, the "
        "files that they read (page cache) and the kernel's memory for both; an upper bound: the peaks may "
        "not have coincided. Benchmarks that note the largest figure of `docker stats` report about this",
        GROUPS,
    ),
    Metric(
        "vsz_peak",
        Unit.BYTES,
        Better.NEITHER,
        "virtual memory, peak",
        "largest sum over the subject's processes of their virtual size, over the window's samples",
        PROC,
    ),
    *_per_process_metrics(),
    Metric(
        "processes_max",
        Unit.COUNT,
        Better.NEITHER,
        "processes, most",
        "largest number of the subject's processes in one sample of the window",
        PROC,
    ),
    Metric(
        "threads_max",
        Unit.COUNT,
        Better.NEITHER,
        "threads, most",
        "largest sum over the subject's processes of their threads, over the window's samples",
        PROC,
    ),
    Metric(
        "restarts",
        Unit.COUNT,
        Better.LOWER,
        "processes replaced",
        "per role, how many processes ended within the window while another of the role started, one of the "
        "two seen in more than one sample; summed over the roles. A server that starts a process for each "
        "request counts 0",
        PROC,
    ),
    Metric(
        "accept_queue_peak",
        Unit.RATIO,
        Better.LOWER,
        "accept queue, fullest",
        "largest ratio of length to limit of an accept queue of the subject, over the samples of the window; "
        "above 1 the kernel drops connections",
        SOCK_DIAG,
    ),
    Metric(
        "descriptors_end",
        Unit.COUNT,
        Better.NEITHER,
        "open descriptors at the end",
        "sum over the subject's processes of their open files and sockets at the end of the load",
        DESCRIPTORS,
    ),
    Metric(
        "voluntary_switches_per_s",
        Unit.RATE,
        Better.NEITHER,
        "context switches, voluntary",
        "how often per second the subject's threads left a CPU to wait, in the window; counts only threads "
        "that lived at its start and its end",
        STATUS,
    ),
    Metric(
        "involuntary_switches_per_s",
        Unit.RATE,
        Better.LOWER,
        "context switches, involuntary",
        "how often per second the kernel took the CPU from the subject's threads, in the window; counts only "
        "threads that lived at its start and its end",
        STATUS,
    ),
    Metric(
        "processes_started",
        Unit.COUNT,
        Better.NEITHER,
        "processes started",
        "processes of the subject seen in the window, but not in its first sample",
        PROC,
    ),
    Metric(
        "processes_ended",
        Unit.COUNT,
        Better.NEITHER,
        "processes ended",
        "processes of the subject seen in the window, but not in its last sample",
        PROC,
    ),
    Metric(
        "accept_queue_longest",
        Unit.COUNT,
        Better.LOWER,
        "accept queue, longest",
        "largest number of connections that waited to be accepted, over the window's samples, at the "
        "subject's listener whose queue came closest to its limit",
        SOCK_DIAG,
    ),
    Metric(
        "accept_queue_limit",
        Unit.COUNT,
        Better.NEITHER,
        "accept queue, limit",
        "how many connections may wait to be accepted at that listener: the smaller of the server's backlog "
        "and net.core.somaxconn; the kernel accepts one more",
        SOCK_DIAG,
    ),
    Metric(
        "connections_peak",
        Unit.COUNT,
        Better.NEITHER,
        "connections, most",
        "largest number of established connections, over the window's samples, at the address where clients "
        "connect to the subject; accepted by the server or not",
        SOCK_DIAG,
    ),
)


# --- the machine, and the generator -----------------------------------------------------------------------


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
