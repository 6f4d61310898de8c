"""Archives with one to three faults each, drawn by a seed: of JSON, of plain values, of blobs, of rows, of
the schema, of pages, of what lies beside the file.

>>> sorted(KINDS)
['beside', 'blob', 'json', 'pages', 'rows', 'schema', 'value']
"""

import json
import os
import random
import socket
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

PAGE_BYTES = 4096
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
HUGE = 2**63 - 1

Change = Callable[[random.Random, Path], str]


def mutate(seed: int, goldens: dict[str, Path], place: Path) -> tuple[str, str]:
    """Write the mutant of ``seed`` to ``place``; return what it was made of, and in words what is wrong."""
    draw = random.Random(seed)
    name = draw.choice(sorted(goldens))
    place.write_bytes(goldens[name].read_bytes())
    said = [name]
    weights = [weight for _, weight in KINDS.values()]
    drawn = draw.choices(list(KINDS), weights, k=draw.choice((1, 1, 1, 2, 3)))
    # What is expensive to read is expensive to write: the schema is changed late, and then the bytes.
    for kind in sorted(drawn, key=list(KINDS).index):
        # A fault may be impossible after another: of a table that is gone, of a value that is empty.
        with suppress(sqlite3.Error, zlib.error, struct.error, ValueError):
            said.append(f"{kind}: {KINDS[kind][0](draw, place)}")
    return name, ", ".join(said)


def changed(place: Path, *statements, pragmas=()) -> None:
    """Run statements on a file with all that protects it switched off."""
    with closing(sqlite3.connect(place, isolation_level=None)) as database:
        for pragma in ("journal_mode=MEMORY", "synchronous=OFF", "ignore_check_constraints=ON", *pragmas):
            database.execute(f"PRAGMA {pragma}")
        for statement, *values in statements:
            database.execute(statement, values)


def asked(place: Path, statement: str, *values) -> list[tuple]:
    with closing(sqlite3.connect(place)) as database:
        return database.execute(statement, values).fetchall()


def columns(place: Path, kind: str) -> list[tuple[str, str]]:
    """Return table and column of all values of a type; ``JSON`` is text."""
    tables = [name for (name,) in asked(place, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return [
        (table, column)
        for table in tables
        for column, type_ in asked(place, "SELECT name, type FROM pragma_table_info(?)", table)
        if ("JSON" if column.endswith("_json") else type_) == kind
    ]


def row_of(draw: random.Random, place: Path, table: str, column: str) -> tuple[int, object] | None:
    """Return a row's id and its value, some row's; null: the table is empty."""
    rows = asked(place, f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL LIMIT 500")
    return draw.choice(rows) if rows else None


# --- the schema -------------------------------------------------------------------------------------------

# Each is expensive, or would be: an honest reader evaluates none of them.
EXPRESSIONS = (
    "zeroblob(1000000000)",
    "randomblob(100000000)",
    "abs(-9223372036854775807 - 1)",
    "printf('%.*c', 100000000, 'x')",
    "replace(hex(zeroblob(10000000)), '0', 'abcdefgh')",
    "load_extension('/tmp/x')",
    "json(replace(hex(zeroblob(100000)), '00', '['))",
    "1",
)


def _schema(draw: random.Random, place: Path) -> str:
    tables = [name for (name,) in asked(place, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
    table = draw.choice(tables)
    statement = draw.choice(
        (
            f"CREATE VIEW v AS SELECT {draw.choice(EXPRESSIONS)} AS x",
            f"CREATE VIEW v AS SELECT * FROM {table} a, {table} b, {table} c, {table} d",
            f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END",
            "CREATE TABLE extra (x)",
            "CREATE TABLE sqlite_more (x)",
            "CREATE VIRTUAL TABLE v USING fts5(x)",
            "CREATE VIRTUAL TABLE v USING rtree(a, b, c)",
            f"CREATE INDEX i ON {table} (1)",
            f"CREATE INDEX i ON {table} (abs(1))",
            "ANALYZE",
            f"DROP TABLE {table}",
            f"ALTER TABLE {table} ADD COLUMN more TEXT",
            f"ALTER TABLE {table} ADD COLUMN more ANY GENERATED ALWAYS AS ({draw.choice(EXPRESSIONS)})",
            f"ALTER TABLE {table} RENAME TO {table}_",
            "",
        )
    )
    if statement:
        changed(place, (statement,))
        return statement
    return _edited(draw, place, table)


def _edited(draw: random.Random, place: Path, table: str) -> str:
    """Change what the schema says of a table, with the same columns."""
    (sql,) = asked(place, "SELECT sql FROM sqlite_schema WHERE name = ?", table)[0]
    column = draw.choice([name for (name,) in asked(place, "SELECT name FROM pragma_table_info(?)", table)])
    start = sql.index(f" {column} ") + len(column) + 2
    stop = min(place for place in (sql.find(",", start), sql.find("\n", start)) if place > 0)
    kind = sql[start:stop].split()[0]
    new = draw.choice(
        (
            f"{sql[:start]}{kind} GENERATED ALWAYS AS ({draw.choice(EXPRESSIONS)}) VIRTUAL{sql[stop:]}",
            f"{sql[:start]}{kind} GENERATED ALWAYS AS ({draw.choice(EXPRESSIONS)}) STORED{sql[stop:]}",
            f"{sql[:start]}{kind} CHECK ({draw.choice(EXPRESSIONS)}){sql[stop:]}",
            f"{sql[:start]}{kind} DEFAULT ({draw.choice(EXPRESSIONS)}){sql[stop:]}",
            sql.replace("STRICT", ""),
            sql.replace("STRICT", "STRICT, WITHOUT ROWID"),
            sql.replace("NOT NULL", "", 1),
            sql.replace("TEXT", "BLOB", 1),
            sql.replace("    ", "  \n "),
            sql[: draw.randrange(len(sql))],
            f"CREATE TABLE {table} ({'x INTEGER, ' * 3000} y)",
            "x" * 500_000,
        )
    )
    changed(
        place,
        ("UPDATE sqlite_schema SET sql = ? WHERE name = ?", new, table),
        pragmas=("writable_schema=ON",),
    )
    return f"{table}.{column} is declared as {new[max(0, start - 20) : stop + 60]!r}"


# --- beside the file --------------------------------------------------------------------------------------


def _beside(draw: random.Random, place: Path) -> str:
    what = draw.choice(("journal", "journal", "journal", "wal", "shm"))
    kind = draw.choice(sorted(BESIDE))
    neighbour = place.with_name(f"{place.name}-{what}")
    if os.path.lexists(neighbour):  # perhaps a link: what is written or made unreadable would be another file
        return f"-{what} is there"
    with suppress(OSError):
        BESIDE[kind](draw, place, neighbour)
    return f"-{what} {kind}"


def _head(pages: int, sector_bytes: int = 512, page_bytes: int = PAGE_BYTES, records: int = 0) -> bytes:
    return struct.pack(">8sIIIII", JOURNAL_MAGIC, records, 0, pages, sector_bytes, page_bytes).ljust(
        512, b"\0"
    )


def journal_naming(place: Path, victim: Path) -> bytes:
    name = os.fsencode(victim)
    lock_page = 0x40000000 // PAGE_BYTES + 1
    tail = struct.pack(
        f">I{len(name)}sII8s", lock_page, name, len(name), sum(name) & 0xFFFFFFFF, JOURNAL_MAGIC
    )
    return _head(place.stat().st_size // PAGE_BYTES) + tail


def _records(draw: random.Random, place: Path) -> bytes:
    """A journal with pages of any content, each with its right sum."""
    count, pages = draw.randrange(1, 5), place.stat().st_size // PAGE_BYTES
    found = _head(pages, records=draw.choice((count, 0xFFFFFFFF, 10**6)))
    for _ in range(count):
        page = draw.randbytes(PAGE_BYTES)
        total = sum(page[at] for at in range(PAGE_BYTES - 200, 0, -200))
        found += struct.pack(">I", draw.randrange(1, pages + 2)) + page + struct.pack(">I", total)
    return found


def _victim(place: Path) -> Path:
    victim = place.with_name("victim")
    victim.write_bytes(b"mine\0")
    return victim


def _a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


BESIDE = {
    "empty": lambda draw, place, one: one.write_bytes(b""),
    "noise": lambda draw, place, one: one.write_bytes(draw.randbytes(draw.choice((1, 12, 512, 9000)))),
    "zeros": lambda draw, place, one: one.write_bytes(bytes(4096)),
    "header": lambda draw, place, one: one.write_bytes(
        _head(
            draw.choice((0, 1, 2**31, 2**32 - 1)),
            draw.choice((0, 1, 512, 2**31)),
            draw.choice((0, 3, 4096, 65536)),
        )
    ),
    "records": lambda draw, place, one: one.write_bytes(_records(draw, place)),
    "names a victim": lambda draw, place, one: one.write_bytes(journal_naming(place, _victim(place))),
    "huge and sparse": lambda draw, place, one: (one.write_bytes(_head(1)), os.truncate(one, 2**40)),
    "a write-ahead log": lambda draw, place, one: one.write_bytes(
        struct.pack(">IIIIIIII", 0x377F0682, 3007000, PAGE_BYTES, 0, 1, 2, 3, 4) + draw.randbytes(4120)
    ),
    "a folder": lambda draw, place, one: one.mkdir(),
    "a fifo": lambda draw, place, one: os.mkfifo(one),
    "a socket": lambda draw, place, one: _a_socket(one),
    "a link": lambda draw, place, one: one.symlink_to(_victim(place)),
    "a link to nothing": lambda draw, place, one: one.symlink_to("nothing"),
    "a link to itself": lambda draw, place, one: one.symlink_to(one),
    "a link to a device": lambda draw, place, one: one.symlink_to("/dev/zero"),
    "a hard link": lambda draw, place, one: one.hardlink_to(_victim(place)),
    "unreadable": lambda draw, place, one: (one.write_bytes(_head(1)), one.chmod(0)),
}


# --- JSON -------------------------------------------------------------------------------------------------

# As text: what no encoder would write.
RAW = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e308", "5e-324", "-0.0", "0.1", "-1", "1.5", "0",
    "7", "1" * 5000, "-" + "9" * 400, "1" * 100_000, str(HUGE), str(2**64), str(2**127),
    "[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000, "[" * 500 + "]" * 500,
    '"\\ud800"', '"\\u0000"', '"a\\u001b[2K\\r\\u202eb"', '"' + "x" * 200_000 + '"', '"' + "é" * 999 + '"',
    '""', '"7"', '"*"', '"["', '"=1+1"', '"../../../../etc/passwd"', '"%s%n{0}"',
    "[]", "{}", "null", "true", "false", "[null]", "[[]]", "[1, 2, 3]",
    '{"a": 1, "a": 2}', '{"kind": "open"}', '{"missing": 5}', '{"missing": "x"}',
    "[" + "0," * 200_000 + "0]", "[" + "{}," * 50_000 + "{}]",
    '"\\', "tru", "", "\0",
)  # fmt: skip

MARK = "\ue000"


def _json(draw: random.Random, place: Path) -> str:
    table, column = draw.choice(columns(place, "JSON"))
    found = row_of(draw, place, table, column)
    if found is None:
        return f"{table}.{column} is empty"
    row, text = found
    try:
        value = json.loads(str(text))
        paths = list(_paths(value))
    except (ValueError, RecursionError):
        return f"{table}.{column} is no JSON, or too deep"
    path = draw.choice(paths)
    how = draw.choice(("raw", "raw", "raw", "missing", "extra", "swapped", "renamed", "repeated", "cut"))
    new, said = _changed_json(draw, value, path, paths, how)
    every = draw.random() < 0.3
    where = "" if every else " WHERE rowid = ?"
    changed(place, (f"UPDATE {table} SET {column} = ?{where}", new, *(() if every else (row,))))
    return f"{table}.{column} row {'*' if every else row} at {'/'.join(map(str, path))}: {said}"


def _paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield from _paths(one, (*path, key))


def _at(value, path):
    for key in path:
        value = value[key]
    return value


def _with(value, path, new):
    if not path:
        return new
    _at(value, path[:-1])[path[-1]] = new
    return value


def _changed_json(draw, value, path, paths, how):
    before = _at(value, path)
    if how == "raw" or not path:
        raw = draw.choice(RAW)
        return json.dumps(_with(value, path, MARK)).replace(json.dumps(MARK), raw), f"{raw[:40]!r}"
    holder, key = _at(value, path[:-1]), path[-1]
    match how:
        case "missing":
            del holder[key]
        case "extra" if isinstance(holder, dict):
            holder["more"] = before
        case "renamed" if isinstance(holder, dict):
            holder[f"{key}_"] = holder.pop(key)
        case "repeated" if isinstance(holder, list):
            holder *= 50_000 // len(holder)
        case "swapped":
            holder[key] = _at(value, draw.choice(paths))
            if _has_itself(holder[key], holder):
                holder[key] = None
        case _:
            text = json.dumps(value)
            return text[: draw.randrange(len(text))], "cut off"
    return json.dumps(value), how


def _has_itself(value, other):
    if value is other:
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_has_itself(one, other) for one in inner)


# --- plain values -----------------------------------------------------------------------------------------

NUMBERS = (0, 1, -1, 2, 7, 1000, 10**6, 2**31, 2**53, 10**18, HUGE, -HUGE - 1)
SHARES = (0.0, -1.0, 1.0, 1e308, 9e999, -9e999, 5e-324)
TEXTS = (
    "", "x", "ok", "failed", "finished", "subject", "window", "gunicorn+hello", "hello", "ok_response",
    "null", "*", "[", "-", "\0", "=1+1", "\ufffe", "../../etc/passwd", "a\x1b[2K\r\x9b31m\u202eb",
    "9" * 5000, "x" * 100_000, "x" * 20_000_000, "\n" * 1000, "é" * 50,
    "prony run --command 'rm x' --app '", "prony run --command=touch",
)  # fmt: skip


def _value(draw: random.Random, place: Path) -> str:
    kind = draw.choice(("INTEGER", "INTEGER", "TEXT", "TEXT", "REAL"))
    found = columns(place, kind)
    if not found:
        return f"no {kind}"
    table, column = draw.choice(found)
    row = row_of(draw, place, table, column)
    new = draw.choice({"INTEGER": NUMBERS, "REAL": SHARES, "TEXT": TEXTS}[kind])
    if kind == "TEXT" and draw.random() < 0.1:
        new = draw.randbytes(20)
        statement = f"UPDATE {table} SET {column} = CAST(? AS TEXT)"
    else:
        statement = f"UPDATE {table} SET {column} = ?"
    one = row is not None and draw.random() < 0.7
    changed(place, (f"{statement}{' WHERE rowid = ?' if one else ''}", new, *((row[0],) if one else ())))
    return f"{table}.{column} row {row[0] if one else '*'}: {str(new)[:40]!r}"


# --- blobs ------------------------------------------------------------------------------------------------


def _blob(draw: random.Random, place: Path) -> str:
    table, column = draw.choice(columns(place, "BLOB"))
    row = row_of(draw, place, table, column)
    if row is None:
        return f"{table}.{column} is empty"
    how = draw.choice(("cut", "flipped", "noise", "empty", "bomb", "inner", "counts", "header"))
    new = _changed_blob(draw, row[1], how, 0 if column == "text_deflate" else 8)
    every = draw.random() < 0.3
    where = "" if every else " WHERE rowid = ?"
    changed(place, (f"UPDATE {table} SET {column} = ?{where}", new, *(() if every else (row[0],))))
    return f"{table}.{column} row {'*' if every else row[0]}: {how}"


def _changed_blob(draw, data, how, head_bytes):
    head, packed = data[:head_bytes], data[head_bytes:]
    match how:
        case "cut":
            return data[: draw.randrange(len(data))]
        case "flipped":
            return _flipped(draw, data)
        case "noise":
            return draw.randbytes(draw.choice((1, 8, 100, 5000)))
        case "empty":
            return b""
        case "bomb":
            bomb = zlib.compress(
                draw.choice((b"\0", b"x\n", b"\xff")) * draw.choice((10**5, 10**6, 4 * 10**7))
            )
            return head + bomb
    inner = bytearray(zlib.decompress(packed))
    match how:
        case "inner":
            inner = bytearray(_flipped(draw, bytes(inner) or b"x"))
        case "counts":
            few = (
                b"\xfe" + b"\xff" * 8,
                b"\xff" * 9,
                b"\x01" * 9,
                b"\x02",
                b"\x80" * 50,
                b"\xfe" * 7 + b"\x01",
            )
            inner[40:] = draw.choice(few) * draw.choice((1, 3, 40_000))
            inner[4:8] = struct.pack(">I", len(inner) - 40)
        case "header" if head_bytes:
            at = draw.choice((0, 4, 8, 12, 16, 24, 32))
            inner[at : at + 8] = struct.pack(">Q", draw.choice((0, 1, 3, 2**31, 2**62, 2**64 - 1)))
    deflated = zlib.compress(bytes(inner))
    return head[:4] + struct.pack(">I", len(deflated)) + deflated if head_bytes else deflated


def _flipped(draw, data):
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
    return bytes(found)


# --- rows -------------------------------------------------------------------------------------------------


def _rows(draw: random.Random, place: Path) -> str:
    tables = [name for (name,) in asked(place, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
    table = draw.choice(tables)
    how = draw.choice(("none", "one less", "many", "many", "moved", "twice"))
    if how == "none":
        changed(place, (f"DELETE FROM {table}",))
    elif how == "one less":
        changed(place, (f"DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})",))
    elif how == "twice":
        changed(place, (f"INSERT OR IGNORE INTO {table} SELECT * FROM {table}",))
    elif how == "moved":
        references = [
            name
            for (name,) in asked(place, "SELECT name FROM pragma_table_info(?)", table)
            if name.endswith("_id") or name in ("block", "position", "attempt", "second", "number")
        ]
        if references:
            column, new = draw.choice(references), draw.choice((0, 1, 77, -5, HUGE))
            changed(place, (f"UPDATE OR IGNORE {table} SET {column} = ?", new))
            how = f"{column} is {new}"
    else:
        return _multiplied(draw, place, table)
    return f"{table}: {how}"


def _multiplied(draw: random.Random, place: Path, table: str) -> str:
    """Give a table many rows, each with what is its own: an id, or one more of a number or a name."""
    names = [name for (name,) in asked(place, "SELECT name FROM pragma_table_info(?)", table)]
    own = {
        "trial": "trial_id",
        "cell": "cell_id",
        "run": "run_id",
        "process": "process_id",
        "sample": "sample_id",
    }
    count = draw.choice((50, 2000, 30_000))
    new = {
        own.get(table, ""): "(SELECT max(rowid) FROM t) + n.i",
        "name": "t.name || n.i",
        "subject_name": "t.subject_name || n.i",
        "second": "t.second + n.i",
        "number": "t.number + n.i",
        "tid": "t.tid + n.i",
    }
    if table in ("recording", "log", "process_sample"):
        new["trial_id"] = new["sample_id"] = "n.i + 5"
    values = ", ".join(new.get(name, f"t.{name}").replace("FROM t)", f"FROM {table})") for name in names)
    changed(
        place,
        (
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
            f" INSERT OR IGNORE INTO {table} SELECT {values} FROM n, (SELECT * FROM {table} LIMIT 1) t",
        ),
    )
    return f"{table} has {count} more"


# --- pages ------------------------------------------------------------------------------------------------


def _pages(draw: random.Random, place: Path) -> str:
    data = bytearray(place.read_bytes())
    how = draw.choice(("flipped", "header", "page header", "cut", "longer", "swapped", "zeroed", "root"))
    if how == "root":
        roots = asked(place, "SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")
        name = draw.choice(asked(place, "SELECT name FROM sqlite_schema"))[0]
        new = draw.choice([*(root for (root,) in roots), 0, 1, 2**31 - 1])
        changed(
            place,
            ("UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", new, name),
            pragmas=("writable_schema=ON",),
        )
        return f"the root of {name} is {new}"
    pages = max(1, len(data) // PAGE_BYTES)
    one, two = draw.randrange(pages) * PAGE_BYTES, draw.randrange(pages) * PAGE_BYTES
    match how:
        case "flipped":
            data = bytearray(_flipped(draw, bytes(data)))
        case "header":
            at = draw.choice((*range(16, 24), 28, 32, 36, 40, 44, 47, 52, 56, 59, 60, 63, 64, 68, 92, 96))
            data[at] = draw.choice((0, 1, 2, 3, 64, 255))
            how = f"byte {at} of the header is {data[at]}"
        case "page header":
            data[one + draw.randrange(100 if one == 0 else 0, 112)] = draw.randrange(256)
        case "cut":
            data = data[: draw.randrange(len(data))]
        case "longer":
            data += draw.randbytes(draw.choice((1, 4096, 100_000)))
        case "swapped":
            data[one : one + PAGE_BYTES], data[two : two + PAGE_BYTES] = (
                data[two : two + PAGE_BYTES],
                data[one : one + PAGE_BYTES],
            )
        case "zeroed":
            data[one : one + PAGE_BYTES] = bytes(PAGE_BYTES)
    place.write_bytes(data)
    return how


KINDS: dict[str, tuple[Change, int]] = {
    "json": (_json, 32),
    "value": (_value, 14),
    "blob": (_blob, 12),
    "rows": (_rows, 8),
    "schema": (_schema, 14),
    "pages": (_pages, 10),
    "beside": (_beside, 10),
}
