"""The protocol of a study, on paper: calibration, repeats of spoilt trials, looks, budgets, searches."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from golden import generators
from golden.build import BUSY, recording, told_limit
from prony.archive import open_archive
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import EngineError, FailureStage, HostError
from prony.figures.statistics.compare import Verdict
from prony.machine.fingerprint import fingerprint
from prony.model.facts import Floor, OtherProgram, RateStep, SearchPart
from prony.model.plan import Design, Precision
from prony.model.trial import Failed, Fault, FaultKind, Invalid, Ok, RunStatus, TrialRole
from prony.model.workload import OpenLoop
from prony.plan.build import calibrated
from prony.plan.document import CalibrationDocument
from prony.plan.order import block_turns
from prony.reading.saturation import confirmed_rates
from prony.reading.study import read_archive
from prony.report.formats.markdown import markdown
from prony.report.study import study_report
from prony.study.calibration import keep_floors
from prony.study.rates import TYPICAL_STEPS, searching
from prony.study.run import shown_comparisons
from recordings import with_parts

MS = 1_000_000
PAIR = [{"server": ["wsgiref", "waitress"], "app": "hello"}]


def trials_of(world, role=TrialRole.SUBJECT):
    return [trial for trial in world.archive()[0] if trial.role is role]


def facts_of(world):
    with open_archive(world.folder / "out.prony") as archive:
        return archive.runs()[-1].facts


def server_of(launch):
    return "waitress" if any("waitress" in word for word in launch.command) else "wsgiref"


# --- calibration ------------------------------------------------------------------------------------------


def with_calibration(study):
    return replace(study, plan=calibrated(study.plan, load_catalog(), CalibrationDocument()))


def test_the_reference_server_is_measured_first_last_and_once_inside_each_block(world):
    study = world.measure(with_calibration(world.study()))
    trials, subjects, _ = world.archive()
    expected = [turn.key for block in range(3) for turn in block_turns(study.plan, block)]
    assert [(t.cell_id, t.block, t.position, t.attempt, t.role) for t in trials] == expected
    assert Counter(trial.role for trial in trials) == {TrialRole.SUBJECT: 12, TrialRole.CALIBRATION: 9}
    assert subjects["calibration"].server_version == "1.0"
    assert world.listener.of("planned") == [21]


def test_calibration_has_none_of_the_subjects_limits(world):
    plan = world.study().plan
    limited = replace(plan.cells[0].sandbox, cpu_quota=0.5, memory_bytes=10**8, pids=50)
    plan = replace(plan, cells=tuple(replace(cell, sandbox=limited) for cell in plan.cells))
    sandbox = calibrated(plan, load_catalog(), CalibrationDocument()).calibration.sandbox
    assert (sandbox.cpu_quota, sandbox.memory_bytes, sandbox.pids) == (None, None, None)
    assert replace(sandbox, cpu_quota=0.5, memory_bytes=10**8, pids=50) == limited


def test_a_study_goes_on_without_its_calibration_when_that_cannot_be_had(world):
    world.unavailable = {"reference": "no compiled engine"}
    world.measure(with_calibration(world.study()))
    assert len(world.archive()[0]) == len(trials_of(world)) == 12
    assert "calibration is unavailable: no compiled engine" in world.listener.notices


# --- what the machine spoils ------------------------------------------------------------------------------


def test_a_spoilt_trial_is_repeated_at_the_end_of_its_block(world):
    world.faults = {(1, 2, 0): "the machine slept"}
    world.run()
    spoilt, again = (trial for trial in trials_of(world) if (trial.block, trial.cell_id) == (1, 2))
    assert (spoilt.attempt, spoilt.outcome) == (0, Invalid("the machine slept"))
    assert (again.attempt, again.position, again.outcome) == (1, 4, Ok())
    assert spoilt.fault == Fault(FaultKind.SANDBOX, text="the machine slept")
    assert "a trial is repeated at the block's end: the machine slept" in world.listener.notices
    assert [trial.block for trial in trials_of(world)] == [0] * 4 + [1] * 5 + [2] * 4


@pytest.mark.parametrize(("force", "last"), [(False, Invalid), (True, Ok)])
def test_a_trial_is_repeated_twice_and_what_comes_again_counts_by_force_alone(world, force, last):
    world.faults = {(0, cell, attempt): "other load" for cell in (0, 3) for attempt in range(9)}
    world.measure(replace(world.study(), force=force))
    own = [trial for trial in trials_of(world) if trial.block == 0 and trial.cell_id in (0, 3)]
    assert [(trial.attempt, type(trial.outcome)) for trial in own] == [
        *[(0, Invalid)] * 2,
        *[(1, Invalid)] * 2,
        *[(2, last)] * 2,
    ]
    assert [trial.position for trial in own][2:] == [4, 5, 6, 7]
    assert {trial.fault.text for trial in own} == {"other load"}


@pytest.mark.parametrize(
    ("is_quiet", "force", "attempts"), [(True, False, 3), (False, False, 1), (False, True, 3)]
)
def test_what_is_a_bound_already_is_repeated_only_once_the_machine_is_quiet(
    world, monkeypatch, is_quiet, force, attempts
):
    monkeypatch.setattr("prony.study.bench.Patience.wait", lambda *_: is_quiet)
    busy = Fault(FaultKind.OTHER_LOAD, share=0.3)
    world.faults = {(0, 2, attempt): busy for attempt in range(9)}
    world.measure(replace(world.study(), force=force))
    own = [trial for trial in trials_of(world) if (trial.block, trial.cell_id) == (0, 2)]
    assert len(own) == attempts


def test_the_end_of_a_run_names_who_disturbed_its_windows_and_the_command_to_type_then(world, monkeypatch):
    seen = (OtherProgram("cc1plus", 0.24), OtherProgram("chromium", 0.06))
    monkeypatch.setattr("prony.study.trial.OtherPrograms.programs", lambda _: seen)
    world.faults = {(0, 2, 0): Fault(FaultKind.OTHER_LOAD, share=0.3)}
    world.measure(replace(world.study(), command="prony run two.toml"))
    assert world.listener.notices[-1] == (
        "other programs took the CPUs (cc1plus, chromium): close them, and for exact figures type: "
        "`prony run two.toml`"
    )
    (repeat,) = [one for one in world.listener.notices if "repeated" in one]
    assert repeat.endswith("server and generator (cc1plus 24%, chromium 6%)")
    assert trials_of(world)[0].facts.others == seen
    assert facts_of(world).command == "prony run two.toml"


def test_a_sandbox_that_cannot_be_made_is_a_fault_of_the_machine(world):
    world.errors = {0: HostError("no control group")}
    world.run()
    first = trials_of(world)[0]
    assert first.outcome == Invalid("no control group")
    assert first.fault == Fault(FaultKind.SANDBOX, text="no control group")
    assert len(trials_of(world)) == 13


def test_faults_of_server_and_generator_are_not_repeated(world):
    world.fail = lambda launch: "it ended" if server_of(launch) == "waitress" else None
    world.errors = {0: EngineError("it crashed")}
    world.faults = {(block, cell, 0): "other load" for block in range(3) for cell in (2, 3)}
    world.run()
    outcomes = Counter(type(trial.outcome) for trial in trials_of(world))
    assert outcomes == {Failed: 6, Invalid: 1, Ok: 5}


def test_a_spoilt_calibration_is_not_repeated(world):
    study = with_calibration(world.study())
    world.faults = {(block, study.plan.calibration.id, 0): "other load" for block in range(3)}
    world.measure(study)
    calibrations = trials_of(world, TrialRole.CALIBRATION)
    assert [(trial.attempt, trial.outcome) for trial in calibrations] == [(0, Ok())] * 9


# --- cross-checks -----------------------------------------------------------------------------------------


def test_cross_checks_run_in_every_block_among_its_cells(world):
    study = world.study()
    checks = tuple(replace(cell, id=cell.id + 100) for cell in study.plan.cells[:2])
    world.measure(replace(study, cross_checks=checks))
    found = trials_of(world, TrialRole.CROSS_CHECK)
    assert Counter((trial.block, trial.cell_id) for trial in found) == Counter(
        (block, cell) for block in range(3) for cell in (100, 101)
    )
    with open_archive(world.folder / "out.prony") as archive:
        assert archive.cells(TrialRole.CROSS_CHECK) == checks


# --- looks ------------------------------------------------------------------------------------------------


def looking(study, target=0.02, looks=(10, 15, 20), budget_ns=None):
    precision = Precision(target, looks, budget_ns)
    return replace(study, plan=replace(study.plan, blocks=looks[-1], design=Design(precision=precision)))


def answers(noise, ratio):
    """Return replies whose number differs by ``ratio`` between servers, and by ``noise`` between trials."""
    rng = random.Random(5)

    def replies(launch, workload):
        mean = 2000 * (ratio if server_of(launch) == "waitress" else 1)
        count = round(mean * rng.lognormvariate(0, noise))
        return recording(workload, [MS + k for k in range(count)])

    return replies


ONE_LOAD = {"workloads": [{"loop": "closed", "connections": 4}]}


def blocks_of(world):
    return len({trial.block for trial in trials_of(world)})


def test_a_study_stops_at_the_first_look_when_its_verdict_is_reached(world):
    world.replies = answers(noise=0.01, ratio=1.3)
    world.measure(looking(world.study(**ONE_LOAD)))
    stopped = facts_of(world).stopped
    assert (blocks_of(world), stopped.rule, stopped.blocks) == (10, "verdicts reached", 10)
    assert "looks after 10, 15, 20 blocks" in stopped.words
    assert world.listener.notices[-1] == f"stopped after 10 blocks: {stopped.words}"
    assert world.archive()[2].status is RunStatus.FINISHED


def test_a_look_at_generators_compares_what_the_report_shows(tmp_path):
    with open_archive(generators.generators_study(tmp_path / "a.prony")) as archive:
        reading = read_archive(archive)
    (group,) = reading.groups
    assert len(group.answer.comparisons) > 2
    assert list(shown_comparisons(reading).values()) == list(group.answer.comparisons.values())


def test_noise_floors_of_the_machine_do_not_keep_a_look_from_its_verdict(world):
    world.replies = answers(noise=0.002, ratio=1.05)
    study = looking(world.study(**ONE_LOAD))
    keep_floors(study.user, fingerprint(), [Floor("ok_per_s", "closed", 10, 0.08)])
    world.measure(study)
    assert facts_of(world).stopped.rule == "verdicts reached"
    with open_archive(study.out) as archive:
        (found,) = read_archive(archive).groups[0].answer.comparisons.values()
    assert found.verdict in (Verdict.HIGHER, Verdict.LOWER)


def test_a_study_that_more_blocks_would_not_help_stops_and_says_so(world):
    world.replies = answers(noise=0.5, ratio=1.0)
    world.measure(looking(world.study(**ONE_LOAD)))
    stopped = facts_of(world).stopped
    assert (blocks_of(world), stopped.rule) == (10, "futile")
    assert "blocks would be needed" in stopped.words


def test_a_study_has_at_most_as_many_blocks_as_its_last_look(world):
    # Too noisy for a verdict: with one look more it would go on, or be futile.
    world.replies = answers(noise=0.04, ratio=1.02)
    world.measure(looking(world.study(**ONE_LOAD), looks=(10,)))
    stopped = facts_of(world).stopped
    assert (blocks_of(world), stopped.blocks, stopped.rule) == (10, 10, "at maximum")


def test_a_study_none_of_whose_subjects_starts_reaches_no_verdict(world):
    world.fail = lambda launch: "it ended"
    world.measure(looking(world.study(**ONE_LOAD)))
    stopped = facts_of(world).stopped
    assert (blocks_of(world), stopped.rule) == (10, "futile")
    assert "no subject has figures" in stopped.words


def test_a_single_subject_is_measured_until_its_own_figures_are_precise(world):
    world.replies = answers(noise=0.01, ratio=1.0)
    alone = [{"server": "wsgiref", "app": "hello"}]
    world.measure(looking(world.study(**ONE_LOAD, subjects=alone)))
    assert facts_of(world).stopped.rule == "precise enough"


@pytest.mark.parametrize(
    ("budget_ns", "blocks", "words"),
    [
        (7_500_000_000, 3, "was used up before the first look, after 10 blocks"),
        (26_000_000_000, 10, "the blocks up to the next look, after 15, would exceed the budget of"),
    ],
)
def test_no_block_and_no_look_begins_that_would_end_after_the_budget(
    world, monkeypatch, budget_ns, blocks, words
):
    # Each trial takes a second; two of them are a block.
    monkeypatch.setattr("prony.study.ledger.length_of", lambda trial: 1_000_000_000)
    world.replies = answers(noise=0.01, ratio=1.02)
    world.measure(looking(world.study(**ONE_LOAD), target=0.01, budget_ns=budget_ns))
    stopped = facts_of(world).stopped
    assert (blocks_of(world), stopped.rule) == (blocks, "budget")
    assert words in stopped.words
    assert Counter(trial.block for trial in trials_of(world)) == dict.fromkeys(range(blocks), 2)


# --- searches ---------------------------------------------------------------------------------------------


def limits(**highest):
    """Return replies that are slow beyond a server's highest rate; in a closed loop there are none."""

    def replies(launch, workload):
        rate = workload.loop.rate_per_s if isinstance(workload.loop, OpenLoop) else 0
        slow = rate > highest[server_of(launch)]
        count = min(round(rate * workload.stop.duration_ns / 1e9), 3000)
        return recording(workload, [(90 if slow else 2) * MS + k for k in range(count)])

    return replies


def search(world, objective="p99 < 50ms, errors < 0.1%", **changes):
    study = world.study(**{**ONE_LOAD, **changes})
    return world.measure(replace(study, plan=searching(study.plan, objective)))


def test_the_highest_rate_is_found_and_confirmed_for_each_subject(world):
    world.replies = limits(wsgiref=1234, waitress=7000)
    search(world)
    found = {one.subject: one for one in facts_of(world).found_rates}
    for name, limit in (("wsgiref+hello", 1234), ("waitress+hello", 7000)):
        one = found[name]
        assert one.rate_per_s <= limit < one.rate_per_s * 1.05
        assert one.boundary.low_per_s / 1.01 <= limit <= one.boundary.high_per_s
        assert (one.met, one.of) == (3, 3)
        missed = min(step.rate_per_s for step in one.steps if step.met is False)
        (unmet,) = (step.unmet for step in one.steps if step.rate_per_s == missed)
        assert (unmet.condition, unmet.metric) == ("p99 < 50ms", "response_all_p99")
        assert 90e6 <= unmet.value < 91e6
    trials, _, run = world.archive()
    assert {trial.role for trial in trials} == {TrialRole.FIND_RATE}
    assert run.status is RunStatus.FINISHED


def test_a_search_repeats_what_was_disturbed_though_the_machine_is_busy(world, monkeypatch):
    monkeypatch.setattr("prony.study.bench.Patience.wait", lambda *_: False)
    world.replies = limits(wsgiref=1000, waitress=1000)
    first = 1 + max(cell.id for cell in searching(world.study(**ONE_LOAD).plan, "p99 < 50ms").cells)
    busy = Fault(FaultKind.OTHER_LOAD, share=0.3)
    world.faults = {(0, cell, 0): busy for cell in range(first, first + 50)}
    search(world)
    trials = [one for one in trials_of(world, TrialRole.FIND_RATE) if one.block == 0]
    assert {one.attempt for one in trials} == {0, 1}
    assert all(one.rate_per_s for one in facts_of(world).found_rates)


def test_each_rate_and_each_confirmation_has_a_fresh_server(world):
    world.replies = limits(wsgiref=1000, waitress=1000)
    search(world)
    # Each subject is looked at once before, in a closed loop.
    assert len({name for name, _ in world.happened("start")}) == 2 + len(world.archive()[0])


def test_what_is_confirmed_is_one_rate_in_blocks_of_all_subjects(world):
    world.replies = limits(wsgiref=1000, waitress=3000)
    search(world)
    trials = world.archive()[0]
    fresh = [trial for trial in trials if trial.facts.find_rate.part is SearchPart.CONFIRMATION]
    assert Counter(trial.block for trial in fresh) == {1: 2, 2: 2, 3: 2}
    assert len({(trial.cell_id, trial.facts.find_rate.step.rate_per_s) for trial in fresh}) == 2


def test_a_search_is_told_by_its_trials_alone(world):
    world.replies = limits(wsgiref=1000, waitress=3000)
    search(world)
    with open_archive(world.folder / "out.prony") as archive:
        cells = archive.cells(TrialRole.FIND_RATE)
        facts = [record.trial.facts.find_rate for record in archive.trials()]
        found = confirmed_rates(archive.runs())
    for part, counted in (
        ("search", [len(one.steps) for one in found]),
        ("confirmation", [one.of for one in found]),
    ):
        assert sum(fact.part == part for fact in facts) == sum(counted)
    met = [one.step.rate_per_s for one in facts if one.part is SearchPart.CONFIRMATION and one.step.met]
    assert Counter(met) == {one.rate_per_s: one.met for one in found}
    assert all(isinstance(cell.workload.loop, OpenLoop) for cell in cells)


def test_a_server_that_never_meets_it_has_no_rate(world):
    world.replies = limits(wsgiref=0, waitress=500)
    search(world)
    assert any("/s: not `p99 < 50ms`: it was 90" in text for text in world.listener.notices)
    slow, _ = facts_of(world).found_rates
    assert (slow.rate_per_s, slow.of) == (None, 0)
    assert slow.steps
    assert not any(step.met for step in slow.steps)


def test_a_server_that_fails_does_not_meet_it(world):
    world.fail = lambda launch: "it ended" if server_of(launch) == "wsgiref" else None
    world.replies = limits(wsgiref=0, waitress=500)
    search(world)
    failing, _ = facts_of(world).found_rates
    assert failing.rate_per_s is None
    assert {(step.stage, step.reason) for step in failing.steps} == {(FailureStage.START, "it ended")}


def test_a_rate_whose_trials_are_spoilt_by_the_generator_ends_the_search(world):
    world.replies = limits(wsgiref=1000, waitress=500)
    world.errors = {3: EngineError("it crashed")}
    search(world)
    first, _ = facts_of(world).found_rates
    assert first.steps[-1] == RateStep(first.steps[-1].rate_per_s, None, "the generator: it crashed")
    assert first.rate_per_s == pytest.approx(1000, rel=0.1)


def test_below_a_limit_of_the_generator_the_search_goes_on_and_finds_a_bound(world):
    def limited(launch, workload):
        rate = workload.loop.rate_per_s if isinstance(workload.loop, OpenLoop) else 0
        late = rate > 1000
        count = min(round(rate * workload.stop.duration_ns / 1e9), 3000)
        return recording(workload, [(90 if late else 2) * MS] * count, limited=BUSY if late else None)

    world.replies = limited
    search(world)
    first, _ = facts_of(world).found_rates
    assert 1000 / 1.05 <= first.rate_per_s <= 1000
    assert {step.met for step in first.steps if step.rate_per_s > 1000} == {None}
    with open_archive(world.folder / "out.prony") as archive:
        assert confirmed_rates(archive.runs())[0].at_least
    assert any("undecided: the generator may have been the limit" in one for one in world.listener.notices)


def cpu_of(recording):
    """Return a Recording of a generator that its CPU limited, and that sent half of what was due."""
    sent = recording.account.scheduled // 2
    return with_parts(recording, generator={**told_limit(BUSY), "sent_in_window": sent})


def test_cpu_that_a_limited_generator_left_free_does_not_make_the_search_double_on(world):
    def limited(launch, workload):
        rate = workload.loop.rate_per_s if isinstance(workload.loop, OpenLoop) else 0
        found = recording(workload, [2 * MS] * min(round(rate * workload.stop.duration_ns / 1e9), 3000))
        return cpu_of(found) if rate > 1000 else found

    world.replies = limited
    search(world, objective="errors < 1%")
    first, _ = facts_of(world).found_rates
    assert 1000 / 1.05 <= first.rate_per_s <= 1000
    assert {step.met for step in first.steps if step.rate_per_s > 1000} == {None}
    assert max(step.rate_per_s for step in first.steps) <= 2000
    with open_archive(world.folder / "out.prony") as archive:
        assert confirmed_rates(archive.runs())[0].at_least


def test_too_few_requests_end_the_search_whatever_else_may_have_been_the_limit(world):
    def few(launch, workload):
        rate = workload.loop.rate_per_s if isinstance(workload.loop, OpenLoop) else 0
        replies = [2 * MS] * (3000 if rate <= 1000 else 900)
        return recording(workload, replies, limited=BUSY if rate > 1000 else None)

    world.replies = few
    search(world)
    first, _ = facts_of(world).found_rates
    assert first.steps[-1].reason == "fewer than 10 requests lie above it"
    assert [step.met for step in first.steps].count(None) == 1


def in_a_closed_loop(served, of):
    """Return replies of which a short closed loop has so many a second."""

    def replies(launch, workload):
        if isinstance(workload.loop, OpenLoop):
            return of(launch, workload)
        return recording(workload, [2 * MS] * round(served * workload.stop.duration_ns / 1e9))

    return replies


def tried(world, place):
    return [step.rate_per_s for step in facts_of(world).found_rates[place].steps]


def test_a_search_begins_at_half_of_what_a_short_closed_loop_served(world):
    world.replies = in_a_closed_loop(3000, limits(wsgiref=2000, waitress=1000))
    search(world)
    assert tried(world, 0)[:2] == [1500, 3000]
    assert tried(world, 1)[:2] == [1500, 750]
    assert len(tried(world, 0)) <= TYPICAL_STEPS + 2
    assert sum("in a short closed loop" in text for text in world.listener.notices) == 2


def test_a_search_begins_at_the_rate_that_was_asked_for(world):
    world.replies = in_a_closed_loop(3000, limits(wsgiref=2000, waitress=1000))
    search(world, workloads=[{"loop": "open", "rate": 1600}])
    assert tried(world, 0)[0] == 1600


def test_a_search_begins_where_the_percentile_is_a_figure(world):
    world.replies = limits(wsgiref=30_000, waitress=30_000)
    search(world, objective="p99.9 < 50ms")
    first = world.archive()[0][0]
    # A window of one second: 10,000 requests have 10 above their p99.9.
    assert first.facts.find_rate.step.rate_per_s == pytest.approx(10_000)


def test_below_that_windows_lengthen_until_the_percentile_is_a_figure(world):
    world.replies = limits(wsgiref=70, waitress=1000)
    search(world)
    slow, _ = facts_of(world).found_rates
    assert slow.rate_per_s <= 70 < slow.rate_per_s * 1.05
    assert all(step.met is not None for step in slow.steps)
    with open_archive(world.folder / "out.prony") as archive:
        loads = {cell.workload for cell in archive.cells(TrialRole.FIND_RATE)}
    for load in loads:
        assert load.loop.rate_per_s * load.stop.duration_ns >= 1000 * 0.99 * 1e9


def test_a_search_that_is_interrupted_reports_the_rates_that_it_tried(world):
    world.replies = limits(wsgiref=3000, waitress=3000)
    tried = iter(range(6))

    def interrupt(launch, workload):
        if next(tried, None) is None:
            raise KeyboardInterrupt
        return limits(wsgiref=3000, waitress=3000)(launch, workload)

    world.replies = interrupt
    with pytest.raises(KeyboardInterrupt):
        search(world)
    with open_archive(world.folder / "out.prony") as archive:
        reading = read_archive(archive)
    (found,) = reading.found_rates
    assert len(found.steps) == 5
    assert found.rate_per_s == max(step.rate_per_s for step in found.steps if step.met)
    assert "No trial was run" not in markdown(study_report(reading))


def test_a_study_at_several_loads_searches_once_for_each_subject(world):
    world.replies = limits(wsgiref=150, waitress=150)
    study = search(world, workloads=[{"loop": "closed", "connections": [1, 2, 3]}])
    assert [cell.subject.name for cell in study.plan.cells] == ["wsgiref+hello", "waitress+hello"]
