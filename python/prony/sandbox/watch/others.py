"""Which other programs used CPU time in the window: none of the subject's, of those that it asks, of Prony's.

All processes are looked at when the window opens and closes, and between as often as that takes 0.1 % of a
core. What starts and ends between two looks counts with the process that waited for it: a compiler with its
`make`.

*Source*: proc_pid_stat(5): utime, stime, and of children that were waited for cutime and cstime.

>>> named_of({"cc1plus": 480_000_000, "sh": 1_000_000}, length_ns=1_000_000_000, cpus=2)
(OtherProgram(name='cc1plus', share=0.24),)

How many connections a database of this machine takes, by its command and its configuration.

They are read as files, but of a container, which has its own; the database is not asked. What cannot be
read is not known.

>>> connection_limits([])
{}
"""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from prony.core.safe_text import shortened
from prony.core.trees import content
from prony.core.units import MIB, MILLISECOND_NS
from prony.model.facts import OtherProgram
from prony.sandbox.watch.native import CompiledSource, NativeProcess
from prony.sandbox.watch.networks import by_network
from prony.sandbox.watch.partners import all_parents, below
from prony.sandbox.watch.processes import Identity

# After each look it rests for so many times as long.
_REST = 1000
# Of one CPU; less moves no figure. And so many ticks of the kernel: fewer may be chance.
_LEAST, _LEAST_NS = 0.03, 50 * MILLISECOND_NS
_NAMED = 3
# The kernel's own name has 15 bytes; what is unreadable in it is written longer.
_LONGEST_NAME = 32
# The parent of the kernel's threads, which are no programs.
_KERNEL = 2

Processes = Mapping[Identity, NativeProcess]


def used_between(before: Processes, after: Processes) -> dict[Identity, int]:
    """Return the CPU time (ns) of each process between two looks: its own, and that of children which it
    waited for, as far as no look has seen it.

    *Assumptions*: a process that is new, though it began before the newest of the look before, was missed
    there, and counts from now on.
    """
    seen_ns, newest = _seen_of_ended(before, after), max((ticks for _, ticks in before), default=0)
    found = {}
    for identity, one in after.items():
        earlier = before.get(identity)
        if earlier is not None:
            waited_ns = one.waited_ns - earlier.waited_ns - seen_ns[identity]
            found[identity] = _own_ns(one) - _own_ns(earlier) + max(0, waited_ns)
        elif one.start_time_ticks >= newest:
            found[identity] = _own_ns(one) + one.waited_ns
    return found


def _own_ns(one: NativeProcess) -> int:
    return one.user_ns + one.system_ns


def _seen_of_ended(before: Processes, after: Processes) -> Counter[Identity]:
    """Return how much of what processes waited for was seen before it ended."""
    found: Counter[Identity] = Counter()
    by_pid = {pid: (pid, ticks) for pid, ticks in before}
    for identity in before.keys() - after.keys():
        heir: Identity | None = identity
        passed: set[Identity] = set()
        # Numbers that are used again may lead in a circle.
        while heir is not None and heir not in after and heir not in passed:
            passed.add(heir)
            heir = by_pid.get(before[heir].parent_pid)
        if heir is not None:
            found[heir] += _own_ns(before[identity]) + before[identity].waited_ns
    return found


def named_of(used_ns: Mapping[str, int], length_ns: int, cpus: int) -> tuple[OtherProgram, ...]:
    """Return the programs that used most, by name, with their shares of the time of so many CPUs."""
    ranked = sorted(used_ns.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        OtherProgram(name, round(min(1.0, one_ns / (length_ns * cpus)), 4))
        for name, one_ns in ranked[:_NAMED]
        if one_ns >= max(_LEAST_NS, _LEAST * length_ns) and length_ns
    )


class OtherPrograms:
    """Looks at all processes within the window. As `EdgeGauges` it looks with the samples, and has no value.

    ``ours``: processes that are no others, with all below them, as far as they are known at the end.
    ``cpus``: how many the trial has.
    """

    def __init__(self, ours: Callable[[], Iterable[int]], cpus: int) -> None:
        self._ours, self._cpus = ours, cpus
        # In a container several have no parent there.
        roots = [pid for pid, parent in all_parents().items() if not parent and pid != _KERNEL]
        self._sources = [CompiledSource(pid, include_root=True) for pid in roots]
        self._seen: Processes = {}
        self._used: Counter[Identity] = Counter()
        self._names: dict[int, str] = {}
        self._parents: dict[int, int] = {}
        self._opened_ns = self._length_ns = self._rested_ns = 0

    def read(self) -> dict[str, int]:
        """Look within the window, unless it rests."""
        if self._opened_ns and not self._length_ns and time.monotonic_ns() >= self._rested_ns:
            self._look()
        return {}

    def read_at_open(self) -> dict[str, int]:
        """Begin: what was used before does not count."""
        self._look()
        self._used.clear()
        self._opened_ns = time.monotonic_ns()
        return {}

    def read_at_close(self) -> dict[str, int]:
        """End."""
        self._look()
        self._length_ns = time.monotonic_ns() - self._opened_ns
        return {}

    def missing(self) -> dict[str, str]:
        """Return nothing: it has no value."""
        return {}

    def close(self) -> None:
        """Do nothing."""

    def programs(self) -> tuple[OtherProgram, ...]:
        """Return the busiest of the window; none before it has ended."""
        ours = {pid for root in self._ours() for pid in below(root, self._parents)}
        used_ns: Counter[str] = Counter()
        for (pid, _), one_ns in self._used.items():
            if pid not in ours:
                used_ns[shortened(self._names[pid], _LONGEST_NAME)] += one_ns
        return named_of(used_ns, self._length_ns, self._cpus)

    def _look(self) -> None:
        began_ns = time.thread_time_ns()
        found = (one for source in self._sources for one in source.sample())
        now = {(one.pid, one.start_time_ticks): one for one in found}
        self._used.update(used_between(self._seen, now))
        # Who has lost its parent still belongs to the first; a program may have another name by now.
        self._parents = {pid: one.parent_pid for (pid, _), one in now.items()} | self._parents
        self._names |= {pid: one.command for (pid, _), one in now.items()}
        self._seen = now
        self._rested_ns = time.monotonic_ns() + _REST * (time.thread_time_ns() - began_ns)


# --- how many connections a database of this machine takes ------------------------------------------------


# Without a setting, and of these kept for administrators. *Source*: PostgreSQL documentation, 20.3
# Connections and Authentication; MariaDB and MySQL documentation, max_connections.
_USUAL = {"postgres": (100, 3), "mariadbd": (151, 0), "mysqld": (151, 0)}
_OF_MARIADB = ("/etc/my.cnf", "/etc/mysql/my.cnf", "/etc/mysql/conf.d", "/etc/mysql/mariadb.conf.d")
_TYPED = re.compile(r"^(?:(?:-c|--)?max[-_]connections=|-N\n?)(\d+)$", re.MULTILINE)
_CONFIG_FILE = re.compile(r"(?:-c|--)?config_file=(.+)")
_SET = re.compile(r"^[ \t]*max[-_]connections[ \t]*=?[ \t]*'?(\d+)", re.MULTILINE)


def connection_limits(pids: Iterable[int]) -> dict[str, int]:
    """Return how many connections of applications the databases among processes take, by the program's name;
    of two with one name it is not known who is meant.
    """
    found: dict[str, list[int | None]] = defaultdict(list)
    for pid in pids:
        with suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
            if name in _USUAL:
                words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
                found[name].append(_limit(name, words, [] if by_network([pid]) else _files(name, words)))
    return {name: limits[0] for name, limits in found.items() if len(limits) == 1 and limits[0] is not None}


def _limit(name: str, words: Sequence[str], files: Sequence[Path]) -> int | None:
    usual, kept = _USUAL[name]
    if typed := _TYPED.findall("\n".join(words)):
        return int(typed[-1]) - kept
    texts = [text for file in files if (text := _text(file)) is not None]
    said = [number for text in texts for number in _SET.findall(text)]
    return int(said[-1] if said else usual) - kept if texts else None


def _files(name: str, words: Sequence[str]) -> list[Path]:
    """Return the files of a configuration, those that count last at the end."""
    if name == "postgres":
        said = [found[1] for word in words if (found := _CONFIG_FILE.fullmatch(word))]
        data = [value for option, value in pairwise(words) if option == "-D"]
        first = said[-1:] or [f"{folder}/postgresql.conf" for folder in data[-1:]]
        return [Path(one) for one in (*first, *(f"{folder}/postgresql.auto.conf" for folder in data[-1:]))]
    places = [Path(one) for one in _OF_MARIADB]
    return [file for one in places for file in (sorted(one.glob("*.cnf")) if one.is_dir() else [one])]


def _text(file: Path) -> str | None:
    try:
        return content(file, MIB).decode(errors="replace")
    except OSError:
        return None
