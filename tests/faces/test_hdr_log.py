"""The interval log of a load: what HdrHistogram's readers find in it."""

from base64 import b64decode, b64encode
from pathlib import Path

import pytest

from golden import build
from prony._engine import Histogram
from prony.faces.hdr_log import interval_log
from recordings import with_parts

MS = 1_000_000
# What the Rust library reads too: crates/prony-engine/tests/hdr_log.rs.
LOG = Path(__file__).parent.parent / "golden" / "load.hlog"
SECONDS = {0: [MS, 2 * MS, 3 * MS], 2: [5 * MS] * 997 + [1500 * MS, 90_000 * MS, 3 * MS]}


def second(number, values):
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    latency = {
        **{"count": len(values), "min_ns": min(values), "max_ns": max(values), "sum_ns": sum(values)},
        "histogram": b64encode(histogram.encode()).decode(),
    }
    counts = {"second": number, "scheduled": len(values), "ok": len(values), "failed": 0, "body_bytes": 0}
    return {**counts, "latency": latency}


def empty(number):
    latency = dict.fromkeys(("min_ns", "max_ns", "sum_ns", "histogram"), None) | {"count": 0}
    return {"second": number, "scheduled": 1, "ok": 0, "failed": 1, "body_bytes": 0, "latency": latency}


@pytest.fixture
def log():
    workload = build.Workload(build.OpenLoop(500.0), build.DurationStop(2 * build.SECOND))
    opened = 1000 * build.SECOND
    recording = with_parts(
        build.recording(workload, []),
        series=[second(0, SECONDS[0]), empty(1), second(2, SECONDS[2])],
        window={"open_ns": opened, "close_ns": opened + 2 * build.SECOND, "drained_ns": opened + 2_250 * MS},
    )
    return interval_log(recording)


def test_it_is_a_log_of_version_1_3_with_the_time_of_the_window(log):
    head = [line for line in log.splitlines() if not line[:1].isdigit()]
    assert head[1:] == [
        "#[Histogram log format version 1.3]",
        "#[StartTime: 1790000000.000 (seconds since epoch)]",
        "#[BaseTime: 1790000000.000 (seconds since epoch)]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]


def test_each_second_with_a_reply_is_a_line_and_the_last_ends_with_the_load(log):
    lines = [line.split(",") for line in log.splitlines() if line[:1].isdigit()]
    assert [line[:3] for line in lines] == [["0.000", "1.000", "3.000"], ["2.000", "0.250", "90000.000"]]
    assert all(line[3].startswith("HISTF") for line in lines)


def test_t24_t26_its_histograms_hold_every_reply_and_none_besides(log):
    for line, values in zip(
        [line for line in log.splitlines() if line[:1].isdigit()], SECONDS.values(), strict=True
    ):
        read = Histogram.decode(b64decode(line.split(",")[3]))
        assert len(read) == len(values)
        assert read.max == pytest.approx(max(values), rel=1e-3)


def test_it_is_the_log_that_the_rust_library_reads(log, update_golden):
    if update_golden:
        LOG.write_text(log + "\n")
    assert LOG.read_text() == log + "\n"


def test_the_python_library_reads_the_same_counts_and_percentiles(log, tmp_path):
    reader = pytest.importorskip("hdrh.log").HistogramLogReader
    histogram = pytest.importorskip("hdrh.histogram").HdrHistogram
    file = tmp_path / "load.hlog"
    file.write_text(log + "\n")
    whole = histogram(1, 3600 * 1000 * MS, 3)
    found, read = [], reader(str(file), whole)
    while (interval := read.get_next_interval_histogram()) is not None:
        found.append((interval.get_total_count(), interval.get_value_at_percentile(50)))
    read.input_file.close()
    assert [count for count, _ in found] == [len(values) for values in SECONDS.values()]
    for (_, median), values in zip(found, SECONDS.values(), strict=True):
        assert median == pytest.approx(sorted(values)[(len(values) - 1) // 2], rel=1e-3)
