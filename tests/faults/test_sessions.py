"""Sessions of a campaign: what counts of several, what is known, and what comes first."""

from dataclasses import replace

import pytest

from faults.test_judge import ASLEEP, LOCK, planted
from lab import PLANTS
from lab.cause import PlanPart
from lab.evidence_files import SessionFile, name_of, read_file, sessions_in
from lab.judge import judge_plants
from lab.report import planted_faults
from lab.servers import RULES_CHANGED_FOR
from lab.sessions import Session, SessionFacts, is_known, spread_out, trials_that_count
from prony.core.errors import UsageError

FIRST = SessionFacts(1_000_000_000, "0.1.0", "a" * 12, {"CPUs": "2"})
SECOND = SessionFacts(1_000_100_000, "0.1.0", "b" * 12, {"CPUs": "8"})


def trials(plant, **more):
    """Three pairs of a plant as it is planted now, the faulty ones with what else is asked for."""
    return tuple(replace(one, planted=plant.digest) for one in planted(plant, **more))


def session(facts, *each):
    return Session(facts, tuple(one for trials in each for one in trials))


# --- what counts ------------------------------------------------------------------------------------------


def test_a_plant_counts_from_one_session_whole_and_of_equals_from_the_first():
    first, second = trials(ASLEEP, slow=20.0), trials(ASLEEP, slow=40.0)
    found, outdated = trials_that_count([session(FIRST, first), session(SECOND, second)], PLANTS)
    assert (found, outdated) == (first, ())


def test_the_session_with_more_pairs_that_nothing_disturbed_counts():
    busy, quiet = trials(ASLEEP, disturbed=True), trials(ASLEEP, slow=40.0)
    assert trials_that_count([session(FIRST, busy), session(SECOND, quiet)], PLANTS)[0] == quiet


def test_each_plant_may_come_from_another_session():
    found, _ = trials_that_count([session(FIRST, trials(ASLEEP)), session(SECOND, trials(LOCK))], PLANTS)
    assert {one.plant for one in found} == {ASLEEP.name, LOCK.name}
    assert len(judge_plants(PLANTS, found)) == 2


def test_evidence_of_what_was_planted_otherwise_is_left_out_and_named():
    old = tuple(replace(one, planted="0" * 12) for one in trials(ASLEEP))
    assert trials_that_count([session(FIRST, old)], PLANTS) == ((), (ASLEEP.name,))
    said = planted_faults((), [FIRST], [ASLEEP.name])
    assert "### Where it was measured\n\n- 1 session of Prony" in said
    assert f"Left out, for what is planted has changed since: {ASLEEP.name}." in said


def test_evidence_from_before_plants_had_digests_counts():
    old = tuple(replace(one, planted="") for one in trials(ASLEEP))
    assert trials_that_count([session(None, old)], PLANTS)[0] == old


@pytest.mark.parametrize(
    ("kept", "blocks", "enough"),
    [(trials(ASLEEP), 3, True), (trials(ASLEEP), 4, False), (trials(ASLEEP, disturbed=True), 1, False)],
    ids=["three pairs", "a fourth is asked for", "disturbed"],
)
def test_a_plant_is_known_with_as_many_undisturbed_pairs_as_are_asked_for(kept, blocks, enough):
    assert is_known(ASLEEP, kept, blocks) is enough
    assert not is_known(LOCK, kept, 1)


# --- digests ----------------------------------------------------------------------------------------------


def test_the_digest_of_a_plant_changes_with_what_is_planted_and_with_nothing_else():
    cause = ASLEEP.cause
    same = replace(ASLEEP, cause=replace(cause, title="in other words"))
    longer = replace(ASLEEP, cause=replace(cause, window_ns=cause.window_ns + 1))

    def slower(server, level):
        return cause.pair(server, level + 1)

    other = replace(ASLEEP, cause=replace(cause, pair=slower))
    assert same.digest == ASLEEP.digest
    assert len({ASLEEP.digest, longer.digest, other.digest}) == 3


def test_plants_differ_in_their_digests():
    of_pairs = {(plant.server.name, plant.cause.window_ns, repr(plant.pair)) for plant in PLANTS}
    assert len({plant.digest for plant in PLANTS}) == len(of_pairs)


# --- order ------------------------------------------------------------------------------------------------


def test_every_cause_comes_once_before_any_comes_twice_and_what_is_held_out_first():
    found = spread_out(PLANTS)
    causes = list(dict.fromkeys(plant.cause.name for plant in PLANTS))
    assert [plant.cause.name for plant in found[: len(causes)]] == causes
    calibrated = [plant.part is PlanPart.CALIBRATION for plant in found]
    assert calibrated == sorted(calibrated)
    assert any(calibrated)
    assert sorted(one.name for one in found) == sorted(one.name for one in PLANTS)


# --- files ------------------------------------------------------------------------------------------------


def test_a_session_is_read_as_it_was_added_before_and_after_its_end(tmp_path):
    file = SessionFile(tmp_path / "new", FIRST)
    file.add(trials(ASLEEP))
    file.add(trials(LOCK))
    whole = Session(FIRST, (*read_file(file.path).trials,))
    assert read_file(file.path) == whole
    assert {one.plant for one in whole.trials} == {ASLEEP.name, LOCK.name}
    large = file.path.stat().st_size
    file.close()
    assert read_file(file.path) == whole
    assert file.path.stat().st_size < large


def test_a_session_that_measured_nothing_leaves_no_file(tmp_path):
    SessionFile(tmp_path, FIRST).close()
    assert list(tmp_path.iterdir()) == []


def test_sessions_are_read_in_their_order(tmp_path):
    for facts in (SECOND, FIRST):
        SessionFile(tmp_path, facts).add(trials(ASLEEP))
    assert [one.facts for one in sessions_in(tmp_path)] == [FIRST, SECOND]
    assert name_of(FIRST) < name_of(SECOND)


def test_a_file_that_holds_something_else_is_refused(tmp_path):
    file = tmp_path / name_of(FIRST)
    file.write_bytes(b"nothing")
    with pytest.raises(UsageError, match="holds no evidence"):
        read_file(file)


def test_a_plant_that_a_rule_was_changed_for_is_held_out_no_more():
    changed = [plant for plant in PLANTS if plant.name in RULES_CHANGED_FOR]
    assert len(changed) == len(RULES_CHANGED_FOR)
    assert {plant.part for plant in changed} == {PlanPart.CALIBRATION}
