"""Whether this machine is fit to measure now, and the command that mends what is not.

Must not know how the checks are shown.

>>> file_limit(connections=100, hard=50).level
'fail'
"""

import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prony.host.cpus import Cpu, available_cpus
from prony.host.read import read_number, read_text
from prony.units import format_bytes, format_count, format_percent

__all__ = ["HostCheck", "file_limit", "listen_queue", "ports", "preflight", "processors"]

_SYSTEM = Path("/proc/sys")
# What a process has open beside its connections: libraries, logs, pipes.
_SPARE_FILES = 100
# Both ends of a connection on one machine: socket buffers at rest and under load, and the server's own state.
_BYTES_PER_CONNECTION = 128 * 1024
_LEAST_MEMORY_BYTES = 512 * 1024 * 1024
# DIAGNOSES of a noisy neighbour: more than so much is not this machine's own time.
_STEAL = 0.01
_OTHER_LOAD = 0.05
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One thing that a measurement needs of the machine. ``command`` mends it, null: nothing to mend."""

    name: str
    level: Literal["ok", "warn", "fail"]
    found: str
    wanted: str
    command: str | None = None


def preflight(connections: int = 1000, share_cpus: bool = False) -> list[HostCheck]:
    """Return all checks, for so many connections. Takes a quarter of a second, to see what else runs."""
    low, high = _port_range()
    return [
        processors(available_cpus(), share_cpus),
        file_limit(connections, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
        ports(connections, low, high),
        *(listen_queue(name, connections, read_number(_SYSTEM / name)) for name in _QUEUES),
        _time_wait(),
        _governor(),
        *_now(),
        _memory(connections),
    ]


_QUEUES = ("net/core/somaxconn", "net/ipv4/tcp_max_syn_backlog")


def processors(cpus: Sequence[Cpu], share: bool = False) -> HostCheck:
    """Return whether server and generator can have CPUs of their own."""
    cores = len({cpu.core for cpu in cpus})
    found = f"{len(cpus)} CPUs on {cores} {'core' if cores == 1 else 'cores'}"
    if len(cpus) < 2 and not share:
        return HostCheck("CPUs", "fail", found, "2 or more", "prony ... --share-cpus")
    level: Literal["ok", "warn"] = "ok" if cores >= 2 else "warn"
    return HostCheck("CPUs", level, found, "2 cores or more: hardware threads of one core slow each other")


def file_limit(connections: int, hard: int) -> HostCheck:
    """Return whether a process may have so many connections open."""
    wanted = connections + _SPARE_FILES
    enough = hard in (-1, resource.RLIM_INFINITY) or hard >= wanted
    return HostCheck(
        "open files",
        "ok" if enough else "fail",
        "unlimited" if hard in (-1, resource.RLIM_INFINITY) else format_count(hard),
        f"{format_count(wanted)} or more",
        None if enough else f"sudo prlimit --pid $$ --nofile={wanted}:{wanted}",
    )


def ports(connections: int, low: int, high: int) -> HostCheck:
    """Return whether the generator finds a port for every connection, with as many again in TIME_WAIT."""
    count = max(high - low + 1, 0)
    level: Literal["ok", "warn", "fail"] = (
        "fail" if count < connections else "warn" if count < 2 * connections else "ok"
    )
    command = None if level == "ok" else 'sudo sysctl -w net.ipv4.ip_local_port_range="10000 65535"'
    return HostCheck(
        "ports", level, f"{format_count(count)} ({low} to {high})", format_count(2 * connections), command
    )


def listen_queue(setting: str, connections: int, found: int | None) -> HostCheck:
    """Return whether all connections may arrive at once."""
    name = setting.rpartition("/")[2]
    if found is None:
        return HostCheck(name, "warn", "not known", format_count(connections))
    if found >= connections:
        return HostCheck(name, "ok", format_count(found), format_count(connections))
    command = f"sudo sysctl -w {setting.replace('/', '.')}={connections}"
    return HostCheck(name, "warn", format_count(found), f"{format_count(connections)} or more", command)


def _port_range() -> tuple[int, int]:
    low, _, high = (read_text(_SYSTEM / "net/ipv4/ip_local_port_range") or "").partition("\t")
    return (int(low), int(high)) if low.isdigit() and high.isdigit() else (32768, 60999)


def _time_wait() -> HostCheck:
    reuse = read_number(_SYSTEM / "net/ipv4/tcp_tw_reuse")
    level: Literal["ok", "warn"] = "warn" if reuse == 0 else "ok"
    command = "sudo sysctl -w net.ipv4.tcp_tw_reuse=2" if reuse == 0 else None
    found = "not known" if reuse is None else str(reuse)
    return HostCheck(
        "tcp_tw_reuse", level, found, "1 or 2: else a server that closes uses up the ports", command
    )


def _governor() -> HostCheck:
    found = sorted({_governor_of(cpu.number) for cpu in available_cpus()})
    fixed = all(governor in ("performance", "none") for governor in found)
    command = None if fixed else "sudo cpupower frequency-set -g performance"
    return HostCheck("governor", "ok" if fixed else "warn", ", ".join(found), "performance", command)


def _governor_of(number: int) -> str:
    return read_text(Path(f"/sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor")) or "none"


def _now() -> tuple[HostCheck, HostCheck]:
    before = _cpu_ticks()
    time.sleep(_LOOK_S)
    user, nice, system, idle, io_wait, irq, soft_irq, steal = (
        after - earlier for after, earlier in zip(_cpu_ticks(), before, strict=True)
    )
    busy = user + nice + system + irq + soft_irq
    total = max(busy + idle + io_wait + steal, 1)
    return (
        _share("other load now", busy / total, _OTHER_LOAD, "top -o %CPU"),
        _share("steal now", steal / total, _STEAL, "measure on a machine of your own, or at another time"),
    )


def _share(name: str, found: float, wanted: float, command: str) -> HostCheck:
    fits = found <= wanted
    most = f"{format_percent(wanted)} or less"
    return HostCheck(name, "ok" if fits else "warn", format_percent(found), most, None if fits else command)


def _cpu_ticks() -> tuple[int, ...]:
    with Path("/proc/stat").open() as file:
        return tuple(int(field) for field in file.readline().split()[1:9])


def _memory(connections: int) -> HostCheck:
    wanted = _LEAST_MEMORY_BYTES + connections * _BYTES_PER_CONNECTION
    found = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in (read_text(Path("/proc/meminfo")) or "").splitlines():
        if line.startswith("MemAvailable:"):
            found = int(line.split()[1]) * 1024
    level: Literal["ok", "warn"] = "ok" if found >= wanted else "warn"
    command = None if level == "ok" else "top -o %MEM"
    return HostCheck("free memory", level, format_bytes(found), f"{format_bytes(wanted)} or more", command)
