"""Foreign, damaged and hostile files are refused, with a message that says why."""

import json
import sqlite3
import struct
import zlib
from contextlib import closing

import pytest
from test_archive import WORKLOAD, closed_trial, plan_of

from histograms import Histogram
from prony.archive import create, leftovers, open_archive, resume
from prony.archive.guard import check_histogram
from prony.core.errors import ArchiveError, UsageError
from prony.model.facts import Fingerprint
from prony.model.json_codec import encode
from prony.model.recording import Distribution, Handshakes, StageFigures, Streams
from prony.sandbox.supervisor import Ring


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.prony"
    with create(path, plan_of(WORKLOAD), Fingerprint()) as writer:
        writer.append(closed_trial())
    return path


def tamper(path, *statements):
    with closing(sqlite3.connect(path)) as database, database:
        for statement, *values in statements:
            database.execute(statement, values)


def read_all(path):
    with open_archive(path) as archive:
        archive.plan()
        archive.subjects()
        archive.runs()
        return list(archive.trials())


def test_a_missing_file(tmp_path):
    with pytest.raises(UsageError, match="there is no such file"):
        open_archive(tmp_path / "none.prony")


def test_a_text_file(tmp_path):
    (tmp_path / "a.prony").write_text("hello")
    with pytest.raises(ArchiveError, match="is not a Prony archive"):
        open_archive(tmp_path / "a.prony")


def test_a_foreign_database_is_refused_and_its_journal_is_left_alone(tmp_path):
    tamper(tmp_path / "a.prony", ("CREATE TABLE t (x)",))
    journal = tmp_path / "a.prony-journal"
    journal.write_bytes(b"x")
    with pytest.raises(ArchiveError, match="a SQLite file, but not a Prony archive"):
        open_archive(tmp_path / "a.prony")
    assert journal.read_bytes() == b"x"


@pytest.mark.parametrize("format", [0, 2, 9])
@pytest.mark.parametrize("opened", [open_archive, lambda path: resume(path, Fingerprint())])
def test_another_format_is_refused_in_one_line_and_the_file_stays_as_it_is(path, format, opened):
    tamper(path, (f"PRAGMA user_version = {format}",))
    before = path.read_bytes()
    with pytest.raises(UsageError) as refused:
        opened(path)
    assert str(refused.value) == f"`{path}` has archive format {format}; this Prony reads format 1"
    assert refused.value.hint == "run it again with this Prony"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW v AS SELECT 1",
        "CREATE TRIGGER t AFTER INSERT ON trial BEGIN DELETE FROM trial; END",
        "CREATE TABLE extra (x)",
        "ALTER TABLE trial ADD COLUMN x TEXT",
        "ALTER TABLE trial ADD COLUMN x INTEGER GENERATED ALWAYS AS (abs(-9223372036854775807 - 1)) VIRTUAL",
        "DROP TABLE event",
    ],
)
def test_any_other_schema(path, statement):
    # A newer SQLite computes an added column for all rows at once, and would refuse.
    tamper(path, ("DELETE FROM trial",), (statement,))
    with pytest.raises(ArchiveError, match=r"tables"):
        open_archive(path)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_truncated_file(path, share):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ArchiveError):
        read_all(path)


def test_a_damaged_file_is_closed_again(path, monkeypatch):
    opened = []
    real = leftovers.open_database
    monkeypatch.setattr(leftovers, "open_database", lambda *given: opened.append(real(*given)) or opened[-1])
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ArchiveError):
        open_archive(path)
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        opened[0].execute("SELECT 1")


def test_a_file_with_a_damaged_page(path):
    data = bytearray(path.read_bytes())
    for page in range(2, len(data) // 4096):
        data[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
    path.write_bytes(data)
    with pytest.raises(ArchiveError):
        read_all(path)


def bomb(inner):
    return struct.pack(">II", 0x1C849314, 0) + zlib.compress(inner)


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE distribution SET histogram = ?", b"not a histogram"),
        ("UPDATE distribution SET histogram = ?", bomb(b"\0" * 10_000_000)),
        (
            "UPDATE distribution SET histogram = ?",
            bomb(struct.pack(">IIIIQQd", 0x1C849313, 0, 0, 5, 1, 2**62, 1.0)),
        ),
        ("UPDATE log SET text_deflate = ?", zlib.compress(b"\0" * 50_000_000)),
        ("UPDATE log SET text_deflate = ?", zlib.compress(b"x\n" * 300_000)),
        ("UPDATE log SET text_deflate = ?", b"x"),
        ("UPDATE recording SET recording_json = ?", "[1]"),
        ("UPDATE recording SET recording_json = ?", "[" * 100_000),
        ("UPDATE recording SET recording_json = ?", "{}"),
        ("UPDATE recording SET recording_json = ?", '{"distributions": {}, "account": NaN}'),
        ("UPDATE trial SET command_json = ?", "{"),
        ("UPDATE trial SET role = ?", "other"),
        ("UPDATE sample SET phase = ?", "other"),
        ("UPDATE cell SET workload_json = ?", '{"loop": 3}'),
    ],
)
def test_a_damaged_value(path, statement, value):
    tamper(path, (statement, value))
    with pytest.raises(ArchiveError, match="damaged"):
        read_all(path)


NO_TIMES = Distribution(0, None, None, None, None)
BOMB = Distribution(1, 1, 1, 1, bomb(b"\0" * 10_000_000))


@pytest.mark.parametrize(
    ("place", "forged"),
    [
        ("$.tls", Handshakes(NO_TIMES, BOMB, 0, {}, {}, {}, {}, {})),
        ("$.streams", Streams(None, NO_TIMES, BOMB, 0, 0, 0, None)),
        ("$.stages", [StageFigures(0, 1, 0, 0, 0, 0, ok_service=BOMB)]),
    ],
)
def test_a_histogram_within_the_rest_of_a_recording_is_checked_as_well(path, place, forged):
    value = json.dumps([encode(one) for one in forged] if isinstance(forged, list) else encode(forged))
    tamper(path, ("UPDATE recording SET recording_json = json_set(recording_json, ?, json(?))", place, value))
    with pytest.raises(ArchiveError, match="histogram"):
        read_all(path)


@pytest.mark.parametrize("value", ["[1]", "3", '{"0": "many"}', '{"0": 1.5}'])
def test_replies_by_when_they_were_due_are_numbers_by_second(path, value):
    place = "$.series_due_ok"
    tamper(path, ("UPDATE recording SET recording_json = json_set(recording_json, ?, json(?))", place, value))
    with pytest.raises(ArchiveError, match="Recording that cannot be read"):
        read_all(path)


def test_the_longest_log_that_is_written_can_be_read(path):
    ring = Ring()
    ring.add(b"\xff" * 10**6)
    text, _ = ring.text()
    tamper(path, ("UPDATE log SET text_deflate = ?", zlib.compress(text.encode())))
    read_all(path)


def test_a_value_above_the_cap(path):
    tamper(path, ("UPDATE log SET text_deflate = zeroblob(100000000)",))
    with pytest.raises(ArchiveError):
        read_all(path)


def test_a_histogram_of_this_format_is_let_through():
    histogram = Histogram()
    histogram.record(3_600_000_000_000)
    assert check_histogram(histogram.encode()) == histogram.encode()


def test_reading_changes_nothing(path):
    before = path.read_bytes()
    read_all(path)
    assert path.read_bytes() == before
    assert not path.with_name("a.prony-journal").exists()
