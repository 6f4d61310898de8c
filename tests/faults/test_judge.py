"""What is made of planted trials: whether they hurt, what is named, and the matrix of all."""

from dataclasses import replace

import pytest

from diagnosis.test_conclusion import account, loaded, record
from diagnosis.test_rules import CELL, HEALTHY
from golden import build
from lab import CAUSES, PLANTS
from lab.cause import Harm, PlanPart
from lab.harm import harm_of, hurts
from lab.judge import judge_plants
from lab.kept import Kept, decode_kept, encode_kept, slimmed
from lab.matrix import HEALTHY as NOTHING
from lab.matrix import matrix_of
from lab.report import planted_faults
from prony.diagnosis import observe
from prony.diagnosis.evidence import Evidence
from prony.diagnosis.generator import GENERATOR_KEPT_WAITING
from prony.diagnosis.listen_queue import QUEUE_FULL
from prony.diagnosis.machine import STRAYED
from prony.diagnosis.uneven_work import UNEQUAL_WORK
from prony.diagnosis.used_up import DESCRIPTORS_USED_UP
from prony.model.facts import TrialFacts
from prony.model.observation import Phase, Sample
from prony.model.trial import Failed
from recordings import with_parts

ASLEEP = next(one for one in PLANTS if one.cause.name == "asleep" and one.part is PlanPart.HELD_OUT)
LOCK = next(one for one in PLANTS if one.cause.name == "lock" and one.part is PlanPart.HELD_OUT)
BUSY, IDLE = loaded(), loaded(in_flight=2.0)
MS = 1_000_000


def trial(plant, block, *, healthy, observed, harmed=100.0, disturbed=False):
    return Kept(plant.name, healthy, block, harmed, disturbed, Evidence(CELL, observed, record()))


def planted(plant, faulty=BUSY, healthy=IDLE, slow=20.0, blocks=3, **more):
    for block in range(blocks):
        yield trial(plant, block, healthy=True, observed=healthy, harmed=100.0 + block)
        yield trial(plant, block, healthy=False, observed=faulty, harmed=slow + block, **more)


# --- harm -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "pairs", "found"),
    [
        (Harm.RATE, [(100, 50), (101, 52), (99, 51)], True),
        (Harm.RATE, [(100, 50), (101, 140), (99, 60)], False),
        (Harm.RATE, [(50, 100), (52, 101), (51, 99)], False),
        (Harm.RATE, [(100, 0.0)], True),
        (Harm.TAIL, [(10, 40), (11, 44), (9, 38)], True),
        (Harm.FAILED, [(0.0, 0.1), (0.0, 0.12), (0.001, 0.1)], True),
        (Harm.FAILED, [(0.0, 0.001), (0.0, 0.001), (0.0, 0.001)], False),
        (Harm.MEMORY, [(1.0, 1.04)], False),
        (Harm.CPU, [], None),
    ],
)
def test_a_fault_hurts_when_all_blocks_show_more_than_chance(kind, pairs, found):
    assert hurts(kind, pairs) is found


def test_a_trial_that_failed_carried_nothing_and_lost_all():
    failed = build.trial(CELL, 0, 0, [], outcome=Failed("load", "killed"))
    assert [harm_of(kind, failed) for kind in (Harm.RATE, Harm.FAILED, Harm.CPU)] == [0.0, 1.0, None]


def test_the_harm_of_the_tail_is_the_wait_to_connect_and_the_latency():
    slow = build.trial(CELL, 0, 0, [30 * MS] * 200)
    assert harm_of(Harm.TAIL, slow) == pytest.approx(30 * MS, rel=0.01)


# --- judgement --------------------------------------------------------------------------------------------


def test_a_plant_that_hurt_and_was_named_is_right_and_its_twin_no_alarm():
    (found,) = judge_plants(PLANTS, planted(ASLEEP))
    assert (found.hurt, len(found.right), found.false_alarms) == (True, 3, ())


def test_a_plant_that_did_not_hurt_counts_nowhere():
    judged = judge_plants(PLANTS, planted(ASLEEP, slow=99.0))
    (row,) = matrix_of(judged, CAUSES).rows
    assert (judged[0].hurt, row.plants, row.tried, row.recall.total) == (False, 0, 1, 0)


def test_disturbed_trials_do_not_count():
    (found,) = judge_plants(PLANTS, planted(ASLEEP, disturbed=True))
    assert (found.hurt, found.faulty, found.disturbed) == (None, (), 3)


def test_a_certain_finding_on_a_twin_is_a_false_alarm():
    found = matrix_of(judge_plants(PLANTS, planted(ASLEEP, healthy=BUSY)), CAUSES)
    assert (found.false_certain.count, found.false_certain.total) == (3, 3)
    assert found.precision.value == pytest.approx(0.5)


QUEUE = {"listen.server.queued": 6, "listen.server.limit": 5}
WINDOW = Sample(0, Phase.WINDOW, (), 0, 0, 0, QUEUE)


@pytest.mark.parametrize(
    ("healthy", "alarms"),
    [
        (replace(IDLE, samples=(WINDOW, replace(WINDOW, monotonic_ns=10**9))), (QUEUE_FULL,)),
        (replace(IDLE, facts=TrialFacts(strays=2)), (STRAYED,)),
        (replace(IDLE, counters=IDLE.counters | {"machine.throttles": 1}), ()),
    ],
    ids=["its queue was full", "it strayed", "the machine was hot"],
)
def test_what_is_certain_of_a_twins_server_is_a_false_alarm_and_what_the_machine_did_is_none(healthy, alarms):
    (one,) = judge_plants(PLANTS, planted(ASLEEP, healthy=healthy))
    assert [trial.certain for trial in one.false_alarms] == [alarms] * (3 if alarms else 0)


def test_a_macro_mean_has_an_interval_once_causes_have_several_plants():
    two = [one for one in PLANTS if one.cause is ASLEEP.cause][:2]
    found = matrix_of(judge_plants(PLANTS, [*planted(two[0]), *planted(two[1])]), CAUSES)
    assert (found.recall.low, found.recall.value, found.recall.high) == (1.0, 1.0, 1.0)


def test_another_cause_than_the_planted_one_costs_recall_and_the_others_precision():
    judged = judge_plants(PLANTS, [*planted(ASLEEP), *planted(LOCK)])
    found = matrix_of(judged, CAUSES)
    lock, asleep = found.rows
    assert (lock.cause.name, lock.recall.count, lock.named) == ("lock", 0, {"asleep": 3})
    assert (asleep.recall.count, asleep.precision.count, asleep.precision.total) == (3, 3, 6)
    assert found.recall.value == pytest.approx(0.5)
    assert (found.recall.low, found.recall.high) == (None, None)


def test_what_names_nothing_is_a_class_of_its_own():
    found = matrix_of(judge_plants(PLANTS, planted(ASLEEP, faulty=IDLE)), CAUSES)
    assert found.rows[0].named == {NOTHING: 3}
    assert found.healthy == {NOTHING: 3}


@pytest.mark.parametrize(
    ("used", "named"), [(0.99, None), (0.5, GENERATOR_KEPT_WAITING)], ids=["its CPU", "the generator"]
)
def test_a_generator_that_is_suspect_beside_a_full_cpu_is_not_what_the_line_names(used, named):
    suspect = {"limited": "suspect", "evidence": [{"level": "suspect", "kind": "kept_waiting", "share": 0.1}]}
    trial = loaded(in_flight=2.0, cores=used)
    trial = replace(trial, recording=with_parts(trial.recording, generator=suspect))
    (one,) = judge_plants(PLANTS, planted(ASLEEP, faulty=trial))
    assert {each.symptom for each in one.faulty} == {named}


UNEQUAL = next(one for one in PLANTS if one.cause.name == "unequal-work" and one.part is PlanPart.HELD_OUT)


def of_size(each):
    return replace(IDLE, recording=with_parts(IDLE.recording, bytes={"received": each * 40}))


@pytest.mark.parametrize(("size", "right"), [(1700, 3), (180, 0), (20, 3)])
def test_replies_of_another_size_than_the_twins_are_unequal_work(size, right):
    judged = judge_plants(PLANTS, planted(UNEQUAL, faulty=of_size(size), healthy=of_size(170), slow=200.0))
    assert [trial.symptom for trial in judged[0].right] == [UNEQUAL_WORK] * right
    assert [trial.symptom for trial in judged[0].healthy] == [None] * 3


@pytest.mark.parametrize(
    ("sizes", "named"),
    [((170, 175, 172), []), ((170, 170, 400), [0, 1, 2]), ((170, 170, 200), [2]), ((400,), [])],
    ids=["alike", "one is much larger", "one is larger", "with none to compare"],
)
def test_twins_whose_replies_differ_from_each_other_are_unequal_work_too(sizes, named):
    twins = [trial(UNEQUAL, k, healthy=True, observed=of_size(size)) for k, size in enumerate(sizes)]
    (judged,) = judge_plants(PLANTS, twins)
    assert [one.block for one in judged.healthy if one.symptom is UNEQUAL_WORK] == named


@pytest.mark.parametrize("side", ["faulty", "healthy"])
def test_pages_for_errors_are_no_replies_of_another_size(side):
    large = of_size(1700)
    broken = account(large.recording, ok=36, bad_status={"500": 4})
    failing = replace(large, recording=with_parts(large.recording, account=broken))
    sides = {"faulty": of_size(170), "healthy": of_size(170), side: failing}
    (judged,) = judge_plants(PLANTS, planted(UNEQUAL, slow=200.0, **sides))
    assert not [one for one in (*judged.healthy, *judged.faulty) if one.symptom is UNEQUAL_WORK]


def test_what_limits_a_server_comes_before_that_its_replies_are_of_another_size():
    large = with_parts(BUSY.recording, bytes={"received": 99_000})
    judged = judge_plants(PLANTS, planted(ASLEEP, faulty=replace(BUSY, recording=large)))
    assert len(judged[0].right) == 3


def test_the_parts_of_the_plan_are_kept_apart():
    judged = judge_plants(PLANTS, planted(ASLEEP))
    assert matrix_of(judged, CAUSES, PlanPart.CALIBRATION).rows == ()
    assert len(matrix_of(judged, CAUSES, PlanPart.HELD_OUT).rows) == 1


# --- the generator beside a server that has all CPUs ------------------------------------------------------

ONE_CORE = next(one for one in PLANTS if one.cause.name == "one-core")


def test_what_a_generator_takes_of_the_cpus_that_a_fault_needs_is_measured_and_shown():
    trials = planted(ONE_CORE, faulty=loaded(threads=[0.04, 0.03]), healthy=loaded(threads=[0.02]))
    judged = judge_plants(PLANTS, trials)
    assert judged[0].generator_cpus == pytest.approx(0.07)
    assert beside_the_server(judged) == [
        "Beside servers that may use every CPU the generator used 7 % of one at most; 10 % is allowed."
    ]


def test_a_generator_that_takes_more_than_a_tenth_is_named_with_its_fault():
    judged = judge_plants(PLANTS, planted(ONE_CORE, faulty=loaded(threads=[0.12])))
    assert beside_the_server(judged)[1] == (
        f"It used more, so that these may be faults of its own: {ONE_CORE.name}."
    )


def test_a_generator_with_cpus_of_its_own_may_use_them():
    judged = judge_plants(PLANTS, planted(ASLEEP, faulty=loaded(threads=[0.9])))
    assert (judged[0].generator_cpus, beside_the_server(judged)) == (None, [])


def beside_the_server(judged):
    _, _, section = planted_faults(judged).partition("### Where the server has all CPUs\n")
    return [line for line in section.partition("###")[0].splitlines() if line]


# --- evidence that is kept --------------------------------------------------------------------------------


@pytest.mark.parametrize("observed", [BUSY, IDLE, HEALTHY])
def test_rules_judge_kept_evidence_as_they_judge_the_trial(observed):
    one = trial(ASLEEP, 0, healthy=False, observed=observed)
    again = decode_kept(encode_kept(slimmed(one)))
    before, after = (observe(each.evidence) for each in (one, again))
    assert [found.kind for found in after.findings] == [found.kind for found in before.findings]
    assert again == decode_kept(encode_kept(again))


def test_a_failed_trial_stays_failed():
    failed = build.trial(CELL, 0, 0, [], outcome=Failed("load", "killed"))
    again = decode_kept(encode_kept(slimmed(trial(ASLEEP, 0, healthy=False, observed=failed))))
    assert again.evidence.trial.outcome == failed.outcome


def test_of_a_log_the_lines_that_say_what_is_wrong_are_kept():
    noisy = "\n".join([*["INFO nothing"] * 200, "OSError: Too many open files", *["INFO nothing"] * 200])
    long = replace(HEALTHY, log=replace(HEALTHY.log, text=noisy))
    again = slimmed(trial(ASLEEP, 0, healthy=False, observed=long))
    assert [one.kind for one in observe(again.evidence).findings] == [DESCRIPTORS_USED_UP]
    assert len(again.evidence.trial.log.text) < 400
