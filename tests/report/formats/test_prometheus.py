"""A load in Prometheus's text format, read by a strict reader of it: names, labels, counters, histograms."""

import re
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import build
from mixes import of_mix, wire_of_mix
from prony.core.safe_text import plain
from prony.model.recording import decode_recording
from prony.model.workload import Mix, MixPath
from prony.report.formats.prometheus import (
    MetricFamily,
    MetricSample,
    ended_metrics,
    exposition,
    progress_metrics,
)

MS = 1_000_000
OPEN = build.Workload(build.OpenLoop(1000), build.DurationStop(build.SECOND))
CLOSED = build.Workload(build.ClosedLoop(10), build.DurationStop(build.SECOND))
EVENT = {
    "event": "progress",
    "phase": "window",
    "elapsed_ns": 1,
    "ok": 7,
    "failed": 2,
    "in_flight": 3,
    "queued": 0,
    "connected": 3,
    "last_second": {"second": 0, "ok": 7, "p50_ns": 2 * MS, "p99_ns": None, "max_ns": 9 * MS},
}

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")


@dataclass
class Read:
    """A family as a reader finds it: values by name and labels."""

    kind: str = ""
    samples: dict = field(default_factory=dict)


def unescaped(value):
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), value)


def read(text):
    """Read the text format 0.0.4; whatever it does not allow fails."""
    assert text.endswith("\n") and "\r" not in text
    families, name = {}, None
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            name, _, words = line.removeprefix("# HELP ").partition(" ")
            assert re.fullmatch(NAME, name) and name not in families and words.endswith(".")
            families[name] = Read()
        elif line.startswith("# TYPE "):
            own, _, families[name].kind = line.removeprefix("# TYPE ").partition(" ")
            assert own == name and not families[name].samples
        else:
            key, value = sample(line)
            suffixes = ("_bucket", "_sum", "_count") if families[name].kind == "histogram" else ("",)
            assert key[0] in [name + suffix for suffix in suffixes]
            assert key not in families[name].samples, "a series twice"
            families[name].samples[key] = value
    for name, family in families.items():
        check(name, family)
    return families


def sample(line):
    found = SAMPLE.fullmatch(line)
    assert found, line
    labels = {name: unescaped(value) for name, value in re.findall(LABEL, found[2] or "")}
    assert len(labels) == len(re.findall(LABEL, found[2] or ""))
    return (found[1], tuple(sorted(labels.items()))), float(found[found.lastindex])


def check(name, family):
    assert family.kind in ("counter", "gauge", "histogram") and family.samples
    assert (family.kind == "counter") == name.endswith("_total")
    if family.kind == "histogram":
        buckets = [
            (float(dict(labels)["le"]), value)
            for (own, labels), value in family.samples.items()
            if own.endswith("_bucket")
        ]
        assert buckets == sorted(buckets) and [n for _, n in buckets] == sorted(n for _, n in buckets)
        assert buckets[-1] == (float("inf"), family.samples[f"{name}_count", ()])


def values(found, name):
    """The values of a family by their labels, without the labels' names."""
    return {tuple(value for _, value in labels): one for (_, labels), one in found[name].samples.items()}


def test_of_a_running_load_there_is_what_is_known():
    found = read(progress_metrics(EVENT))
    assert values(found, "prony_load_running") == {(): 1}
    assert values(found, "prony_load_ended_requests_total") == {("ok",): 7, ("failed",): 2}
    assert values(found, "prony_load_in_flight_requests") == {(): 3}
    assert values(found, "prony_load_last_second_time_seconds") == {("0.5",): 0.002, ("1",): 0.009}
    silent = read(progress_metrics({**EVENT, "last_second": None}, is_running=False))
    assert values(silent, "prony_load_running") == {(): 0}
    assert "prony_load_last_second_time_seconds" not in silent


def test_of_an_ended_load_there_is_the_whole_account_and_its_times_in_seconds():
    ok = [MS] * 600 + [3 * MS] * 300 + [400 * MS] * 100
    recording = build.recording(OPEN, ok, {"bad_status": {"503": 4}, "reset": 2}, [9 * MS])
    found = read(ended_metrics(recording))
    requests = values(found, "prony_load_requests_total")
    assert requests["bad_status", "503"] == 4
    assert requests["reset", ""] == 2
    assert sum(n for (name, _), n in requests.items() if name == "ok") == 1000
    assert sum(requests.values()) == sum(values(found, "prony_load_ended_requests_total").values())
    times = found["prony_load_response_time_seconds"].samples
    name = "prony_load_response_time_seconds"
    counts = {dict(labels)["le"]: n for (own, labels), n in times.items() if own == f"{name}_bucket"}
    assert (counts["0.0005"], counts["0.001"], counts["0.0025"]) == (0, 600, 600)
    assert (counts["0.005"], counts["0.25"], counts["0.5"]) == (900, 900, 1000)
    assert times[f"{name}_sum", ()] == pytest.approx(0.6 + 0.9 + 40)
    assert values(found, "prony_load_received_bytes_total") == {(): 170_000}


def test_a_closed_loop_has_no_response_times():
    found = read(ended_metrics(build.recording(CLOSED, [MS] * 100)))
    assert "prony_load_response_time_seconds" not in found
    assert found["prony_load_service_time_seconds"].kind == "histogram"


def test_a_load_without_a_reply_has_empty_buckets():
    found = read(ended_metrics(build.recording(OPEN, [], {"reset": 5})))
    assert values(found, "prony_load_requests_total") == {("reset", ""): 5}
    assert set(found["prony_load_service_time_seconds"].samples.values()) == {0}


def test_a_server_that_invents_statuses_makes_few_series():
    errors = {"bad_status": {str(400 + k): 1 + k for k in range(90)}}
    requests = values(read(ended_metrics(build.recording(OPEN, [], errors))), "prony_load_requests_total")
    assert len(requests) == 17
    assert sum(requests.values()) == sum(range(1, 91))
    assert requests["bad_status", "489"] == 90
    assert requests["bad_status", "others"] == sum(range(1, 75))


def test_a_mix_of_many_paths_makes_few_series_that_add_up():
    names = [f'/p{k}"\\' for k in range(30)]
    load = of_mix(OPEN, Mix(tuple(MixPath(name) for name in names)))
    recording = decode_recording(wire_of_mix(load, {name: [MS] * 3 for name in names}))
    paths = values(read(ended_metrics(recording)), "prony_load_path_requests_total")
    assert len(paths) == 2 * 21
    assert paths[names[0], "ok"] == 3
    assert paths["others", "ok"] == 30
    assert sum(paths.values()) == 90


@given(st.text())
def test_any_text_is_a_label(value):
    found = read(exposition([MetricFamily("a", "gauge", "One.", [MetricSample({"of": value}, 1)])]))
    assert values(found, "prony_load_a") == {(plain(value),): 1}


def test_the_reader_is_strict():
    good = progress_metrics(EVENT)
    for bad in (
        good.replace("_total", "s"),
        good + good.splitlines()[-1] + "\n",
        good.rstrip("\n"),
        good.replace('"ok"', '"o"k"'),
    ):
        with pytest.raises(AssertionError):
            read(bad)
