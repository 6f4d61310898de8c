"""Other programs that used the CPUs of trials: their names and what to type, in values and in all reports."""

import html
import json
import re
from dataclasses import replace

import pytest

from golden import build
from prony.archive import open_archive
from prony.figures.validity import in_words
from prony.model.facts import OtherProgram, RunFacts, TrialFacts
from prony.model.sandbox import Placement
from prony.model.trial import Fault, FaultKind, Invalid, TrialRole
from prony.reading.others import command_of
from prony.reading.study import read_archive
from prony.reading.traces import Traces
from prony.report.brief import brief_report
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.page.study import page_of_study
from prony.report.publication import redaction_for
from prony.report.study import full_page, study_report

SECOND = 1_000_000_000
COMPILER, BROWSER = OtherProgram("cc1plus", 0.24), OtherProgram("chromium", 0.05)
TYPED = "prony run --app shop:app --env TOKEN=..."


def counted(share):
    """Return counters of a second of two CPUs of which other programs used a share."""
    busy = round(2 * SECOND * share)
    cpus = {"busy": busy, "interrupts": 0, "idle": 2 * SECOND - busy, "steal": 0}
    return {f"cpus.{name}_ns": one for name, one in cpus.items()} | {"subject.cpu_ns": 0, "prony.cpu_ns": 0}


def beside(trial, share, *programs):
    """Return a trial beside which other programs used a share of its CPUs."""
    found = replace(trial, counters=counted(share), facts=TrialFacts(others=programs))
    if share <= 0.2:
        return found
    fault = Fault(FaultKind.OTHER_LOAD, share=share)
    return replace(found, outcome=Invalid(in_words(fault)), fault=fault, placement=Placement((0,), (1,)))


def study(path, *trials, command=TYPED):
    """Return what is read of a study of one subject, of which each block is beside other programs as said."""
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(SECOND))
    cell = build.Cell(1, build.subject("a+x"), load)
    with build.create(path, build.Plan("study", "", "", "quick", (cell,), 5, 1), build.FINGERPRINT) as writer:
        writer.record_facts(RunFacts(command=command))
        for block, (share, *programs) in enumerate(trials):
            writer.append(beside(build.trial(cell, block, 0, [1_000_000] * 500), share, *programs))
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(path) as archive:
        return read_archive(archive)


@pytest.fixture
def disturbed(tmp_path):
    loads = [(0.3, COMPILER, BROWSER), (0.26, BROWSER, COMPILER), (0.02,), (0.01,), (0.04, BROWSER)]
    return study(tmp_path / "a.prony", *loads)


def said(document):
    return " ".join(markdown(document).split())


def test_the_busiest_are_those_of_the_trials_that_they_disturbed(disturbed):
    found = disturbed.others
    assert (found.trials, found.of, found.spoilt) == (2, 5, 2)
    assert found.share == pytest.approx(0.28)
    assert [(one.name, round(one.share, 3)) for one in found.busiest] == [
        ("cc1plus", 0.24),
        ("chromium", 0.05),
    ]
    assert found.command == TYPED


NAMED = "cc1plus 24 %, chromium 5 %"
TO_CLOSE = "For figures without other programs close cc1plus, chromium, then type:"


def test_the_short_report_names_them_and_the_whole_command(disturbed):
    short = said(brief_report(disturbed))
    assert f"in 2 of 5 trials; others used 28 % of the CPUs' time ({NAMED})" in short
    assert TO_CLOSE in short
    assert TYPED in short


@pytest.mark.parametrize("document", [study_report, full_page])
def test_the_long_report_names_them_and_the_whole_command(disturbed, document):
    long = said(document(disturbed))
    assert f"In 2 of 5 trials other programs used 28 % of the CPUs' time ({NAMED})." in long
    assert TO_CLOSE in long
    assert TYPED in long


def test_the_page_and_the_json_have_them_too(disturbed):
    page = html.unescape(re.sub(r"<[^>]*>", "", page_of_study(disturbed, Traces())))
    assert f"others used 28 % of the CPUs' time ({NAMED})" in page
    assert TO_CLOSE in page
    assert TYPED in page
    found = json.loads(json.dumps(reading_json(disturbed)))
    assert found["others"]["busiest"][0] == {"name": "cc1plus", "share": pytest.approx(0.24)}
    assert found["others"]["command"] == TYPED


def test_what_is_passed_on_names_no_program(disturbed):
    found = redaction_for([disturbed.plan], "bench-7")(disturbed)
    passed_on = f"{reading_json(found)} {said(full_page(found))} {page_of_study(found, Traces())}"
    assert "cc1plus" not in passed_on
    assert "chromium" not in passed_on
    assert "In 2 of 5 trials other programs used 28 % of the CPUs' time." in passed_on


def test_what_moved_no_figure_is_named_without_a_command(tmp_path):
    short = said(brief_report(study(tmp_path / "a.prony", *[(0.1, BROWSER)] * 5)))
    assert "others used 10 % of the CPUs' time (chromium 5 %)" in short
    assert "prony run" not in short


def test_without_names_the_command_alone_is_said(tmp_path):
    short = said(brief_report(study(tmp_path / "a.prony", *[(0.3,)] * 5)))
    assert "others used" not in short
    assert "close them, then type:" in short


def test_an_archive_without_names_and_command_has_no_words_of_them(tmp_path):
    reading = study(tmp_path / "a.prony", *[(0.3,)] * 5, command="")
    words = said(brief_report(reading)) + said(study_report(reading))
    assert "other programs ran on its CPUs" in words
    assert not any(one in words for one in ("others used", "Other programs", "then type:"))


def test_on_a_quiet_machine_there_is_nothing_to_say(tmp_path):
    assert study(tmp_path / "a.prony", *[(0.02, BROWSER)] * 5).others is None


def test_of_several_attempts_the_last_counts(tmp_path):
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(SECOND))
    cell, path = build.Cell(1, build.subject("a+x"), load), tmp_path / "a.prony"
    plan = build.Plan("study", "", "", "quick", (cell,), 1, 1)
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for attempt, share in enumerate((0.3, 0.01)):
            made = build.trial(cell, 0, attempt, [1_000_000] * 500, attempt=attempt)
            writer.append(beside(made, share, COMPILER))
    with open_archive(path) as archive:
        assert read_archive(archive).others is None


def test_a_search_names_who_disturbed_it(tmp_path):
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(SECOND))
    cell, path = build.Cell(1, build.subject("a+x"), load), tmp_path / "a.prony"
    with build.create(path, build.Plan("study", "", "", "quick", (cell,), 5, 1), build.FINGERPRINT) as writer:
        writer.record_cell(replace(cell, id=9), TrialRole.FIND_RATE)
        trial = build.trial(replace(cell, id=9), 0, 0, [1_000_000] * 100)
        writer.append(replace(beside(trial, 0.3, COMPILER), role=TrialRole.FIND_RATE))
    with open_archive(path) as archive:
        assert read_archive(archive).others.busiest == (COMPILER,)


def test_a_hostile_name_is_cleaned_and_no_share_is_more_than_all_of_them(tmp_path):
    hostile = OtherProgram("\x1b[2J\n\u202e" + "x" * 1000, 1e9)
    (found,) = study(tmp_path / "a.prony", (0.3, hostile)).others.busiest
    assert found.name.isprintable()
    assert len(found.name) <= 33
    assert found.share == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        (["prony run a.toml", "prony run b.toml"], "prony run a.toml"),
        (["", "prony run b.toml"], "prony run b.toml"),
        (["prony run a; rm -rf ~ $(x) `y`"], "prony run 'a;' rm -rf '~' '$(x)' '`y`'"),
        (["rm -rf ~"], ""),
        (["prony run 'a"], ""),
        (["prony run a\nrm b"], ""),
        (["prony run \x1b[2Ja"], ""),
        (["prony " + "x" * 20_000], ""),
        ([], ""),
    ],
)
def test_a_command_of_an_archive_is_one_of_prony_and_of_no_shell(commands, said):
    assert command_of(commands) == said
