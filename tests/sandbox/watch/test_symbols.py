"""Functions by their addresses in files of strangers: Go's table, names of symbols, and what is broken."""

import contextlib
import ctypes
import os
import random
import struct
import time
from pathlib import Path

import pytest

from prony.sandbox.watch.native_stacks import GoTable, Symbols

TEXT = 0x401000
# Two functions: page (12 bytes of line 7, then 4 of another file put into it), and its end; helper.
FILES = b"/srv/shop/app.go\0/usr/lib/go/src/strings/builder.go\0"
NAMES = b"main.page\0main.helper\0"


def varint(number):
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def values(*pairs):
    """Return a table of (value, bytes for which it holds)."""
    found, before = b"", -1
    for value, length in pairs:
        change = value - before
        found += varint(change << 1 if change >= 0 else ~(change << 1)) + varint(length)
        before = value
    return found + b"\0"


def table(magic=0xFFFFFFF1, text=TEXT):
    tables = [values((0, 12), (1, 4)), values((7, 12), (112, 4)), values((0, 16)), values((30, 16))]
    starts = [1 + sum(map(len, tables[:place])) for place in range(4)]
    units = struct.pack("<2I", 0, FILES.index(b"/usr"))
    entries = struct.pack("<5I", 0, 20, 16, 20 + 40, 32)
    functions = entries
    for begin, name, place in ((0, 0, 0), (16, NAMES.index(b"main.helper"), 2)):
        functions += struct.pack(
            "<Ii7I", begin, name, 0, 0, 0, starts[place], starts[place + 1], 0, 0
        ) + bytes(4)
    parts = [NAMES, units, FILES, b"\0" + b"".join(tables), functions]
    offsets = [72 + sum(map(len, parts[:place])) for place in range(5)]
    head = struct.pack("<IHBB8Q", magic, 0, 1, 8, 2, 2, text, *offsets)
    return head + b"".join(parts)


def test_an_address_has_its_function_file_and_line():
    found = GoTable(table(), 0)
    assert found.place(TEXT + 3) == ("main.page", "/srv/shop/app.go", 7)
    assert found.place(TEXT + 16) == ("main.helper", "/srv/shop/app.go", 30)
    assert found.place(TEXT + 31) == ("main.helper", "/srv/shop/app.go", 30)


def test_what_was_put_in_from_another_file_is_where_the_function_begins():
    assert GoTable(table(), 0).place(TEXT + 13) == ("main.page", "/srv/shop/app.go", 7)


def test_before_and_behind_all_code_is_nothing():
    found = GoTable(table(), 0)
    assert (found.place(TEXT - 1), found.place(TEXT + 32)) == (None, None)


def test_a_table_that_does_not_say_where_code_begins_has_the_files():
    assert GoTable(table(text=0), TEXT).place(TEXT) == ("main.page", "/srv/shop/app.go", 7)


def test_an_older_table_is_named():
    assert GoTable(table(0xFFFFFFF0), 0).place(TEXT) is not None
    with pytest.raises(ValueError, match=r"Go 1\.17 or earlier"):
        GoTable(table(0xFFFFFFFA), 0)


def test_a_broken_table_is_an_error_soon():
    begun_s, whole, choose = time.process_time(), table(), random.Random(7)
    for _ in range(3000):
        broken = bytearray(whole[: choose.choice((len(whole), choose.randrange(len(whole))))])
        for _ in range(choose.randrange(6) if broken else 0):
            broken[choose.randrange(len(broken))] = choose.choice((0, 255, choose.randrange(256)))
        with contextlib.suppress(ValueError, struct.error, IndexError):
            GoTable(bytes(broken), TEXT).place(TEXT + 3)
    assert time.process_time() - begun_s < 60


def test_lines_without_an_end_are_an_error(monkeypatch):
    monkeypatch.setattr("prony.sandbox.watch.native_stacks._MOST_STEPS", 1000)
    endless = GoTable(table()[:72] + b"\x02\x00" * 3000, 0)
    with pytest.raises(ValueError, match="takes too long"):
        endless._value(0, 0, 1 << 40)


# --- files of other languages -----------------------------------------------------------------------------


def mapped(address):
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, _, offset, _, _, *path = line.split(maxsplit=5)
        begin, end = (int(one, 16) for one in span.split("-"))
        if begin <= address < end:
            return Path(path[0]), address - begin + int(offset, 16)
    raise AssertionError(address)


def test_a_function_of_the_c_library_has_its_name():
    address = ctypes.cast(ctypes.CDLL(None).qsort, ctypes.c_void_p).value
    file, offset = mapped(address)
    found = Symbols(file)
    assert not found.is_go
    assert found.place(offset + 1) == ("qsort", "", 0)
    assert found.place(1 << 40) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x01\x01" + bytes(100), b"\x7fELF\x02\x01" + b"\xff" * 58],
)
def test_another_file_is_named(tmp_path, content):
    file = tmp_path / "server"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"ELF|table of it"):
        Symbols(file)


def test_a_pipe_makes_nobody_wait(tmp_path):
    os.mkfifo(tmp_path / "server")
    with pytest.raises(ValueError, match="no file"):
        Symbols(tmp_path / "server")


def test_a_program_whose_numbers_are_wrong_is_read_or_refused(tmp_path):
    whole, choose = Path("/proc/self/exe").read_bytes(), random.Random(7)
    begun_s, file = time.process_time(), tmp_path / "server"
    head = len(whole) - struct.unpack_from("<H", whole, 60)[0] * 64
    for _ in range(30):
        broken = bytearray(whole)
        for _ in range(8):
            broken[choose.choice((choose.randrange(64), choose.randrange(head, len(whole))))] = (
                choose.randrange(256)
            )
        file.write_bytes(broken)
        with contextlib.suppress(ValueError):
            Symbols(file).place(choose.randrange(1 << 24))
    assert time.process_time() - begun_s < 60
