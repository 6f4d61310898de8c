"""A study of several sessions: each counts once, and fewer than five lead to no verdict in any report."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from cells import cell_of, measured
from cli.test_report_sessions import DAY, session
from golden import build
from prony.archive import open_archive, resume
from prony.figures.answer import answer
from prony.figures.by_session import in_sessions, is_failed, more_often
from prony.figures.claim_parts import ClaimVerdict
from prony.figures.claims import _more, evaluate
from prony.figures.missing import Missing
from prony.figures.standings import standings
from prony.figures.statistics.compare import Terms, Verdict
from prony.figures.statistics.failure_rates import Failures
from prony.figures.summary import summarise_cell
from prony.figures.versus import Match, compared_loads
from prony.model.plan import Claim, ClaimKind, Plan
from prony.model.trial import Failed
from prony.model.workload import EngineChoice
from prony.reading.brief import brief_of
from prony.reading.checks import cross_checks
from prony.reading.failures import failure_tests
from prony.reading.groups import groups_of
from prony.reading.study import read_archive
from prony.report.brief import brief_report
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.study import full_page, study_report

CLAIMS = (
    Claim("c1", "bjoern is the fastest", ClaimKind.HIGHEST, "ok_per_s", "bjoern+*"),
    Claim("c2", "bjoern loses nothing", ClaimKind.VALUE, "error_ratio", "bjoern+*", high=0.001),
    Claim("c3", "gunicorn fails more", ClaimKind.FAILS, "error_ratio", "gunicorn+*", against="bjoern+*"),
)


def study(path, sessions, each=5):
    """Write a study of so many planned sessions: meinheld 12 % and gunicorn 50 % slower than bjoern."""

    def planned(plan):
        design = replace(plan.design, sessions=sessions, pause_ns=build.SECOND)
        return replace(plan, design=design, claims=CLAIMS)

    with open_archive(session(path, 0, change=planned, blocks=sessions * each)) as archive:
        return read_archive(archive)


def page(document):
    """The words of a document, without the links to its terms."""
    return " ".join(re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", markdown(document)).split())


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return study(tmp_path_factory.mktemp("two") / "a.prony", 2)


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    return study(tmp_path_factory.mktemp("five") / "a.prony", 5)


# --- two sessions -----------------------------------------------------------------------------------------


def test_nobody_leads_over_two_sessions(two):
    found = two.groups[0].answer
    assert (two.sessions, found.leader, found.ties, found.decided) == (2, None, (), False)
    assert found.reason == "2 sessions are too few for a verdict, which needs five"
    assert (found.first, found.blocks) == ("bjoern+hello", 2)


def test_they_have_a_range_no_interval_and_no_letters(two):
    for one in two.groups[0].answer.comparisons.values():
        assert (one.low, one.high, one.p_value) == (None, None, None)
        assert one.verdict is Verdict.TOO_FEW_SESSIONS
        assert one.least <= one.effect <= one.most
    for one in two.groups[0].standings:
        assert (one.letters, one.best) == (None, ())
    assert {value.low for cell in two.cells for value in cell.metrics.values() if hasattr(value, "low")} == {
        None
    }
    assert two.groups[0].power is None


def test_no_claim_is_decided(two):
    assert {result.verdict for _, result in two.claims} == {ClaimVerdict.CANNOT_TELL}
    assert all("2 sessions are too few" in result.reason for _, result in two.claims)
    assert {result.interval for _, result in two.claims} == {None}


def test_the_first_screen_shows_their_range_and_no_leader(two):
    said = page(brief_report(two))
    assert "No verdict: 2 sessions are too few for a verdict, which needs five." in said
    assert "to the first: geometric means, range of 2 sessions" in said
    assert "10 blocks of 2 sessions" in said
    assert "±" not in said and "tie" not in said and "is best" not in said


def test_no_page_has_an_interval_by_blocks(two):
    for document in (study_report(two), full_page(two)):
        said = page(document)
        assert "with the range of single sessions: so few have no interval" in said
        assert "each counts once" in said
        # The sessions beside each other have intervals within each.
        before, _, _ = said.partition("Sessions")
        assert "±" not in before


def test_the_json_has_no_leader_either(two):
    found = json.loads(json.dumps(reading_json(two), allow_nan=False))
    short = found["answer"]
    assert (short["leader"], short["by_session"], short["blocks"]) == (None, True, 2)
    assert [row["letters"] for row in short["subjects"]] == [""] * 3
    assert [row["best"] for row in short["subjects"]] == [False] * 3
    ratio = short["subjects"][1]["ratio"]
    assert (ratio["low"], ratio["high"]) == (None, None)
    assert ratio["least"] <= ratio["value"] <= ratio["most"]
    assert found["dependence"] is None


# --- five -------------------------------------------------------------------------------------------------


def test_five_sessions_have_a_leader_letters_and_claims_over_them(five):
    found = five.groups[0].answer
    assert (five.sessions, found.leader, found.blocks, found.by_session) == (5, "bjoern+hello", 5, True)
    assert {one.verdict for one in found.comparisons.values()} == {Verdict.LOWER}
    assert {one.blocks for one in found.comparisons.values()} == {5}
    assert [row.letters for row in brief_of(five).rows] == ["a", "b", "c"]
    first, second, third = (result for _, result in five.claims)
    assert (first.verdict, first.n) == (ClaimVerdict.HOLDS, 5)
    assert (second.verdict, second.n) == (ClaimVerdict.HOLDS, 5)
    assert third.verdict is ClaimVerdict.DOES_NOT_HOLD
    said = page(brief_report(five))
    assert "bjoern+hello is best (n = 5 sessions)" in said
    assert "95 % interval over 5 sessions" in said
    assert "5 sessions find differences of" in said


def test_their_figures_have_intervals_of_the_means_of_sessions(five):
    cell = five.cells[0]
    found = cell.metrics["ok_per_s"]
    means = [
        np.mean([np.log(trial.metrics["ok_per_s"]) for trial in cell.counted if trial.session == number])
        for number in range(5)
    ]
    half = 2.7764 * np.std(means, ddof=1) / 5**0.5
    assert (found.count, found.mean) == (25, pytest.approx(np.exp(np.mean(means))))
    assert np.log([found.low, found.high]) == pytest.approx(
        np.mean(means) + np.array([-half, half]), abs=1e-6
    )


def test_the_figure_of_who_leads_over_sessions_has_an_interval_over_them_that_holds_whoever_leads(five):
    found = five.groups[0].answer.figure
    own = next(cell for cell in five.cells if cell.name == five.groups[0].answer.leader).metrics["ok_per_s"]
    assert (found.count, found.mean) == (25, own.mean)
    assert found.low < own.low < found.mean < own.high < found.high


# --- which trials are of one session ----------------------------------------------------------------------


def test_a_run_that_goes_past_midnight_is_one_session(tmp_path):
    def late(trial):
        at = 20_000 * DAY + DAY - build.SECOND + trial.block * build.SECOND
        return replace(trial, started_unix_ns=at, ended_unix_ns=at + build.SECOND)

    path = session(tmp_path / "a.prony", 0, blocks=5, moved=late)
    with open_archive(path) as archive:
        reading = read_archive(archive)
    days = {trial.started_unix_ns // DAY for trial in reading.trials}
    assert (len(days), reading.sessions, reading.groups[0].answer.leader) == (2, 1, "bjoern+hello")


def test_what_is_resumed_on_another_machine_is_another_session(tmp_path):
    path = session(tmp_path / "a.prony", 0, blocks=5, planned=10)
    other = build.Fingerprint({**build.FINGERPRINT.free, "kernel": {"release": "6.2.0"}})
    with open_archive(path) as archive:
        trials = [record.trial for record in archive.trials()]
    with resume(path, other) as writer:
        for trial in trials:
            writer.append(replace(trial, block=trial.block + 5))
        writer.finish()
    with open_archive(path) as archive:
        reading = read_archive(archive)
    assert (reading.sessions, reading.groups[0].answer.leader) == (2, None)
    assert len(reading.across.sides) == 2


# --- which blocks of a session count ----------------------------------------------------------------------


def in_days(cell, rates, failed=(), each=4, lost=0):
    """The summary of a cell: the rate of each block that was measured, and the blocks in which its server
    failed. A session has so many blocks; ``lost``: so many requests of each trial.
    """
    model = measured(cell, lost=lost, ok_per_s=[1.0]).counted[0]
    ran = [
        replace(model, block=block, session=block // each, metrics={**model.metrics, "ok_per_s": rate})
        for block, rate in rates.items()
    ]
    broken = [
        replace(model, block=block, session=block // each, outcome=Failed("load", "it died"))
        for block in failed
    ]
    return summarise_cell(cell, [*ran, *broken])


def tried(name, number, blocks, fails, each=4):
    """A cell that was tried in these blocks, and failed in some of them."""
    rates = {block: 1000.0 for block in blocks if block not in fails}
    return in_days(cell_of(f"{name}+hello", number=number), rates, fails, each)


def test_one_that_was_tried_more_often_does_not_fail_in_more_sessions():
    # In ten sessions `once` has the first block, `often` all four; each fails one time in two.
    rng, studies = np.random.default_rng(3), 200
    shown = 0
    for _ in range(studies):
        half = [block for block in range(40) if rng.random() < 0.5]
        other = [block for block in range(0, 40, 4) if rng.random() < 0.5]
        cells = in_sessions([tried("often", 1, range(40), half), tried("once", 2, range(0, 40, 4), other)])
        shown += any(one.shown for one in failure_tests(cells))
    assert shown / studies <= 0.05


def test_each_pair_of_a_group_is_counted_over_the_blocks_that_both_have():
    # `rare` has the first block of each session alone, and binds nobody but those it is compared with.
    never, rare = tried("never", 1, range(20), ()), tried("rare", 2, range(0, 20, 4), (0,))
    last = tried("last", 3, range(20), [block for block in range(20) if block % 4 == 3])
    found = {one.name: one for one in failure_tests(in_sessions([never, rare, last]))}
    assert (found["last+hello"].count, found["last+hello"].least) == (Failures(5, 5), Failures(0, 5))
    assert found["last+hello"].shown
    assert (found["rare+hello"].count, found["rare+hello"].least) == (Failures(1, 5), Failures(0, 5))
    found = more_often(*in_sessions([rare, last]), is_failed)
    assert (found.first, found.second) == (Failures(1, 5), Failures(0, 5))


def test_a_session_without_a_block_that_both_have_says_nothing_of_failures():
    cells = in_sessions([tried("first", 1, [0, 1, 4, 8], (0, 4)), tried("second", 2, [2, 3, 4, 9], (9,))])
    found = more_often(*cells, is_failed)
    assert (found.first, found.second) == (Failures(1, 1), Failures(0, 1))


def test_a_session_without_a_block_that_all_have_has_no_figure():
    # Every second block is twice as fast, and each of two equal subjects has the blocks of one kind.
    fast, slow = ({block: 1000.0 * (2 - block % 2) for block in range(k, 20, 2)} for k in (0, 1))
    cells = in_sessions(
        [in_days(cell_of("a+hello", number=1), fast), in_days(cell_of("b+hello", number=2), slow)]
    )
    for cell in cells:
        assert {type(one["ok_per_s"]) for one in cell.by_session.values()} == {Missing}
    assert answer(cells, Terms(by_session=True)).leader is None


def test_a_subject_that_is_not_compared_takes_no_block_from_others():
    # The broken one has the first, cold block of each session alone.
    slow_first = {block: 500.0 if block % 4 == 0 else 1000.0 for block in range(20)}
    whole = in_days(cell_of("whole+hello", number=1), slow_first)
    broken = in_days(cell_of("broken+hello", number=2), {0: 1.0, 4: 1.0}, [1, 2, 3, 5, 6, 7])
    assert broken.unqualified
    over = [cell for cell in (whole, broken) if not cell.unqualified]
    alone, beside = in_sessions([whole])[0], in_sessions([whole, broken], over)[0]
    assert alone.by_session[0]["ok_per_s"] == beside.by_session[0]["ok_per_s"]


def test_blocks_that_a_subject_which_does_not_qualify_lacks_are_compared_all_the_same():
    # `late` is 20 % faster in all but the first block of a session, which is all that `broken` has.
    first = range(0, 20, 4)
    even = in_days(cell_of("even+hello", number=1), dict.fromkeys(range(20), 1000.0))
    late = in_days(cell_of("late+hello", number=2), {k: 1000.0 if k in first else 1200.0 for k in range(20)})
    lost = [block for block in range(20) if block not in first]
    broken = in_days(cell_of("broken+hello", number=3), dict.fromkeys(first, 1000.0), lost)
    found = (even, late, broken)
    plan = Plan("shop", "Shop", "", "quick", tuple(one.cell for one in found), 20, 1)
    (group,) = groups_of(plan, [trial for one in found for trial in (*one.counted, *one.others)])
    assert [bool(cell.unqualified) for cell in group.cells] == [False, False, True]
    (compared,) = group.answer.comparisons.values()
    assert (group.answer.leader, compared.verdict) == ("late+hello", Verdict.LOWER)
    assert compared.effect == pytest.approx(1.2 ** (-3 / 4) - 1)


RISING = {block: 1000.0 * 2 ** (block % 4) * (1 + block / 1e5) for block in range(20)}


@pytest.mark.parametrize("lost", [(0, 0), (100, 0), (0, 100), (100, 100)])
def test_a_check_by_another_generator_compares_the_blocks_that_both_have(lost):
    # The rate doubles within a session; the check was run in the first block of each alone, and agrees. That
    # one of both does not qualify changes nothing: checks are of all cells.
    own = cell_of("bjoern+hello", number=1)
    other = replace(own, id=2, engine=EngineChoice("wrk"))
    first = in_days(own, RISING, lost=lost[0])
    second = in_days(other, {block: RISING[block] for block in range(0, 20, 4)}, lost=lost[1])
    assert [bool(one.unqualified) for one in (first, second)] == [bool(requests) for requests in lost]
    found = {
        one.metric: one.comparison
        for one in cross_checks(in_sessions([first], [first]), in_sessions([second], [second]), 0.02)
    }
    assert found["ok_per_s"].effect == pytest.approx(0, abs=1e-9)


def rows(first, second, *, is_paired=True):
    (found,) = compared_loads([Match(first, second)], is_paired, Terms(by_session=True), ["ok_per_s"])
    return found


def test_two_subjects_of_one_study_are_compared_over_the_blocks_that_both_have():
    # In their group a third binds both to the first block, which says nothing of these two.
    whole = in_days(cell_of("a+hello", number=1), RISING)
    half = in_days(cell_of("b+hello", number=2), {k: v for k, v in RISING.items() if k % 4 in (1, 3)})
    first, second, _ = in_sessions([whole, half, tried("c", 3, range(0, 20, 4), ())])
    assert isinstance(second.by_session[0]["ok_per_s"], Missing)
    row = rows(first, second).metrics["ok_per_s"]
    assert row.comparison.effect == pytest.approx(0, abs=1e-9)


def test_failures_of_two_archives_are_of_equally_many_trials_a_session():
    # Five sessions of four blocks and five of two: their blocks have nothing to do with each other.
    dead, well = tried("a", 1, range(20), range(20)), tried("a", 1, range(10), (), each=2)
    found = rows(*(in_sessions([one])[0] for one in (dead, well)), is_paired=False).failed_trials
    assert (found.first, found.second, found.differs) == (Failures(5, 5), Failures(0, 5), True)


@pytest.mark.parametrize("blocks", [1, 2])
def test_more_trials_a_session_are_no_more_failures_of_an_archive(blocks):
    rng, studies = np.random.default_rng(4), 200
    shown = 0
    for _ in range(studies):
        often = tried("a", 1, range(40), [block for block in range(40) if rng.random() < 0.3])
        few = range(10 * blocks)
        once = tried("a", 1, few, [block for block in few if rng.random() < 0.3], each=blocks)
        found = rows(*(in_sessions([one])[0] for one in (often, once)), is_paired=False).failed_trials
        shown += found.differs
    assert shown / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5


@pytest.mark.parametrize("sessions", [10, 20])
def test_a_claim_that_one_fails_more_counts_the_blocks_that_both_have(sessions):
    # Most of one trial fail more easily than most of four.
    asked = Claim("c", "a fails more", ClaimKind.FAILS, "error_ratio", "a+*", against="b+*")
    rng, studies = np.random.default_rng(5), 100
    told = 0
    for _ in range(studies):
        one, all_ = range(0, 4 * sessions, 4), range(4 * sessions)
        a = tried("a", 1, one, [block for block in one if rng.random() < 0.4])
        b = tried("b", 2, all_, [block for block in all_ if rng.random() < 0.4])
        terms = Terms(by_session=True)
        found = _more(asked, *in_sessions([a, b]), terms)
        told += found.verdict is ClaimVerdict.HOLDS
    assert told / studies <= 0.05


# --- simulated --------------------------------------------------------------------------------------------

FASTEST = Claim("c", "s0 is the fastest", ClaimKind.HIGHEST, "ok_per_s", "s0+*")


def equal_subjects(rng, sessions, blocks=5, noise=0.01, day=0.05):
    """Three equal subjects, each with a deviation of its own on each day."""
    cells = []
    for k in range(3):
        own = np.repeat(day * rng.normal(size=sessions), blocks)
        rates = 1000 * np.exp(own + noise * rng.normal(size=sessions * blocks))
        cell = measured(cell_of(f"s{k}+hello", number=k + 1), ok_per_s=rates.tolist())
        counted = tuple(replace(trial, session=trial.block // blocks) for trial in cell.counted)
        cells.append(replace(cell, counted=counted))
    return cells


def claims_something(cells, terms):
    """Whether anything at all is called different: a comparison, a letter, or a claim."""
    found = answer(cells, terms)
    named = (Verdict.HIGHER, Verdict.LOWER, Verdict.TRIVIAL)
    letters = [one.letters or {} for one in standings(cells, terms)]
    return (
        any(one.verdict in named for one in found.comparisons.values())
        or any(len(set(one.values())) > 1 for one in letters)
        or evaluate(FASTEST, cells, terms).verdict in (ClaimVerdict.HOLDS, ClaimVerdict.DOES_NOT_HOLD)
    )


def test_days_that_differ_by_5_percent_make_no_false_claim_of_two_sessions():
    rng, studies = np.random.default_rng(1), 60
    by_block = by_session = 0
    for _ in range(studies):
        cells = equal_subjects(rng, 2)
        by_block += claims_something(cells, Terms())
        by_session += claims_something(in_sessions(cells), Terms(by_session=True))
    assert by_session == 0
    # What is counted matters: ten blocks as ten observations call equal subjects different.
    assert by_block / studies > 0.3


def test_of_five_sessions_at_most_5_in_100_make_one():
    # A claim is another family: each of the two has its 5 %.
    rng, studies = np.random.default_rng(2), 200
    false = claimed = 0
    terms = Terms(by_session=True)
    for _ in range(studies):
        cells = in_sessions(equal_subjects(rng, 5))
        pairs = answer(cells, terms).comparisons.values()
        false += any(one.low > 0 or one.high < 0 for one in pairs)
        claimed += evaluate(FASTEST, cells, terms).verdict is ClaimVerdict.HOLDS
    most = 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5
    assert false / studies <= most
    assert claimed / studies <= most
