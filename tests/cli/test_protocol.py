"""The options of a study's protocol, and a study that goes on: what is refused, and what the rest means."""

import shlex

import pytest

from prony.archive import create, resume
from prony.core.users import resolve_user
from prony.machine.fingerprint import brief_fingerprint
from prony.model.facts import Fingerprint, Floor
from prony.model.subject import Interface
from prony.sandbox.choice import Available
from prony.study.calibration import keep_floors

APP = ("--app", "shop:app", "--servers", "wsgiref,waitress")
OUT = ("--out", "out.prony")


def test_ones_own_app_is_warmed_up_for_three_seconds_unless_the_user_says_otherwise(run):
    for arguments, warmup_ns in (((), 3_000_000_000), (("--warmup", "200ms"), 200_000_000)):
        run(*APP, *arguments, "--out", f"{warmup_ns}.prony")
        assert {cell.workload.warmup_ns for cell in run.task.plan.cells} == {warmup_ns}


# --- protocol ---------------------------------------------------------------------------------------------


def test_sessions_repeat_all_blocks_and_keep_their_pause(run):
    assert run(*APP, "--repeats", "4", "--sessions", "3", "--pause", "10m", *OUT).status == 130
    plan = run.task.plan
    assert (plan.blocks, plan.session_blocks, plan.design.sessions) == (12, 4, 3)
    assert plan.design.pause_ns == 600_000_000_000


def test_a_dry_run_names_the_sessions_and_counts_their_pauses(run):
    out = run(*APP, "--repeats", "4", "--sessions", "3", "--pause", "10m", "--pilot", "0s", "--dry-run").out
    assert "3 sessions of 4 blocks, 600 s apart" in out
    assert "about 2" in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("sessions", "words"),
    [
        (3, "3 sessions are too few for a verdict, which needs five: the report shows their range"),
        (6, "each session counts once: what they find depends on how days differ"),
    ],
)
def test_a_dry_run_promises_no_power_of_blocks_where_sessions_count(run, sessions, words):
    out = run(*APP, "--repeats", "4", "--sessions", str(sessions), "--pilot", "0s", "--dry-run").out
    assert words in out
    assert "nine times in ten" not in out


def test_a_close_look_is_part_of_the_design(run):
    assert run(*APP, "--confirm", "switches", "--confirm", "gil", "--confirm", "gil", *OUT).status == 130
    plan = run.task.plan
    assert plan.design.confirm == ("switches", "gil")


def test_a_dry_run_says_that_a_close_look_counts_for_no_figure(run):
    out = run(*APP, "--confirm", "switches", "--dry-run").out
    assert "after the last block a close look at each cell (switches), which counts for no figure" in out


def test_a_close_look_needs_cells_and_a_search_has_none(run):
    done = run(*APP, "--confirm", "switches", "--find-rate", "p99 < 50ms", *OUT)
    assert done.status == 2
    assert "`--confirm switches` and `--find-rate` exclude each other" in done.err


def test_a_dry_run_says_how_long_the_pilot_takes(run):
    out = run(*APP, "--repeats", "5", "--pilot", "20s", "--dry-run").out
    looks = "pilot before the first block: 2 cells from a fresh start, about 31 s, at most 3 min;"
    assert looks in out
    assert "that is not warm by then gets a longer warm-up, up to 20.0 s" in out
    assert "pilot" not in run(*APP, "--repeats", "5", "--pilot", "0s", "--dry-run").out


@pytest.mark.parametrize(
    ("words", "pilot_s"),
    [
        (("--repeats", "5"), 30),
        (("--repeats", "4"), None),
        (("--repeats", "4", "--pilot", "10s"), 10),
        (("--precision", "2%"), 30),
    ],
)
def test_a_pilot_needs_five_blocks_or_to_be_asked_for(run, words, pilot_s):
    run(*APP, *words, *OUT)
    assert run.task.plan.design.pilot_ns == (None if pilot_s is None else pilot_s * 10**9)


def test_a_search_has_no_pilot(run):
    run(*APP, "--repeats", "5", "--find-rate", "p99 < 50ms", *OUT)
    assert run.task.plan.design.pilot_ns is None
    done = run(*APP, "--pilot", "10s", "--find-rate", "p99 < 50ms", *OUT)
    assert "`--pilot 10s` and `--find-rate` exclude each other" in done.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--pause", "1h"), "`--pause` only works with `--sessions`"),
        (("--sessions", "3", "--precision", "2%"), "`--sessions 3` and `--precision` exclude each other"),
        (
            ("--sessions", "3", "--find-rate", "p99 < 50ms"),
            "`--sessions 3` and `--find-rate` exclude each other",
        ),
    ],
)
def test_sessions_have_fixed_blocks(run, arguments, why):
    done = run(*APP, *arguments, *OUT)
    assert done.status == 2
    assert why in done.err


@pytest.mark.parametrize(
    ("arguments", "looks", "budget_ns"),
    [
        ((), (10, 15, 20), None),
        (("--max-repeats", "15"), (10, 15), None),
        (("--max-repeats", "10", "--budget", "30m"), (10,), 1_800_000_000_000),
    ],
)
def test_a_precision_is_planned_looks(run, arguments, looks, budget_ns):
    assert run(*APP, "--precision", "2%", *arguments, *OUT).status == 130
    precision = run.task.plan.design.precision
    assert (precision.target, precision.looks, precision.budget_ns) == (0.02, looks, budget_ns)
    assert run.task.plan.blocks == looks[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--max-repeats", "15"), "`--max-repeats` only works with `--precision`"),
        (("--budget", "30m"), "`--budget` only works with `--precision`"),
        (("--precision", "2%", "--max-repeats", "12"), "only after 10, 15 or 20 blocks"),
        (("--precision", "2%", "--repeats", "5"), "the figures decide how many blocks there are"),
        (("--precision", "0%"), "expected more than 0 %"),
        (("--precision", "fine"), "`--precision fine`"),
        (("--precision", "2%", "--budget", "soon"), "`--budget`"),
        (("--find-rate", "p99"), "`--find-rate`: `p99` is not a condition"),
        (("--find-rate", "speed < 3"), "`speed` is not a metric"),
        (("--find-rate", "p99 < 5ms", "--precision", "2%"), "expected one of them"),
        (("--cross-check", "nothing"), "there is no engine `nothing`"),
        (("--cross-check", "prony"), "checks nothing"),
    ],
)
def test_a_protocol_that_means_nothing_is_refused(run, arguments, words):
    done = run(*APP, *arguments, *OUT)
    assert (done.status, run.task) == (2, None), done.err
    assert words in done.err


def test_a_search_has_one_cell_for_each_subject(run):
    run(*APP, "-c", "1,2", "--find-rate", "p99 < 50ms, errors < 0.1%", *OUT)
    plan = run.task.plan
    assert [cell.subject.name for cell in plan.cells] == ["wsgiref+shop", "waitress+shop"]
    assert plan.design.find_rate == "p99 < 50ms, errors < 0.1%"


@pytest.mark.parametrize(("option", "calibrated"), [((), True), (("--no-calibration",), False)])
def test_calibration_is_there_unless_it_is_left_out(run, option, calibrated):
    run(*APP, *option, *OUT)
    assert (run.task.plan.calibration is not None) is calibrated


def test_calibration_is_of_the_built_in_app_even_if_a_users_app_has_its_name(run, folder):
    (folder / "hello.py").write_text("app = None\n")
    run("--app", "hello:app", "--servers", "wsgiref", *OUT)
    assert run.task.plan.cells[0].subject.app.folder == str(folder)
    assert run.task.plan.calibration.subject.app.contract.checks


def test_a_dry_run_tells_looks_and_budget(run):
    done = run(*APP, "--precision", "2%", "--budget", "30m", "--dry-run")
    assert "2 cells x 10 to 20 blocks" in done.out
    assert (
        "looks after 10, 15, 20 blocks, until intervals of ±2 % or verdicts, or 30 min are over" in done.out
    )
    assert "52 to 102 trials, about " in done.out


def test_a_dry_run_says_what_difference_it_will_find(run):
    usual = run(*APP, "--repeats", "10", "--dry-run").out
    far = "where one trial in twenty is far off, nine times in ten"
    for noise, least in ((2, "6 %, or 16 %"), (5, "12 %, or 39 %")):
        assert f"with noise of {noise} % in a trial, 10 blocks find a difference of {least} {far}" in usual
    assert "find" not in run(*APP, "--repeats", "3", "--dry-run").out


def test_a_dry_run_says_it_by_the_noise_of_this_machine_where_that_is_known(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))
    # The floor of 3 % is 1.96 standard errors of 10 blocks: 3.4 % in a trial, of which a pair has two.
    floors = [Floor("ok_per_s", "closed", 10, 0.03), Floor("response_ok_p99", "open", 10, 0.3)]
    keep_floors(resolve_user(), brief_fingerprint(), floors)
    known = run(*APP, "--repeats", "10", "--dry-run").out
    (line,) = [line for line in known.splitlines() if "nine times in ten" in line]
    assert line.startswith(
        "with the noise of this machine (3.4 % in a trial), 10 blocks find a difference of 9 %, or 26 % "
    )
    # A floor of more blocks is none of fewer, which vary more.
    fewer = run(*APP, "--repeats", "7", "--dry-run").out
    assert "with noise of 2 % in a trial, 7 blocks find" in fewer


def test_a_dry_run_tells_a_search(run):
    done = run(*APP, "--find-rate", "p99 < 50ms", "--dry-run")
    assert "for each subject a search for the highest rate at which p99 < 50ms" in done.out
    assert "and 5 fresh trials at the rate that it finds" in done.out
    assert "open loop at the rates of the search" in done.out and "closed loop" not in done.out


def test_a_dry_run_counts_no_cross_check_that_the_generator_cannot_make(run, monkeypatch):
    monkeypatch.setattr("prony.study.admission.not_installed", lambda engine: None)
    closed = run(*APP, "--cross-check", "wrk,ab", "--dry-run")
    assert "cross-check: 2 cells measured again in each block by wrk" in closed.out
    assert "47 trials, about " in closed.out
    opened = run(*APP, "--rate", "100", "--cross-check", "wrk,ab", "--dry-run")
    assert "cross-check:" not in opened.out
    assert "wrk is left out: " in opened.out and "ab is left out: " in opened.out
    assert "27 trials, about " in opened.out


STUDY = """\
format = 1
name = "one"
title = "One server"

[sandbox]
kind = "process"

[[subjects]]
server = "wsgiref"
app = "hello"

[[workloads]]
loop = "closed"
connections = [1, 10]

[profiles.quick]
blocks = 1
duration = "1s"
cross_check = { engines = ["wrk", "ab"], connections = 10 }
"""


@pytest.fixture
def study(folder):
    (folder / "one.toml").write_text(STUDY)


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    ("typed", "checked"),
    [((), {("wrk", 10), ("ab", 10)}), (("--cross-check", "ab"), {("ab", 1), ("ab", 10)})],
)
def test_a_profile_names_other_generators_unless_others_are_typed(run, typed, checked):
    run("one.toml", *typed, *OUT)
    assert {(one.engine.name, one.load["connections"]) for one in run.task.cross_checks} == checked


@pytest.mark.usefixtures("study")
def test_a_study_names_its_sandbox_unless_another_is_typed(run, monkeypatch):
    monkeypatch.setattr("prony.sandbox.groups.look", lambda kinds: Available())
    for typed, kind in (((), "process"), (("--sandbox", "container"), "container")):
        run("one.toml", *typed, "--out", f"{kind}.prony")
        assert {cell.sandbox.kind for cell in run.task.plan.cells} == {kind}


# --- going on ---------------------------------------------------------------------------------------------


def test_the_same_command_goes_on_with_the_same_plan(run):
    typed = (*APP, "--seed", "7", "--cross-check", "ab", *OUT)
    run(*typed)
    begun = run.task
    assert not begun.resumes
    assert run(*typed).status == 130
    assert run.task.resumes
    assert run.task.plan == begun.plan
    assert run.task.cross_checks == begun.cross_checks
    assert len(begun.cross_checks) == 2


def test_the_whole_command_is_printed_at_the_start_and_at_an_interruption(run):
    own = ("--app", "shop:app", "--servers", "wsgiref", "--env", "TOKEN=s3cret", "-H", "X-Api-Key: s3cret")
    masked = "--env TOKEN=... -H 'X-Api-Key: ...' --out 'my out.prony' --no-html"
    printed = f"`prony run --app shop:app --servers wsgiref {masked}`"
    done = run(*own, "--out", "my out.prony")
    assert f"to go on after an interruption, type again: {printed}" in done.err
    assert f"interrupted; to go on, type again: {printed}" in done.err
    assert "s3cret" not in done.err


def test_the_command_for_another_archive_has_neither_this_one_nor_secrets(run):
    own = (*APP, "--env", "TOKEN=s3cret")
    for out in (OUT, ("--out=out.prony",)):
        run(*own, *out)
        typed = shlex.join(["prony", "run", *own, "--no-html"])
        assert run.task.command == typed.replace("s3cret", "...")


def test_a_printed_command_names_the_archive_that_nobody_typed(run, folder):
    done = run(*APP)
    (made,) = folder.glob("*.prony")
    printed = f"`prony run {shlex.join(APP)} --no-html --out {made.name}`"
    assert done.err.count(printed) == 2
    assert run(*APP, "--out", made.name).status == 130
    assert run.task.resumes


@pytest.mark.parametrize("words", [("--env", "TOKEN=..."), ("-H", "Authorization: ...")])
def test_a_printed_command_is_not_typed_without_its_secrets(run, words):
    run(*APP, words[0], words[1].replace("...", "x"), *OUT)
    run.task = None
    done = run(*APP, *words, *OUT)
    assert (done.status, run.task) == (2, None)
    assert f"`{words[0]} '{words[1]}'`: `...` stands for the value" in done.err


@pytest.mark.parametrize(
    ("words", "difference"),
    [
        (("--seed", "3"), "seed was 1, is 3"),
        (("--repeats", "2"), "blocks was 5, is 2"),
        (("-c", "20"), "cell.0.workload.loop.connections was 10, is 20"),
        (("--path", "/basket"), 'cell.0.workload.request.path was "/", is "/basket"'),
        (("--set", "waitress.threads=8"), "cell.1.subject.settings.threads was absent, is 8"),
        (("--no-calibration",), "is absent"),
        (("--cross-check", "ab"), "was absent, is {"),
        (("--run-as", "root"), 'cell.0.sandbox.run_as was null, is "root"'),
        (("--allow-errors", "5%"), "design.allow_errors was absent, is 0.05"),
        (("--env", "POOL=4"), 'environment_names was [], is ["POOL"]'),
    ],
)
def test_other_words_are_another_study_and_what_differs_is_said(run, words, difference):
    run(*APP, *OUT)
    run.task = None
    done = run(*APP, *words, *OUT)
    assert (done.status, run.task) == (2, None)
    (line,) = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: `out.prony` holds another study: ")
    assert difference in line
    assert "hint: name another file with `--out`" in done.err


def test_an_app_that_changed_is_another_study(run, folder):
    run(*APP, *OUT)
    run.task = None
    (folder / "shop.py").write_text("app = 1\n")
    done = run(*APP, *OUT)
    assert (done.status, run.task) == (2, None)
    assert "holds another study: cell.0.subject.app.digest was " in done.err


def test_secrets_are_typed_anew_and_taken_from_no_archive(run):
    typed = (*APP, "--env", "TOKEN=x", "-H", "Authorization: Bearer y", *OUT)
    run(*typed)
    begun = run.task
    run(*typed)
    assert run.task.plan.cells == begun.plan.cells


def test_a_command_a_program_and_a_generator_of_ones_own_go_on(run, folder):
    for name in ("serve", "load"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    (folder / "index.php").write_text("<?php")
    for typed in (
        ("--command", "mine=./serve {port}", "--out", "a.prony"),
        ("--app", ".", "--out", "b.prony"),
        ("load-scripts", "--engine", "./load {url}", "--out", "c.prony"),
        ("embedded-servers", "--only", "*flask*", "--out", "d.prony"),
    ):
        run(*typed)
        begun = run.task
        assert run(*typed).status == 130
        assert run.task.resumes
        assert (run.task.plan, run.task.catalog) == (begun.plan, begun.catalog)


def test_a_study_may_be_narrowed_to_the_generator_that_was_added(run, folder):
    (folder / "load").write_text("#!/bin/sh\n")
    run("load-scripts", "--engine", "./load {url}", "--only", "load", *OUT)
    assert [cell.engine.name for cell in run.task.plan.cells] == ["load"]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--allow-errors", "5"], "`5` is not a percentage"),
        (["--allow-errors", "101%"], "expected at most `100%`"),
        (["--allow-errors", "5%", "--find-rate", "p99 < 50ms"], "exclude each other"),
        (["--engine", "wkr"], "there is no engine `wkr`"),
        (["--engine", "./x {uri}"], "found `{uri}`"),
    ],
)
def test_what_it_allows_and_its_generator_are_checked_before_anything_starts(run, typed, words):
    refused = run("--app", "shop:app", *typed, *OUT)
    assert refused.status == 2
    assert words in refused.err


def test_errors_that_are_allowed_and_the_generator_are_the_plans(run):
    run("--app", "shop:app", "--allow-errors", "5%", "--engine", "wrk", *OUT)
    assert run.task.plan.design.allow_errors == 0.05
    assert {cell.engine.name for cell in run.task.plan.cells} == {"wrk"}
    assert run.task.plan.calibration is None or run.task.plan.calibration.engine.name == "prony"


def test_all_that_is_expected_of_replies_is_the_loads(run):
    expected = ["--expect-status", "200,3xx", "--expect-header", "A: b", "--expect-body-contains", "soup"]
    run("--app", "shop:app", *expected, *OUT)
    load = run.task.plan.cells[0].workload
    assert load.expect_statuses == ((200, 200), (300, 399))
    assert (load.expect_headers, load.expect_body_contains) == ((("A", "b"),), (b"soup",))


def test_options_of_servers_are_refused_for_a_program(run, folder):
    (folder / "index.php").write_text("<?php")
    refused = run("--app", ".", "--servers", "gunicorn", *OUT)
    assert refused.status == 2
    assert (
        "`--servers` does not apply to `--app .`, a program that serves by itself (index.php)" in refused.err
    )


def test_a_page_in_php_is_an_app_of_the_servers_that_are_named(run, folder):
    (folder / "public").mkdir()
    (folder / "public" / "index.php").write_text("<?php")
    typed = ("--app", "public/index.php", "--servers", "php-fpm@nginx,uwsgi-php")
    begun = run(*typed, *OUT)
    assert ": php (its name); modules of the system" in begun.out + begun.err
    (first, second) = run.task.plan.subjects()
    assert (first.name, second.name) == ("php-fpm@nginx+index", "uwsgi-php+index")
    assert (first.app.targets, first.app.root) == ({Interface.PHP: "index.php"}, "public")
    assert run(*typed, *OUT).status == 130
    refused = run("--app", ".", "--servers", "php-fpm@nginx", *OUT)
    assert "name an app that servers run, --app public/index.php" in refused.err


def test_a_complete_study_is_reported_and_not_run(run, folder):
    run(*APP, *OUT)
    run.task = None
    with resume(folder / "out.prony", Fingerprint()) as writer:
        writer.finish()
    before = (folder / "out.prony").read_bytes()
    done = run(*APP, *OUT)
    assert run.task is None
    assert "`out.prony` is complete: no trial is left to run" in done.err
    assert "Archive: out.prony" in done.out
    assert (folder / "out.prony").read_bytes() == before


def test_an_archive_without_trials_is_never_removed(run, folder):
    run(*APP, *OUT)
    (folder / "out.prony").unlink()
    create(folder / "out.prony", run.task.plan, Fingerprint()).close()
    assert run(*APP, *OUT).status == 130
    assert run.task.resumes
    assert (folder / "out.prony").exists()


@pytest.mark.parametrize("content", [b"", b"not an archive"])
def test_what_is_no_archive_is_kept(run, folder, content):
    (folder / "out.prony").write_bytes(content)
    done = run(*APP, *OUT)
    assert (done.status, run.task) == (2, None)
    assert "`out.prony` exists already" in done.err
    assert (folder / "out.prony").read_bytes() == content
