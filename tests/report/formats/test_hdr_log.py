"""The interval log of a load: what HdrHistogram's readers find in it."""

import shutil
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from golden import build
from prony._engine import Histogram
from prony.report.formats.csv_files import interval_log
from recordings import with_parts

MS = 1_000_000
STARTED_MS = 1_790_000_000_000
# What the Rust library reads too: crates/prony-engine/tests/hdr_log.rs.
LOG = Path(__file__).parents[2] / "golden" / "load.hlog"
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


def expected():
    """Return of each interval of the log: begin and length in ms, count, and median and longest in ns."""
    ends = {0: 1000, 2: 250}
    for number, values in SECONDS.items():
        ordered = sorted(values)
        yield 1000 * number, ends[number], len(values), ordered[(len(values) - 1) // 2], ordered[-1]


def test_the_python_library_reads_the_same_intervals_counts_and_percentiles(log, tmp_path):
    file = tmp_path / "load.hlog"
    file.write_text(log + "\n")
    read, found = HistogramLogReader(str(file), HdrHistogram(1, 3600 * 1000 * MS, 3)), []
    while (one := read.get_next_interval_histogram()) is not None:
        begin, length = one.get_start_time_stamp() - STARTED_MS, one.get_end_time_stamp()
        length -= one.get_start_time_stamp()
        figures = one.get_total_count(), one.get_value_at_percentile(50), one.get_max_value()
        found.append((begin, length, *figures))
    read.input_file.close()
    assert_read(found)


@pytest.mark.slow
def test_the_java_library_reads_the_same_intervals_counts_and_percentiles(log, tmp_path):
    file = tmp_path / "load.hlog"
    file.write_text(log + "\n")
    (tmp_path / "Read.java").write_text(READ_JAVA)
    command = ["java", "-cp", java_library(tmp_path), tmp_path / "Read.java", file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert_read([(begin - STARTED_MS, *others) for begin, *others in found])


def assert_read(found):
    assert [one[:3] for one in found] == [one[:3] for one in expected()]
    for one, (*_, median, longest) in zip(found, expected(), strict=True):
        assert one[3:] == (pytest.approx(median, rel=1e-3), pytest.approx(longest, rel=1e-3))


READ_JAVA = """
import org.HdrHistogram.*;

class Read {
    public static void main(String[] arguments) throws Exception {
        var log = new HistogramLogReader(new java.io.File(arguments[0]));
        while (log.hasNext()) {
            var one = (Histogram) log.nextIntervalHistogram();
            long begin = one.getStartTimeStamp(), length = one.getEndTimeStamp() - begin;
            System.out.println(begin + " " + length + " " + one.getTotalCount() + " "
                + one.getValueAtPercentile(50) + " " + one.getMaxValue());
        }
    }
}
"""


def java_library(folder):
    """Return the path of HdrHistogram for Java, from the registry of Maven or its cache."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("needs java and mvn")
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    options = ("-Dartifact=org.hdrhistogram:HdrHistogram:2.2.2", "-Dmdep.stripVersion=true")
    command = ["mvn", "-q", plugin, *options, f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode:
        pytest.skip("needs HdrHistogram for Java, and no registry has it")
    return folder / "HdrHistogram.jar"
