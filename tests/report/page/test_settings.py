"""The charts against settings: a line for each level of the others, which the chart names itself."""

import re
from dataclasses import replace

from golden import studies
from prony.archive import open_archive
from prony.reading.study import read_archive
from prony.reading.traces import Traces
from prony.report.page.charts.curves import setting_charts
from prony.report.page.figure import svg
from prony.report.page.scene import scene_of


def charts(tmp_path, change=lambda sweep: sweep):
    with open_archive(studies.settings_study(tmp_path / "a.prony")) as archive:
        reading = read_archive(archive)
    (sweep,) = reading.sweeps
    return list(setting_charts(scene_of(reading, Traces()), 0, change(sweep)))


def words(chart):
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg(chart.spec))


def test_the_levels_that_were_measured_are_the_ticks_and_lines_are_named(tmp_path):
    first, *_ = charts(tmp_path)
    assert first.key == "ok-per-s-settings-0"
    assert {"workers", "1", "2", "4", "threads=1", "threads=4"} <= set(words(first))


def test_each_subject_has_a_mean_with_its_band_and_each_trial_a_dot(tmp_path):
    rows = charts(tmp_path)[0].spec["data"]["values"]
    means = [row for row in rows if "value" in row]
    assert [(row["level"], row["line"]) for row in means] == [
        (workers, f"threads={threads}") for workers in (1.0, 2.0, 4.0) for threads in (1, 4)
    ]
    assert all(row["low"] < row["value"] < row["high"] for row in means)
    assert sum("trial" in row for row in rows) == 6 * 6


def test_levels_that_are_words_stand_in_their_order(tmp_path):
    def worded(sweep):
        first, second = sweep.factors
        levels = tuple(replace(level, value=f"w{level.value}", number=None) for level in first.levels)
        return replace(sweep, factors=(replace(first, levels=levels), second))

    # The other setting is a number: it is the axis.
    assert {"threads", "workers=w1"} <= set(words(charts(tmp_path, worded)[0]))
