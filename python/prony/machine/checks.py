r"""What a measurement needs of a machine, one check for each need.

Pure: the caller passes in what the machine has. ``fail``: the measurement cannot be valid; ``warn``: it may
be disturbed.

Only the kernel's own messages; what programs write there is left out.

*Source*: Linux, Documentation/ABI/testing/dev-kmsg.

>>> file_limit(connections=100, hard=50).level
'fail'

>>> parse_message("4,17,5000000,-;nf_conntrack: table full, dropping packet\n")
KernelMessage(level=4, boot_us=5000000, text='nf_conntrack: table full, dropping packet')
>>> parse_message("12,18,5000001,-;written by a program") is None
True
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Literal

from prony.core.units import KIB, MIB, format_bytes, format_count, format_percent
from prony.machine import Fact, unread
from prony.machine.cpus import Cpu
from prony.model.json_codec import Json

Level = Literal["ok", "warn", "fail"]

# Open files of a process besides its connections: libraries, logs, pipes.
_SPARE_FILES = 100
# Memory of both ends of a connection: two idle sockets with their files; and the same under load, with
# buffers and the server's own state.
_LEAST_BYTES_PER_CONNECTION = 16 * KIB
_BYTES_PER_CONNECTION = 128 * KIB
# Memory of Prony, the generator and a small server; and the same with room for a larger server.
_LEAST_MEMORY_BYTES = 256 * MIB
_MEMORY_BYTES = 512 * MIB
# Linux, TCP_TIMEWAIT_LEN (include/net/tcp.h); tcp_tw_reuse frees a port after a second (ip-sysctl.rst).
_TIME_WAIT_S = 60.0
_REUSE_AFTER_S = 1.0
# The engine's connections from one source address (crates/prony-engine/src/socket/sources.rs).
_PER_SOURCE = 5_000
# Prony, the generator and its threads, supervisors.
_SPARE_TASKS = 64
_WIDER_RANGE = 'sudo sysctl -w net.ipv4.ip_local_port_range="10000 65535"'


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One thing that a measurement needs of the machine. ``command`` fixes it; null: nothing to fix."""

    name: str
    level: Level
    found: str
    wanted: str
    command: str | None = None

    def in_words(self) -> str:
        """Return what was found, what is needed, and the command that fixes it."""
        fix = f"; fix: {self.command}" if self.command else ""
        return f"{self.name}: {self.found}; needed: {self.wanted}{fix}"


def _check(name: str, level: Level, found: str, wanted: str, command: str | None = None) -> HostCheck:
    """Return a check; one that is ok has no command."""
    return HostCheck(name, level, found, wanted, None if level == "ok" else command)


# --- CPUs -------------------------------------------------------------------------------------------------


def processors(cpus: Sequence[Cpu], share: bool = False) -> HostCheck:
    """Check that server and generator can have CPUs of their own."""
    cores = len({cpu.core for cpu in cpus})
    found = f"{len(cpus)} CPUs on {cores} {'core' if cores == 1 else 'cores'}"
    if len(cpus) < 2 and not share:
        return HostCheck("CPUs", "fail", found, "2 or more", "prony ... --share-cpus")
    level: Level = "ok" if cores >= 2 else "warn"
    # Hardware threads of one core slow each other down.
    return HostCheck("CPUs", level, found, "2 cores or more")


def cpu_quota(quota: float | None, cpus: int) -> HostCheck:
    """Check that the control group of Prony may use all of its CPUs.

    With a quota below two CPUs the kernel stops server and generator in every period: the figures then
    describe the quota.
    """
    found = "none" if quota is None else f"{quota:g} of {cpus} CPUs"
    level: Level = "ok" if quota is None or quota >= cpus else "warn" if quota >= 2 else "fail"
    return _check(
        "CPU quota", level, found, "none", "start the container with --cpuset-cpus instead of --cpus"
    )


def governor(found: Sequence[str]) -> HostCheck:
    """Check that the CPUs keep their frequency. ``found``: each governor; ``none`` if there is none."""
    level: Level = "ok" if all(name in ("performance", "none") for name in found) else "warn"
    return _check(
        "governor", level, ", ".join(found), "performance", "sudo cpupower frequency-set -g performance"
    )


def share_of_time(name: str, found: float | None, most: float, command: str) -> HostCheck:
    """Check that something takes at most a given share of the CPUs' time."""
    wanted = f"{format_percent(most)} or less"
    if found is None:
        return HostCheck(name, "warn", "not known", wanted)
    return _check(name, "ok" if found <= most else "warn", format_percent(found), wanted, command)


# --- files and processes ----------------------------------------------------------------------------------


def file_limit(connections: int, hard: int | None, name: str = "open files") -> HostCheck:
    """Check that a process may open this many connections; ``hard`` None: no limit.

    If one table of descriptors is too small for all, each thread of the generator gets its own.
    """
    wanted = connections + _SPARE_FILES
    return _check(
        name,
        "ok" if hard is None or hard >= wanted else "fail",
        "unlimited" if hard is None else format_count(hard),
        f"{format_count(wanted)} or more",
        f"sudo prlimit --pid $$ --nofile={wanted}:{wanted}",
    )


def server_files(needs: Mapping[str, int], hard: int | None) -> HostCheck:
    """Check that a process of each subject may open its share of the connections; ``needs``: by subject."""
    name, most = max(needs.items(), key=lambda item: item[1])
    check = file_limit(most, hard, "open files of a server")
    return check if check.level == "ok" else _with_wanted(check, f"{check.wanted}, for {name}")


def _with_wanted(check: HostCheck, wanted: str) -> HostCheck:
    return HostCheck(check.name, check.level, check.found, wanted, check.command)


def tasks(wanted: int, of_user: int | None, of_group: int | None) -> HostCheck:
    """Check that this many processes may be started, by the limits of user and group; None: no limit."""
    wanted += _SPARE_TASKS
    most = min((limit for limit in (of_user, of_group) if limit is not None), default=None)
    level: Level = "ok" if most is None or most >= wanted else "fail"
    found = "unlimited" if most is None else format_count(most)
    command = f"start the container with --pids-limit {wanted}" if most == of_group else f"ulimit -u {wanted}"
    return _check("processes", level, found, f"{format_count(wanted)} or more", command)


# --- the network ------------------------------------------------------------------------------------------


def ports(connections: int, low: int, high: int, several: bool = True) -> HostCheck:
    """Check that there are ports for every connection, and as many again in TIME_WAIT.

    ``several``: the generator takes further source addresses for more connections than one address has.
    """
    count = max(high - low + 1, 0)
    connections = min(connections, _PER_SOURCE) if several else connections
    level: Level = "fail" if count < connections else "warn" if count < 2 * connections else "ok"
    found = f"{format_count(count)} ({low} to {high})"
    return _check("ports", level, found, format_count(2 * connections), _WIDER_RANGE)


def kept_ports(new_per_s: float, connections: int, load_s: float, reuse: bool) -> int:
    """Return how many ports are in use when connections are opened continually, with those in TIME_WAIT.

    *Definition*: connections + rate x min(load, the time for which a port stays in use). *Assumptions*: the
    generator's side closes the connection, or keeps the port for as long.

    >>> kept_ports(1000, 100, 30, reuse=False), kept_ports(1000, 100, 30, reuse=True)
    (30100, 1100)
    """
    held_s = min(load_s, _REUSE_AFTER_S if reuse else _TIME_WAIT_S)
    return connections + ceil(new_per_s * held_s)


def port_turnover(
    new_per_s: float | None, connections: int, load_s: float, count: int, reuse: int | None
) -> HostCheck:
    """Check that ports become free as fast as connections are opened.

    ``new_per_s`` 0: all connections are kept; None: not known before the load. ``reuse``: tcp_tw_reuse; None:
    not known. ``count``: how many ports there are.
    """
    name = "ports in TIME_WAIT"
    back = bool(reuse)
    command = _WIDER_RANGE if back else "sudo sysctl -w net.ipv4.tcp_tw_reuse=2"
    after = f"free again after {_REUSE_AFTER_S if back else _TIME_WAIT_S:g} s"
    if new_per_s is None:
        steady = f"{format_count(count / (_REUSE_AFTER_S if back else _TIME_WAIT_S))} connections a second"
        return _check(name, "ok" if back else "warn", f"{after}: {steady}", "tcp_tw_reuse 1 or 2", command)
    if new_per_s == 0:
        # A server that closes connections by itself uses up ports too.
        level: Level = "warn" if reuse == 0 else "ok"
        return _check(name, level, after, "tcp_tw_reuse 1 or 2", command)
    needed = kept_ports(new_per_s, connections, load_s, back)
    level = "ok" if needed <= count else "fail"
    return _check(name, level, f"{format_count(count)}, {after}", format_count(needed), command)


def time_wait_left(found: int | None, count: int, own_network: bool, reuse: int | None) -> HostCheck:
    """Check that no earlier measurement has left connections that keep ports on the network of this one.

    ``count``: how many ports there are; ``reuse``: tcp_tw_reuse; None: not known.
    """
    name, wanted = "left in TIME_WAIT", f"{format_count(count // 10)} or less"
    if own_network:
        return HostCheck(name, "ok", "a network of its own", wanted)
    if found is None:
        return HostCheck(name, "warn", "not known", wanted)
    if reuse:
        return HostCheck(name, "ok", f"{format_count(found)}, free again after {_REUSE_AFTER_S:g} s", wanted)
    level: Level = "ok" if found <= count // 10 else "warn"
    return _check(name, level, format_count(found), wanted, "sleep 60")


def accept_backlog(setting: str, connections: int, found: int | None) -> HostCheck:
    """Check that all connections may arrive at once."""
    name = setting.rpartition("/")[2]
    if found is None:
        return HostCheck(name, "warn", "not known", format_count(connections))
    command = f"sudo sysctl -w {setting.replace('/', '.')}={connections}"
    level: Level = "ok" if found >= connections else "warn"
    more = "" if level == "ok" else " or more"
    return _check(name, level, format_count(found), f"{format_count(connections)}{more}", command)


def backlogs(wanted: Mapping[str, int], somaxconn: int | None) -> HostCheck:
    """Check that the kernel gives each subject the queue it asks for: it shortens longer ones silently."""
    name = "servers' backlogs"
    most = max(wanted.values(), default=0)
    if somaxconn is None:
        return HostCheck(name, "warn", "not known", format_count(most))
    cut = [
        f"{subject} asks for {format_count(asked)}" for subject, asked in wanted.items() if asked > somaxconn
    ]
    found = f"at most {format_count(somaxconn)}"
    if not cut:
        return HostCheck(name, "ok", found, format_count(most))
    return HostCheck(name, "warn", found, ", ".join(cut), f"sudo sysctl -w net.core.somaxconn={most}")


def tracking(connections: int, count: int | None, most: int | None) -> HostCheck:
    """Check that the firewall's table has room; None: it is not in use, or not known."""
    name, wanted = "connection tracking", f"{format_count(2 * connections)} free"
    if count is None or most is None:
        return HostCheck(name, "ok", "not in use", wanted)
    free = most - count
    command = f"sudo sysctl -w net.netfilter.nf_conntrack_max={count + 2 * connections}"
    level: Level = "ok" if free >= 2 * connections else "warn"
    return _check(name, level, f"{format_count(free)} free", wanted, command)


# --- memory and disk --------------------------------------------------------------------------------------


def free_memory(connections: int, limit: int | None, found: int | None) -> HostCheck:
    """Check that connections and server find memory. ``limit``: the server's limit, which it may use up."""
    wanted = (limit or 0) + _MEMORY_BYTES + connections * _BYTES_PER_CONNECTION
    least = (limit or 0) + _LEAST_MEMORY_BYTES + connections * _LEAST_BYTES_PER_CONNECTION
    text = f"{format_bytes(wanted)} or more"
    if found is None:
        return HostCheck("free memory", "warn", "not known", text)
    level: Level = "ok" if found >= wanted else "warn" if found >= least else "fail"
    return _check("free memory", level, format_bytes(found), text, "top -o %MEM")


def swap(total: int | None, free: int | None, moved_pages: int | None) -> HostCheck:
    """Check that no memory is swapped. ``moved_pages``: pages moved to and from swap during the look."""
    if total is None or free is None:
        return HostCheck("swap", "warn", "not known", "none in use")
    found = f"{format_bytes(total - free)} in use" if total > free else "none in use"
    found += f", {format_count(moved_pages)} pages moved just now" if moved_pages else ""
    return _check("swap", "warn" if total > free else "ok", found, "none in use", "sudo swapoff -a")


def disk_space(wanted: int, found: int | None, folder: str) -> HostCheck:
    """Check that the archive fits on the disk."""
    text = f"{format_bytes(wanted)} in `{folder}`"
    if found is None:
        return HostCheck("disk space", "warn", "not known", text)
    return _check(
        "disk space", "ok" if found >= wanted else "fail", format_bytes(found), text, "prony clean --all"
    )


# --- what the kernel wrote into its log during a run ------------------------------------------------------


_DEVICE = Path("/dev/kmsg")
# One record (PRINTK_MESSAGE_MAX in kernel/printk/internal.h is 2 KiB, with its prefix).
_RECORD_BYTES = 8192
_KEPT = 100
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class KernelMessage:
    """One message. ``level``: 0 emergency to 7 debug (syslog(2)); ``boot_us``: microseconds since boot."""

    level: int
    boot_us: int
    text: str


def parse_message(record: str) -> KernelMessage | None:
    """Return the message of a record; None when a program wrote it.

    *Errors*: ValueError when it is not a record.
    """
    head, _, rest = record.partition(";")
    priority, _, when, *_ = head.split(",")
    facility, level = divmod(int(priority), 8)
    return KernelMessage(level, int(when), rest.partition("\n")[0][:_LONGEST]) if facility == 0 else None


def kept_of(records: Iterable[str | None]) -> Json:
    """Return the first hundred of the kernel's messages, and how many more there were.

    A None record stands for records that the kernel overwrote before they were read: it does not say how
    many.
    """
    found = list(records)
    messages = [one for record in found if record is not None and (one := parse_message(record)) is not None]
    return {
        "messages": [asdict(one) for one in messages[:_KEPT]],
        "left_out": len(messages[_KEPT:]),
        "gaps": found.count(None),
    }


class KernelLog:
    """The kernel's log from the creation of this object on."""

    def __init__(self, device: Path = _DEVICE) -> None:
        self._descriptor = -1
        self._why: str | None = None
        try:
            self._descriptor = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError as error:
            self._why = f"cannot read `{device}`: {error.strerror}"

    def since(self) -> Fact:
        """Return the messages since the creation or the last call, or why they cannot be read."""
        if self._why is not None:
            return unread(self._why)
        return kept_of(self._records())

    def _records(self) -> Iterator[str | None]:
        """Yield each record; None where the kernel has overwritten some."""
        while True:
            try:
                data = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.EPIPE:
                    raise
                yield None
                continue
            if not data:
                return
            yield data.decode(errors="replace")

    def close(self) -> None:
        """Close it; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor, self._why = -1, "it was closed"


@contextlib.contextmanager
def kernel_log_kept(keep: Callable[[Json], None]) -> Iterator[None]:
    """Watch the log within the block; however the block ends, call ``keep`` with ``{"kernel_log": ...}``."""
    log = KernelLog()
    try:
        yield
    finally:
        found = log.since()
        log.close()
        keep({"kernel_log": found})
