"""Claims of published experiments: each kind holds, does not hold, cannot tell, or is not testable here."""

from dataclasses import replace
from math import inf
from random import Random

import pytest
from scipy.stats import binomtest

from golden import build
from prony.figures.account import Tally
from prony.figures.claim_needs import Lack, rivals
from prony.figures.claim_parts import ClaimVerdict
from prony.figures.claims import evaluate
from prony.figures.missing import Missing
from prony.figures.statistics.compare import Terms
from prony.figures.summary import NOT_STEADY, estimate_mean, figures, summarise_cell
from prony.model.limit import Limit, Limited, LimitKind
from prony.model.plan import Cell, Claim, ClaimKind, Needs
from prony.model.sandbox import Placement, SandboxChoice
from prony.model.trial import Failed, Invalid
from prony.model.workload import ClosedLoop, CountStop, DurationStop, EngineChoice, OpenLoop, Workload

HOLDS, NOT, OPEN, UNTESTABLE = ClaimVerdict
TWO = Placement((0, 1), (2, 3))


def cell(
    name, speeds, *, at=100, metric="ok_per_s", engine="prony", cpus=TWO, errors=None, others=(), role=None
):
    """A cell with one value of the metric for each block; the noise is in the values."""
    of = Cell(
        abs(hash((name, at, engine))),
        build.subject(f"{name}+hello" if "+" not in name else name),
        Workload(ClosedLoop(at), DurationStop(2 * build.SECOND)),
        EngineChoice(engine),
    )
    made = []
    for block, speed in enumerate(speeds):
        one = figures(build.trial(of, block, 0, [1_000_000] * 2000, errors=errors))
        found = (
            {"metrics": {**one.metrics, metric: speed}}
            if role is None
            else {"roles": {role: {metric: speed}}}
        )
        made.append(replace(one, placement=cpus, **found))
    for block, outcome in enumerate(others, start=len(made)):
        made.append(replace(figures(build.trial(of, block, 0, [], outcome=outcome)), placement=cpus))
    return summarise_cell(of, made)


def around(centre, blocks=5, spread=0.01):
    steps = (0, 1, -1, 0.5, -0.5, 0.3, -0.3, 0.1, -0.1, 0.2)
    return [centre * (1 + spread * steps[block % 10]) for block in range(blocks)]


def claim(kind, subject="a+*", **kwargs):
    needs = kwargs.pop("needs", Needs())
    return Claim("c", "sentence", kind, kwargs.pop("metric", "ok_per_s"), subject, needs=needs, **kwargs)


def verdict(asked, *cells, terms=None):
    return evaluate(asked, cells, terms).verdict


# --- connections that set the figure ----------------------------------------------------------------------


def delayed(name, speeds, at, most, engine="prony"):
    return replace(cell(name, speeds, at=at, engine=engine), most_per_s=most)


def faster_with_320(fewer, more, fewer_most=2_667.0, more_most=10_667.0, script="x"):
    asked = claim(
        ClaimKind.RATIO,
        engine=script,
        load={"connections": 320},
        against_engine="y",
        against_load={"connections": 80},
        low=1.2,
    )
    return evaluate(
        asked, [delayed("a", fewer, 80, fewer_most, "y"), delayed("a", more, 320, more_most, script)]
    )


def test_another_script_with_more_connections_is_not_faster_than_one_that_the_delay_holds_back():
    found = faster_with_320(around(2_600), around(9_000))
    assert found.verdict is OPEN
    assert found.reason.endswith("a+hello is at the 2,667 /s that its connections allow, whoever sends them")


def test_of_one_script_more_connections_are_faster_than_fewer_that_the_delay_holds_back():
    assert faster_with_320(around(2_600), around(9_000), script="y").verdict is HOLDS


def test_what_a_bound_hides_is_no_more_than_the_connections_allow():
    asked = claim(
        ClaimKind.RATIO, load={"connections": 80}, against="a+*", against_load={"connections": 50}, low=1.2
    )
    fewer, more = (
        replace(delayed("a", around(speed), at, most), at_least=True, rate_reach=inf)
        for speed, at, most in ((1_600, 50, 1_667.0), (2_200, 80, 2_667.0))
    )
    assert evaluate(asked, [fewer, more]).verdict is HOLDS
    assert evaluate(asked, [replace(fewer, most_per_s=None), more]).verdict is OPEN


def test_more_connections_are_faster_than_fewer_that_could_have_carried_more():
    assert faster_with_320(around(1_170), around(2_463)).verdict is HOLDS
    # Nobody knows a delay: the server sets the figure.
    assert faster_with_320(around(2_600), around(9_000), None, None).verdict is HOLDS


def test_those_that_answer_nothing_are_at_no_ceiling():
    assert faster_with_320([0.0] * 5, around(2_000)).verdict is OPEN


def test_more_connections_that_carry_less_than_those_held_back_refute_it():
    assert faster_with_320(around(2_600), around(2_000)).verdict is NOT


def test_where_all_have_as_many_connections_none_is_held_back_more_than_another():
    cells = [delayed("a", around(2_600), 80, 2_667.0), delayed("b", around(1_170), 80, 2_667.0)]
    assert verdict(claim(ClaimKind.HIGHEST), *cells) is HOLDS


# --- orders -----------------------------------------------------------------------------------------------


def test_the_highest_is_higher_than_each_other():
    cells = (cell("a", around(300)), cell("b", around(200, spread=0.02)), cell("c", around(100)))
    found = evaluate(claim(ClaimKind.HIGHEST), cells)
    assert (found.verdict, found.n) == (HOLDS, 5)
    assert found.interval[0] > 1
    assert verdict(claim(ClaimKind.LOWEST, "c+*"), *cells) is HOLDS


def test_what_is_told_of_a_claim_that_holds_is_the_rival_that_came_nearest():
    rivals = [cell("b", around(100)), cell("c", around(200)), cell("d", around(150))]
    found = evaluate(claim(ClaimKind.HIGHEST), (cell("a", around(300)), *rivals))
    assert found.reason.endswith("to c+hello") and found.figure == pytest.approx(1.5, rel=0.02)


def test_one_that_is_higher_refutes_it():
    found = evaluate(claim(ClaimKind.HIGHEST), [cell("a", around(300)), cell("b", around(400, spread=0.02))])
    assert (found.verdict, found.reason) == (NOT, "a+hello, closed loop, 100 connections, 2 s, to b+hello")
    assert found.figure == pytest.approx(0.75, rel=0.02)


def test_one_that_is_not_told_apart_leaves_it_open():
    noisy = [290, 310, 295, 305, 301]
    assert verdict(claim(ClaimKind.HIGHEST), cell("a", around(300)), cell("b", noisy)) is OPEN


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_an_order_is_not_testable_below_five_blocks(blocks):
    cells = [cell("a", around(300, blocks)), cell("b", around(100, blocks, 0.02))]
    found = evaluate(claim(ClaimKind.HIGHEST, needs=Needs(blocks=1)), cells)
    assert (found.verdict, found.reason) == (UNTESTABLE, f"needs 5 blocks; it has {blocks}")


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_an_order_cannot_be_decided_where_fewer_than_five_trials_count(blocks):
    lost = [Invalid("steal")] * (5 - blocks)
    cells = [cell("a", around(300, blocks), others=lost), cell("b", around(100, blocks, 0.02), others=lost)]
    found = evaluate(claim(ClaimKind.HIGHEST), cells)
    assert found.verdict is OPEN


def test_a_difference_within_the_tolerance_of_an_order_decides_nothing():
    cells = (cell("a", around(310)), cell("b", around(300, spread=0.001)))
    assert verdict(claim(ClaimKind.HIGHEST), *cells) is HOLDS
    assert verdict(claim(ClaimKind.HIGHEST, tolerance=0.1), *cells) is OPEN
    assert verdict(claim(ClaimKind.LOWEST, tolerance=0.1), *cells) is OPEN


def test_the_interval_that_is_shown_is_the_one_that_decided():
    values = [0.8, 0.9, 0.83, 0.86, 0.97]
    one = cell("a1", values, metric="pss_end")
    alone = evaluate(claim(ClaimKind.VALUE, "a1*", metric="pss_end", low=0.99), [one])
    assert (alone.verdict, alone.level) == (NOT, 0.05)
    # Of two parts each has half of the level: its interval is wider, and reaches the bound.
    both = [one, cell("a2", around(1.2), metric="pss_end")]
    found = evaluate(claim(ClaimKind.VALUE, "a*", metric="pss_end", low=0.99), both)
    assert (found.verdict, found.level) == (OPEN, 0.025)
    assert found.interval[1] >= 0.99 > alone.interval[1]


def test_an_order_must_hold_at_every_load():
    cells = [cell("a", around(300), at=at) for at in (10, 100)]
    cells += [cell("b", around(200, spread=0.02), at=10), cell("b", around(400, spread=0.02), at=100)]
    assert verdict(claim(ClaimKind.HIGHEST), *cells) is NOT
    assert verdict(claim(ClaimKind.HIGHEST, load={"connections": 10}), *cells) is HOLDS


def test_a_subject_that_loses_requests_is_neither_fast_nor_a_rival():
    losing = {"reset": 200}
    fast, slow = cell("b", around(900, spread=0.02), errors=losing), cell("c", around(100, spread=0.02))
    assert verdict(claim(ClaimKind.HIGHEST), cell("a", around(300)), fast, slow) is HOLDS
    found = evaluate(claim(ClaimKind.HIGHEST), [cell("a", around(900), errors=losing), slow])
    assert (found.verdict, found.reason.endswith("its requests fail")) == (OPEN, True)


@pytest.mark.parametrize(
    ("metric", "stop", "told"),
    [
        ("duration_ns_per_request", CountStop(1000), HOLDS),
        ("duration_ns_per_request", DurationStop(2 * build.SECOND), OPEN),
        ("ok_per_s", CountStop(1000), OPEN),
    ],
)
def test_a_run_of_so_many_requests_takes_its_time_whether_or_not_its_pace_is_steady(metric, stop, told):
    slow, fast = (cell(name, around(of), metric=metric) for name, of in (("a", 300), ("b", 100)))
    load = replace(slow.cell.workload, stop=stop)
    cells = [replace(one, cell=replace(one.cell, workload=load)) for one in (slow, fast)]
    asked = claim(ClaimKind.RATIO, metric=metric, against="b+*", low=2.5)
    assert verdict(asked, *cells) is HOLDS
    assert verdict(asked, *(replace(one, unqualified=NOT_STEADY) for one in cells)) is told
    assert verdict(asked, *(replace(one, unqualified="its requests fail") for one in cells)) is OPEN


def test_a_load_at_which_no_rival_qualifies_decides_nothing():
    fast, slow = cell("a", around(300)), cell("b", around(100, spread=0.02))
    alone = [cell("a", around(300), at=10_000), cell("b", around(100), at=10_000, errors={"reset": 200})]
    found = evaluate(claim(ClaimKind.HIGHEST), [fast, slow, *alone])
    assert (found.verdict, found.n) == (OPEN, 0)
    assert found.reason == "a+hello, closed loop, 10000 connections, 2 s: no other server's speed qualifies"
    # What is slower than one that qualifies is refuted all the same.
    assert verdict(claim(ClaimKind.HIGHEST), cell("a", around(50)), slow, *alone) is NOT


def test_its_memory_counts_whether_or_not_its_requests_fail():
    cells = [
        cell("a", around(9e6), metric="rss_peak", errors={"reset": 200}),
        cell("b", around(20e6, spread=0.02), metric="rss_peak"),
    ]
    assert verdict(claim(ClaimKind.LOWEST, metric="rss_peak"), *cells) is HOLDS


@pytest.mark.parametrize(("speed", "found"), [(105, OPEN), (95, OPEN), (130, HOLDS), (70, NOT)])
def test_what_lies_within_the_tolerance_neither_holds_nor_fails_to(speed, found):
    cells = (cell("a", around(speed)), cell("b", around(100)))
    assert verdict(claim(ClaimKind.HIGHEST, tolerance=0.2), *cells) is found
    swapped = {HOLDS: NOT, NOT: HOLDS}.get(found, found)
    assert verdict(claim(ClaimKind.LOWEST, tolerance=0.2), *cells) is swapped


def test_many_rivals_do_not_refute_a_claim_by_chance():
    # Below 1 at the level of one comparison, not at that of forty.
    close = cell("b", [309, 303, 310, 304, 306])
    alone = evaluate(claim(ClaimKind.HIGHEST), [cell("a", [300, 301, 299, 300, 300]), close])
    assert alone.verdict is NOT
    rivals_ = [cell(f"r{k}", around(100, spread=0.02)) for k in range(39)]
    assert verdict(claim(ClaimKind.HIGHEST), cell("a", [300, 301, 299, 300, 300]), close, *rivals_) is OPEN


# --- whom a claim is held against -------------------------------------------------------------------------


def names(asked, of, *cells):
    return [(one.cell.subject.name, one.cell.load["connections"]) for one in rivals(asked, of, cells)]


def test_a_star_in_both_stands_for_the_same():
    cells = [cell(name, around(1)) for name in ("x+falcon", "x+flask", "y+falcon", "y+flask")]
    asked = claim(ClaimKind.LOWEST, "*+falcon", against="*+flask")
    assert [names(asked, of, *cells) for of in (cells[0], cells[2])] == [
        [("x+flask", 100)],
        [("y+flask", 100)],
    ]


def test_a_star_at_the_end_stands_for_whatever_there_is():
    cells = [cell(name, around(1)) for name in ("starman-five@nginx", "uwsgi-psgi@nginx")]
    asked = claim(ClaimKind.RATIO, "uwsgi*", against="starman*", low=2)
    assert [name for name, _ in names(asked, cells[1], *cells)] == [cells[0].cell.subject.name]


def test_a_group_is_not_held_against_itself():
    cells = [cell(name, around(1)) for name in ("bjoern", "meinheld", "uwsgi")]
    asked = claim(ClaimKind.LOWEST, "[bm]*")
    assert names(asked, cells[0], *cells) == [("uwsgi+hello", 100)]


def test_rivals_have_the_same_load_and_generator_unless_the_claim_says_otherwise():
    cells = [cell("a", around(1), at=at, engine=engine) for at in (10, 100) for engine in ("prony", "wrk")]
    own = claim(ClaimKind.HIGHEST, engine="prony", load={"connections": 10})
    assert names(own, cells[0], *cells) == []
    assert names(replace(own, against_engine="*"), cells[0], *cells) == [("a+hello", 10)]
    assert names(replace(own, against_load={"connections": 100}), cells[0], *cells) == [("a+hello", 100)]


# --- ratios and values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "told"), [(2.5, 3.5, HOLDS), (4, 5, NOT), (3, 3.01, OPEN), (2, None, HOLDS)]
)
def test_a_ratio_lies_within_its_bounds_beside_them_or_across(low, high, told):
    cells = (cell("a", around(300)), cell("b", around(100, spread=0.02)))
    assert verdict(claim(ClaimKind.RATIO, against="b+*", low=low, high=high), *cells) is told


@pytest.mark.parametrize(
    ("low", "high", "told"), [(0.05, 0.07, HOLDS), (0.3, 0.4, NOT), (0.06, 0.1, OPEN), (None, 0.07, HOLDS)]
)
def test_a_value_lies_within_its_bounds_beside_them_or_across(low, high, told):
    asked = claim(ClaimKind.VALUE, metric="cpu_percent", low=low, high=high)
    found = evaluate(asked, [cell("a", around(0.06, spread=0.05), metric="cpu_percent")])
    assert (found.verdict, found.figure) == (told, pytest.approx(0.0600, abs=1e-3))


def test_a_value_may_be_that_of_one_role():
    asked = claim(ClaimKind.VALUE, metric="rss_peak", role="worker", low=8e6, high=10e6)
    assert verdict(asked, cell("a", around(9e6), metric="rss_peak", role="worker")) is HOLDS
    assert verdict(replace(asked, role="nobody"), cell("a", around(9e6), metric="rss_peak")) is OPEN


def test_a_value_needs_the_blocks_that_the_claim_names():
    asked = claim(ClaimKind.VALUE, low=200, high=400)
    assert verdict(asked, cell("a", around(300, 4))) is UNTESTABLE
    assert verdict(replace(asked, needs=Needs(blocks=3)), cell("a", around(300, 4))) is HOLDS


def test_a_speed_of_which_requests_fail_has_no_value_that_counts():
    lost = cell("a", around(300), errors={"reset": 200})
    found = evaluate(claim(ClaimKind.VALUE, low=200, high=400), [lost])
    assert (found.verdict, found.reason.endswith("its requests fail")) == (OPEN, True)


def test_a_value_that_was_not_measured_says_why():
    asked = claim(ClaimKind.VALUE, metric="response_ok_p99", low=0, high=1)
    found = evaluate(asked, [cell("a", around(300))])
    assert (found.verdict, found.reason.endswith("a closed loop has no intended times")) == (OPEN, True)


# --- shares of failed requests ----------------------------------------------------------------------------


def losing(share, blocks=5, name="a"):
    """A cell of which that share of each trial's requests fails."""
    lost = round(2000 * share / (1 - share))
    return cell(name, around(1, blocks), errors={"reset": lost} if lost else None)


@pytest.mark.parametrize(
    ("share", "low", "high", "found"),
    [
        (0, None, 0.0001, HOLDS),
        (0.01, None, 0.0001, NOT),
        (0.06, 0.03, 0.12, HOLDS),
        (0.2, 0.03, 0.12, NOT),
        (0, 0.03, 0.12, NOT),
    ],
)
def test_a_share_of_failed_requests_is_decided_by_counting_trials(share, low, high, found):
    asked = claim(ClaimKind.VALUE, metric="error_ratio", low=low, high=high)
    result = evaluate(asked, [losing(share)])
    assert (result.verdict, result.n, result.figure) == (found, 5, 1 if found is HOLDS else 0)


def test_no_failure_in_five_trials_leaves_open_how_many_trials_lose_requests():
    result = evaluate(claim(ClaimKind.VALUE, metric="error_ratio", high=0.0001), [losing(0)])
    assert result.interval == (pytest.approx(0.05 ** (1 / 5)), 1)


def test_failures_that_come_together_in_few_trials_are_no_proof_of_none():
    # Four of ten trials lose a tenth: a mean over requests would say 4 %, trials say that it is not known.
    mixed = [losing(0, 6), losing(0.1, 4)]
    whole = replace(mixed[0], counted=(*mixed[0].counted, *mixed[1].counted), total=10)
    assert verdict(claim(ClaimKind.VALUE, metric="error_ratio", high=0.0001), whole) is OPEN


def test_a_session_of_which_half_the_trials_lose_requests_speaks_for_neither_side():
    clean, lossy = losing(0, 20), losing(0.1, 20)
    days = [
        replace(one, session=day)
        for pair in zip(clean.counted, lossy.counted, strict=True)
        for day, one in zip([pair[0].block] * 2, pair, strict=True)
    ]
    asked = claim(ClaimKind.FAILS, metric="error_ratio")
    result = evaluate(asked, [replace(clean, counted=tuple(days), total=40)], Terms(by_session=True))
    assert (result.verdict, result.n) == (OPEN, 20)
    assert result.interval == (0, 1)


def test_failures_of_half_the_trials_are_taken_for_none_in_at_most_one_study_of_twenty():
    asked, random = claim(ClaimKind.VALUE, metric="error_ratio", high=0.0001), Random(7)
    clean, bad = losing(0, 1).counted[0], losing(0.1, 1).counted[0]
    one = losing(0)
    wrong = 0
    for _ in range(400):
        trials = tuple(random.choice((clean, bad)) for _ in range(5))
        wrong += verdict(asked, replace(one, counted=trials)) is HOLDS
    assert wrong <= 0.05 * 400 + 2 * (0.05 * 0.95 * 400) ** 0.5


def test_zeros_that_show_that_others_lose_nothing_also_show_that_this_one_does_not():
    # One bound for both: ten trials of two subjects refute that most of them lose requests.
    asked = claim(ClaimKind.FAILS, "a*", metric="error_ratio")
    found = evaluate(asked, [losing(0, name="a1"), losing(0, name="a2")])
    assert (found.verdict, found.n, found.figure) == (NOT, 10, 0)
    assert found.reason == "all 2 together: 0 % of a trial's requests fail"


def test_a_server_that_dies_has_lost_all_requests():
    dead = cell("a", [], others=[Failed("load", "died")] * 5)
    assert verdict(claim(ClaimKind.VALUE, metric="error_ratio", high=0.5), dead) is NOT
    assert verdict(claim(ClaimKind.VALUE, metric="error_ratio", low=0.5), dead) is HOLDS


def test_fails_may_ask_for_a_published_share_of_the_requests():
    asked = claim(ClaimKind.FAILS, metric="error_ratio", low=0.05)
    assert verdict(asked, losing(0.01)) is NOT
    assert verdict(asked, losing(0.1)) is HOLDS


# --- spread -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spread", "found"), [(0.3, HOLDS), (0.01, OPEN), (0.0002, NOT)])
def test_what_differs_less_from_block_to_block_is_steadier(spread, found):
    cells = (cell("a", around(14, 10, 0.01)), cell("b", around(14, 10, spread)))
    assert verdict(claim(ClaimKind.STEADIER, against="b+*"), *cells) is found


DIED = [Failed("load", "it died")]


@pytest.mark.parametrize(
    ("speeds", "dies", "found"),
    [
        ((14, 10), "", HOLDS),
        ((14, 10), "a", OPEN),
        ((14, 10), "b", HOLDS),
        ((8, 10), "a", NOT),
        ((8, 10), "b", OPEN),
    ],
)
@pytest.mark.parametrize("kind", [{"kind": ClaimKind.HIGHEST}, {"kind": ClaimKind.RATIO, "low": 1.1}])
def test_a_server_is_not_faster_by_the_trials_that_it_did_not_fail(kind, speeds, dies, found):
    cells = [
        cell(name, around(speed, 10), others=DIED if name in dies else ())
        for name, speed in zip("ab", speeds, strict=True)
    ]
    told = evaluate(claim(**kind, against="b+*"), cells)
    assert told.verdict is found
    assert ("trials that the server failed are missing" in told.reason) is (found is OPEN)


@pytest.mark.parametrize(
    ("bounds", "found"), [({"low": 13}, OPEN), ({"high": 15}, HOLDS), ({"low": 15}, NOT)]
)
def test_a_speed_without_the_trials_that_failed_is_no_lower_bound(bounds, found):
    assert verdict(claim(ClaimKind.VALUE, **bounds), cell("a", around(14, 10), others=DIED)) is found


@pytest.mark.parametrize("dies", ["a", "b"])
def test_a_spread_without_the_trials_that_failed_is_not_that_of_the_server(dies):
    cells = (
        cell(name, around(14, 10, spread), others=DIED if name == dies else ())
        for name, spread in (("a", 0.01), ("b", 0.3))
    )
    assert verdict(claim(ClaimKind.STEADIER, against="b+*"), *cells) is OPEN


@pytest.mark.parametrize("limited", [0, 1])
def test_a_spread_under_a_limit_of_the_generator_may_be_its_own(limited):
    cells = [cell("a", around(14, 10, 0.01)), cell("b", around(14, 10, 0.3))]
    cells[limited] = replace(cells[limited], at_least=True, rate_reach=inf)
    found = evaluate(claim(ClaimKind.STEADIER, against="b+*"), cells)
    assert found.verdict is OPEN
    assert found.reason.endswith("to b+hello: the generator was the limit, so the spread may be its own")


@pytest.mark.parametrize(("reach", "found"), [(1.002, HOLDS), (1.2, OPEN)])
def test_a_spread_is_open_by_what_its_figures_leave_open(reach, found):
    cells = [
        replace(cell(name, around(14, 10, spread)), at_least=True, rate_reach=reach)
        for name, spread in (("a", 0.01), ("b", 0.3))
    ]
    assert verdict(claim(ClaimKind.STEADIER, against="b+*"), *cells) is found


def test_of_fewer_than_eight_blocks_nobody_is_called_steadier():
    cells = [cell("a", around(14, 7, 0.001)), cell("b", around(14, 7, 0.3))]
    found = evaluate(claim(ClaimKind.STEADIER, against="b+*"), cells)
    assert (found.verdict, found.reason) == (UNTESTABLE, "needs 8 blocks; it has 7")


def test_spreads_are_compared_over_the_blocks_that_both_have():
    cells = [cell("a", around(14, 10, 0.01)), cell("b", around(14, 7, 0.3))]
    found = evaluate(claim(ClaimKind.STEADIER, against="b+*"), cells)
    assert (found.verdict, found.n) == (OPEN, 7)
    assert found.reason.endswith("7 of the 8 blocks needed")


# --- growth -----------------------------------------------------------------------------------------------


def test_memory_grows_with_connections():
    cells = [
        cell("a", around(20e6 * factor), at=at, metric="rss_peak")
        for at, factor in ((100, 1), (1000, 2), (10000, 4))
    ]
    found = evaluate(claim(ClaimKind.GROWS, metric="rss_peak"), cells)
    assert (found.verdict, found.figure) == (HOLDS, pytest.approx(4, rel=1e-6))
    assert found.reason == "a+hello, from 100 to 10000 connections"


def test_growth_within_bounds_must_reach_them():
    cells = [cell("a", around(20e6 * k), at=100 * k, metric="rss_peak") for k in (1, 2)]
    assert verdict(claim(ClaimKind.GROWS, metric="rss_peak", low=1.5), *cells) is HOLDS
    assert verdict(claim(ClaimKind.GROWS, metric="rss_peak", low=3), *cells) is NOT
    assert verdict(claim(ClaimKind.GROWS, metric="rss_peak", high=1.5), *cells) is NOT


def test_what_stays_the_same_does_not_grow():
    cells = [cell("a", around(20e6, spread=0.002), at=at, metric="rss_peak") for at in (100, 1000)]
    assert verdict(claim(ClaimKind.GROWS, metric="rss_peak"), *cells) is NOT


def test_growth_within_the_noise_cannot_be_told():
    cells = [
        cell("a", values, at=at, metric="rss_peak")
        for at, values in ((100, [20e6, 22e6, 19e6, 21e6, 20e6]), (1000, [21e6, 20e6, 22e6, 19e6, 24e6]))
    ]
    assert verdict(claim(ClaimKind.GROWS, metric="rss_peak"), *cells) is OPEN


def test_growth_is_over_what_varies_and_loads_of_another_kind_are_left_out():
    cells = [cell("a", around(2e7 * k), at=100 * k, metric="rss_peak") for k in (1, 2)]
    opened = replace(cells[0], cell=replace(cells[0].cell, workload=Workload(OpenLoop(5), DurationStop(1))))
    assert verdict(claim(ClaimKind.GROWS, metric="rss_peak"), *cells, opened) is HOLDS


def test_one_load_shows_no_growth():
    found = evaluate(claim(ClaimKind.GROWS), [cell("a", around(1))])
    assert (found.verdict, found.reason) == (UNTESTABLE, "needs two loads or more")


# --- failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "errors", "kind", "told"),
    [
        (5, {"reset": 200}, "reset", HOLDS),
        (5, {"reset": 200}, None, HOLDS),
        (5, {"bad_status": {"502": 200}}, "bad_status", HOLDS),
        (5, {"reset": 200}, "timed_out", NOT),
        (5, {"reset": 1}, "reset", NOT),
        (4, {"reset": 200}, "reset", UNTESTABLE),
    ],
)
def test_it_fails_so_in_most_trials(blocks, errors, kind, told):
    asked = claim(ClaimKind.FAILS, metric="error_ratio", failure=kind)
    assert verdict(asked, cell("a", around(1, blocks), errors=errors)) is told


def test_a_server_that_dies_has_failed_and_an_invalid_trial_says_nothing():
    asked = claim(ClaimKind.FAILS, metric="error_ratio")
    assert verdict(asked, cell("a", [], others=[Failed("load", "died")] * 5)) is HOLDS
    assert (
        verdict(replace(asked, failure="load"), cell("a", [], others=[Failed("load", "died")] * 5)) is HOLDS
    )
    assert verdict(asked, cell("a", [], others=[Invalid("steal")] * 5)) is OPEN


def test_only_it_fails_if_trials_of_others_fail_less_often():
    asked = claim(ClaimKind.FAILS, metric="error_ratio", against="b+*")
    lost = {"reset": 200}
    assert verdict(asked, cell("a", around(1), errors=lost), cell("b", around(1))) is HOLDS
    found = evaluate(asked, [cell("a", around(1), errors=lost), cell("b", around(1), errors=lost)])
    assert (found.verdict, "5 of 5 trials fail, against 5 of 5" in found.reason) == (OPEN, True)


def dying(name, died, of):
    return cell(name, around(1, of - died), others=[Failed("load", "died")] * died)


def test_one_of_several_rivals_that_fails_too_refutes_at_its_share_of_the_level():
    # 29 or more of 40, at a chance of one half: 0.0032. A fifth of the level is for all rivals.
    asked = claim(ClaimKind.FAILS, metric="error_ratio", failure="load", against="b*")
    mine, worse = dying("a", 40, 40), dying("b0", 29, 40)
    alone = evaluate(asked, [mine, worse])
    assert (alone.verdict, alone.level) == (NOT, pytest.approx(0.01))
    assert alone.reason.startswith("its rival fails too: b0")
    others = [dying(f"b{k}", 0, 40) for k in range(1, 11)]
    assert verdict(asked, mine, worse, *others) is HOLDS


def test_none_of_five_trials_refutes_that_one_fails_more_than_another():
    asked = claim(ClaimKind.FAILS, metric="error_ratio", against="b+*")
    found = evaluate(asked, [losing(0), losing(0, name="b")])
    assert (found.verdict, found.level) == (NOT, pytest.approx(0.04))
    assert found.interval == (0, pytest.approx(1 - 0.04 ** (1 / 5)))


def test_a_share_has_bounds_of_one_side_each():
    found = evaluate(claim(ClaimKind.FAILS, metric="error_ratio", failure="load"), [dying("a", 3, 5)])
    assert (found.verdict, found.level, found.one_sided) == (OPEN, 0.05, True)
    low, high = (binomtest(3, 5, alternative=side).proportion_ci(0.95) for side in ("greater", "less"))
    assert found.interval == pytest.approx((low.low, high.high))
    mean = evaluate(claim(ClaimKind.VALUE, low=0.5, high=2.0), [cell("a", around(1))])
    assert not mean.one_sided


def test_where_most_trials_of_a_rival_fail_too_it_is_not_the_only_one():
    dead = Failed("load", "died")
    cells = [cell("a", around(1, 10), others=[dead] * 30), cell("b", [], others=[dead] * 40)]
    asked = claim(ClaimKind.FAILS, metric="error_ratio", failure="load")
    assert verdict(asked, *cells) is HOLDS
    found = evaluate(replace(asked, against="b+*"), cells)
    assert (found.verdict, found.n, found.figure) == (NOT, 40, 1.0)
    assert found.reason.startswith("its rival fails too: b+hello")


def test_without_a_trial_that_says_something_a_failure_cannot_be_told():
    asked = claim(ClaimKind.FAILS, metric="error_ratio")
    found = evaluate(asked, [cell("a", [], others=[Invalid("steal")] * 5)])
    assert (found.verdict, found.n, found.figure, found.interval) == (OPEN, 0, None, None)
    assert found.reason == "a+hello, closed loop, 100 connections, 2 s: 0 of the 5 blocks needed"


def test_a_trial_of_which_no_request_is_known_is_not_said_to_fail():
    one = cell("a", around(1))
    unknown = replace(one, counted=tuple(replace(trial, account=Tally()) for trial in one.counted))
    assert verdict(claim(ClaimKind.FAILS, metric="error_ratio"), unknown) is NOT


# --- bounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("percent", "hidden", "found"),
    [(99, 5, HOLDS), (99, 40, OPEN), (150, 40, NOT)],
)
def test_cpu_that_a_generator_took_may_be_the_servers(percent, hidden, found):
    asked = claim(ClaimKind.SINGLE_CORE, metric="cpu_percent", tolerance=0.1)
    one = cell("a", around(percent), metric="cpu_percent")
    assert verdict(asked, hiding(one, hidden)) is found


def hiding(one, *percent):
    """Return a cell whose trials may have used so much more of a CPU, in turn."""
    more = zip(one.counted, percent * len(one.counted), strict=False)
    counted = tuple(replace(trial, hidden_cpu_percent=hidden) for trial, hidden in more)
    return replace(one, at_least=True, counted=counted)


def test_the_cpu_of_a_role_is_open_by_what_is_hidden_of_all():
    asked = claim(ClaimKind.SINGLE_CORE, metric="cpu_percent", role="master", tolerance=0.1)
    one = cell("a", around(50), metric="cpu_percent", role="master")
    assert verdict(asked, hiding(one, 50)) is HOLDS
    assert verdict(asked, hiding(one, 70)) is OPEN


def test_a_mean_cpu_is_open_by_the_mean_of_what_its_trials_hide():
    asked = claim(ClaimKind.RATIO, metric="cpu_percent", low=0.8, high=1.25)
    one, other = (cell(name, around(100), metric="cpu_percent") for name in "ab")
    # One trial alone that hides 30 % of a CPU does not open all of them by as much.
    assert verdict(asked, one, hiding(other, 10, 30, 10, 10, 10)) is HOLDS
    assert verdict(asked, one, hiding(other, 30)) is OPEN


def test_the_time_of_a_request_at_a_servers_pace_is_open_by_as_much_as_the_pace():
    asked = claim(ClaimKind.RATIO, metric="duration_ns_per_request", against="b+*", low=1.3)
    slow, other = (
        replace(cell(name, around(value), metric="duration_ns_per_request"), at_least=True, rate_reach=reach)
        for name, value, reach in (("a", 24e6, 1.2), ("b", 12e6, 1.1))
    )
    assert verdict(asked, slow, other) is HOLDS
    assert verdict(asked, replace(slow, rate_reach=1.6), other) is OPEN


def test_growth_is_open_by_what_its_loads_weigh():
    asked = claim(ClaimKind.GROWS, low=2.0)
    few = cell("a", around(100), at=100)
    many = replace(cell("a", around(250), at=1000), at_least=True, rate_reach=1.5)
    assert verdict(asked, few, many) is HOLDS
    assert verdict(replace(asked, low=None, high=3.0), few, many) is OPEN
    assert verdict(replace(asked, low=None, high=4.0), few, many) is HOLDS
    # Of three loads the middle one has no weight in the slope.
    middle = replace(cell("a", around(158), at=316.2277660168), at_least=True, rate_reach=inf)
    assert verdict(replace(asked, low=None, high=4.0), few, middle, many) is HOLDS


@pytest.mark.parametrize(
    ("errors", "reach", "found"),
    [(None, 1.02, HOLDS), (None, 1.5, HOLDS), ({"reset": 90}, 1.02, NOT), ({"reset": 90}, 1.5, OPEN)],
)
def test_without_a_generator_on_its_cpus_a_server_may_lose_less_and_not_more(errors, reach, found):
    asked = claim(ClaimKind.VALUE, metric="error_ratio", high=0.001)
    one = cell("a", around(14), errors=errors)
    shared = replace(one, at_least=True, rate_reach=reach, generator_share=0.03)
    assert verdict(asked, shared) is found
    fails = claim(ClaimKind.FAILS, metric="error_ratio")
    opposite = {HOLDS: NOT, NOT: HOLDS, OPEN: OPEN}
    assert verdict(fails, shared) is opposite[found]


def test_a_suspicion_in_one_trial_of_five_is_not_called_the_limit_of_a_shared_cpu():
    one = cell("a", around(14))
    suspect = Limit(LimitKind.BUSY, share=0.8, level=Limited.SUSPECT)
    trials = replace(one.counted[0], limited=suspect), *one.counted[1:]
    shared = replace(one, at_least=True, limited=suspect, counted=trials, generator_share=0.03, rate_reach=2)
    found = evaluate(claim(ClaimKind.VALUE, high=15), [shared])
    assert (found.verdict, "the generator ran on its CPUs, so the figure is a bound" in found.reason) == (
        OPEN,
        True,
    )


# --- latencies that are bounds ----------------------------------------------------------------------------

MEAN = "service_ok_mean"


def slow(name, centre, **more):
    return cell(name, around(centre), metric=MEAN, **more)


@pytest.mark.parametrize(("mine", "highest", "lowest"), [(300, HOLDS, NOT), (30, OPEN, OPEN)])
def test_who_left_requests_without_a_reply_is_at_least_so_slow(mine, highest, lowest):
    cells = [slow("a", mine, errors={"timed_out": 100}), slow("b", 100)]
    assert verdict(claim(ClaimKind.HIGHEST, metric=MEAN), *cells) is highest
    assert verdict(claim(ClaimKind.LOWEST, metric=MEAN), *cells) is lowest
    found = evaluate(claim(ClaimKind.VALUE, metric=MEAN, high=50), cells[:1])
    assert found.verdict is (NOT if mine > 50 else OPEN)
    if mine == 30:
        assert found.reason.endswith("requests without a reply are missing, and waited longer")


@pytest.mark.parametrize("errors", [{"bad_body": 100}, {"timed_out": 100, "bad_body": 100}, {"reset": 100}])
def test_what_failed_sooner_says_nothing_of_how_long_a_reply_takes(errors):
    found = evaluate(claim(ClaimKind.HIGHEST, metric=MEAN), [slow("a", 300, errors=errors), slow("b", 100)])
    assert (found.verdict, found.reason.endswith("its requests fail")) == (OPEN, True)


def test_in_a_ratio_a_rival_that_left_requests_without_a_reply_is_at_least_so_slow():
    asked = claim(ClaimKind.RATIO, metric=MEAN, against="b+*")
    cells = [slow("a", 300), slow("b", 100, errors={"timed_out": 100})]
    assert verdict(replace(asked, high=4.0), *cells) is HOLDS
    assert verdict(replace(asked, low=2.0), *cells) is OPEN
    assert verdict(replace(asked, low=4.0), *cells) is NOT


@pytest.mark.parametrize(("reach", "found"), [(1.2, HOLDS), (1.6, OPEN)])
def test_the_mean_of_a_closed_loop_is_shorter_by_no_more_than_its_pace_may_be_higher(reach, found):
    """100 ms, and 1,000 connections that bring a request every 0.1 ms: they wait for the server alone."""
    asked = claim(ClaimKind.GROWS, metric=MEAN, low=7.0)
    few = slow("a", 10e6, at=100)

    def held(one):
        each = {"duration_ns_per_request": estimate_mean([1e5] * 5)}
        return replace(one, at_least=True, rate_reach=reach, metrics={**one.metrics, **each})

    assert verdict(asked, few, held(slow("a", 100e6, at=1000))) is found
    assert verdict(asked, few, held(slow("a", 100e6, at=1000, errors={"timed_out": 100}))) is found
    # With 2,000 half of the time is the generator's, which becomes no longer.
    many = held(slow("a", 100e6, at=2000))
    assert many.reach(MEAN) == pytest.approx(100 / (100 - 200 * (1 - 1 / reach)), rel=1e-3)


def test_what_bounds_no_mean():
    each = {"duration_ns_per_request": estimate_mean([1e5] * 5)}
    one = cell("a", [10e6] * 5, metric=MEAN)
    held = replace(one, at_least=True, rate_reach=1.2, metrics={**one.metrics, **each})
    assert held.reach(MEAN) == pytest.approx(1.2)
    assert held.reach("service_ok_p50") == inf
    load = held.cell.workload
    again = replace(load, request=replace(load.request, keep_alive=False))
    for other in (
        replace(held, cell=replace(held.cell, workload=again)),
        replace(held, is_of_generator=True),
        replace(held, metrics=one.metrics | {"duration_ns_per_request": Missing("x")}),
        replace(held, unqualified="it was not steady"),
        replace(held, rate_reach=inf),
    ):
        assert other.reach(MEAN) == inf


# --- needs ------------------------------------------------------------------------------------------------


def test_a_single_core_is_at_most_100_per_cent_where_there_are_more():
    asked = claim(ClaimKind.SINGLE_CORE, metric="cpu_percent", tolerance=0.02)
    assert verdict(asked, cell("a", around(99), metric="cpu_percent")) is HOLDS
    assert verdict(asked, cell("a", around(150), metric="cpu_percent")) is NOT
    found = evaluate(asked, [cell("a", around(99), metric="cpu_percent", cpus=Placement((0,), (1,)))])
    assert (found.verdict, found.reason) == (
        UNTESTABLE,
        "needs 2 CPUs for the server; it has 1; `--share-cpus` gives it 2",
    )


def test_a_generators_single_core_needs_cpus_of_the_generator_and_not_of_the_server():
    asked = claim(ClaimKind.SINGLE_CORE, metric="generator_cpu_percent", tolerance=0.02)
    own = Placement((0,), (1, 2))
    assert verdict(asked, cell("a", around(99), metric="generator_cpu_percent", cpus=own)) is HOLDS
    found = evaluate(
        asked, [cell("a", around(99), metric="generator_cpu_percent", cpus=Placement((0, 1), (2,)))]
    )
    assert (found.verdict, found.reason) == (
        UNTESTABLE,
        "needs 2 CPUs for the generator; it has 1; `--share-cpus` gives it 3",
    )


def test_cpu_that_may_be_a_roles_bounds_its_own():
    asked = claim(ClaimKind.SINGLE_CORE, metric="cpu_percent", role="master", tolerance=0.1)

    def found(used, *more):
        one = cell("a", around(used), metric="cpu_percent", role="master")
        roles = {"master": {**one.roles["master"], "cpu_unsampled_percent": estimate_mean(more)}}
        return evaluate(asked, [replace(one, roles=roles)])

    assert found(98, 0.0, 0.0).verdict is HOLDS
    within, open_end, beyond = found(60, 30.0, 40.0), found(98, 40.0, 42.0), found(150, 40.0, 42.0)
    assert (within.verdict, "its" in within.reason) == (HOLDS, False)
    assert open_end.verdict is OPEN
    assert open_end.reason.endswith(
        ": up to 42 % of a core more may be its, of processes that lived between two samples"
    )
    assert beyond.verdict is NOT
    # That of all processes is known all the same.
    whole = cell("a", around(150), metric="cpu_percent")
    counted = replace(whole, metrics={**whole.metrics, "cpu_unsampled_percent": estimate_mean([40.0, 42.0])})
    assert verdict(replace(asked, role=""), counted) is NOT


def test_a_quota_is_as_few_cpus():
    one = cell("a", around(99), metric="cpu_percent")
    limited = replace(one, cell=replace(one.cell, sandbox=SandboxChoice(cpu_quota=1.5)))
    assert evaluate(claim(ClaimKind.SINGLE_CORE, metric="cpu_percent"), [limited]).reason.endswith(
        "it has 1.5"
    )


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (claim(ClaimKind.VALUE, "z+*"), "needs z+* measured"),
        (claim(ClaimKind.VALUE, load={"connections": 10000}), "needs a+* measured at 10000 connections"),
        (
            claim(ClaimKind.VALUE, needs=Needs(connections=5000)),
            "needs 5,000 connections; the most here are 100",
        ),
        (
            claim(ClaimKind.VALUE, metric="pss_end", needs=Needs(server_cpus=4)),
            "needs 4 CPUs for the server; it has 2; `--share-cpus` gives it 4",
        ),
        (
            claim(ClaimKind.VALUE, metric="pss_end", needs=Needs(generator_cpus=4)),
            "needs 4 CPUs for the generator; it has 2; `--share-cpus` gives it 4",
        ),
    ],
)
def test_what_it_needs_and_does_not_have_makes_a_claim_untestable(asked, reason):
    found = evaluate(asked, [cell("a", around(1))])
    assert (found.verdict, found.reason) == (UNTESTABLE, reason)


# --- what no number of CPUs could change ------------------------------------------------------------------

ONE = Placement((0,), (1,))
CPUS = Needs(server_cpus=2)


def busy(name, speed, percent=99.0, metric="cpu_percent", **kwargs):
    """A cell on one CPU for the server and one for the generator, of which so much was used."""
    found = cell(name, around(speed), cpus=ONE, **kwargs)
    trials = (replace(trial, metrics={**trial.metrics, metric: percent}) for trial in found.counted)
    return replace(found, counted=tuple(trials))


def test_who_is_ahead_of_what_two_cpus_can_make_of_another_is_ahead_on_two():
    asked = claim(ClaimKind.HIGHEST, needs=CPUS)
    found = evaluate(asked, [busy("a", 113_000), busy("b", 12_200)])
    assert found.verdict is HOLDS
    assert "2 CPUs make neither more than 2.02 times as fast" in found.reason
    near = evaluate(asked, [busy("a", 113_000), busy("b", 60_000)])
    assert (near.verdict, near.lack) == (UNTESTABLE, Lack.MACHINE)


def test_a_rival_that_left_its_cpu_idle_may_be_many_times_as_fast_on_two():
    asked = claim(ClaimKind.HIGHEST, needs=CPUS)
    assert verdict(asked, busy("a", 113_000), busy("b", 12_200, percent=15.0)) is UNTESTABLE
    assert verdict(asked, busy("a", 113_000), cell("b", around(12_200), cpus=ONE)) is not NOT


def test_the_slowest_is_not_who_is_ahead_of_what_two_cpus_make_of_another():
    asked = claim(ClaimKind.LOWEST, needs=CPUS)
    assert verdict(asked, busy("a", 17_600), busy("b", 6_500)) is NOT
    assert verdict(asked, busy("a", 17_600), busy("b", 9_000)) is UNTESTABLE


def test_a_rival_that_loses_requests_on_one_cpu_is_beaten_by_a_bound_and_refutes_by_none():
    asked = claim(ClaimKind.HIGHEST, needs=CPUS)
    assert verdict(asked, busy("a", 113_000), busy("b", 12_200, errors={"timeout": 600})) is HOLDS
    assert verdict(asked, busy("a", 5_000), busy("b", 20_000, errors={"timeout": 600})) is UNTESTABLE
    assert verdict(asked, busy("a", 5_000), busy("b", 20_000)) is NOT


def test_a_generator_with_too_few_cpus_is_bounded_likewise():
    asked = claim(ClaimKind.HIGHEST, "*", engine="x", against_engine="y", needs=Needs(generator_cpus=2))
    mine, other = (
        busy("a", speed, metric="generator_cpu_percent", engine=engine)
        for engine, speed in (("x", 1_900), ("y", 330))
    )
    assert verdict(asked, mine, other) is HOLDS


@pytest.mark.parametrize(
    ("metric", "value", "bounds", "found"),
    [
        ("service_ok_mean", 60e6, {"high": 200e6}, HOLDS),
        ("service_ok_mean", 260e6, {"high": 200e6}, UNTESTABLE),
        ("ok_per_s", 900, {"low": 800}, HOLDS),
        ("ok_per_s", 300, {"low": 800}, NOT),
        ("ok_per_s", 500, {"low": 800}, UNTESTABLE),
        ("cpu_percent", 99, {"high": 150}, UNTESTABLE),
    ],
)
def test_a_server_is_no_slower_on_two_cpus_and_no_more_than_twice_as_fast(metric, value, bounds, found):
    asked = claim(ClaimKind.VALUE, metric=metric, needs=CPUS, **bounds)
    one = busy("a", value, metric="cpu_percent") if metric == "ok_per_s" else busy_with(metric, value)
    assert verdict(asked, one) is found


def busy_with(metric, value):
    found = cell("a", around(value), metric=metric, cpus=ONE)
    trials = (replace(trial, metrics={"cpu_percent": 99.0, **trial.metrics}) for trial in found.counted)
    return replace(found, counted=tuple(trials))


def test_what_cpus_do_to_other_figures_is_not_known():
    for metric in ("service_ok_mean", "pss_end"):
        asked = claim(ClaimKind.HIGHEST, metric=metric, needs=CPUS)
        cells = [busy(name, value, at=100) for name, value in (("a", 90_000), ("b", 10))]
        assert verdict(asked, *cells) is UNTESTABLE


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (Needs(duration_ns=30 * build.SECOND), "needs a window of 30 s; it has 2 s"),
        (Needs(timeout_ns=30 * build.SECOND), "needs a time-out of 30 s; it has 10 s"),
    ],
)
def test_a_short_window_or_time_out_decides_no_claim(needs, reason):
    asked = claim(ClaimKind.FAILS, metric="error_ratio", needs=needs)
    found = evaluate(asked, [losing(0.4)])
    assert (found.verdict, found.reason, found.lack) == (UNTESTABLE, reason, Lack.PROFILE)
    assert verdict(replace(asked, needs=Needs(duration_ns=2 * build.SECOND)), losing(0.4)) is HOLDS


def test_a_load_of_few_requests_decides_no_claim():
    asked = claim(ClaimKind.FAILS, metric="error_ratio", needs=Needs(requests=10_000))
    one = losing(0.4)
    counted = [
        replace(one, cell=replace(one.cell, workload=replace(one.cell.workload, stop=CountStop(requests))))
        for requests in (600, 10_000)
    ]
    found = evaluate(asked, counted[:1])
    assert (found.verdict, found.reason) == (UNTESTABLE, "needs 10,000 requests; it has 600")
    assert verdict(asked, counted[1]) is HOLDS
    assert verdict(asked, one) is HOLDS, "a window of time has as many requests as fit"


def test_a_need_of_a_window_holds_for_what_it_is_compared_with_too():
    asked = claim(
        ClaimKind.HIGHEST,
        load={"connections": 10},
        against_load={"connections": 100},
        needs=Needs(duration_ns=3 * build.SECOND),
    )
    own, other = cell("a", around(300), at=10), cell("b", around(100, spread=0.02))
    longer = replace(
        own, cell=replace(own.cell, workload=replace(own.cell.workload, stop=DurationStop(3 * build.SECOND)))
    )
    assert evaluate(asked, [longer, other]).reason == "needs a window of 3 s; it has 2 s"


def test_a_claim_is_about_the_subjects_that_the_original_had():
    cells = [cell("a", around(300)), cell("b", around(200, spread=0.02)), cell("added", around(900))]
    assert verdict(claim(ClaimKind.HIGHEST), *cells) is NOT
    assert verdict(claim(ClaimKind.HIGHEST, among=("a+*", "b+*")), *cells) is HOLDS
    asked = claim(ClaimKind.HIGHEST, "added+*", among=("a+*", "b+*"))
    assert evaluate(asked, cells).reason == "needs added+* measured"


def test_a_subject_without_a_trial_makes_a_claim_untestable():
    found = evaluate(claim(ClaimKind.VALUE), [cell("a", [])])
    assert (found.verdict, found.reason) == (UNTESTABLE, "needs a+hello, which has no trial")


def test_without_anything_to_compare_with_an_order_is_not_testable():
    found = evaluate(claim(ClaimKind.HIGHEST), [cell("a", around(1))])
    assert (found.verdict, found.reason) == (UNTESTABLE, "needs another one to compare with")


def test_every_kind_of_claim_is_evaluated():
    for kind in ClaimKind:
        assert evaluate(claim(kind, low=0.5, high=2.0), [cell("a", around(1)), cell("b", around(1))]).verdict
