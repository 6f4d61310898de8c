"""Stacks of compiled programs, sampled by the kernel on the CPU's clock, from the opening of a window to its
close: a Go program's with files and lines, of others the function that runs, and the library that it is in.

Only Go keeps the chain of frames by which the kernel finds callers; what Debian builds has none. No program
is needed beside Prony.

*Source*: perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK, PERF_SAMPLE_CALLCHAIN; proc_pid_maps(5).

>>> NativeStacks(tuple).texts()
{}

Which function an address of a compiled program is in: by Go's own table, else by the names in the file.

The program's file is a stranger's: each number in it may be wrong, and it may be as large as it likes. Names
are its own choice. A stripped Go program has its table all the same.

*Source*: elf(5); Go, src/debug/gosym/pclntab.go, and golang.org/s/go12symtab: tables of Go 1.18 and later.

>>> Symbols(Path("/proc/self/no such file")).place(0)
Traceback (most recent call last):
...
FileNotFoundError: [Errno 2] No such file or directory: '/proc/self/no such file'
"""

import os
import stat
import struct
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from prony.core.trees import beginning
from prony.core.units import MIB
from prony.sandbox.watch.native import NativeStackWatch
from prony.sandbox.watch.stacks import MOST_PROCESSES

Place = tuple[str, str, int]
"""A function, its source's file and line; empty and 0: not known."""

_MOST_BYTES = 64 * MIB
_MOST_PARTS = 4096
_HEADER, _SYMBOL = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IBBHQQ")
_SEGMENT, _SECTION = struct.Struct("<IIQQQQQQ"), struct.Struct("<IIQQQQIIQQ")
_LOADED, _FUNCTIONS = 1, (2, 10)
_BROKEN = (struct.error, IndexError, OverflowError)
# Go 1.20 and later, 1.18 and 1.19.
_GO_TABLES = (0xFFFFFFF1, 0xFFFFFFF0)
# Of all that is asked of one table: ten times what three seconds of a large program need.
_MOST_STEPS, _MOST_NAME = 2_000_000, 400


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    address: int
    offset: int
    size: int
    link: int


class Symbols:
    """The functions of one ELF file of 64 bits.

    *Errors*: OSError, ValueError for another file, or one that breaks its own rules.
    """

    def __init__(self, file: Path) -> None:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise ValueError("it is no file")
            try:
                self._read(opened.fileno())
            except _BROKEN as error:
                raise ValueError(f"it is no ELF file of 64 bits: {error}") from error

    @property
    def is_go(self) -> bool:
        """Whether it has Go's table."""
        return self._go is not None

    def place(self, offset: int) -> Place | None:
        """Return what is at this place of the file; None: nobody says.

        *Errors*: ValueError for a table that breaks its own rules.
        """
        parts = (at + offset - begin for begin, at, size in self._loaded if 0 <= offset - begin < size)
        address = next(parts, None)
        if address is None:
            return None
        return self._named(address) if self._go is None else self._go.place(address)

    def _read(self, file: int) -> None:
        head = _HEADER.unpack(os.pread(file, _HEADER.size, 0))
        if head[0][:6] != b"\x7fELF\x02\x01":
            raise ValueError("it is no ELF file of 64 bits")
        segments = _SEGMENT.iter_unpack(_part(file, head[5], head[10] * _SEGMENT.size))
        self._loaded = tuple((one[2], one[3], one[5]) for one in segments if one[0] == _LOADED)
        sections = _sections(file, head[6], head[12], head[13])
        self._symbols, self._names = b"", b""
        for wanted in (".symtab", ".dynsym"):
            found = next((one for one in sections if one.name == wanted and one.size), None)
            if found is not None:
                names = sections[found.link]
                self._symbols = _part(file, found.offset, found.size - found.size % _SYMBOL.size, 16 * MIB)
                self._names = _part(file, names.offset, names.size)
                break
        tables = [one for one in sections if one.name.endswith(".gopclntab")]
        text = next((one.address for one in sections if one.name == ".text"), 0)
        self._go = (
            GoTable(_part(file, tables[0].offset, tables[0].size), self._text(text)) if tables else None
        )

    def _text(self, section: int) -> int:
        """Return where Go's code begins, behind what a C compiler put before it."""
        return next((address for address, _, name in self._functions if name == "runtime.text"), section)

    @cached_property
    def _functions(self) -> list[tuple[int, int, str]]:
        found = (
            (address, size, _text_at(self._names, name))
            for name, kind, _, section, address, size in _SYMBOL.iter_unpack(self._symbols)
            if kind & 15 in _FUNCTIONS and section
        )
        return sorted(found)

    def _named(self, address: int) -> Place | None:
        place = bisect_right(self._functions, address, key=lambda one: one[0]) - 1
        if place < 0:
            return None
        begin, size, name = self._functions[place]
        return (name, "", 0) if address < begin + size else None


def _sections(file: int, offset: int, count: int, names: int) -> list[_Section]:
    if count > _MOST_PARTS:
        raise ValueError(f"it has more than {_MOST_PARTS} sections")
    rows = list(_SECTION.iter_unpack(_part(file, offset, count * _SECTION.size)))
    texts = _part(file, rows[names][4], rows[names][5]) if rows else b""
    return [_Section(_text_at(texts, one[0]), one[3], one[4], one[5], one[6]) for one in rows]


def _part(file: int, offset: int, size: int, most_bytes: int = _MOST_BYTES) -> bytes:
    if size > most_bytes or offset >= 1 << 62:
        raise ValueError(f"a table of it has {size} bytes")
    return os.pread(file, size, offset)


def _text_at(names: bytes, offset: int) -> str:
    end = names.find(b"\0", offset, offset + _MOST_NAME)
    return names[offset : end if end >= 0 else offset + _MOST_NAME].decode(errors="replace")


class GoTable:
    """Go's table of functions, files and lines (``.gopclntab``). ``text``: where the code begins.

    *Errors*: ValueError for one that breaks its own rules; of the constructor, also for one of Go 1.17 or
    earlier, and struct.error and IndexError for a short one.
    """

    def __init__(self, data: bytes, text: int) -> None:
        if int.from_bytes(data[:4], "little") not in _GO_TABLES:
            raise ValueError("it was built by Go 1.17 or earlier, whose tables are not read")
        self._data, self._step, self._steps = data, data[6], 0
        words = struct.unpack_from("<8Q", data, 8)
        self._count, (self._names, self._units, self._files, self._values, self._functions) = (
            words[0],
            words[3:8],
        )
        # Go 1.26 writes none, and a program that may lie anywhere is written as if it lay at 0.
        self._text = words[2] or text

    def place(self, address: int) -> Place | None:
        """Return the function, with file and line. Of what the compiler put into it from another file: the
        line where the function begins.
        """
        try:
            found = self._function(address - self._text)
            return None if found is None else self._place(address, *found)
        except _BROKEN as error:
            raise ValueError(f"Go's table of functions is broken: {error}") from error

    def _place(self, address: int, entry: int, at: int) -> Place:
        name, _, _, _, files, lines, _, unit = struct.unpack_from(
            "<i7I", self._data, self._functions + at + 4
        )
        own = self._value(files, entry, entry)
        here = entry if self._value(files, entry, address - self._text) != own else address - self._text
        (file,) = struct.unpack_from("<I", self._data, self._units + 4 * (unit + own))
        return (
            self._string(self._names + name),
            self._string(self._files + file),
            self._value(lines, entry, here),
        )

    def _function(self, address: int) -> tuple[int, int] | None:
        """Return where it begins, and where what is known of it lies; by halves."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._entry(middle)[0] <= address else (low, middle)
        # The last entry is the end of the code.
        return self._entry(low - 1) if low > 0 and address < self._entry(self._count)[0] else None

    def _entry(self, place: int) -> tuple[int, int]:
        entry, at = struct.unpack_from("<2I", self._data, self._functions + 8 * place)
        return entry, at

    def _value(self, table: int, entry: int, address: int) -> int:
        """Return what a table says at an address: pairs of how the value changes, and how far on."""
        numbers = self._numbers(self._values + table)
        value, end = -1, entry
        while self._steps < _MOST_STEPS:
            self._steps += 1
            change, length = next(numbers), next(numbers)
            value += ~(change >> 1) if change & 1 else change >> 1
            end += length * self._step
            if address < end:
                return value
        raise ValueError("Go's table of lines takes too long to read")

    def _numbers(self, at: int) -> Iterator[int]:
        while True:
            number = shift = 0
            while True:
                byte = self._data[at]
                at += 1
                number |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80 or shift > 63:
                    break
            yield number

    def _string(self, at: int) -> str:
        return _text_at(self._data, at)


# --- stacks of compiled programs --------------------------------------------------------------------------


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
