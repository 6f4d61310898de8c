"""The kernel: release, command line, preemption, and when it was booted."""

import platform
import time
from pathlib import Path

from prony.host.environment import visible_parameters
from prony.host.facts.memory import chosen
from prony.host.read import Fact, read_fact, unread
from prony.model.shapes import Json


def kernel() -> Json:
    """Return all facts of the kernel."""
    return {
        "release": platform.release(),
        "version": platform.version(),
        "command_line": read_fact(Path("/proc/cmdline"), visible_parameters),
        "preemption": _preemption(),
    }


def _preemption() -> Fact:
    found = read_fact(Path("/sys/kernel/debug/sched/preempt"), _switched)
    return found if isinstance(found, str) else preemption_of(platform.version())


def _switched(text: str) -> str:
    """Return the word in brackets of ``none (voluntary) full``."""
    return text.partition("(")[2].partition(")")[0] or chosen(text)


def preemption_of(version: str) -> Fact:
    """Return the preemption model that the kernel's version names.

    >>> preemption_of("#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1"), preemption_of("#7 SMP Mon")["missing"]
    ('PREEMPT_DYNAMIC', 'the version does not name it, and only root may read the other source')
    """
    named = next((word for word in version.split() if word.startswith("PREEMPT")), None)
    return named or unread("the version does not name it, and only root may read the other source")


def boot() -> Json:
    """Return the id of this boot, and when it began."""
    return {
        "id": read_fact(Path("/proc/sys/kernel/random/boot_id")),
        "unix_s": round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)),
    }
