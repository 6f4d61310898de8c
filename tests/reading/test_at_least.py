"""A planted archive: the generator was the limit of one subject, which loses no place by that."""

from dataclasses import replace
from math import inf

import pytest

from golden import build
from prony.archive import open_archive
from prony.figures.answer import bounded_by
from prony.figures.at_least import capacity_reach
from prony.figures.claim_parts import ClaimVerdict
from prony.figures.statistics.compare import Verdict
from prony.figures.summary import figures
from prony.figures.validity import in_words
from prony.model.plan import Claim, ClaimKind
from prony.model.sandbox import Placement
from prony.model.trial import Fault, FaultKind, Invalid
from prony.reading.study import read_archive
from prony.reading.traces import primary_cells, traces
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.page.charts.dots import dots
from prony.report.page.charts.ratios import ratios
from prony.report.page.scene import scene_of
from prony.report.sections.answer import leader_words
from prony.report.study import study_report
from prony.report.words import bound_sign
from recordings import with_parts

RATES = {"fast+x": 1000, "held+x": 800, "slow+x": 500}
LIMITED = {
    "limited": "yes",
    "evidence": [{"level": "yes", "kind": "busy", "share": 0.97}],
}
CLAIMS = (
    Claim("c1", "fast is the fastest", ClaimKind.HIGHEST, "ok_per_s", "fast+*"),
    Claim("c2", "held is slower than 900 /s", ClaimKind.VALUE, "ok_per_s", "held+*", high=900.0),
    Claim("c3", "held beats slow", ClaimKind.HIGHEST, "ok_per_s", "held+*", against="slow+*"),
)


def planted(path, *held):
    """Write six blocks of three subjects; `held`: the generator's verdict in the second's trials, block by
    block and then as in the last.
    """
    held = held or (LIMITED,)
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(build.SECOND))
    cells = tuple(build.Cell(k + 1, build.subject(name), load) for k, name in enumerate(RATES))
    plan = build.Plan("study", "", "", "quick", cells, 6, 1, claims=CLAIMS)
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for block in range(6):
            for k, cell in enumerate(cells):
                rate = RATES[cell.subject.name] + (block * (k + 2)) % 5
                trial = build.trial(cell, block, k, [1_000_000] * rate)
                if cell.subject.name == "held+x":
                    own = held[min(block, len(held) - 1)]
                    trial = replace(trial, recording=with_parts(trial.recording, generator=own))
                writer.append(trial)
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(path) as archive:
        return read_archive(archive)


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("bound") / "a.prony")


def test_the_limited_subject_ties_with_the_leader_and_those_it_beats_do_not(reading):
    found = reading.groups[0].answer
    assert (found.leader, found.ties) == ("fast+x", ("held+x",))
    verdicts = {name: one.verdict for name, one in found.comparisons.items()}
    assert verdicts == {"held+x": Verdict.LIMITED, "slow+x": Verdict.LOWER}


def test_without_the_limit_it_is_worse(tmp_path):
    reading = planted(tmp_path / "a.prony", {"limited": "no", "evidence": []})
    found = reading.groups[0].answer
    assert (found.ties, found.comparisons["held+x"].verdict) == ((), Verdict.LOWER)
    assert [one.verdict for _, one in reading.claims] == [ClaimVerdict.HOLDS] * 3


def test_a_wait_that_took_a_tenth_leaves_a_verdict_on_what_is_a_fifth_slower(tmp_path):
    waited = {"limited": "yes", "evidence": [{"level": "yes", "kind": "kept_waiting", "share": 0.1}]}
    reading = planted(tmp_path / "a.prony", waited)
    found, (held,) = reading.groups[0].answer, [one for one in reading.cells if one.name == "held+x"]
    assert held.at_least
    assert (found.ties, found.comparisons["held+x"].verdict) == ((), Verdict.LOWER)
    assert [one.verdict for _, one in reading.claims] == [ClaimVerdict.HOLDS] * 3


NEAR = {
    level: {
        "limited": level,
        "evidence": [{"level": level, "kind": "near_ceiling", "share": share, "ceiling_per_s": 800 / share}],
    }
    for level, share in (("suspect", 0.72), ("yes", 0.93))
}
FREE = {"limited": "no", "evidence": []}


@pytest.mark.parametrize(
    ("held", "is_bound", "hides"),
    [
        ((FREE,), False, False),
        # 70 % of what the generator can do is a suspicion, and one that returns in most trials counts.
        ((NEAR["suspect"],), True, True),
        ((*[NEAR["suspect"]] * 4, FREE), True, True),
        ((*[NEAR["suspect"]] * 3, FREE), False, False),
        # From 90 % on one trial is enough to make it a bound. Its server used 40 % of its CPUs: one trial of
        # six that may have been 2.5 times as fast makes the mean 1.16 times as large, which hides no fifth.
        ((NEAR["yes"], FREE), True, False),
        ((NEAR["yes"],), True, True),
    ],
)
def test_throughput_near_what_the_generator_can_do_is_a_bound_in_the_ranking(tmp_path, held, is_bound, hides):
    reading = planted(tmp_path / "a.prony", *held)
    found = reading.groups[0].answer
    (own,) = [one for one in reading.cells if one.name == "held+x"]
    assert own.at_least is is_bound
    assert found.leader == "fast+x"
    assert found.ties == (("held+x",) if hides else ())
    said = "is best of those that the generator did not limit; it limited 1 other" if hides else "is best ("
    assert str(leader_words(reading.groups[0], "")).startswith(f"fast+x {said}")
    assert found.comparisons["held+x"].verdict is (Verdict.LIMITED if hides else Verdict.LOWER)
    letters = reading.groups[0].standings[0].letters
    assert letters["held+x"] == ("a" if hides else "b")
    claims = [one.verdict for _, one in reading.claims]
    assert (claims[0] is ClaimVerdict.CANNOT_TELL) is hides
    assert claims[2] is ClaimVerdict.HOLDS


def test_a_server_whose_cpus_are_nearly_all_busy_hides_next_to_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("prony.figures.summary.capacity_reach", lambda _: 1 / 0.99)
    reading = planted(tmp_path / "a.prony")
    (own,) = [one for one in reading.cells if one.name == "held+x"]
    assert own.at_least
    assert own.reach("ok_per_s") == pytest.approx(1 / 0.99)
    assert reading.groups[0].answer.comparisons["held+x"].verdict is Verdict.LOWER


def test_what_a_request_costs_is_no_bound_of_a_generators_limit(reading):
    (own,) = [one for one in reading.cells if one.name == "held+x"]
    assert own.at_least
    assert own.reach("cpu_ns_per_request") == 1.0
    assert bound_sign(own, "cpu_ns_per_request") == ""


# --- other programs ---------------------------------------------------------------------------------------


def disturbed(path, share, kind=FaultKind.OTHER_LOAD):
    """Write five blocks of two subjects, of which the second ran beside other programs in all its trials."""
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(build.SECOND))
    cells = tuple(build.Cell(k + 1, build.subject(name), load) for k, name in enumerate(("fast+x", "slow+x")))
    plan = build.Plan("study", "", "", "quick", cells, 5, 1)
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for block in range(5):
            for k, cell in enumerate(cells):
                trial = build.trial(cell, block, k, [1_000_000] * (1000 - 300 * k + (block * (k + 2)) % 5))
                if k:
                    fault = Fault(kind, share=share)
                    trial = replace(trial, outcome=Invalid(in_words(fault)), fault=fault, placement=PLACED)
                writer.append(trial)
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(path) as archive:
        return read_archive(archive)


PLACED = Placement((0,), (1,))


@pytest.mark.parametrize(
    ("share", "verdict"),
    # Of two CPUs 5 % are 10 % of the server's: it may have been 1.11 times as fast, and is 0.7 of the other.
    [(0.05, Verdict.LOWER), (0.3, Verdict.DISTURBED)],
)
def test_beside_other_programs_a_subject_has_a_figure_that_is_a_bound(tmp_path, share, verdict):
    reading = disturbed(tmp_path / "a.prony", share)
    (own,) = [one for one in reading.cells if one.name == "slow+x"]
    assert (own.ok, own.at_least, own.unqualified) == (5, True, None)
    assert own.reach("ok_per_s") == pytest.approx(1 / (1 - 2 * share))
    found = reading.groups[0].answer
    assert (found.leader, found.comparisons["slow+x"].verdict) == ("fast+x", verdict)
    assert "other programs or the hypervisor took CPU time" in " ".join(
        markdown(study_report(reading)).split()
    )


def test_of_few_common_blocks_all_the_disturbed_ones_may_be_some(tmp_path):
    reading = planted(tmp_path / "a.prony", NEAR["yes"], FREE)
    held, slow = (next(one for one in reading.cells if one.name == name) for name in ("held+x", "slow+x"))
    fewer = replace(slow, by_block={block: slow.by_block[block] for block in range(3)})
    assert bounded_by(held, slow, "ok_per_s").first == pytest.approx(held.rate_reach)
    assert bounded_by(held, fewer, "ok_per_s").first == pytest.approx(held.rate_reach**2)


def test_a_disturbance_that_the_user_accepted_is_no_bound():
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(build.SECOND))
    trial = build.trial(build.Cell(1, build.subject("a+x"), load), 0, 0, [1_000_000] * 100)
    accepted = replace(trial, fault=Fault(FaultKind.OTHER_LOAD, share=0.3), placement=PLACED)
    assert (figures(accepted).disturbed, figures(accepted).rate_reach) == (False, 1.0)


@pytest.mark.parametrize("busy", [None, 0.0, -0.5])
def test_cpu_time_that_cannot_be_bounds_nothing(busy):
    assert capacity_reach(busy) == inf


@pytest.mark.parametrize("fault", [Fault(FaultKind.OTHER_LOAD, share=0.3), Fault(FaultKind.SLEPT)])
def test_a_placement_without_cpus_bounds_nothing(fault):
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(build.SECOND))
    trial = build.trial(build.Cell(1, build.subject("a+x"), load), 0, 0, [1_000_000] * 100)
    nowhere = replace(trial, outcome=Invalid("x"), fault=fault, placement=Placement((), ()))
    assert figures(nowhere).outcome == Invalid("x")


def test_stolen_time_is_a_bound_and_sleep_is_none_but_has_void_figures(tmp_path):
    stolen = disturbed(tmp_path / "a.prony", 0.1, FaultKind.STOLEN_TIME)
    assert [cell.ok for cell in stolen.cells] == [5, 5]
    asleep = disturbed(tmp_path / "b.prony", 0.1, FaultKind.SLEPT)
    assert [cell.ok for cell in asleep.cells] == [5, 0]
    own = asleep.cells[1]
    assert (own.known("ok_per_s"), own.void.trials) == (None, 5)
    assert own.void.metrics["ok_per_s"].mean == pytest.approx(702, abs=2)


def test_a_row_says_that_its_open_loop_did_not_stay_one(tmp_path, reading):
    bound = {
        "limited": "yes",
        "evidence": [{"level": "yes", "kind": "in_flight", "connections": 64, "at_ns": 1000}],
    }
    label = "its limit of requests in flight bound: a closed loop from then on"
    assert label in " ".join(markdown(study_report(planted(tmp_path / "a.prony", bound))).split())
    assert label not in " ".join(markdown(study_report(reading)).split())


def test_it_shares_the_leaders_letter_and_not_that_of_the_one_it_beats(reading):
    letters = reading.groups[0].standings[0].letters
    assert letters == {"fast+x": "a", "held+x": "a", "slow+x": "b"}


def test_claims_that_need_its_figure_as_an_upper_bound_cannot_tell(reading):
    verdicts = [one.verdict for _, one in reading.claims]
    assert verdicts == [ClaimVerdict.CANNOT_TELL, ClaimVerdict.CANNOT_TELL, ClaimVerdict.HOLDS]
    assert "the generator was the limit" in reading.claims[1][1].reason


def test_its_figures_are_shown_as_bounds(reading):
    page = " ".join(markdown(study_report(reading)).split())
    assert "≥ 80" in page
    assert "≥ 100" not in page
    assert "held+x: not shown: the generator was the limit" in page
    assert "No verdict or claim calls it worse, unless" in page


def test_charts_show_them_as_bounds_too(tmp_path):
    planted(tmp_path / "a.prony")
    with open_archive(tmp_path / "a.prony") as archive:
        reading = read_archive(archive)
        scene = scene_of(reading, traces(reading, archive.trials(), primary_cells(reading.groups)))
    (group,) = reading.groups
    for chart in (dots(scene, group, "ok_per_s"), ratios(scene, group)):
        said = {row["name"]: row["said"] for row in chart.spec["data"]["values"] if "value" in row}
        assert {name for name, words in said.items() if words.startswith("≥ ")} == {"held+x"}


@pytest.mark.parametrize(
    ("metric", "sign"),
    [("ok_per_s", "≥ "), ("service_ok_p99", "≤ "), ("pss_end", "")],
)
def test_throughput_is_at_least_and_latency_at_most(reading, metric, sign):
    held = next(one for one in reading.cells if one.name == "held+x")
    assert bound_sign(held, metric) == sign


def test_the_json_says_which_figures_are_bounds(reading):
    cells = reading_json(reading)["groups"][0]["cells"]
    assert {cell["name"]: cell["at_least"] for cell in cells} == {
        "fast+x": False,
        "held+x": True,
        "slow+x": False,
    }


def test_requests_that_the_generator_lost_are_not_said_to_be_the_servers(tmp_path):
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(build.SECOND))
    cell = build.Cell(1, build.subject("a+x"), load)
    plan = build.Plan("study", "", "", "quick", (cell,), 1, 1)
    with build.create(tmp_path / "a.prony", plan, build.FINGERPRINT) as writer:
        writer.append(build.trial(cell, 0, 0, [1_000_000] * 100, errors={"client_no_address": 9}))
    with open_archive(tmp_path / "a.prony") as archive:
        (found,) = read_archive(archive).cells
    assert found.unqualified == "the generator could not send its requests"
