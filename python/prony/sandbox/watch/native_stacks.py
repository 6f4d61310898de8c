"""Stacks of compiled programs, sampled by the kernel on the CPU's clock, from the opening of a window to its
close: a Go program's with files and lines, of others the function that runs, and the library that it is in.

Only Go keeps the chain of frames by which the kernel finds callers; what Debian builds has none. No program
is needed beside Prony.

*Source*: perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK, PERF_SAMPLE_CALLCHAIN; proc_pid_maps(5).

>>> NativeStacks(tuple).texts()
{}
"""

import os
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.core.trees import beginning
from prony.core.units import MIB
from prony.sandbox.watch.native import NativeStackWatch
from prony.sandbox.watch.stacks import MOST_PROCESSES
from prony.sandbox.watch.symbols import Symbols

ROOT = "(root) (:0)"
"""Below all frames of a runtime that has one of its own: what nobody else's frame is on is the server's."""
COLLECTOR = "garbage collection (runtime:0)"
"""The frame of what a runtime does for all of its code."""
_MOST_MAPPINGS_BYTES = 8 * MIB
# Where goroutines, and threads without one, begin: where no stack does, the table is read wrongly.
_GO_ROOTS = frozenset(f"runtime.{name}" for name in ("goexit", "mstart", "mstart1", "mcall", "systemstack"))


@dataclass(frozen=True, slots=True)
class _Mapping:
    """A part of a file in a process's memory."""

    begin: int
    end: int
    offset: int
    path: str


class NativeStacks:
    """Samples the processes that ``serving`` returns, at most four.

    ``reason``: why there are none; ``looked_s``: how long the processes were sampled, together.
    """

    def __init__(
        self,
        serving: Callable[[], Sequence[int]],
        open_watch: Callable[[Sequence[int]], NativeStackWatch] = NativeStackWatch,
    ) -> None:
        self._serving, self._open_watch = serving, open_watch
        self._watch: NativeStackWatch | None = None
        self._pids: tuple[int, ...] = ()
        self._texts: dict[int, str] = {}
        self._began_s = 0.0
        self.looked_s = 0.0
        self.reason = "no process of the server was sampled in the window"

    def open_window(self) -> None:
        """Begin to sample."""
        self._pids = tuple(self._serving()[:MOST_PROCESSES])
        try:
            cpus = {cpu for pid in self._pids for cpu in os.sched_getaffinity(pid)}
            watch = self._open_watch(sorted(cpus))
            for pid in self._pids:
                watch.add(pid)
        except (OSError, RuntimeError) as error:
            self.reason = str(error)
            return
        self._watch, self._began_s = watch, time.monotonic()

    def close_window(self) -> None:
        """Stop sampling, and name what was sampled; a second call does nothing."""
        watch, self._watch = self._watch, None
        if watch is None:
            return
        self.looked_s = len(self._pids) * (time.monotonic() - self._began_s)
        stacks, _ = watch.finish()
        for pid in self._pids:
            own = Counter(tuple(addresses) for owner, addresses in stacks if owner == pid)
            try:
                self._texts[pid] = _Named(pid).text(own)
            except (OSError, ValueError) as error:
                self.reason = f"its program's file cannot be read: {error}"

    def texts(self) -> dict[int, str]:
        """Return, of each process that could be sampled, a line for each stack, with how often it was."""
        return dict(self._texts)


class _Named:
    """What the addresses of one process are called."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._mappings = _mappings(pid)
        self._places: dict[int, str] = {}
        self._exe = Symbols(Path(f"/proc/{pid}/exe"))
        self._symbols: dict[str, Symbols | None] = {str(Path(f"/proc/{pid}/exe").readlink()): self._exe}
        self._is_rooted = False

    def text(self, stacks: Counter[tuple[int, ...]]) -> str:
        """Return a line for each stack.

        *Errors*: OSError; ValueError for files, or a chain of frames, that make no sense.
        """
        named = Counter[str]()
        for addresses, count in stacks.items():
            named[";".join((ROOT, *self._frames(addresses)))] += count
        if self._exe.is_go and stacks and not self._is_rooted:
            raise ValueError(
                "Go's table of functions does not fit what runs (a stripped program with C in it?)"
            )
        return "".join(f"{frames} {count}\n" for frames, count in named.items())

    def _frames(self, addresses: tuple[int, ...]) -> list[str]:
        """Return the frames that have a name, from the outermost on."""
        if not self._exe.is_go:
            return [one for one in map(self._frame, addresses[:1]) if one]
        # A caller goes on behind its call, which may be the next line, or another function.
        places = (at - (depth > 0) for depth, at in enumerate(addresses))
        found = [one for one in map(self._frame, places) if one]
        found.reverse()
        self._is_rooted |= any(one.partition(" ")[0] in _GO_ROOTS for one in found[:1])
        return found

    def _frame(self, address: int) -> str:
        if address not in self._places:
            self._places[address] = self._named(address)
        return self._places[address]

    def _named(self, address: int) -> str:
        number = bisect_right(self._mappings, address, key=lambda one: one.begin) - 1
        found = self._mappings[number] if number >= 0 else None
        if found is None or address >= found.end or not found.path.startswith("/"):
            return ""
        if found.path not in self._symbols:
            self._symbols[found.path] = self._opened(found.path)
        symbols = self._symbols[found.path]
        place = symbols.place(address - found.begin + found.offset) if symbols else None
        function, file, line = place or ("", "", 0)
        if not file:
            whose = "program" if symbols is self._exe else "library"
            file = f"{whose}:{found.path.rpartition('/')[2]}"
        return _frame(function, file, line)

    def _opened(self, path: str) -> Symbols | None:
        """Return the names of a library as its process sees it; None: it cannot be read."""
        try:
            return Symbols(Path(f"/proc/{self._pid}/root{path}"))
        except (OSError, ValueError):
            return None


def _frame(function: str, file: str, line: int) -> str:
    return f"{as_one_word(function)} ({as_one_word(file)}:{line})"


def as_one_word(text: str) -> str:
    r"""Return a name as it may stand in a line of stacks.

    >>> as_one_word("a;b\nc")
    'a,b c'
    """
    return " ".join(text.replace(";", ",").split())


def mappings_text(pid: int) -> str:
    """Return a process's list of mappings, whole lines of its beginning: it may have 65,530 of long names.

    *Errors*: OSError.
    """
    text = beginning(f"/proc/{pid}/maps", _MOST_MAPPINGS_BYTES).decode(errors="replace")
    return text[: text.rfind("\n") + 1]


def _mappings(pid: int) -> list[_Mapping]:
    found = []
    for line in mappings_text(pid).splitlines():
        span, rights, offset, _, _, *path = line.split(maxsplit=5)
        if "x" in rights:
            begin, _, end = span.partition("-")
            found.append(_Mapping(int(begin, 16), int(end, 16), int(offset, 16), "".join(path)))
    return found
