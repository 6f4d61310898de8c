"""What the reports of studies and load runs say, against golden files; and what they must never do."""

import io
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from golden import build, generators, studies
from prony.archive import open_archive
from prony.catalog.schema.loader import load_catalog
from prony.cli.documents.calibration import host_document
from prony.core.errors import ArchiveError
from prony.figures.validity import in_words
from prony.model.facts import Fingerprint, FoundRate, RateBoundary, RateStep, RunFacts, Unmet
from prony.model.json_codec import encode
from prony.model.limit import Limit, LimitKind
from prony.model.observation import LogTail
from prony.model.plan import Plan
from prony.model.recording import Queue
from prony.model.trial import Fault, FaultKind, Invalid
from prony.reading.load import read_load
from prony.reading.study import read_archive
from prony.report.brief import brief_report
from prony.report.formats.as_json import document_json, reading_json
from prony.report.formats.markdown import markdown
from prony.report.formats.terminal import TerminalReporter
from prony.report.load import load_document
from prony.report.sections.head import differences
from prony.report.study import study_report
from recordings import recording_of, with_parts

GOLDEN = Path(__file__).parents[1] / "golden"
# Of the golden texts; what holds at any other is in `test_widths`.
WIDTH = 120


@pytest.fixture(scope="module", params=["study_two", "closed_study"])
def archive(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("golden") / f"{request.param}.prony"
    with open_archive(getattr(build, request.param)(path)) as archive:
        yield request.param, archive


REPEATS = {
    "grid_study": studies.grid_study,
    "count_study": studies.count_study,
    "generators_study": generators.generators_study,
    "checked_study": generators.checked_study,
}


@pytest.fixture(scope="module", params=REPEATS)
def repeat(request, tmp_path_factory):
    """An archive of a study that repeats a published experiment, or holds its figures against others."""
    path = tmp_path_factory.mktemp("golden") / f"{request.param}.prony"
    with open_archive(REPEATS[request.param](path)) as archive:
        yield request.param, archive


whole = cache(read_archive)
"""The reading of an archive of `archive` or `repeat`, once."""


def shown(document, width):
    out = io.StringIO()
    TerminalReporter(Console(file=out, width=width, highlight=False)).write(document)
    return out.getvalue()


def undated(text):
    return re.sub(r"Measured on [^\n]+", "Measured on DATE.", text)


def check(name, text, update):
    path = GOLDEN / name
    if update:
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def rounded(value):
    """Figures to 9 digits: the last ones differ between builds of the special functions."""
    match value:
        case dict():
            return {key: rounded(each) for key, each in value.items()}
        case list() | tuple():
            return [rounded(each) for each in value]
        case float():
            return float(f"{value:.9g}")
        case _:
            return value


def sample_of(report):
    """Without stamps, and with the first cell of each group: the others have the same keys."""
    runs = [{**run, "started_unix_ns": 0, "ended_unix_ns": 0, "prony_version": ""} for run in report["runs"]]
    groups = [{**group, "cells": group["cells"][:1]} for group in report["groups"]]
    return {**report, "runs": runs, "groups": groups, "order": report["order"][:2]}


def test_the_terminal_report(archive, update_golden):
    name, opened = archive
    text = shown(study_report(whole(opened)), WIDTH)
    check(f"{name}.txt", undated(text), update_golden)


def test_the_terminal_report_of_a_repeat(repeat, update_golden):
    name, opened = repeat
    text = shown(study_report(whole(opened)), WIDTH)
    check(f"{name}.txt", undated(text), update_golden)


def test_the_json_report(archive, update_golden):
    name, opened = archive
    report = json.dumps(rounded(sample_of(reading_json(whole(opened)))), indent=1, allow_nan=False)
    check(f"{name}.json", report + "\n", update_golden)


def test_a_search_alone_ends_in_the_highest_rate_that_was_confirmed(tmp_path):
    plan = build_plan()
    tried = (RateStep(100.0, True),)
    found = (
        FoundRate("a+b", 250.0, 5, 5, (*tried, RateStep(255.0, False, "x"))),
        FoundRate("c+b", 900.0, 4, 5, tried),
        FoundRate("d+b", None, 0, 0, tried),
    )
    cell = replace(plan.cells[0], id=9)
    with build.create(tmp_path / "a.prony", plan, Fingerprint()) as writer:
        writer.record_subject(build.SubjectRecord("c+b", command_line="start c"))
        writer.record_cell(cell, build.TrialRole.FIND_RATE)
        trial = build.trial(cell, 0, 0, [1_000_000] * 100)
        writer.append(replace(trial, role=build.TrialRole.FIND_RATE))
        writer.record_facts(RunFacts(found_rates=found))
    text = text_of(tmp_path / "a.prony")
    assert "1 trial of a search (seed 1)." in text
    assert "No trial was run" not in text
    lines = text.rstrip().splitlines()
    assert "c+b: ≥ 900/s, met in 4 of 5 fresh trials." in lines
    assert any("a+b: 250/s, met in 5 of 5 fresh trials." in line for line in lines)
    assert lines[-1].strip() == "start c"


@pytest.mark.parametrize("highest", [(RateStep(255.0, False, "x"),), ()])
def test_a_rate_below_which_one_is_a_bound_is_not_the_highest(tmp_path, highest):
    tried = (RateStep(100.0, True),)
    found = (
        FoundRate("a+b", 250.0, 5, 5, (*tried, *highest)),
        FoundRate("c+b", 200.0, 5, 5, (*tried, RateStep(400.0, None, "it slept"))),
    )
    with build.create(tmp_path / "a.prony", build_plan(), Fingerprint()) as writer:
        writer.record_subject(build.SubjectRecord("a+b", command_line="start a"))
        writer.record_facts(RunFacts(found_rates=found))
    text = " ".join(text_of(tmp_path / "a.prony").split())
    sign = "" if highest else "≥ "
    assert (
        "Which rate is the highest is open: c+b may have a higher one, for what was found is a bound." in text
    )
    assert text.index(f"a+b: {sign}250/s, met") < text.index("c+b: ≥ 200/s, met")
    assert "start a" not in text


def boundary_at(rate):
    return RateBoundary(rate, rate - 12, rate + 12)


def test_a_rate_has_its_interval_and_one_that_fresh_trials_refute_leads_nothing(tmp_path):
    tried = (RateStep(100.0, True), RateStep(900.0, False, "x"))
    found = (
        FoundRate("a+b", 240.0, 4, 5, tried, boundary=boundary_at(250.0)),
        FoundRate("c+b", 290.0, 1, 2, tried, boundary=boundary_at(300.0)),
    )
    with build.create(tmp_path / "a.prony", build_plan(), Fingerprint()) as writer:
        writer.record_subject(build.SubjectRecord("a+b", command_line="start a"))
        writer.record_subject(build.SubjectRecord("c+b", command_line="start c"))
        writer.record_facts(RunFacts(found_rates=found))
    text = " ".join(text_of(tmp_path / "a.prony").split())
    assert "a+b: 250/s (95 % interval 238 to 262); 240/s met in 4 of 5 fresh trials." in text
    assert "c+b may have a higher one, which fresh trials do not confirm" in text
    assert "290/s met in only 1 of 2 fresh trials" in text
    assert "start" not in text


def test_trials_of_a_search_that_were_disturbed_stand_in_the_summary(tmp_path):
    cell = replace(build_plan().cells[0], id=9)
    fault = Fault(FaultKind.OTHER_LOAD, share=0.31)
    with build.create(tmp_path / "a.prony", build_plan(), Fingerprint()) as writer:
        writer.record_cell(cell, build.TrialRole.FIND_RATE)
        for attempt in range(3):
            trial = build.trial(cell, 0, attempt, [1_000_000] * 100)
            trial = replace(trial, role=build.TrialRole.FIND_RATE, attempt=attempt)
            spoilt = replace(trial, outcome=Invalid(in_words(fault)), fault=fault)
            writer.append(spoilt if attempt < 2 else trial)
        writer.record_facts(RunFacts(found_rates=(FoundRate("a+b", 100.0, 0, 0, (RateStep(100.0, True),)),)))
    with open_archive(tmp_path / "a.prony") as archive:
        said = markdown(brief_report(read_archive(archive)))
    assert "no disturbance seen" not in said
    assert "2 of 3 trials of the search were disturbed" in said


def test_fresh_trials_that_could_not_be_decided_are_shown_apart(tmp_path):
    tried = (RateStep(100.0, True),)
    found = (FoundRate("a+b", 250.0, 3, 3, tried, unknown=2), FoundRate("c+b", 100.0, 0, 0, tried, unknown=1))
    with build.create(tmp_path / "a.prony", build_plan(), Fingerprint()) as writer:
        writer.record_facts(RunFacts(found_rates=found))
    text = text_of(tmp_path / "a.prony")
    assert "a+b: ≥ 250/s, met in 3 of 3 fresh trials; 2 more could not be decided." in text
    assert "c+b: ≥ 100/s, met in 0 of 0 fresh trials; 1 more could not be decided." in text


def test_a_search_that_could_decide_nothing_says_so(tmp_path):
    busy = Limit(LimitKind.BUSY, share=0.95)
    slow = Unmet("p99 < 50ms", "response_all_p99", 61.2e6)
    step = RateStep(400.0, None, "the generator may have been the limit", unmet=slow, limit=busy)
    with build.create(tmp_path / "a.prony", build_plan(), Fingerprint()) as writer:
        writer.record_facts(RunFacts(found_rates=(FoundRate("a+b", None, 0, 0, (step,)),)))
    text = " ".join(text_of(tmp_path / "a.prony").split())
    assert "No subject met the objective" not in text
    assert "No rate was found that meets the objective; not every search could decide" in text
    assert "at 400/s the search could not decide: not `p99 < 50ms`: it was 61.2 ms (the generator may" in text


def test_a_step_that_the_generator_alone_leaves_open_says_so_once(tmp_path):
    busy = Limit(LimitKind.BUSY, share=0.95)
    step = RateStep(400.0, None, "the generator may have been the limit", limit=busy)
    with build.create(tmp_path / "a.prony", build_plan(), Fingerprint()) as writer:
        writer.record_facts(RunFacts(found_rates=(FoundRate("a+b", None, 0, 0, (step,)),)))
    text = " ".join(text_of(tmp_path / "a.prony").split())
    assert "could not decide: the generator may have been the limit (a worker thread was busy 95 %" in text


def test_the_json_report_of_a_repeat_can_be_written_and_says_what_the_page_says(repeat):
    name, opened = repeat
    report = json.loads(json.dumps(reading_json(whole(opened)), allow_nan=False))
    expected = {
        "grid_study": {"claims", "originals", "calibration"},
        "count_study": {"originals"},
        "generators_study": {"claims", "originals"},
        "checked_study": {"cross_checks", "found_rates"},
    }
    parts = {"claims", "originals", "calibration", "cross_checks", "found_rates"}
    assert {part for part in parts if report[part]} == expected[name]
    assert report["groups"][0]["of_generators"] is (name == "generators_study")


def first_recording(opened, cell_id):
    return next(r.trial.recording for r in opened.trials() if r.trial.cell_id == cell_id)


def test_the_report_of_a_load_run(archive, update_golden):
    name, opened = archive
    recording = first_recording(opened, 4 if name == "study_two" else 1)
    check(f"{name}.load.txt", shown(load_document(read_load(recording)), 100), update_golden)
    result = {
        **document_json(read_load(recording)),
        "series": document_json(read_load(recording))["series"][:1],
    }
    check(f"{name}.load.json", json.dumps(rounded(result), indent=1, allow_nan=False) + "\n", update_golden)


def test_a_load_whose_limit_of_requests_in_flight_bound_labels_its_latencies(archive):
    name, opened = archive
    if name != "study_two":
        pytest.skip("closed loops have no such limit")
    recording = first_recording(opened, 4)
    bound = replace(recording, queue=Queue(900, 400, 1024, 3_200_000_000))
    text = shown(load_document(read_load(bound)), 200)
    label = "An open loop until 3.20 s into the window, a closed one from then on."
    assert text.index("Latency") < text.index(label) < text.index("Generator\n")
    assert "at most 1,024 requests in flight" in text
    assert label not in shown(load_document(read_load(recording)), 200)


def test_the_last_lines_are_the_answer_and_the_command(archive):
    name, opened = archive
    lines = shown(study_report(whole(opened)), 120).rstrip().splitlines()
    leader = "gunicorn+falcon-hello" if name == "study_two" else "bjoern+hello"
    assert lines[-1].strip() == build.command_line(leader)
    assert any(line.startswith(leader) for line in lines[-7:])


def test_few_blocks_are_said_first(archive):
    name, opened = archive
    lines = shown(study_report(whole(opened)), 120).splitlines()
    assert lines[2].startswith("3 blocks are too few for verdicts") is (name == "study_two")


def test_what_a_server_wrote_does_not_steer_the_terminal(tmp_path):
    path = build.study_two(tmp_path / "a.prony", 2)
    with open_archive(path) as opened:
        text = shown(study_report(read_archive(opened)), 120)
    assert "MemoryError: out of memory" in text
    assert all(character == "\n" or character.isprintable() for character in text)


def test_missing_is_never_zero_or_nan(archive):
    _, opened = archive
    text = shown(study_report(whole(opened)), 200)
    assert "nan" not in text.lower()
    assert "None" not in text


def test_a_study_with_no_trials_still_reports(tmp_path):
    with build.create(tmp_path / "a.prony", build_plan(), Fingerprint()):
        pass
    with open_archive(tmp_path / "a.prony") as opened:
        text = shown(study_report(read_archive(opened)), 100)
        assert json.dumps(reading_json(read_archive(opened)), allow_nan=False)
    assert "No trial was run." in text
    assert "no answer: no subject qualifies." in text
    assert "unknown machine" in text


def build_plan():
    cell = build.Cell(
        1, build.subject("a+b"), build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
    )
    return build.Plan("study", "", "", "quick", (cell,), 5, 1)


def test_a_run_in_which_nothing_was_sent_is_said_so():
    workload = build.Workload(build.OpenLoop(10), build.DurationStop(build.SECOND))
    text = shown(load_document(read_load(build.recording(workload, []))), 80)
    assert "Nothing was sent." in text


def test_replies_that_all_came_after_the_window_are_not_called_a_rate_of_nothing():
    workload = build.Workload(build.OpenLoop(10), build.DurationStop(build.SECOND))
    recording = build.recording(workload, [2_000_000_000] * 10)
    late = with_parts(recording, completed={"ok": 0, "failed": 0})
    text = shown(load_document(read_load(late)), 120)
    assert "0.00 /s" not in text
    assert "Nothing was answered as expected within the window of" in text
    assert "10.0 /s due, 100 % of them" in text


def test_a_rate_that_was_not_sent_is_said_in_the_first_line():
    workload = build.Workload(build.OpenLoop(200), build.DurationStop(build.SECOND))
    generator = {"limited": "no", "evidence": [], "sent_in_window": 150}
    text = load_text(workload, [1_000_000] * 200, generator=generator)
    assert text.splitlines()[2].startswith(
        "Short of the rate: 150 requests were sent within the window, and 200"
    )


def test_what_economical_pacing_adds_is_said_with_its_figures():
    workload = build.Workload(build.OpenLoop(200), build.DurationStop(build.SECOND))
    engine = {"name": "prony-engine", "version": "1", "driver": "epoll", "threads": 1, "pacing": "economical"}
    text = load_text(workload, [1_000_000] * 200, engine=engine)
    assert "Economical pacing: requests went out late, by 30.0 µs at p50, 39.8 µs at p99." in text


def load_text(workload, *arguments, **changes):
    recording = build.recording(workload, *arguments)
    return shown(load_document(read_load(with_parts(recording, **changes))), 120)


CLOSED = build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))


def test_a_closed_loop_has_no_pacing():
    engine = {"name": "prony-engine", "version": "1", "driver": "epoll", "threads": 2, "pacing": None}
    text = load_text(CLOSED, [1_000_000] * 100, engine=engine)
    assert "prony-engine 1, epoll, 2 threads\n" in text


def test_the_title_of_a_load_names_its_target_and_request():
    request = {"method": "GET", "path": "/a?b=1"}
    load = {**encode(CLOSED), "request": request}
    spec = {"target": {"host": "::1", "port": 80}, "workload": load}
    text = load_text(CLOSED, [1_000_000] * 100, spec=spec)
    assert text.startswith("Load on [::1]:80: GET /a?b=1\n")


def test_error_samples_that_are_alike_are_shown_once():
    samples = [{"class": "reset", "detail": "os error 104", "at_ns": at} for at in range(5)]
    text = load_text(CLOSED, [1_000_000] * 100, {"reset": 5}, error_samples=samples)
    assert text.count("os error 104") == 1


def test_refused_connections_are_not_said_to_be_nothing_sent():
    text = load_text(CLOSED, [], {"connect_refused": 1200}, window={"open_ns": None})
    assert "Nothing was sent." not in text
    assert "connection refused" in text
    assert "0 of 1,200 answered as expected" in text
    assert "all requests failed, which counts as infinite" in text


def test_a_run_in_which_nothing_was_answered_has_no_latency():
    workload = build.Workload(build.OpenLoop(10), build.DurationStop(build.SECOND))
    text = shown(load_document(read_load(build.recording(workload, [], errors={"connect_refused": 50}))), 120)
    assert "0.00 /s answered as expected in a window of" in text
    assert "50.0 /s due, 0 % of them answered so" in text
    assert "connection refused" in text
    assert "all requests failed, which counts as infinite" in text


def test_an_external_generator_may_leave_most_out():
    workload = build.Workload(build.ClosedLoop(10), build.DurationStop(build.SECOND))
    full = build.recording(workload, [10_000_000] * 500)
    bare = recording_of(
        engine={"name": "wrk", "version": "4.2"},
        account=encode(full.account),
        completed=encode(full.completed),
        distributions={"ok_service": full.distributions.ok_service},
    )
    assert "500 /s answered" in shown(load_document(read_load(bare)), 100)
    assert document_json(read_load(bare))["generator"]["cpu_ns_per_request"] is None


@pytest.mark.parametrize(
    "damage", ['{"distributions": {}}', '{"distributions": {}, "account": 3, "window": []}']
)
def test_a_recording_of_another_shape_is_an_error_of_the_archive(tmp_path, damage):
    path = build.closed_study(tmp_path / "a.prony", 1)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE recording SET recording_json = ?", (damage,))
    with (
        open_archive(path) as opened,
        pytest.raises(ArchiveError, match="holds a Recording that cannot be read"),
    ):
        study_report(read_archive(opened))


def test_a_log_without_end_is_cut_to_its_last_lines(tmp_path):
    workload = build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
    plan = build_plan()
    trial = build.trial(
        build.Cell(1, plan.cells[0].subject, workload), 0, 0, [], outcome=build.Failed("start", "no")
    )
    trial = replace(trial, log=LogTail("\n".join(f"line {k}" for k in range(1000))))
    with build.create(tmp_path / "a.prony", plan, Fingerprint()) as writer:
        writer.append(trial)
    with open_archive(tmp_path / "a.prony") as opened:
        text = shown(study_report(read_archive(opened)), 100)
    assert "line 999" in text
    assert "line 992" in text
    assert "line 991" not in text


IMPORT = """[2] [INFO] Starting
Traceback (most recent call last):
  File "/a/one.py", line 1, in <module>
  File "/a/two.py", line 2, in <module>
    import flask
\x1b[31mModuleNotFoundError\x1b[0m: No module named 'flask'
[2] [INFO] Worker exiting
[2] [ERROR] Shutting down
[2] [ERROR] Reason: Worker failed to boot.
"""


def test_the_cause_in_a_log_is_shown_and_not_what_was_written_on_the_way_down(tmp_path):
    given = {"outcome": build.Failed("start", "exited with status 3"), "log": IMPORT}
    text = text_of(study(tmp_path / "a.prony", ("a+x", given)))
    assert "ModuleNotFoundError: No module named 'flask'" in text
    assert "    import flask" in text
    assert "Reason: Worker failed to boot." in text
    assert "Worker exiting" not in text


def test_trials_that_failed_alike_are_told_once_with_their_blocks(tmp_path):
    same = {"outcome": build.Failed("start", "no port"), "log": "same\n"}
    other = {"outcome": build.Failed("load", "died")}
    trials = [("a+x", {**(other if block == 3 else same)}) for block in range(5)]
    text = text_of(study(tmp_path / "a.prony", *trials))
    assert "a+x, 4 of 5 trials (blocks 1 to 3, 5): failed at start: no port" in text
    assert "a+x, 1 of 5 trials (block 4): failed at load: died" in text
    assert text.count("| same") == 1


class Check:
    name, level, found, wanted, command = "open files", "fail", "1,024", "10,100", "ulimit -n 10100"


def test_a_machine_that_is_not_fit_says_what_mends_it():
    text = shown(host_document(build.FINGERPRINT, [Check()]), 100)
    assert "AMD EPYC 7B13, 2 CPUs, 8.00 GiB, kernel 6.1.0-18-amd64, virtual machine" in text
    assert "    ulimit -n 10100" in text


def study(path, *trials, network=build.Network.ISOLATED):
    """An archive of trials by subject: (name, trial of a cell and block)."""
    workload = build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
    names = dict.fromkeys(name for name, _ in trials)
    cells = {name: build.Cell(k + 1, build.subject(name), workload) for k, name in enumerate(names)}
    plan = build.Plan("study", "", "", "quick", tuple(cells.values()), len(trials) // len(names), 1)
    with build.create(path, plan, Fingerprint()) as writer:
        for name in names:
            writer.record_subject(build.SubjectRecord(name, sandbox=build.SandboxFacts(network)))
        for k, (name, options) in enumerate(trials):
            values = options.pop("values", [1_000_000] * 200)
            writer.append(build.trial(cells[name], k // len(names), k % len(names), values, **options))
    return path


def text_of(path, width=110):
    with open_archive(path) as opened:
        return shown(study_report(read_archive(opened)), width)


def test_a_finding_that_subjects_share_is_told_once(tmp_path):
    busy = "a worker thread was busy"
    limits = [Limit(LimitKind.BUSY, share=share) for share in (0.9, 0.91)]
    trials = [(name, {"limited": limit}) for name, limit in zip(("a+x", "b+x"), limits, strict=True)]
    text = text_of(study(tmp_path / "a.prony", *trials, ("a+x", {}), ("b+x", {})))
    said = f"all subjects: the generator may have been the limit ({busy}): throughput may be higher"
    assert text.count(said) == text.count("the generator may have been the limit") == 1
    assert "(2 of 4 trials)" in text


def test_a_finding_of_some_subjects_names_them(tmp_path):
    trials = [(name, {"limited": build.BUSY}) for name in ("a+x", "b+x")]
    text = text_of(study(tmp_path / "a.prony", *trials, ("c+x", {})))
    assert "a+x, b+x: the generator may have been the limit (a worker thread was busy): throughput" in text


def test_findings_are_told_in_the_order_of_the_rules(tmp_path):
    counters = {"ListenOverflows": 3, "cgroup.server.oom_kills": 1}
    trials = [("a+x", {"counters": counters}), ("b+x", {"limited": build.BUSY})]
    path = study(tmp_path / "a.prony", *trials)
    with open_archive(path) as opened:
        assert [found["rule"] for found in reading_json(read_archive(opened))["findings"]] == [
            "D23",
            "D19",
            "D01",
        ]
    text = text_of(path)
    assert (
        text.index("b+x: the generator") < text.index("a+x: 1 of its processes") < text.index("a+x: 3 conn")
    )


def test_a_subject_on_an_old_interpreter_is_told_with_the_reason(tmp_path):
    server = "meinheld-cpython38"
    workload = build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
    on = {"meinheld+x": "CPython 3.11.7", f"{server}+x": "CPython 3.8.18"}
    cells = tuple(build.Cell(k, build.subject(name), workload) for k, name in enumerate(on, 1))
    remark = load_catalog().server(server).remark
    path = tmp_path / "a.prony"
    with build.create(path, build.Plan("study", "", "", "quick", cells, 1, 1), Fingerprint()) as writer:
        for name, interpreter in on.items():
            remarks = {server: remark} if server in name else {}
            record = build.SubjectRecord(
                name,
                server_version="1.0.2",
                interpreter=interpreter,
                facts=build.SubjectFacts(remarks=remarks),
            )
            writer.record_subject(record)
        for position, cell in enumerate(cells):
            writer.append(build.trial(cell, 0, position, [1_000_000] * 200))
    text = " ".join(text_of(path).split())
    assert f"meinheld 1.0.2 on CPython 3.11.7, {server} 1.0.2 on CPython 3.8.18." in text
    assert f"{server}: pinned to the old interpreter CPython 3.8, because the greenlet" in text


def test_trials_that_all_failed_leave_no_grid_of_dashes(tmp_path):
    text = text_of(study(tmp_path / "a.prony", ("a+x", {"outcome": build.Failed("start", "no port")})))
    assert "No trial counts." in text
    assert "no trial ran" not in text
    assert "—" not in text


def test_two_that_are_not_separated_are_so_without_a_guess_how_many_blocks_would(tmp_path):
    counts = ((200, 900), (900, 200), (300, 800), (700, 400), (500, 450))
    trials = [
        (name, {"values": [1_000_000] * count})
        for pair in counts
        for name, count in zip(("a+x", "b+x"), pair, strict=True)
    ]
    text = text_of(study(tmp_path / "a.prony", *trials), 200)
    assert "not separated from it (" in text
    assert "would decide" not in text and "blocks could separate" not in text


def test_seconds_are_not_shown_in_nanoseconds_when_no_reply_was_valid(tmp_path):
    given = {"values": [], "errors": {"timed_out": 50}, "censored": [10 * build.SECOND] * 50}
    text = text_of(study(tmp_path / "a.prony", ("a+x", given)))
    assert "service time, s" in text
    assert "≥ 10.0" in text


@pytest.mark.parametrize(
    ("source", "title"), [("", "About this study"), ("an article", "Where it differs from what it repeats")]
)
def test_the_notes_of_a_study_that_repeats_nothing_are_about_itself(source, title):
    plan = Plan("own", "Own", "", "quick", (), 1, 1, source=source, notes=("One thing.",))
    section = differences(SimpleNamespace(plan=plan))
    assert section is not None
    assert section.heading == title
