"""The CPUs that this process may use, and the cores they belong to.

>>> Cpu(3, 1).core
1

The processor: model, topology, frequencies, mitigations.

*Source*: Linux, Documentation/ABI/testing/sysfs-devices-system-cpu; proc(5), /proc/cpuinfo.

>>> parse_cpuinfo("vendor_id : AuthenticAMD\\nmodel name : AMD EPYC")["model"]
'AMD EPYC'
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prony.machine import Fact, found_in, read_fact, read_text, unread
from prony.model.json_codec import Json

_CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Cpu:
    """One CPU as the kernel numbers them. CPUs of one ``core`` are hardware threads that share it.

    Cores of one ``kind`` differ only in their numbers: same package, last-level cache, speed and capacity.
    """

    number: int
    core: int
    kind: str = ""


def available_cpus(folder: Path = _CPUS) -> tuple[Cpu, ...]:
    """Return the CPUs of this process's affinity; where cores are not known, each is a core of its own."""
    numbers = sorted(os.sched_getaffinity(0))
    return tuple(Cpu(number, _core(folder, number), _kind(folder, number)) for number in numbers)


def _core(folder: Path, number: int) -> int:
    """Return the lowest CPU of the core: unique on the machine, unlike core_id."""
    try:
        siblings = (folder / f"cpu{number}/topology/thread_siblings_list").read_text()
        return int(siblings.strip().replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return number


def _kind(folder: Path, number: int) -> str:
    """Return what the kernel reports about a CPU besides its number; empty where it reports nothing."""
    cpu = folder / f"cpu{number}"
    caches = found_in(cpu, "cache/index*")
    files = (
        cpu / "topology/physical_package_id",
        *(cache / "shared_cpu_list" for cache in caches[-1:]),
        cpu / "cpufreq/cpuinfo_max_freq",
        cpu / "cpu_capacity",
    )
    return "/".join(read_text(file) or "" for file in files)


# --- the processor: model, topology, frequencies, mitigations ---------------------------------------------


_NODES = Path("/sys/devices/system/node")
_CLOCK = Path("/sys/devices/system/clocksource/clocksource0")

# The names on x86, ARM, POWER and RISC-V; the first one found is used.
_FIELDS = {
    "vendor": ("vendor_id",),
    "model": ("model name", "cpu", "uarch"),
    "family": ("cpu family", "CPU architecture"),
    "stepping": ("stepping", "CPU revision", "revision"),
    "microcode": ("microcode",),
    "flags": ("flags", "Features", "isa"),
}
_SILENT = "`/proc/cpuinfo` does not say"
# Main ID Register, implementer and part (Linux, arch/arm64/include/asm/cputype.h). ARM's cpuinfo has no name.
_ARM_PARTS = {
    ("0x41", "0xd03"): "ARM Cortex-A53",
    ("0x41", "0xd08"): "ARM Cortex-A72",
    ("0x41", "0xd0b"): "ARM Cortex-A76",
    ("0x41", "0xd0c"): "ARM Neoverse N1",
    ("0x41", "0xd40"): "ARM Neoverse V1",
    ("0x41", "0xd49"): "ARM Neoverse N2",
    ("0x41", "0xd4f"): "ARM Neoverse V2",
}


def processor() -> Json:
    """Return all facts of the processor."""
    cpus = available_cpus()
    return {
        **model(),
        "count": os.cpu_count() or unread("the system does not say"),
        "available": len(cpus),
        "cores_available": len({cpu.core for cpu in cpus}),
        "packages_available": _packages(cpus),
        "topology": {str(cpu.number): cpu.core for cpu in cpus},
        "smt": read_fact(_CPUS / "smt/control"),
        "smt_active": read_fact(_CPUS / "smt/active", lambda text: bool(int(text))),
        "numa_nodes": _numa_nodes(),
        "governor": _of_each(cpus, "cpufreq/scaling_governor"),
        "driver": _of_each(cpus, "cpufreq/scaling_driver"),
        "frequency_khz": _of_each(cpus, "cpufreq/scaling_cur_freq"),
        "min_frequency_khz": _of_each(cpus, "cpufreq/scaling_min_freq"),
        "max_frequency_khz": _of_each(cpus, "cpufreq/cpuinfo_max_freq"),
        "turbo": parse_turbo(
            read_fact(_CPUS / "cpufreq/boost", str), read_fact(_CPUS / "intel_pstate/no_turbo", str)
        ),
        "isolated": read_fact(_CPUS / "isolated", lambda text: text or None),
        "idle_governor": read_fact(_CPUS / "cpuidle/current_governor"),
        "clock_source": read_fact(_CLOCK / "current_clocksource"),
        "clock_sources": read_fact(_CLOCK / "available_clocksource", str.split),
    }


def model() -> Json:
    """Return what `/proc/cpuinfo` says about the first CPU, which represents all."""
    text = read_fact(Path("/proc/cpuinfo"))
    return parse_cpuinfo(text) if isinstance(text, str) else dict.fromkeys(_FIELDS, text)


def parse_cpuinfo(text: str) -> Json:
    """Return the facts of the first CPU. ARM's parts are named if the name is known, else numbered."""
    lines = (line.partition(":") for line in text.strip().split("\n\n")[0].splitlines())
    said = {name.strip(): value.strip() for name, _, value in lines if value.strip()}
    facts: Json = {
        fact: next((said[name] for name in names if name in said), unread(_SILENT))
        for fact, names in _FIELDS.items()
    }
    if "CPU implementer" in said and "model name" not in said:
        facts["model"] = _arm_model(said)
    return facts


def _arm_model(said: Mapping[str, str]) -> str:
    implementer, part = said["CPU implementer"].lower(), said.get("CPU part", "none").lower()
    return _ARM_PARTS.get((implementer, part), f"implementer {implementer}, part {part}")


def parse_turbo(boost: Fact, no_turbo: Fact) -> Fact:
    """Return whether frequencies above the nominal one are on, from the switch of either driver."""
    if boost in ("0", "1"):
        return boost == "1"
    return no_turbo == "0" if no_turbo in ("0", "1") else boost


def agreed(values: Mapping[str, Fact]) -> Fact:
    """Return one value if all CPUs agree or the first has none, else one value for each.

    >>> agreed({"0": "powersave", "1": "powersave"}), agreed({"0": "1", "1": "2"})
    ('powersave', {'0': '1', '1': '2'})
    """
    first = next(iter(values.values()))
    silent = isinstance(first, dict) and "missing" in first
    return first if silent or all(value == first for value in values.values()) else dict(values)


def _of_each(cpus: tuple[Cpu, ...], name: str) -> Fact:
    return agreed({str(cpu.number): read_fact(_CPUS / f"cpu{cpu.number}/{name}") for cpu in cpus})


def _packages(cpus: tuple[Cpu, ...]) -> Fact:
    found = [read_fact(_CPUS / f"cpu{cpu.number}/topology/physical_package_id", int) for cpu in cpus]
    return len(set(found)) if all(isinstance(one, int) for one in found) else found[0]


def _numa_nodes() -> Fact:
    return len(found_in(_NODES, "node[0-9]*")) or unread(f"`{_NODES}` holds no node")


def mitigations() -> Fact:
    """Return the kernel's mitigation for each of the processor's vulnerabilities."""
    folder = _CPUS / "vulnerabilities"
    found = {path.name: read_fact(path) for path in found_in(folder, "*")}
    return found or unread(f"`{folder}` is not there")
