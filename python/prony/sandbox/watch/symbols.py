"""Which function an address of a compiled program is in: by Go's own table, else by the names in the file.

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
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from prony.core.units import MIB

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
