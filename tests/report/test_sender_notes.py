"""What a study's report says of the machines from which its loads came."""

from dataclasses import replace

from golden import build
from prony.archive import open_archive
from prony.faces.json_report import reading_json
from prony.model.recording import GeneratorMachine
from prony.model.shapes import decode
from prony.reading.senders import senders
from prony.reading.study import read_archive
from prony.report.sections.senders import sender_notes


def machine(name, limited="no", skew_ns=-2_000_000, model="AMD EPYC", **more):
    return decode(
        GeneratorMachine,
        {
            **{"name": name, "start_skew_ns": skew_ns, "clock_bound_ns": 250_000, "limited": limited},
            "fingerprint": {"machine": "x86_64", "cpu": {"model": model, "available": 4}},
            **more,
        },
        "machine",
    )


TRIALS = [
    [machine("far-1"), machine("far-2", "suspect", 7_000_000, "Xeon")],
    [machine("far-1", skew_ns=1), machine("far-2", "no", model="Xeon")],
    [],
]


def test_a_generator_has_its_worst_start_and_the_number_of_its_limited_trials():
    first, second = senders(TRIALS)
    assert (first.name, first.trials, first.limited, first.start_skew_ns) == ("far-1", 2, 0, 2_000_000)
    assert (second.name, second.trials, second.limited, second.start_skew_ns) == ("far-2", 2, 1, 7_000_000)
    assert second.clock_bound_ns == 250_000


def test_one_that_was_alone_has_no_start_in_common():
    (alone,) = senders([[machine("near", start_skew_ns=None, clock_bound_ns=None)]])
    assert (alone.start_skew_ns, alone.clock_bound_ns) == (None, None)


def test_a_report_says_where_loads_came_from_and_which_generator_was_the_limit(tmp_path):
    with open_archive(build.study_two(tmp_path / "two.prony")) as archive:
        plain = read_archive(archive)
    assert list(sender_notes(plain)) == []
    assert reading_json(plain)["machines"] == []
    reading = replace(plain, machines=senders(TRIALS))
    assert [str(one) for one in sender_notes(reading)] == [
        "Load from far-1: AMD EPYC, x86_64, CPUs: 4.",
        "Load from far-2: Xeon, x86_64, CPUs: 4.",
        "Generators began at most 7.00 ms from their common start, as far as their clocks are known "
        "(± 250 µs).",
        "Of the generators, each by itself, these were the limit, or perhaps: far-2 (1 of 2 trials).",
    ]
    assert [one["name"] for one in reading_json(reading)["machines"]] == ["far-1", "far-2"]
