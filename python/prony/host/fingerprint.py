"""What this machine is: all that makes two measurements comparable or not.

Each item is a value or ``{"missing": reason}``. Unpaired archives may be compared only when ``cpu.model``,
``kernel.release``, ``cpu.governor``, ``cpu.available`` and ``memory.limit_bytes`` agree. Must not know
archives or reports.

>>> sorted(fingerprint())[:4]
['boot', 'cgroup', 'container', 'cpu']
"""

import os
import platform
import resource
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path

from prony.host.cpus import available_cpus
from prony.host.environment import visible_environment, visible_parameters
from prony.host.read import Fact, missing, read_fact
from prony.model import Json

__all__ = ["fingerprint"]

_CPUS = Path("/sys/devices/system/cpu")
_SETTINGS = (
    "net/core/somaxconn",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/netdev_max_backlog",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_abort_on_overflow",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_syncookies",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_wmem",
    "net/netfilter/nf_conntrack_count",
    "net/netfilter/nf_conntrack_max",
    "kernel/numa_balancing",
    "kernel/randomize_va_space",
    "vm/overcommit_memory",
    "vm/swappiness",
)
_CPU_FIELDS = {"vendor_id": "vendor", "model name": "model", "microcode": "microcode", "flags": "flags"}


def fingerprint(environment: Mapping[str, str] | None = None) -> Json:
    """Return all facts that a measurement may depend on. ``environment`` null: this process's."""
    return {
        "machine": platform.machine(),
        "cpu": _cpu(),
        "mitigations": _mitigations(),
        "kernel": _kernel(),
        "boot": _boot(),
        "memory": _memory(),
        "virtualisation": _virtualisation(),
        "container": _container(),
        "cgroup": _cgroup(),
        "settings": {
            name.replace("/", "."): read_fact(Path("/proc/sys") / name, _spaced) for name in _SETTINGS
        },
        "limits": _limits(),
        "loopback": {"mtu": read_fact(Path("/sys/class/net/lo/mtu"), int)},
        "load": read_fact(Path("/proc/loadavg"), lambda text: [float(part) for part in text.split()[:3]]),
        "python": _python(),
        "prony": _prony(),
        "environment": visible_environment(os.environ if environment is None else environment),
    }


def _cpu() -> Json:
    cpus = available_cpus()
    return {
        **_cpu_model(),
        "count": os.cpu_count() or missing("the system does not say"),
        "available": len(cpus),
        "cores_available": len({cpu.core for cpu in cpus}),
        "topology": {str(cpu.number): cpu.core for cpu in cpus},
        "smt": read_fact(_CPUS / "smt/control"),
        "numa_nodes": _numa_nodes(),
        "governor": _of_each_cpu("cpufreq/scaling_governor"),
        "driver": _of_each_cpu("cpufreq/scaling_driver"),
        "frequency_khz": _of_each_cpu("cpufreq/scaling_cur_freq"),
        "max_frequency_khz": _of_each_cpu("cpufreq/cpuinfo_max_freq"),
        "turbo": _turbo(),
        "isolated": read_fact(_CPUS / "isolated", lambda text: text or None),
        "clock_source": read_fact(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
    }


def _cpu_model() -> Json:
    facts: Json = dict.fromkeys(_CPU_FIELDS.values(), missing("`/proc/cpuinfo` does not say"))
    text = read_fact(Path("/proc/cpuinfo"))
    if isinstance(text, str):
        # The first CPU stands for all.
        for line in text.split("\n\n")[0].splitlines():
            name, _, value = line.partition(":")
            if name.strip() in _CPU_FIELDS:
                facts[_CPU_FIELDS[name.strip()]] = value.strip()
    return facts


def _numa_nodes() -> Fact:
    nodes = len(list(Path("/sys/devices/system/node").glob("node[0-9]*")))
    return nodes or missing("`/sys/devices/system/node` holds no node")


def _of_each_cpu(name: str) -> Fact:
    """Return one value when all available CPUs agree, else theirs one by one."""
    values = {str(cpu.number): read_fact(_CPUS / f"cpu{cpu.number}/{name}") for cpu in available_cpus()}
    first = next(iter(values.values()))
    if isinstance(first, dict):
        return first
    return first if all(value == first for value in values.values()) else values


def _turbo() -> Fact:
    boost = read_fact(_CPUS / "cpufreq/boost", lambda text: text == "1")
    if isinstance(boost, bool):
        return boost
    return read_fact(_CPUS / "intel_pstate/no_turbo", lambda text: text == "0")


def _mitigations() -> Fact:
    folder = _CPUS / "vulnerabilities"
    found = {path.name: read_fact(path) for path in sorted(folder.glob("*"))}
    return found or missing(f"`{folder}` is not there")


def _kernel() -> Json:
    return {
        "release": platform.release(),
        "version": platform.version(),
        "command_line": read_fact(Path("/proc/cmdline"), visible_parameters),
        "preemption": read_fact(Path("/sys/kernel/debug/sched/preempt")),
        "log": missing("the kernel's log is not kept"),
    }


def _boot() -> Json:
    return {
        "id": read_fact(Path("/proc/sys/kernel/random/boot_id")),
        "unix_s": round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)),
    }


def _memory() -> Json:
    text = read_fact(Path("/proc/meminfo"))
    lines = text.splitlines() if isinstance(text, str) else []
    sizes = {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    unknown = missing("`/proc/meminfo` does not say")
    pages = Path("/sys/kernel/mm/transparent_hugepage")
    return {
        "total_bytes": sizes.get("MemTotal", unknown),
        "available_bytes": sizes.get("MemAvailable", unknown),
        "swap_bytes": sizes.get("SwapTotal", unknown),
        "swap_free_bytes": sizes.get("SwapFree", unknown),
        "huge_pages": read_fact(pages / "enabled", _chosen),
        "huge_pages_defrag": read_fact(pages / "defrag", _chosen),
        "limit_bytes": _memory_limit(),
    }


def _chosen(text: str) -> str:
    """Return the word in brackets: ``always [madvise] never``."""
    return text.partition("[")[2].partition("]")[0] or text


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _memory_limit() -> Fact:
    """Return the limit of the cgroup that Prony was started in, null when it has none."""
    for folder, name in (("", "memory.max"), ("memory", "memory.limit_in_bytes")):
        # A container sees its own group as the root, though its path names the host's.
        for group in (_own_group(folder), ""):
            limit = read_fact(Path("/sys/fs/cgroup") / folder / group / name)
            if isinstance(limit, str):
                # Version 1 writes "none" as the largest multiple of a page.
                return int(limit) if limit.isdigit() and int(limit) < 1 << 62 else None
    return missing("no memory controller at `/sys/fs/cgroup`")


def _own_group(controller: str) -> str:
    text = read_fact(Path("/proc/self/cgroup"))
    lines = (line.split(":", 2) for line in text.splitlines()) if isinstance(text, str) else ()
    return next((path.lstrip("/") for _, names, path in lines if controller in names.split(",")), "")


def _virtualisation() -> Json:
    flags = _cpu_model()["flags"]
    guest = (
        "hypervisor" in flags.split() if isinstance(flags, str) else missing("`/proc/cpuinfo` does not say")
    )
    names = Path("/sys/class/dmi/id")
    return {
        "guest": guest,
        "hypervisor": read_fact(Path("/sys/hypervisor/type")),
        "vendor": read_fact(names / "sys_vendor"),
        "product": read_fact(names / "product_name"),
    }


def _container() -> Fact:
    marks = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/run/systemd/container": "systemd"}
    return next((kind for mark, kind in marks.items() if Path(mark).exists()), None)


def _cgroup() -> Json:
    return {
        "version": 2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1,
        "controllers": read_fact(Path("/sys/fs/cgroup/cgroup.controllers")),
    }


def _limits() -> Json:
    limits = {
        "open_files": resource.RLIMIT_NOFILE,
        "processes": resource.RLIMIT_NPROC,
        "locked_memory_bytes": resource.RLIMIT_MEMLOCK,
        "stack_bytes": resource.RLIMIT_STACK,
    }
    found = {name: resource.getrlimit(number) for name, number in limits.items()}
    return {name: {"soft": _limit(soft), "hard": _limit(hard)} for name, (soft, hard) in found.items()}


def _limit(value: int) -> int | None:
    return None if value == resource.RLIM_INFINITY else value


def _python() -> Json:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "build": " ".join(platform.python_build()),
        "compiler": platform.python_compiler(),
        "flags": _build_flags(),
        "gil": not sysconfig.get_config_var("Py_GIL_DISABLED"),
        "optimise": sys.flags.optimize,
    }


def _build_flags() -> list[str]:
    """Return what was switched on, and no paths of the machine that built it."""
    words = str(sysconfig.get_config_var("CONFIG_ARGS") or "").replace("'", "").split()
    return sorted(word for word in words if word.startswith(("--enable-", "--with-")) and "/" not in word)


def _prony() -> Json:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return {"version": version("prony")}
    except PackageNotFoundError:
        return {"version": missing("Prony is not installed as a package")}
