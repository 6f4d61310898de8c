"""What the machine is doing now: other load, steal, softirq, pressure, frequencies. Read before a run.

*Source*: proc(5), /proc/stat and /proc/vmstat; Linux, Documentation/accounting/psi.rst.

>>> shares("cpu 0 0 0 0 0 0 0 0 0 0", "cpu 50 0 0 40 0 0 5 5 0 0")["soft_irq"]
0.05
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prony.machine import Fact, found_in, read_fact, read_text, unread
from prony.machine.cpus import agreed
from prony.model.json_codec import Json

_STATES = ("user", "nice", "system", "idle", "io_wait", "irq", "soft_irq", "steal")
_BUSY = ("user", "nice", "system", "irq", "soft_irq")
# Long enough for 25 of the kernel's ticks on each CPU.
_LOOK_S = 0.25
# Processes that use less than this share of one CPU are not named.
_LEAST_SHARE = 0.02
_NAMED = 3

_Processes = Mapping[int, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Activity:
    """How the machine spent a quarter of a second in which Prony slept.

    ``cpu``: shares of all CPUs' time by state, with ``busy``; empty: not readable. ``busiest``: the shares of
    one CPU that the busiest processes used, by name. ``swapped_pages``: in and out; null: not readable.
    """

    cpu: Mapping[str, float]
    busiest: Mapping[str, float]
    swapped_pages: int | None


def watch_machine(seconds: float = _LOOK_S) -> Activity:
    """Watch the machine for a time and return what it did."""
    before, processes, pages = _stat(), _processes(), _swapped()
    began = time.monotonic()
    time.sleep(seconds)
    length_s = time.monotonic() - began
    after, then, pages_then = _stat(), _processes(), _swapped()
    return Activity(
        cpu=shares(before, after) if before and after else {},
        busiest=busiest(processes, then, length_s * os.sysconf("SC_CLK_TCK")),
        swapped_pages=None if pages is None or pages_then is None else pages_then - pages,
    )


def activity(seen: Activity) -> Json:
    """Return all facts of what the machine does now."""
    return {
        "cpu_shares": dict(seen.cpu) or unread("`/proc/stat` cannot be read"),
        "busiest": dict(seen.busiest),
        "load": read_fact(Path("/proc/loadavg"), parse_load),
        "pressure": {kind: pressure(kind) for kind in ("cpu", "memory", "io", "irq")},
        "frequency_mhz": read_fact(Path("/proc/cpuinfo"), frequencies),
        "swapped_pages": unread("`/proc/vmstat` cannot be read")
        if seen.swapped_pages is None
        else seen.swapped_pages,
    }


def shares(before: str, after: str) -> dict[str, float]:
    """Return the share of each state in the CPUs' time, from the first lines of two reads of /proc/stat.

    *Definition*: busy = user + nice + system + irq + softirq, of the sum of all states; steal went to other
    guests of the host.
    """
    pairs = zip(after.split()[1:9], before.split()[1:9], strict=True)
    ticks = dict(zip(_STATES, (max(0, int(late) - int(early)) for late, early in pairs), strict=True))
    total = max(1, sum(ticks.values()))
    found = {state: count / total for state, count in ticks.items()}
    return {**found, "busy": sum(ticks[state] for state in _BUSY) / total}


def parse_load(text: str) -> Json:
    """Return /proc/loadavg: the averages, and how many tasks run and exist.

    >>> parse_load("0.5 0.4 0.3 2/180 4242")
    {'averages': [0.5, 0.4, 0.3], 'running': 2, 'tasks': 180}
    """
    words = text.split()
    running, _, tasks = words[3].partition("/")
    return {"averages": [float(word) for word in words[:3]], "running": int(running), "tasks": int(tasks)}


def pressure(kind: str) -> Fact:
    """Return the share of time in which tasks waited for ``kind``; without PSI the reason."""
    return read_fact(Path("/proc/pressure") / kind, parse_psi)


def parse_psi(text: str) -> Json:
    """Return PSI: percent of the last 10 s, 60 s, 300 s, and the total since boot in microseconds.

    >>> parse_psi("some avg10=1.50 avg60=0.00 avg300=0.00 total=7")["some"]["avg10"]
    1.5
    """
    found: Json = {}
    for line in text.splitlines():
        who, *pairs = line.split()
        values = dict(pair.split("=") for pair in pairs)
        found[who] = {name: int(value) if name == "total" else float(value) for name, value in values.items()}
    return found


def frequencies(text: str) -> Fact:
    """Return the frequency of each CPU from `/proc/cpuinfo`, one value if all agree; x86 only.

    >>> frequencies("processor : 0\\ncpu MHz : 2600.000\\n\\nprocessor : 1\\ncpu MHz : 800.0")
    {'0': 2600.0, '1': 800.0}
    """
    found: dict[str, Fact] = {}
    for part in text.split("\n\n"):
        said = {name.strip(): value.strip() for name, _, value in map(_split, part.splitlines())}
        if "cpu MHz" in said and "processor" in said:
            found[said["processor"]] = float(said["cpu MHz"])
    return agreed(found) if found else unread("`/proc/cpuinfo` does not say")


def _split(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def busiest(before: _Processes, after: _Processes, ticks: float) -> dict[str, float]:
    """Return the busiest processes with their shares of one CPU; each value of a map: name and ticks."""
    used: dict[str, int] = {}
    for pid, (name, then) in after.items():
        first_name, first = before.get(pid, (name, then))
        used[name] = used.get(name, 0) + (then - first if first_name == name else 0)
    ranked = sorted(used.items(), key=lambda item: (-item[1], item[0]))
    found = {name: round(count / ticks, 3) for name, count in ranked[:_NAMED]}
    return {name: share for name, share in found.items() if share >= _LEAST_SHARE}


def parse_process(text: str) -> tuple[str, int]:
    """Return name and CPU ticks of /proc/PID/stat; the name may hold anything, even brackets.

    >>> parse_process("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 30 12 0 0")
    ('a) b', 42)
    """
    head, _, rest = text.rpartition(")")
    words = rest.split()
    return head.partition("(")[2], int(words[11]) + int(words[12])


def _processes() -> dict[int, tuple[str, int]]:
    own = os.getpid()
    numbers = (int(path.name) for path in found_in(Path("/proc"), "[0-9]*"))
    found = {pid: read_text(Path(f"/proc/{pid}/stat")) for pid in numbers if pid != own}
    return {pid: parse_process(text) for pid, text in found.items() if text}


def _stat() -> str:
    return (read_text(Path("/proc/stat")) or "").partition("\n")[0]


def _swapped() -> int | None:
    """Return how many pages went to swap and came back since boot."""
    lines = (read_text(Path("/proc/vmstat")) or "").splitlines()
    found = [int(line.split()[1]) for line in lines if line.startswith(("pswpin ", "pswpout "))]
    return sum(found) if found else None
