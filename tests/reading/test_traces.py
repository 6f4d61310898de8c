"""What charts show of single trials: which trials, and their CPU over time."""

from dataclasses import replace

import pytest

from golden import build
from prony.archive import open_archive
from prony.core.units import MIB
from prony.reading.study import read_archive
from prony.reading.traces import picked_trials, traces

LOAD = build.Workload(build.ClosedLoop(20), build.DurationStop(3 * build.SECOND))


def study(path, counts, change=lambda trial: trial):
    """Return the results and the traces of one cell whose trials have so many replies."""
    cell = build.Cell(1, build.subject("a+x"), LOAD)
    with build.create(
        path, build.Plan("a", "", "", "quick", (cell,), len(counts), 1), build.FINGERPRINT
    ) as out:
        for block, count in enumerate(counts):
            out.append(change(build.trial(cell, block, 0, [1_000_000] * count, cores=0.5)))
        out.finish(build.RunStatus.FINISHED)
    with open_archive(path) as archive:
        reading = read_archive(archive)
        return reading, traces(reading, archive.trials(), {1})


def test_the_trials_to_show_are_the_one_in_the_middle_and_the_worst(tmp_path):
    reading, _ = study(tmp_path / "a.prony", (300, 100, 500, 400, 200))
    (picked,) = picked_trials(reading).values()
    assert (picked.median[1], picked.worst[1]) == (0, 1)


def test_two_samples_at_one_moment_make_no_gap_in_the_use_of_cpu(tmp_path):
    def opened(trial):
        first, *others = trial.samples
        at_once = replace(first, monotonic_ns=first.monotonic_ns + 5_000_000)
        return replace(trial, samples=(first, at_once, *others))

    _, found = study(tmp_path / "a.prony", (100,), opened)
    (trace,) = found.trials.values()
    used = [one.cpu_percent for one in trace.usage if one.role == "worker"]
    assert used == pytest.approx([50.0] * len(used), abs=1)
    assert len(used) == 3
    assert all(0 <= one.at_s <= 4 for one in trace.usage)


def test_the_classes_of_each_second_hold_all_its_valid_replies(tmp_path):
    _, found = study(tmp_path / "a.prony", (300,))
    (trace,) = found.trials.values()
    assert [sum(one.replies for one in second.bins) for second in trace.seconds] == [
        second.ok for second in trace.seconds
    ]


def test_a_class_lies_about_its_replies_and_is_as_wide_as_all_others_by_ratio(tmp_path):
    _, found = study(tmp_path / "a.prony", (300,))
    (trace,) = found.trials.values()
    classes = [one for second in trace.seconds for one in second.bins]
    assert all(one.low_ns <= 1_000_000 < one.high_ns for one in classes)
    assert {round(one.high_ns / one.low_ns, 6) for one in classes} == {
        round(classes[0].high_ns / classes[0].low_ns, 6)
    }


def test_each_second_has_its_slowest_reply_and_each_role_its_own_memory(tmp_path):
    made = []

    def uneven(trial):
        sizes = {"master": 10 * MIB, "worker": 30 * MIB}
        made.append(
            replace(
                trial,
                samples=tuple(
                    replace(
                        one, processes=tuple(replace(row, rss_bytes=sizes[row.role]) for row in one.processes)
                    )
                    for one in trial.samples
                ),
            )
        )
        return made[0]

    _, found = study(tmp_path / "a.prony", (300,), uneven)
    (trace,) = found.trials.values()
    slowest = [one.latency.max_ns if one.latency else None for one in made[0].recording.series]
    assert [one.max_ns for one in trace.seconds] == slowest
    assert any(slowest)
    assert {one.role: one.rss_bytes for one in trace.usage} == {"master": 10 * MIB, "worker": 30 * MIB}
