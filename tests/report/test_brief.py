"""The short report: one screen of a terminal, whatever was measured, and the values of the long one."""

import io
import random
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rich.console import Console

from golden import build, generators, studies
from prony.archive import open_archive
from prony.model.plan import Design
from prony.reading.study import read_archive
from prony.report.brief import Places, brief_report
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.formats.terminal import TerminalReporter
from prony.report.study import study_report

GOLDEN = Path(__file__).parents[1] / "golden"
ARCHIVES = {
    "study_two": build.study_two,
    "closed_study": build.closed_study,
    "grid_study": studies.grid_study,
    "settings_study": studies.settings_study,
    "count_study": studies.count_study,
    "generators_study": generators.generators_study,
    "checked_study": generators.checked_study,
}
WIDTH, HEIGHT = 80, 40
PLACES = Places("out.prony", "out.html", "prony report out.prony --full")
OVERFLOWS = {"ListenOverflows": 1200, "cgroup.server.periods": 100, "cgroup.server.throttled_periods": 97}


def shown(document, width=WIDTH, **console):
    out = io.StringIO()
    TerminalReporter(Console(file=out, width=width, highlight=False, color_system=None, **console)).write(
        document
    )
    return out.getvalue().splitlines()


def rows(lines):
    """How many lines of a terminal these take: a command is never wrapped, and may take several."""
    return sum(max(1, -(-len(line) // WIDTH)) for line in lines)


@cache
def reading_of(name):
    """Return the reading of an archive that several tests show."""
    with TemporaryDirectory() as folder, open_archive(ARCHIVES[name](Path(folder, "a.prony"))) as archive:
        return read_archive(archive)


def shown_briefly(name, width=WIDTH, **console):
    return shown(brief_report(reading_of(name), PLACES), width, **console)


def brief(path):
    with open_archive(path) as archive:
        return brief_report(read_archive(archive), PLACES)


def study(path, names, loads=(20,), blocks=5, title="A study", primary=None, **trial):
    """Return the archive of a study in which each of ``names`` is a little slower than the one before it."""
    names = [name if "+" in name else f"{name}+x" for name in names]
    design = Design(primary={"connections": primary} if primary else {})
    by_load = [build.Workload(build.ClosedLoop(many), build.DurationStop(build.SECOND)) for many in loads]
    pairs = [(name, load) for load in by_load for name in names]
    cells = tuple(build.Cell(k, build.subject(name), load) for k, (name, load) in enumerate(pairs, 1))
    plan = build.Plan(
        "study",
        title,
        "",
        "quick",
        cells,
        blocks,
        1,
        design=design,
    )
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for name in names:
            command = f"python -m {name} --bind 127.0.0.1:8000 --workers 4 --threads 2 {name}.wsgi:app"
            writer.record_subject(build.SubjectRecord(name=name, server_version="1.0", command_line=command))
        for block in range(blocks):
            for k, cell in enumerate(cells):
                place = names.index(cell.subject.name)
                values = [1_000_000 + 1000 * block + 7 * k] * (400 - 9 * place)
                writer.append(build.trial(cell, block, k, values, **trial))
        writer.finish(build.RunStatus.FINISHED)
    return path


LONG = [f"gunicorn-gthread-{k}@nginx+django-postgres" for k in range(12)]


# --- one screen -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_study_fits_one_screen(name):
    assert rows(shown_briefly(name)) <= HEIGHT


@pytest.mark.parametrize("count", [1, 2, 8, 12])
def test_a_dozen_subjects_with_long_names_and_many_findings_fit_one_screen(tmp_path, count):
    path = study(tmp_path / "a.prony", LONG[:count], counters=OVERFLOWS, limited=build.BUSY)
    assert rows(shown(brief(path))) <= HEIGHT


def test_sixty_cells_fit_one_screen_with_the_main_load_in_the_table(tmp_path):
    path = study(tmp_path / "a.prony", LONG, loads=(10, 50, 100, 500, 1000), blocks=2, primary=100)
    lines = shown(brief(path))
    assert rows(lines) <= HEIGHT
    text = " ".join(" ".join(lines).split())
    assert "Closed loop, 100 connections" in text
    assert "10 connections, 50 connections, 500 connections and 1 more: " in text


def test_of_several_loads_the_heaviest_under_which_most_qualify_is_the_main_one(tmp_path):
    path = study(tmp_path / "a.prony", ["a", "b"], loads=(10, 100, 50))
    assert any("100 connections, 1 s" in line for line in shown(brief(path)))


def test_what_runs_today_is_the_first_row_though_others_are_better(tmp_path):
    lines = shown(brief(study(tmp_path / "a.prony", ["best", "second", "yours", "last"])))
    names = [line.split()[0] for line in lines if re.match(r"(best|second|yours|last) +[\d≥]", line)]
    assert names == ["yours", "best", "second", "last"]


def test_more_than_a_dozen_subjects_are_counted(tmp_path):
    names = [f"server{k}" for k in range(15)]
    lines = shown(brief(study(tmp_path / "a.prony", names, blocks=1)))
    assert "3 more subjects: in the full report" in lines


@pytest.mark.parametrize("name", ARCHIVES)
def test_no_line_but_a_command_is_wider_than_the_terminal(name):
    lines = shown_briefly(name)
    assert [line for line in lines if len(line) > WIDTH and not line.startswith("    ")] == []


def test_hostile_texts_stay_text_and_take_no_more_than_their_lines(tmp_path):
    title = "\x1b[31m" + "[bold]<script>alert(1)</script> " * 40
    name = "s" * 300 + "\x1b]0;x\x07+y"
    lines = shown(brief(study(tmp_path / "a.prony", [name, "b"], title=title)))
    text = "\n".join(lines)
    assert "\x1b" not in text
    assert "[bold]<script>" in text
    table = lines[[line.startswith("subject") for line in lines].index(True) :]
    assert table[1].startswith("sssss")
    assert table[2].startswith("  sss")
    assert table[2].endswith("…")
    assert table[3].startswith("b+x ")


def test_names_beyond_ascii_keep_their_columns(tmp_path):
    lines = shown(brief(study(tmp_path / "a.prony", ["größe+x", "服务器+x"])))
    head = next(line for line in lines if line.startswith("subject"))
    row = next(line for line in lines if line.startswith("服务器"))
    assert head.endswith("MiB  tie")
    assert row.endswith("  b")
    # Each of these characters takes two columns; `tie` is two longer than its letter.
    assert len(row) + 3 + 2 == len(head)


# --- what it says -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["study_two", "grid_study"])
def test_the_short_report(name, update_golden):
    path = GOLDEN / f"{name}.brief.txt"
    text = "\n".join(shown_briefly(name)) + "\n"
    text = re.sub(r"\b20\d\d-\d\d-\d\d\b", "DATE", text)
    if update_golden:
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_every_row_of_the_table_is_one_line_where_names_are_short():
    lines = shown_briefly("closed_study")
    start = [line.startswith("subject") for line in lines].index(True)
    assert [line.split()[0] for line in lines[start : start + 4]] == [
        *("subject", "bjoern", "meinheld", "gunicorn")
    ]


def test_every_row_after_the_first_has_its_ratio_with_the_interval_that_verdicts_follow_from():
    reading = reading_of("closed_study")
    lines = shown(brief_report(reading, PLACES))
    start = [line.startswith("subject") for line in lines].index(True)
    ratios = [re.search(r"\d\.\d\d \(\d\.\d\d–\d\.\d\d\)", line) for line in lines[start + 1 : start + 4]]
    assert [bool(found) for found in ratios] == [False, True, True]
    words, whole = (" ".join(" ".join(found).split()) for found in (lines, shown(study_report(reading), 200)))
    # What shares a letter is not called equal.
    assert "tie: same letter, not separated" in words
    assert not re.search(r"\balike\b", words)
    assert "verdicts follow from them, not from those of single figures." in whole


def test_one_trial_has_no_interval_and_says_how_many_to_repeat(tmp_path):
    text = "\n".join(shown(brief(study(tmp_path / "a.prony", ["a"], blocks=1))))
    assert "±" not in text
    assert "to the best" not in text
    assert "run the same command with --repeats 10." in " ".join(text.split())


def test_without_a_trial_that_counts_there_is_no_table(tmp_path):
    path = study(tmp_path / "a.prony", ["a", "b"], outcome=build.Failed("start", "exited with status 3"))
    text = "\n".join(shown(brief(path)))
    assert "No answer: no trial counts." in text
    assert "subject" not in text
    assert "a+x is not ranked: " in text
    assert "5 of 5 trials failed at start: exited with status 3" in " ".join(text.split())


def test_what_limits_the_best_comes_before_what_limits_others(tmp_path):
    lines = shown(brief(study(tmp_path / "a.prony", ["a", "b"], counters=OVERFLOWS)))
    start = next(k for k, line in enumerate(lines) if line.startswith("limits"))
    assert lines[start].startswith("limits     a, b: limited by its quota: its CPU quota throttled")


def test_names_before_a_limit_leave_room_for_it(tmp_path):
    long = ["a-server-with-quite-a-long-name", "another-one-with-a-name-as-long", "c"]
    text = " ".join(shown(brief(study(tmp_path / "a.prony", long, counters=OVERFLOWS))))
    assert "a-server-with-quite-a-long-name and 2 more: limited by its quota" in text


def test_what_the_generator_could_not_separate_may_be_better_than_shown(tmp_path):
    path = study(tmp_path / "a.prony", ["a", "b"], limited=build.BUSY)
    text = " ".join(" ".join(shown(brief(path))).split())
    assert "has the best figure that was seen; the generator limited it and 1 other (n = 5)" in text
    assert "≥ ≤ ?: bounds" in text


def test_a_generator_that_was_the_limit_is_said_once(tmp_path):
    path = study(tmp_path / "a.prony", ["a", "b"], limited=build.BUSY)
    lines = shown(brief(path))
    assert sum(line.startswith("generator") for line in lines) == 1
    assert any(line.startswith("b ") and line.endswith("?") for line in lines)
    assert not any(line.startswith("limits") and "generator" in line for line in lines)


# --- a tie ------------------------------------------------------------------------------------------------


def tied(path, subjects):
    """Return the reading of an open loop whose `s` is slow, and the others have one p95; by name the usual
    latency in ms and the cores that are busy.
    """
    load = build.Workload(build.OpenLoop(400.0), build.DurationStop(2 * build.SECOND))
    cells = tuple(build.Cell(k, build.subject(f"{name}+x"), load) for k, name in enumerate(subjects, 1))
    rng = random.Random(3)
    with build.create(path, build.Plan("study", "A", "", "quick", cells, 8, 1), build.FINGERPRINT) as writer:
        for block in range(8):
            for k, (cell, known) in enumerate(zip(cells, subjects.values(), strict=True)):
                usual, cores, tail = (one * rng.lognormvariate(0, 0.02) for one in (*known, 10))
                slow = 3 if cell.subject.name == "s+x" else 1
                values = [int(build.MS * one) for one in [*[usual] * 700, *[slow * tail] * 100]]
                writer.append(build.trial(cell, block, k, values, cores=cores))
        writer.finish()
    with open_archive(path) as archive:
        return read_archive(archive)


def said_of_tie(reading):
    """Return what separates those that tie, in the JSON and in words, and the table's columns."""
    lines = shown(brief_report(reading, PLACES))
    (head,) = [line for line in lines if line.startswith("subject")]
    beside = reading_json(reading)["answer"]["beside"]
    return beside, [line for line in lines if "they differ" in line], re.split(" {2,}", head)


def test_a_tie_that_cpu_parts_has_the_letters_of_cpu_and_the_factor_of_those_that_tie(tmp_path):
    reading = tied(tmp_path / "a.prony", {"a": (1, 0.6), "b": (1, 0.4), "s": (1, 0.1)})
    beside, (words,), columns = said_of_tie(reading)
    assert (beside["metric"], beside["best"]) == ("cpu_ns_per_request", ["b+x"])
    assert beside["times"] == pytest.approx(1.5, rel=0.05)
    assert beside["letters"] == {"s+x": "a", "b+x": "b", "a+x": "c"}
    assert "best is b+x; the most is 1.5" in words
    assert columns[columns.index("CPU tie") - 1].startswith("CPU")


def test_a_tie_that_the_mean_parts_has_its_figures_and_letters(tmp_path):
    reading = tied(tmp_path / "a.prony", {"a": (4, 0.4), "b": (2, 0.4), "s": (0.1, 0.4)})
    beside, (words,), columns = said_of_tie(reading)
    assert (beside["metric"], beside["best"]) == ("response_ok_mean", ["b+x"])
    assert beside["letters"] == {"b+x": "a", "s+x": "b", "a+x": "c"}
    assert "best is b+x" in words
    assert columns[columns.index("mean tie") - 1] == "mean ms"


def test_a_tie_of_a_dozen_with_long_names_fits_one_screen(tmp_path):
    path = tmp_path / "a.prony"
    reading = tied(path, {f"gunicorn-gthread-{k}@nginx": (4 - k / 10, 0.4) for k in range(12)})
    lines = shown(brief_report(reading, PLACES))
    assert any("mean tie" in line for line in lines)
    assert len(lines) <= HEIGHT


def test_a_tie_that_nothing_parts_says_no_more(tmp_path):
    reading = tied(tmp_path / "a.prony", {"a": (1, 0.4), "b": (1, 0.4), "s": (4, 0.1)})
    beside, words, columns = said_of_tie(reading)
    assert (beside, words) == (None, [])
    assert not {"CPU tie", "mean tie"} & set(columns)


# --- bars -------------------------------------------------------------------------------------------------


def with_bars(**console):
    return [line for line in shown_briefly("closed_study", **console) if "┿" in line]


def test_a_terminal_with_room_shows_a_bar_for_each_figure():
    assert len(with_bars(width=110, force_terminal=True)) == 3


def test_a_pipe_shows_no_bars():
    assert with_bars(width=110, force_terminal=False) == []


def test_a_terminal_without_room_shows_no_bars():
    assert with_bars(width=70, force_terminal=True) == []


# --- the same values as elsewhere -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARCHIVES)
def test_the_answer_is_the_first_value_of_the_json_and_repeats_those_of_its_group(name):
    data = reading_json(reading_of(name))
    assert list(data)[:2] == ["version", "answer"]
    found = data["answer"]
    group = data["groups"][found["group"]]
    assert found["leader"] == group["answer"]["leader"]
    for row in found["subjects"]:
        cell = group["cells"][row["cell"]]
        assert row["name"] == cell["name"]
        for place, metric in found["metrics"].items():
            assert (
                metric is None or row[place if place != "primary" else "primary"] == cell["metrics"][metric]
            )
        if row["ratio"] is not None:
            compared = group["answer"]["comparisons"][row["name"]]
            assert row["ratio"]["value"] == 1 + compared["effect"]


def test_the_page_in_short_has_the_table_whole():
    page = markdown(brief_report(reading_of("closed_study"), PLACES))
    assert "| subject | ok/s | to the best | p99 ms | err % | CPU µs | MiB | tie |" in page
    assert page.index("bjoern+hello shares the first place") < page.index("| subject")
