"""What a study's report says of the machines from which its loads came."""

from dataclasses import replace

from golden import build
from prony.archive import open_archive
from prony.model.json_codec import decode
from prony.model.limit import LimitKind
from prony.model.recording import GeneratorMachine
from prony.reading.senders import senders
from prony.reading.study import read_archive
from prony.report.formats.as_json import reading_json
from prony.report.sections.generators import machines_section, senders_section
from prony.report.study import study_report


def machine(name, limited="no", skew_ns=-2_000_000, model="AMD EPYC", **more):
    return decode(
        GeneratorMachine,
        {
            **{"name": name, "start_skew_ns": skew_ns, "clock_bound_ns": 250_000, "limited": limited},
            **{"requests": 30, "ok": 30},
            "fingerprint": {"machine": "x86_64", "cpu": {"model": model, "available": 4}},
            **more,
        },
        "machine",
    )


STOPPED = {"kind": "throttled", "share": 0.4}
TRIALS = [
    [machine("far-1"), machine("far-2", "suspect", 7_000_000, "Xeon", requests=10, evidence=[STOPPED])],
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


def test_requests_are_summed_and_each_kind_of_limit_is_counted_once_a_trial():
    throttled = {"kind": "throttled", "share": 0.4}
    busy = {"kind": "busy", "share": 0.99}
    trials = [
        [machine("a", "yes", requests=100, evidence=[throttled, busy, busy])],
        [machine("a", "suspect", requests=20, evidence=[busy])],
        # What no verdict rests on does not count.
        [machine("a", "no", requests=3, evidence=[throttled])],
    ]
    (found,) = senders(trials)
    assert (found.requests, found.trials, found.limited, found.certain) == (123, 3, 2, 1)
    assert found.limits == {LimitKind.THROTTLED: 1, LimitKind.BUSY: 2}


def cells(table):
    return [[str(entry.text) for entry in row] for row in table.rows]


def test_a_report_has_a_line_for_each_generator_with_its_own_verdict_and_its_machine(tmp_path):
    with open_archive(build.study_two(tmp_path / "two.prony")) as archive:
        plain = read_archive(archive)
    assert senders_section(plain) is None
    assert reading_json(plain)["machines"] == []
    reading = replace(plain, machines=senders(TRIALS))
    table, _, *where = senders_section(reading).blocks
    assert cells(table) == [
        ["far-1", "2", "60", "2.00 ms", "± 250 µs", "no"],
        [
            "far-2",
            "2",
            "40",
            "7.00 ms",
            "± 250 µs",
            "in 1 of 2, for certain in 0: a quota of CPU stopped it (1)",
        ],
    ]
    assert [str(one.text) for one in where] == [
        "Load from far-1: AMD EPYC, x86_64, CPUs: 4.",
        "Load from far-2: Xeon, x86_64, CPUs: 4.",
    ]
    assert [one["name"] for one in reading_json(reading)["machines"]] == ["far-1", "far-2"]
    assert reading_json(reading)["machines"][1]["limits"] == {"throttled": 1}


def value_at(found, place):
    for step in place.removeprefix("/").split("/"):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


def test_each_number_of_the_table_is_that_of_the_json_and_the_report_has_it(tmp_path):
    with open_archive(build.study_two(tmp_path / "two.prony")) as archive:
        reading = replace(read_archive(archive), machines=senders(TRIALS))
    section = senders_section(reading)
    assert section in study_report(reading).sections
    figures = [one for row in section.blocks[0].rows for entry in row for one in entry.text.figures]
    found = reading_json(reading)
    assert [value_at(found, one.pointer) for one in figures] == [one.value for one in figures]
    assert len(figures) == 12


def test_one_that_was_alone_has_no_start_in_the_table(tmp_path):
    with open_archive(build.study_two(tmp_path / "two.prony")) as archive:
        plain = read_archive(archive)
    alone = senders([[machine("near", start_skew_ns=None, clock_bound_ns=None)]])
    table = senders_section(replace(plain, machines=alone)).blocks[0]
    assert cells(table) == [["near", "1", "30", "—", "—", "no"]]


def test_generators_that_ran_as_root_where_others_hold_certificates_are_named(tmp_path):
    with open_archive(build.study_two(tmp_path / "two.prony")) as archive:
        plain = read_archive(archive)
    trials = [[machine("far-1"), machine("far-2", as_root=True)], [machine("far-1"), machine("far-2")]]
    warned = senders_section(replace(plain, machines=senders(trials))).blocks[-1]
    assert str(warned.text).startswith(
        "Ran as root: far-2. Whoever holds the fleet's certificates is root there"
    )
    (said,) = [
        block for block in machines_section(trials[0]).blocks if "root" in str(getattr(block, "text", ""))
    ]
    assert str(said.text) == str(warned.text)
    assert said.text.parts[1].pointer == "/machines/1/name"
