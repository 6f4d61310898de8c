"""What somebody wrote into an archive by hand is refused in one line, and never called a fault in Prony."""

import sqlite3
import struct
import zlib
from contextlib import closing

import pytest

from golden.build import study_two


def histogram(counts, digits=3, highest=3_600_000_000_000, length=None):
    """Return an HdrHistogram V2 with such a header and these bytes of counts."""
    inner = struct.pack(">IIIIQQd", 0x1C849313, length or len(counts), 0, digits, 1, highest, 1.0) + counts
    packed = zlib.compress(inner)
    return struct.pack(">II", 0x1C849314, len(packed)) + packed


CRAFTED = {
    "a histogram of huge counts": ("distribution", "histogram", histogram(b"\xfe" + b"\xff" * 8)),
    "a histogram that skips beyond its end": ("distribution", "histogram", histogram(b"\xff" * 9)),
    "a histogram of too many counts": ("distribution", "histogram", histogram(b"\x02" * 100_000)),
    "a histogram that promises gigabytes": ("distribution", "histogram", histogram(b"\x02", length=2**31)),
    "a histogram of another range": ("distribution", "histogram", histogram(b"\x02", highest=2**63)),
    "a claim with a text as its bound": (
        "plan", "claims_json", '[{"name":"a","text":"b","kind":"value","metric":"ok_per_s","low":"x"}]'
    ),
    "a claim of no kind": ("plan", "claims_json", '[{"name":"a","text":"b","kind":"x","metric":"ok_per_s"}]'),
    "a claim on no metric": (
        "plan", "claims_json", '[{"name":"a","text":"b","kind":"grows","metric":"["}]'
    ),
    "a published figure of no metric": (
        "plan", "originals_json", '[{"subject":"*","metric":"[","value":1}]'
    ),
    "a step of a search that met no metric": (
        "run", "facts_json", '{"found_rates":[{"subject":"a","rate_per_s":1,"met":0,"of":0,"steps":'
        '[{"rate_per_s":1,"met":false,"unmet":{"condition":"a","metric":"[","value":1}}]}]}'
    ),
    "a design with a text as its margin": ("plan", "design_json", '{"margin":"x"}'),
    "a design of other looks": ("plan", "design_json", '{"precision":{"target":0.1,"looks":5}}'),
    "a sandbox of no network": ("subject", "sandbox_json", '{"network":[]}'),
    "facts of a subject as a list": ("subject", "facts_json", "[1,2]"),
    "facts of a trial that are texts": ("trial", "facts_json", '{"listeners":"x"}'),
    "facts of a run that are numbers": ("run", "facts_json", '{"stopped":5}'),
    "a setting of 5,000 digits": ("subject", "settings_json", f'{{"workers":{"9" * 5000}}}'),
    "a setting that is a list": ("subject", "settings_json", '{"workers":[1]}'),
    "a share that is infinite": ("trial", "fault_share", 9e999),
    "a negative count": ("distribution", "requests_count", -5),
    "JSON without end": ("run", "fingerprint_json", "[" * 100_000),
}  # fmt: skip


AGAIN = ("run", "--app", "hello", "--servers", "gunicorn", "--out")


@pytest.mark.parametrize("command", [("report",), ("compare", "out.prony"), AGAIN])
@pytest.mark.parametrize("what", CRAFTED)
def test_it_is_refused_in_one_line(said, folder, what, command):
    table, column, value = CRAFTED[what]
    with closing(sqlite3.connect(study_two(folder / "out.prony", blocks=1))) as database, database:
        fault = ", fault_kind = 'other-load'" if column == "fault_share" else ""
        database.execute(f"UPDATE {table} SET {column} = ?{fault}", (value,))
        database.execute("UPDATE run SET status = 'interrupted'")
    done = said(*command, "out.prony")
    assert done.status in (2, 3), done.err
    assert done.err.startswith("error: ")
    assert len(done.err.partition("\n")[0]) < 500
    assert "fault in Prony" not in done.err
