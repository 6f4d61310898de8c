"""A claim that does not hold, asked again of the software of the original's time."""

from dataclasses import replace

import pytest

from figures.test_claims import NOT, UNTESTABLE, around, cell, claim
from golden import build
from prony.figures.claims import VersionChange, evaluate, of_the_time
from prony.figures.statistics.compare import Terms
from prony.model.plan import ClaimKind, Design, Needs
from prony.model.trial import TrialRecord
from prony.reading.study import read
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.sections.claims import claims as claims_section
from prony.report.sections.claims import failed_claims
from prony.report.study import full_page

EDITIONS = {"a-as-of-2016+hello": "a+hello", "b-as-of-2016+hello": "b+hello"}
# Of today `b` is the faster.
TODAY = (cell("a", around(300)), cell("b", around(400, spread=0.02)))


def then(a, b):
    return (cell("a-as-of-2016", around(a)), cell("b-as-of-2016", around(b, spread=0.02)))


def change(cells, expected=NOT, **of_claim):
    asked = claim(ClaimKind.HIGHEST, among=("a+hello", "b+hello"), **of_claim)
    found = evaluate(asked, cells)
    assert found.verdict is expected
    return of_the_time(asked, found, cells, EDITIONS, Terms())


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (300, 200, VersionChange.VERSIONS),
        (200, 300, VersionChange.NOT_THEN),
        (300, 301, VersionChange.UNKNOWN),
    ],
)
def test_it_holds_with_that_or_it_does_not_or_that_cannot_be_told(a, b, expected):
    found = change((*TODAY, *then(a, b)))
    assert (found.change, found.subjects) == (expected, 2)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (300, 200, VersionChange.HELD),
        (200, 300, VersionChange.NOT_THEN),
        (300, 301, VersionChange.UNKNOWN),
    ],
)
def test_it_can_be_asked_without_the_software_of_today(a, b, expected):
    found = change(then(a, b), UNTESTABLE)
    assert (found.change, found.subjects) == (expected, 2)


def test_what_holds_of_some_is_not_known_to_hold_of_all():
    asked = claim(ClaimKind.HIGHEST, among=("a+hello", "b+hello"))
    cells, editions = then(300, 200), {**EDITIONS, "c-as-of-2016+hello": "c+hello"}
    assert (
        of_the_time(asked, evaluate(asked, cells), cells, editions, Terms()).change is VersionChange.UNKNOWN
    )


def test_what_nobody_could_test_was_not_asked_of_the_software_of_the_time():
    assert change(then(300, 200), UNTESTABLE, needs=Needs(server_cpus=64)) is None


def test_what_was_not_measured_says_nothing():
    assert change(TODAY) is None
    lost = tuple(replace(one, ok=0, total=0, counted=(), others=()) for one in then(300, 200))
    assert change((*TODAY, *lost)) is None


def test_a_claim_that_holds_is_not_asked_again():
    asked = claim(ClaimKind.HIGHEST, "b+*", among=("a+hello", "b+hello"))
    cells = (*TODAY, *then(300, 200))
    assert of_the_time(asked, evaluate(asked, cells), cells, EDITIONS, Terms()) is None


def test_the_software_of_today_is_no_rival_of_that_of_the_time():
    # `b` of today is faster than `a` of the time, and that is not what was claimed.
    found = change((*TODAY, *then(310, 200)))
    assert found.change is VersionChange.VERSIONS
    assert found.result.reason.endswith("to b+hello")


def read_of(cells, rates):
    """Return what a study of the cells says, each so many times a second."""
    plan = build.Plan(
        *("study", "", "", "full", tuple(replace(one.cell, id=k) for k, one in enumerate(cells)), 5, 1),
        claims=(claim(ClaimKind.HIGHEST, "a+*", among=("a+hello", "b+hello")),),
        design=Design(editions=EDITIONS),
    )
    # The spread of `a`, and of `b`.
    figures = [around(rate, spread=(0.01, 0.02)[k % 2]) for k, rate in enumerate(rates)]
    trials = (
        TrialRecord(0, 1, build.trial(one, block, place, [1_000_000] * round(figures[place][block])))
        for place, one in enumerate(plan.cells)
        for block in range(5)
    )
    return read(plan, (), {}, trials)


def test_the_report_says_why_a_claim_fails():
    reading = read_of((*TODAY, *then(300, 200)), (300, 400, 300, 200))
    (brief,) = map(str, failed_claims(reading))
    assert brief.startswith("does not hold (measured 0.75 times) (versions changed): ")
    (_, judgements) = claims_section(reading).blocks
    (judgement,) = judgements.items
    assert "versions changed: with the software of the time it holds (2 such subjects, measured 1.50" in str(
        judgement.detail
    )
    (found,) = reading_json(reading)["claims"]
    assert (found["verdict"], found["then"]["change"]) == ("does not hold", "versions changed")
    assert found["then"]["result"]["verdict"] == "holds"


@pytest.mark.parametrize(
    ("today", "rates", "said", "change"),
    [
        ((), (300, 200), "1 not testable here; with the software of the time: 1 held", "held"),
        (
            (),
            (200, 300),
            "1 not testable here; with the software of the time: 1 did not hold",
            "did not hold",
        ),
        ((), (300, 301), "1 not testable here; with the software of the time: 1 undecided", "cannot tell"),
        (
            *(TODAY, (300, 400, 300, 200)),
            *("1 does not hold; with the software of the time: 1 held, unlike today", "versions changed"),
        ),
        (TODAY, (400, 300), "1 holds", None),
    ],
)
def test_the_first_screen_counts_what_the_software_of_the_time_says(today, rates, said, change):
    old = then(*rates[-2:]) if change else ()
    reading = read_of((*today, *old), rates)
    page = " ".join(markdown(full_page(reading), with_terms=False).split())
    assert page.count(f"1 claim: {said}. ") == 3, "of the first screen, the answer, and what was claimed"
    assert reading_json(reading)["then_verdicts"] == ({change: 1} if change else {})
