"""`prony report` of several archives: sessions of one plan, or the same cells of each and what differs."""

import csv
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from golden import build
from made_pages import made_page
from prony.archive import create, open_archive, resume
from prony.core.errors import FailureStage
from prony.model.plan import Cell, Claim, ClaimKind, Plan
from prony.model.trial import Failed, Invalid, Ok
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.reading.across import differences_of_plans

DAY = 24 * 3600 * build.SECOND


WORKLOAD = Workload(ClosedLoop(10), DurationStop(2 * build.SECOND))
SPEEDS = {"bjoern+hello": 500, "meinheld+hello": 440, "gunicorn+hello": 250}


def session(
    path,
    day,
    factors=(1.0, 1.0, 1.0),
    change=lambda plan: plan,
    blocks=5,
    planned=None,
    moved=lambda trial: trial,
    machine=build.FINGERPRINT,
):
    """An archive of one day, in which subjects are so many times as fast as usual, with noise of 1 %.

    `planned`: so many blocks, if these are not all; `moved`: each trial as it is written.
    """
    cells = tuple(Cell(k, build.subject(name), WORKLOAD) for k, name in enumerate(SPEEDS))
    plan = change(Plan("wsgi-servers", "WSGI servers", "", "full", cells, planned or blocks, 5))
    rng = random.Random(day)
    with create(path, plan, machine) as writer:
        for block in range(blocks):
            for place, cell in enumerate(plan.cells):
                usual = SPEEDS[cell.subject.name] * factors[place]
                trial = build.trial(cell, block, place, [1_000_000] * int(usual * (1 + rng.gauss(0, 0.01))))
                began = {"started_unix_ns": trial.started_unix_ns + day * DAY + block * build.SECOND}
                ended = {"ended_unix_ns": trial.ended_unix_ns + (day + 1) * DAY}
                writer.append(moved(replace(trial, **began, **ended)))
        writer.finish()
    return path


@pytest.fixture
def three(tmp_path):
    factors = ((1, 1, 1), (1, 1, 1.2), (1, 1.3, 1))
    return [session(tmp_path / f"{k}.prony", k, own) for k, own in enumerate(factors)]


OTHER_MACHINE = build.Fingerprint({**build.FINGERPRINT.free, "kernel": {"release": "6.2.0"}})


def words(text):
    return " ".join(text.split())


def test_several_archives_of_one_plan_are_its_sessions(said, three):
    done = said("report", *three)
    assert done.status == 0
    assert "Fewer than 5 sessions: their range, no interval, and no verdict over them." in words(done.out)
    assert re.search(r"session 3 \(2\): ", done.out)


def test_fewer_than_five_sessions_have_no_leader(said, three):
    out = words(said("report", *three).out)
    assert "no verdict: 3 sessions are too few for a verdict, which needs five." in out
    assert "bjoern+hello has the best mean" in out
    assert "is best" not in out
    assert json.loads(said("report", *three, "--json").out)["loads"][0]["answer"]["leader"] is None


def test_over_five_sessions_the_leader_leads_alone_where_all_others_are_separated(said, tmp_path):
    files = [session(tmp_path / f"{k}.prony", k) for k in range(5)]
    out = words(said("report", *files).out)
    assert "bjoern+hello is best (n = 5 sessions)" in out


def failing(*names):
    """Return a change of trials: those of these subjects fail."""

    def moved(trial):
        name = list(SPEEDS)[trial.cell_id]
        return replace(trial, outcome=Failed(FailureStage.LOAD, "it died")) if name in names else trial

    return moved


def absent(tmp_path, count, *lacking):
    """Archives of so many days; ``lacking``: the subjects that fail in each of the first of them."""
    own = [*(failing(*names) for names in lacking), *[failing()] * (count - len(lacking))]
    return [session(tmp_path / f"{k}.prony", k, moved=moved) for k, moved in enumerate(own)]


def test_who_failed_in_more_than_one_in_five_trials_is_not_compared(said, tmp_path):
    fast, middle, slow = SPEEDS
    files = absent(tmp_path, 7, (slow,), (slow,))
    out = words(said("report", *files).out)
    assert f"{fast} is best (n = 7 sessions)" in out
    assert f"Not compared, with too few trials or sessions that count: {slow}." in out
    (load,) = json.loads(said("report", *files, "--json").out)["loads"]
    assert [(row["name"], row["sessions"], row["letters"]) for row in load["rows"]] == [
        (fast, 7, "a"),
        (middle, 7, "b"),
    ]


def test_nobody_leads_by_the_sessions_in_which_it_did_not_fail(said, tmp_path):
    fast, middle, _ = SPEEDS
    files = absent(tmp_path, 6, (fast,))
    (load,) = json.loads(said("report", *files, "--json").out)["loads"]
    assert load["answer"]["leader"] == middle
    row = next(row for row in load["rows"] if row["name"] == fast)
    assert row["ratio"]["verdict"] == "not shown: its failed trials are missing"


def test_a_session_that_says_nothing_takes_no_figure_from_the_others(said, tmp_path):
    def spoilt(trial):
        return replace(trial, outcome=Invalid("the machine slept"))

    files = [session(tmp_path / "0.prony", 0, moved=spoilt), session(tmp_path / "1.prony", 1)]
    (load,) = json.loads(said("report", *files, "--json").out)["loads"]
    assert [row["sessions"] for row in load["rows"]] == [1, 1, 1]


def test_over_five_sessions_those_not_separated_from_the_leader_are_named(said, tmp_path):
    # Meinheld is as fast on some days, and slower on others.
    days = (1.2, 1.0, 1.15, 1.25, 1.05)
    files = [session(tmp_path / f"{k}.prony", k, (1, day, 1)) for k, day in enumerate(days)]
    out = words(said("report", *files).out)
    assert "shares the first place with 1 other (n = 5 sessions)" in out
    (load,) = json.loads(said("report", *files, "--json").out)["loads"]
    assert {load["answer"]["leader"], *load["answer"]["ties"]} == {"bjoern+hello", "meinheld+hello"}
    assert [row["letters"] for row in load["rows"]] == ["a", "a", "b"]
    said("report", *files, "--csv", tmp_path / "tables")
    assert [row["letters"] for row in table(tmp_path / "tables" / "across.csv")] == ["a", "a", "b"]


FASTER = Claim(
    "bjoern-faster",
    "bjoern is faster than Meinheld",
    *(ClaimKind.HIGHEST, "ok_per_s"),
    subject="bjoern*",
    against="meinheld*",
)


@pytest.mark.parametrize(("count", "verdict"), [(4, "cannot tell"), (5, "holds")])
def test_claims_are_judged_over_all_sessions(said, tmp_path, count, verdict):
    files = [session(tmp_path / f"{k}.prony", k, change=claimed) for k in range(count)]
    (claim,) = json.loads(said("report", *files, "--json").out)["claims"]
    assert (claim["verdicts"], claim["over"]["verdict"]) == (["holds"] * count, verdict)
    assert f"bjoern is faster than Meinheld: {verdict}" in words(said("report", *files).out)


SLOWER = replace(FASTER, text="Meinheld is faster than bjoern", subject="meinheld*", against="bjoern*")
OTHER = replace(FASTER, name="other")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((FASTER,), (FASTER,), ()),
        ((FASTER,), (SLOWER,), ("what claims of the same names say, or their order",)),
        ((FASTER, OTHER), (OTHER, FASTER), ("what claims of the same names say, or their order",)),
        ((FASTER, OTHER), (FASTER,), ("claims of the first alone: other",)),
    ],
)
def test_archives_of_other_claims_are_no_sessions_of_one_plan(first, second, expected):
    plan = Plan("wsgi-servers", "WSGI servers", "", "full", (), 5, 5)
    assert differences_of_plans(replace(plan, claims=first), replace(plan, claims=second)) == expected


def claimed(plan):
    return replace(plan, claims=(FASTER,))


def claim_over(said, *files):
    (claim,) = json.loads(said("report", *files, "--json").out)["claims"]
    return claim["over"]["verdict"], claim["over"]["reason"]


def test_where_one_archive_alone_says_something_its_blocks_are_no_sessions(said, tmp_path):
    def spoilt(trial):
        return replace(trial, outcome=Invalid("the machine slept"))

    files = [
        session(tmp_path / "a.prony", 0, change=claimed, blocks=8),
        session(tmp_path / "b.prony", 1, change=claimed, blocks=1, moved=spoilt),
    ]
    verdict, reason = claim_over(said, *files)
    assert verdict == "cannot tell"
    assert "1 session is too few for a verdict" in reason


def test_a_trial_that_a_later_session_repeated_is_not_lost(said, tmp_path):
    def spoilt(trial):
        return replace(trial, outcome=Invalid("the machine slept")) if trial.cell_id == 0 else trial

    # Five of twenty trials were repeated, a day later: more than one in five that are lost leave no figure.
    path = session(tmp_path / "a.prony", 0, change=claimed, moved=spoilt)
    with open_archive(path) as archive:
        trials = [record.trial for record in archive.trials()]
    with resume(path, OTHER_MACHINE) as writer:
        for one in trials:
            again = {"outcome": Ok(), "attempt": one.attempt + 1}
            writer.append(replace(one, **again, started_unix_ns=one.started_unix_ns + DAY))
        writer.finish()
    others = [session(tmp_path / f"{k}.prony", k, change=claimed, blocks=2) for k in range(2, 7)]
    assert claim_over(said, path, *others)[0] == "holds"


def test_the_verdicts_that_change_are_named(said, three):
    out = words(said("report", *three).out)
    assert "the leader of the sessions in turn" in out
    assert "meinheld+hello against bjoern+hello: in turn lower / lower / higher" in out


def test_sessions_that_agree_are_said_to(said, tmp_path):
    same = [session(tmp_path / f"{k}.prony", k) for k in range(2)]
    done = said("report", *same)
    assert "Every verdict is the same in all sessions that have one." in words(done.out)


def test_five_sessions_have_intervals(said, tmp_path):
    files = [session(tmp_path / f"{k}.prony", k, (1, 1, 1 + 0.01 * k)) for k in range(5)]
    found = json.loads(said("report", *files, "--json").out)
    assert len(found["sides"]) == 5
    slow = next(row for row in found["loads"][0]["rows"] if row["name"] == "gunicorn+hello")
    assert slow["ratio"]["verdict"] == "lower"
    assert slow["ratio"]["low"] < slow["ratio"]["effect"] < slow["ratio"]["high"]


def test_the_json_has_only_keys_that_its_page_names(said, three):
    found = json.loads(said("report", *three, "--json").out)
    named = set(re.findall(r"`(\w+)`", made_page("report-json.md")))
    (load,) = found["loads"]
    ratio = load["rows"][1]["ratio"]
    assert {*found, *found["sides"][0], *load, *load["rows"][1], *ratio} <= named


def test_sessions_as_markdown_and_as_tables(said, three, tmp_path):
    assert said("report", *three, "--markdown", tmp_path / "a.md", "--csv", tmp_path / "tables").status == 0
    assert "What changes" in (tmp_path / "a.md").read_text()
    with (tmp_path / "tables" / "sessions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["session"] for row in rows} == {"1", "2", "3"}
    assert (tmp_path / "tables" / "across.csv").exists()


@pytest.mark.parametrize(
    ("change", "said_to_differ"),
    [
        (lambda plan: replace(plan, name="other"), "the study: `wsgi-servers`, and `other`"),
        (lambda plan: replace(plan, cells=plan.cells[:2]), "subjects of the first alone: gunicorn+hello"),
        (
            lambda plan: replace(plan, design=replace(plan.design, margin=0.05)),
            "the margin: 2 %, and 5 %",
        ),
        (lambda plan: replace(plan, claims=(FASTER,)), "claims of the other alone: bjoern-faster"),
        (
            lambda plan: replace(
                plan,
                cells=tuple(
                    replace(cell, workload=replace(cell.workload, warmup_ns=9 * build.SECOND))
                    for cell in plan.cells
                ),
            ),
            "loads of the first alone",
        ),
    ],
)
def test_of_archives_whose_plans_differ_the_same_cells_are_shown_and_what_differs_is_said(
    said, tmp_path, change, said_to_differ
):
    files = [session(tmp_path / "a.prony", 0), session(tmp_path / "b.prony", 1, change=change)]
    done = said("report", *files)
    assert done.status == 0
    assert "are not sessions of one plan; they differ in" in done.err
    assert "session" not in done.out
    assert said_to_differ in done.err


def test_another_seed_is_the_same_plan(said, tmp_path):
    files = [
        session(tmp_path / "a.prony", 0),
        session(tmp_path / "b.prony", 1, change=lambda plan: replace(plan, seed=99)),
    ]
    assert said("report", *files).status == 0


def test_an_archive_that_is_named_twice_is_refused(said, three):
    done = said("report", three[0], three[0])
    assert (done.status, "hold the same session" in done.err) == (2, True)


def test_the_charts_of_sessions_become_pictures_that_name_their_subjects(said, three, tmp_path):
    assert said("report", *three, "--figures", tmp_path / "pictures").status == 0
    names = {file.name for file in (tmp_path / "pictures").iterdir()}
    ratios, speed = (f"{what}-over-sessions-10-connections-0" for what in ("ratios", "ok-per-s"))
    assert {f"{key}.{kind}" for key in (ratios, speed) for kind in ("svg", "png")} <= names
    drawn = (tmp_path / "pictures" / f"{speed}.svg").read_text()
    assert all(name in drawn for name in SPEEDS)


def test_the_table_over_sessions_has_the_figures_of_their_json(said, three, tmp_path):
    assert said("report", *three, "--csv", tmp_path / "tables").status == 0
    (load,) = json.loads(said("report", *three, "--json").out)["loads"]
    rows = table(tmp_path / "tables" / "over.csv")
    assert {row["metric"] for row in rows} == set(load["metrics"])
    for row in rows:
        value = load["metrics"][row["metric"]][row["subject"]][int(row["place"]) - 1]
        assert bool(row["reason"]) == (value is None)
        assert row["mean"] == ("" if value is None else repr(value["mean"]))


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_of_one_plan_shows_its_sessions_together(said, three, tmp_path):
    assert said("report", *three, "--html", tmp_path / "a.html", "--redact").status == 0
    page = (tmp_path / "a.html").read_text()
    assert "bjoern+hello has the best mean" in page
    assert "over the sessions" in page
    assert "The same cells" not in page


def test_the_page_of_other_plans_shows_the_same_cells_of_each(said, tmp_path):
    other = session(tmp_path / "b.prony", 1, change=lambda plan: replace(plan, name="other"))
    assert said("report", session(tmp_path / "a.prony", 0), other, "--html", tmp_path / "a.html").status == 0
    page = (tmp_path / "a.html").read_text()
    assert "The same cells" in page
    assert "gunicorn+hello" in page


def test_archives_of_other_plans_have_a_table_and_pictures_of_the_same_cells(said, tmp_path):
    def shorter(plan):
        return replace(plan, name="other", cells=plan.cells[:2])

    files = [session(tmp_path / "a.prony", 0), session(tmp_path / "b.prony", 1, change=shorter)]
    outputs = ("--csv", tmp_path / "tables", "--figures", tmp_path / "pictures")
    assert said("report", *files, *outputs).status == 0
    rows = table(tmp_path / "tables" / "over.csv")
    assert {(row["subject"], row["archive"]) for row in rows} == {
        (name, archive) for name in list(SPEEDS)[:2] for archive in "ab"
    }
    assert (tmp_path / "pictures" / "ok-per-s-over-archives-10-connections-0.png").exists()


def test_a_subject_that_one_of_three_archives_lacks_has_a_reason_there(said, tmp_path):
    def other(plan):
        return replace(plan, name="other", cells=plan.cells[:2])

    files = [session(tmp_path / f"{k}.prony", k) for k in range(2)]
    files.append(session(tmp_path / "2.prony", 2, change=other))
    assert said("report", *files, "--csv", tmp_path / "tables").status == 0
    rows = table(tmp_path / "tables" / "over.csv")
    lacking = [row for row in rows if row["reason"] == "not measured there"]
    assert {(row["subject"], row["archive"], row["mean"]) for row in lacking} == {("gunicorn+hello", "2", "")}


def test_the_page_on_csv_names_the_tables_of_several_archives_and_their_columns(said, three, tmp_path):
    said("report", *three, "--csv", tmp_path / "tables")
    page = (Path(__file__).parents[2] / "docs/reference/report-csv.md").read_text("utf-8")
    files = list((tmp_path / "tables").iterdir())
    columns = {name for file in files for name in table(file)[0]}
    assert {file.name for file in files} | columns <= set(re.findall(r"`([^`]+)`", page))


def test_the_whole_report_is_that_of_one_archive(said, three):
    done = said("report", *three, "--full")
    assert (done.status, "`--full` takes one archive" in done.err) == (2, True)


def test_an_archive_that_was_measured_in_sessions_shows_them(said, tmp_path):
    def planned(plan):
        return replace(plan, design=replace(plan.design, sessions=2, pause_ns=build.SECOND))

    file = session(tmp_path / "a.prony", 0, change=planned, blocks=6)
    out = words(said("report", file, "--full").out)
    assert "session 2:" in out and "3 blocks" in out
    found = json.loads(said("report", file, "--json").out)
    assert (found["extent"]["sessions"], len(found["across"]["sides"])) == (2, 2)


MACHINE = "AMD EPYC 7B13, 2 CPUs, 8.00 GiB, kernel {}, virtual machine"
OLD, NEW = (MACHINE.format(release) for release in ("6.1.0-18-amd64", "6.2.0"))


def test_sessions_of_several_archives_name_their_machines_where_these_differ(said, tmp_path):
    machines = (build.FINGERPRINT, OTHER_MACHINE, build.FINGERPRINT)
    files = [session(tmp_path / f"{k}.prony", k, machine=own) for k, own in enumerate(machines)]
    out = words(said("report", *files).out)
    assert "The sessions were on 2 machines: see Sessions." in out
    assert all(f"machine {number}: {name}" in out for number, name in ((1, OLD), (2, NEW)))
    found = json.loads(said("report", *files, "--json").out)
    assert found["machines"] == 2
    shown = [(one["machine_number"], one["machine"]) for one in found["sides"]]
    assert shown == [(1, OLD), (2, NEW), (1, OLD)]


def test_sessions_on_one_machine_do_not_name_it(said, three):
    out = words(said("report", *three).out)
    assert "machines" not in out
    assert OLD not in out
    assert json.loads(said("report", *three, "--json").out)["machines"] == 1


def resumed(path):
    """An archive that was resumed on another machine, a day later."""
    session(path, 0, blocks=3, planned=6)
    with open_archive(path) as archive:
        trials = [record.trial for record in archive.trials()]
    with resume(path, OTHER_MACHINE) as writer:
        for one in trials:
            writer.append(replace(one, block=one.block + 3, started_unix_ns=one.started_unix_ns + DAY))
        writer.finish()
    return path


def test_a_study_that_was_resumed_on_another_machine_names_both(said, tmp_path):
    path = resumed(tmp_path / "a.prony")
    short = words(said("report", path).out)
    assert "2 machines (listed in the full report)" in short
    assert OLD not in short
    full = words(said("report", path, "--full").out)
    assert "Measured on 2 machines: see Sessions." in full
    assert f"machine 1: {OLD}" in full
    assert f"machine 2: {NEW}" in full
    assert f"Machine: {OLD}" not in full
