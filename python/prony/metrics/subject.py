"""What the subject used and how it stood: CPU, memory, processes, accept queues and connections.

Must not know the generator or the rest of the machine.

>>> next(metric.name for metric in SUBJECT)
'cpu_percent'
"""

from prony.metrics.metric import Better, Metric, Unit
from prony.metrics.sources import ACCOUNT, DESCRIPTORS, PROC, SMAPS, SOCK_DIAG, STATUS, TASK

__all__ = ["SUBJECT"]

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
        "user + system time of all the subject's processes between the first and the last "
        "sample of the window / "
        "time between them, or what the control groups counted in the window if that is more; "
        "100 = one core. Without control groups, what its processes and the children that they waited for "
        "used. Of a role: what samples show",
        PROC,
    ),
    Metric(
        "cpu_unsampled_percent",
        Unit.PERCENT,
        Better.NEITHER,
        "CPU that no sample shows",
        "CPU less what the samples of processes show: that of processes that lived between two samples, and "
        "of others after their last; 100 = one core. With the CPU of all roles it makes the CPU in all",
        PROC,
    ),
    Metric(
        "cpu_user_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU in user mode",
        "as CPU, of the time in user mode alone, as far as samples show it; the kernel splits it by sampling",
        PROC,
    ),
    Metric(
        "cpu_system_percent",
        Unit.PERCENT,
        Better.LOWER,
        "CPU in the kernel",
        "as CPU, of the time in the kernel alone, as far as samples show it; the kernel splits it by "
        "sampling",
        PROC,
    ),
    Metric(
        "busiest_thread_percent",
        Unit.PERCENT,
        Better.NEITHER,
        "CPU of the busiest thread",
        "user + system time in the window of the subject's thread that used most / time between "
        "the window's first and last sample; 100 = one core",
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
        "sum over the subject's processes at the end of the load of the kernel's peak of each "
        "one's resident set since its start; at most that much was resident at once",
        STATUS,
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
        "sum over the roles of the subject's processes that ended within the window while another of the "
        "role began, one of both seen in more than one sample: a process for each request is none",
        PROC,
    ),
    Metric(
        "accept_queue_peak",
        Unit.RATIO,
        Better.LOWER,
        "accept queue, fullest",
        "largest share of its limit that the accept queue of a listener of the subject had in a sample of "
        "the window; above 1 connections are dropped",
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
        "how often a second the subject's threads left a CPU to wait, between the window's marks;"
        " of threads that were there at them",
        STATUS,
    ),
    Metric(
        "involuntary_switches_per_s",
        Unit.RATE,
        Better.LOWER,
        "context switches, involuntary",
        "how often a second the subject's threads had to leave a CPU to others, between the "
        "window's marks; of threads that were there at them",
        STATUS,
    ),
    Metric(
        "processes_started",
        Unit.COUNT,
        Better.NEITHER,
        "processes started",
        "processes of the subject that were seen in the window, and not in its first sample",
        PROC,
    ),
    Metric(
        "processes_ended",
        Unit.COUNT,
        Better.NEITHER,
        "processes ended",
        "processes of the subject that were seen in the window, and not in its last sample",
        PROC,
    ),
    Metric(
        "accept_queue_longest",
        Unit.COUNT,
        Better.LOWER,
        "accept queue, longest",
        "most connections that waited to be accepted in one of the window's samples, at the "
        "subject's listener whose queue was nearest to its limit",
        SOCK_DIAG,
    ),
    Metric(
        "accept_queue_limit",
        Unit.COUNT,
        Better.NEITHER,
        "accept queue, limit",
        "how many connections may wait to be accepted at that listener: the server's backlog or "
        "net.core.somaxconn, the smaller; the kernel lets in one more",
        SOCK_DIAG,
    ),
    Metric(
        "connections_peak",
        Unit.COUNT,
        Better.NEITHER,
        "connections, most",
        "most connections that were established in one of the window's samples where clients "
        "connect to the subject, accepted or not",
        SOCK_DIAG,
    ),
)
