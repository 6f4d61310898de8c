"""The kernel's settings that each network namespace has for itself: a trial may have its own values of them.

A setting of the whole machine would change what runs beside a trial, and is refused. Standard library only:
the supervisor imports it.

>>> why_not("net.core.somaxconn", 1024) is None
True
>>> why_not("vm.swappiness", 10)
'a setting that each network namespace has for itself, such as `net.core.somaxconn`'
"""

import re

OF_A_NAMESPACE = (
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syn_retries",
    "net.ipv4.tcp_synack_retries",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
)
"""Those that decide how a server behaves under load. *Source*: Documentation/networking/ip-sysctl.rst."""

# Numbers with blanks between them, or the name of an algorithm.
_VALUE = re.compile(r"[0-9]{1,12}([ \t]+[0-9]{1,12}){0,2}|[a-z][a-z0-9_-]{0,15}")


def as_written(value: int | str) -> str:
    """Return a value as the kernel shows it: numbers with tabs between them.

    >>> as_written("1024  65535")
    '1024\\t65535'
    """
    return "\t".join(str(value).split())


def why_not(name: str, value: int | str) -> str | None:
    """Return what was expected in place of a setting or its value; None where both may be."""
    if name not in OF_A_NAMESPACE:
        return "a setting that each network namespace has for itself, such as `net.core.somaxconn`"
    if isinstance(value, bool) or not _VALUE.fullmatch(str(value).strip()):
        return "a whole number, two or three of them, or the name of an algorithm"
    return None
