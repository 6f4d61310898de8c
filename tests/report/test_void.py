"""What cannot be bounded is shown and marked, in every report, and enters no verdict, ratio or rank."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from golden import build
from prony.archive import open_archive
from prony.figures.validity import in_words
from prony.model.sandbox import Placement
from prony.model.trial import Failed, Fault, FaultKind, Invalid
from prony.reading.study import read_archive
from prony.report.brief import brief_report
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.formats.terminal import TerminalReporter
from prony.report.study import full_page, study_report
from prony.report.tables import ranked

BLOCKS = 5
SLEPT = Fault(FaultKind.SLEPT, slept_ns=3 * build.SECOND)
# Of two CPUs, one of which is the server's: nothing may have been left of it.
OTHERS = Fault(FaultKind.OTHER_LOAD, share=0.49)


def by(fault):
    """Return what makes a trial one that a fault of the machine disturbed."""
    return {"outcome": Invalid(in_words(fault)), "fault": fault, "placement": Placement((0,), (1,))}


DIED = {"outcome": Failed("load", "it died")}


def study(path, rates, changes, blocks=BLOCKS):
    """Write an archive of subjects by their rates; ``changes``: of trials, by subject and block."""
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(build.SECOND))
    cells = tuple(build.Cell(k + 1, build.subject(name), load) for k, name in enumerate(rates))
    plan = build.Plan("study", "", "", "quick", cells, blocks, 1)
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for block in range(blocks):
            for k, cell in enumerate(cells):
                name = cell.subject.name
                trial = build.trial(cell, block, k, [1_000_000] * (rates[name] + (block * (k + 2)) % 5))
                writer.append(replace(trial, **(changes(name, block) or {})))
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(path) as archive:
        return read_archive(archive)


def of_second(change, first_blocks=BLOCKS):
    return lambda name, block: change if name == "slow+x" and block < first_blocks else None


NOTHING = {"outcome": Failed("start", "no port"), "recording": None, "samples": ()}
# What was done to the second subject's trials, of how many its figures are, and why they do not count.
CASES = {
    "the machine slept": (of_second(by(SLEPT)), 5, "the machine slept for 3.0 s within the window"),
    "others had its CPU": (
        of_second(by(OTHERS)),
        5,
        "other programs used 49% of the CPUs of server and generator",
    ),
    "it died of some": (of_second(NOTHING, first_blocks=2), 3, "2 of 5 trials did not count"),
    "it died in each": (of_second(DIED), 5, "it died"),
}


def shown(reading):
    """Return the short report on a terminal of 80 columns."""
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False, color_system=None)
    TerminalReporter(console).write(brief_report(reading))
    return out.getvalue()


def words(document):
    """Return a report without marks of links, in one line."""
    return re.sub(r"\[([^]]+)\]\(#[^)]+\)", r"\1", " ".join(markdown(document).split()))


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    changes, trials, reason = CASES[request.param]
    path = tmp_path_factory.mktemp("void") / "a.prony"
    return study(path, {"fast+x": 1000, "slow+x": 700}, changes), trials, reason


def test_the_short_report_shows_it_in_brackets_with_its_number_of_trials(case):
    reading, trials, reason = case
    said = shown(reading)
    (row,) = [line for line in said.splitlines() if line.startswith("slow ") and "(70" in line]
    assert row.rstrip().endswith(f"n = {trials}")
    assert "(…): void, of n trials, in no verdict" in said
    assert reason in " ".join(said.split())


@pytest.mark.parametrize("name", ["the machine slept", "others had its CPU"])
def test_a_machine_that_disturbed_trials_is_not_said_to_have_done_nothing(tmp_path, name):
    said = shown(study(tmp_path / "a.prony", {"fast+x": 1000, "slow+x": 700}, CASES[name][0]))
    assert "no disturbance seen" not in said
    assert "it disturbed trials so that they do not count" in said


def test_the_full_report_and_the_page_show_it_in_brackets_with_its_reason(case):
    reading, trials, reason = case
    for document in (study_report(reading), full_page(reading)):
        said = words(document)
        assert "(70" in said
        assert f"void, in no verdict: {reason}; of {trials} trials" in said


def test_the_json_has_it_apart_from_the_figures_that_count(case):
    reading, trials, reason = case
    data = reading_json(reading)
    fast, slow = data["groups"][0]["cells"]
    assert fast["void"] is None
    assert (slow["void"]["trials"], slow["void"]["reason"]) == (trials, reason)
    assert slow["void"]["metrics"]["ok_per_s"]["mean"] == pytest.approx(702, abs=2)
    assert set(slow["metrics"]["ok_per_s"]) == {"missing"}
    assert data["answer"]["subjects"][1]["void"] == slow["void"]


def test_it_has_no_verdict_no_ratio_no_letter_and_no_rank(case):
    reading, _, _ = case
    found = reading.groups[0].answer
    assert (found.leader, found.alone, dict(found.comparisons)) == ("fast+x", True, {})
    row = reading_json(reading)["answer"]["subjects"][1]
    assert (row["name"], row["ratio"], row["letters"], row["best"], row["qualified"]) == (
        "slow+x",
        None,
        "",
        False,
        False,
    )


def test_a_faster_one_that_does_not_count_comes_last(tmp_path):
    slept = {"void+x": BLOCKS, "lost+x": 2, "best+x": 0}
    reading = study(
        tmp_path / "a.prony",
        {"void+x": 2000, "lost+x": 3000, "best+x": 500},
        lambda name, block: by(SLEPT) if block < slept[name] else None,
    )
    # In the order of the plan: who lost trials is not put before who lost all for its speed.
    order = ["best+x", "void+x", "lost+x"]
    assert [one["name"] for one in reading_json(reading)["answer"]["subjects"]] == order
    (group,) = reading.groups
    assert [one.cell.name for one in ranked(group.cells, "ok_per_s", "")] == order
    assert [one.cell.name for one in ranked(group.cells, "service_ok_mean", "")] == order


@pytest.mark.parametrize(
    ("fault", "next_command"),
    [(SLEPT, "systemd-inhibit"), (OTHERS, "top -o %CPU")],
)
def test_where_none_counts_there_is_no_verdict_but_figures_and_what_to_do_next(tmp_path, fault, next_command):
    reading = study(tmp_path / "a.prony", {"fast+x": 1000, "slow+x": 700}, lambda name, block: by(fault))
    said = shown(reading)
    assert "No verdict: no trial counts. What was answered is in brackets" in said
    assert "No answer" not in said
    assert "(1,002)" in said
    assert "(702)" in said
    assert next_command in said
    whole = words(study_report(reading))
    assert "no verdict: no trial counts. What was answered is in brackets" in whole
    assert "(1,002)" in whole


def test_where_nothing_was_answered_there_is_no_answer(tmp_path):
    reading = study(tmp_path / "a.prony", {"fast+x": 1000, "slow+x": 700}, lambda name, block: NOTHING)
    assert all(cell.void is None for cell in reading.cells)
    said = shown(reading)
    assert "No answer: no trial counts." in said
    assert "void" not in said
    assert "No trial counts." in words(study_report(reading))


def test_of_several_attempts_the_last_that_was_answered_is_shown(tmp_path):
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(build.SECOND))
    cell = build.Cell(1, build.subject("a+x"), load)
    plan = build.Plan("study", "", "", "quick", (cell,), 1, 1)
    with build.create(tmp_path / "a.prony", plan, build.FINGERPRINT) as writer:
        for attempt, many in ((1, 100), (2, 200)):
            trial = build.trial(cell, 0, 0, [1_000_000] * many, attempt=attempt)
            writer.append(replace(trial, **by(SLEPT)))
        writer.append(build.trial(cell, 0, 0, [], outcome=Invalid("no recording"), attempt=3))
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(tmp_path / "a.prony") as archive:
        (found,) = read_archive(archive).cells
    assert (found.total, found.void.trials, found.void.metrics["ok_per_s"].mean) == (1, 1, 200.0)


def test_a_load_among_many_shows_it_in_its_grid(tmp_path):
    loads = [build.Workload(build.ClosedLoop(n), build.DurationStop(build.SECOND)) for n in (1, 2, 4, 8, 16)]
    cells = tuple(build.Cell(k, build.subject("a+x"), load) for k, load in enumerate(loads, 1))
    plan = build.Plan("study", "", "", "quick", cells, 1, 1)
    with build.create(tmp_path / "a.prony", plan, build.FINGERPRINT) as writer:
        for k, cell in enumerate(cells):
            trial = build.trial(cell, 0, k, [1_000_000] * (100 + k))
            writer.append(replace(trial, **by(SLEPT)) if k == 2 else trial)
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(tmp_path / "a.prony") as archive:
        said = words(study_report(read_archive(archive)))
    assert "(102)" in said
    assert "void, in no verdict: the machine slept for 3.0 s within the window; of 1 trial" in said
