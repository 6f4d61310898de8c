"""Whether this machine is fit to measure now, and the commands that fix what is not.

Reads the machine and leaves the judgement to `prony.machine.checks`.

>>> preflight(Demand(connections=10))[0].name
'CPUs'

What a measurement needs of a machine, in numbers.

>>> Demand(connections=30_000, engine_threads=2).connections_per_thread
15000
"""

import resource
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prony.machine import Fact, checks, read_number, read_text
from prony.machine.activity import Activity, watch_machine
from prony.machine.cgroups import cgroup, memory
from prony.machine.checks import HostCheck
from prony.machine.cpus import available_cpus
from prony.machine.network import sockets


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that any of the trials needs.

    ``connections_per_process``: connections of one server process if they spread evenly, by subject; for a
    subject that is absent: all of them. ``new_per_s``: new connections per second; null: as many as the
    server accepts; 0: all are kept. ``load_s``: the length of the longest load. ``backlogs``: the length of
    the queue that each subject asks the kernel for. ``processes``: of the server, frontend and services.
    ``several_sources``: the generator takes further source addresses when one has no more ports.
    ``memory_bytes``: the server's limit; null: not set. ``own_network``: each trial has a network of its own,
    with its own ports. ``archive``: its folder and approximate size; null: none is written.
    """

    connections: int = 1000
    engine_threads: int = 1
    several_sources: bool = True
    share_cpus: bool = False
    connections_per_process: Mapping[str, int] = field(default_factory=dict)
    new_per_s: float | None = 0.0
    load_s: float = 60.0
    backlogs: Mapping[str, int] = field(default_factory=dict)
    processes: int = 1
    memory_bytes: int | None = None
    own_network: bool = True
    archive: tuple[Path, int] | None = None

    @property
    def connections_per_thread(self) -> int:
        """How many connections each thread of the generator holds."""
        return -(-self.connections // self.engine_threads)


_SYSTEM = Path("/proc/sys")
_QUEUES = ("net/core/somaxconn", "net/ipv4/tcp_max_syn_backlog")
# More stolen time than this shows a noisy neighbour.
_STEAL = 0.01
_SOFT_IRQ = 0.05
_OTHER_LOAD = 0.05


def preflight(demand: Demand | None = None, seen: Activity | None = None) -> list[HostCheck]:
    """Return all checks. ``seen`` None: watch for a quarter of a second what else runs."""
    asked = demand or Demand()
    now = seen or watch_machine()
    return [
        *_processors(asked),
        *_files(asked),
        *_network(asked),
        *_space(asked, now),
        *_quiet(now),
    ]


def unfit(found: list[HostCheck]) -> tuple[str, ...]:
    """Return in words why a measurement cannot be valid on this machine; empty: it can.

    >>> unfit([HostCheck("ports", "fail", "10", "100")])
    ('ports: 10; needed: 100',)
    """
    return tuple(check.in_words() for check in found if check.level == "fail")


def _processors(asked: Demand) -> Iterator[HostCheck]:
    cpus = available_cpus()
    yield checks.processors(cpus, asked.share_cpus)
    quota = cgroup()["cpu_quota"]
    yield checks.cpu_quota(quota if isinstance(quota, float) else None, len(cpus))
    governors = sorted({_governor_of(cpu.number) for cpu in cpus})
    yield checks.governor(governors)


def _governor_of(number: int) -> str:
    return read_text(Path(f"/sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor")) or "none"


def _files(asked: Demand) -> Iterator[HostCheck]:
    hard = _hard(resource.RLIMIT_NOFILE)
    yield checks.file_limit(asked.connections_per_thread, hard)
    yield checks.server_files(dict(asked.connections_per_process) or {"a server": asked.connections}, hard)
    yield checks.tasks(asked.processes, _hard(resource.RLIMIT_NPROC), _number(cgroup()["pids_limit"]))


def _hard(kind: int) -> int | None:
    limit = resource.getrlimit(kind)[1]
    return None if limit == resource.RLIM_INFINITY else limit


def _network(asked: Demand) -> Iterator[HostCheck]:
    low, high = _port_range()
    count, reuse = max(high - low + 1, 0), read_number(_SYSTEM / "net/ipv4/tcp_tw_reuse")
    yield checks.ports(asked.connections, low, high, asked.several_sources)
    yield checks.port_turnover(asked.new_per_s, asked.connections, asked.load_s, count, reuse)
    yield checks.time_wait_left(_time_wait(sockets()), count, asked.own_network, reuse)
    for name in _QUEUES:
        yield checks.accept_backlog(name, asked.connections, read_number(_SYSTEM / name))
    if asked.backlogs:
        yield checks.backlogs(asked.backlogs, read_number(_SYSTEM / _QUEUES[0]))
    table = (read_number(_SYSTEM / f"net/netfilter/nf_conntrack_{name}") for name in ("count", "max"))
    yield checks.tracking(asked.connections, *table)


def _port_range() -> tuple[int, int]:
    low, _, high = (read_text(_SYSTEM / "net/ipv4/ip_local_port_range") or "").partition("\t")
    return (int(low), int(high)) if low.isdigit() and high.isdigit() else (32768, 60999)


def _time_wait(found: Fact) -> int | None:
    count = found.get("TCP", {}).get("tw")
    return count if isinstance(count, int) else None


def _space(asked: Demand, seen: Activity) -> Iterator[HostCheck]:
    facts = memory()
    free, limit = facts["available_bytes"], facts["limit_bytes"]
    known = [value for value in (free, limit) if isinstance(value, int)]
    yield checks.free_memory(asked.connections, asked.memory_bytes, min(known, default=None))
    yield checks.swap(_number(facts["swap_bytes"]), _number(facts["swap_free_bytes"]), seen.swapped_pages)
    if asked.archive:
        folder, size = asked.archive
        yield checks.disk_space(size, _free_disk(folder), str(folder))


def _number(fact: Fact) -> int | None:
    return fact if isinstance(fact, int) else None


def _free_disk(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _quiet(seen: Activity) -> Iterator[HostCheck]:
    names = ", ".join(seen.busiest)
    load = checks.share_of_time("other load now", seen.cpu.get("busy"), _OTHER_LOAD, "top -o %CPU")
    yield HostCheck(
        load.name, load.level, f"{load.found} ({names})" if names else load.found, load.wanted, load.command
    )
    elsewhere = "measure on a machine of your own, or at another time"
    yield checks.share_of_time("steal now", seen.cpu.get("steal"), _STEAL, elsewhere)
    yield checks.share_of_time(
        "softirq now", seen.cpu.get("soft_irq"), _SOFT_IRQ, "watch -d cat /proc/softirqs"
    )
