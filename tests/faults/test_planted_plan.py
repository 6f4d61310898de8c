"""The plan of planted faults: what it covers, and that each plant can be measured."""

from collections import Counter

import pytest

from lab import CAUSES, PLANTS
from lab.campaign import FOLDER, in_shard, matching
from lab.cause import PlanPart
from lab.coverage import coverage_of
from lab.planting import FAULTY, HEALTHY, plan_of_plant
from lab.report import where_planted
from lab.servers import SERVERS, ServerKind
from prony.catalog.schema.loader import load_catalog
from prony.catalog.schema.settings import resolved_settings
from prony.core.sysctl import why_not
from prony.diagnosis.rules import RULES
from prony.model.sandbox import SandboxChoice


@pytest.fixture(scope="module")
def known():
    return load_catalog((FOLDER,))


def test_there_are_at_least_24_causes_and_each_names_a_rule_that_there_is():
    assert len(CAUSES) >= 24
    # D32 compares subjects, and so is none of those that look at one trial.
    assert {cause.rule for cause in CAUSES if cause.named} <= RULES.keys() | {"D32"}


def test_each_kind_of_server_has_most_causes_of_which_it_can_have_any():
    of_kind = Counter(kind for kind in ServerKind for cause in CAUSES if kind in kinds(cause))
    assert min(of_kind.values()) >= 12


def kinds(cause):
    return {SERVERS[name].kind for name in cause.servers}


def test_most_plants_are_held_out_and_every_cause_has_one():
    parts = Counter(plant.part for plant in PLANTS)
    assert parts[PlanPart.HELD_OUT] > 2 * parts[PlanPart.CALIBRATION]
    held_out = {plant.cause.name for plant in PLANTS if plant.part is PlanPart.HELD_OUT}
    assert held_out == {cause.name for cause in CAUSES if cause.of is None}


@pytest.mark.parametrize("one", coverage_of(CAUSES), ids=lambda one: one.cause.name)
def test_each_kind_of_server_has_a_plant_of_each_cause_or_a_reason_why_it_cannot(one):
    assert {*one.servers, *one.cannot} == {*ServerKind}
    assert not one.servers.keys() & one.cannot.keys()


def test_where_each_cause_is_planted_is_said_with_what_cannot_have_it():
    lines = [line for line in where_planted().splitlines() if line.startswith("- ")]
    assert len(lines) == sum(cause.of is None for cause in CAUSES)
    (lock,) = (line for line in lines if "(D16)" in line)
    assert r"threads gunicorn-gthread\*, waitress, cheroot\*, twisted." in lock
    assert "Not prefork: a process works on one request" in lock


def test_no_threshold_is_set_on_a_case_of_the_museum():
    cases = [plant for plant in PLANTS if plant.name.startswith("museum-")]
    assert len(cases) >= 12
    assert {plant.part for plant in cases} == {PlanPart.MUSEUM}


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_a_fault_and_its_twin_are_settings_that_their_server_has(cause, known):
    for plant in cause.plants():
        plan = plan_of_plant(plant, known, SandboxChoice(), blocks=3, seed=1)
        assert {cell.id for cell in plan.cells} == {HEALTHY, FAULTY}
        twin, fault = sorted(plan.cells, key=lambda cell: cell.id)
        assert twin != fault
        for cell in plan.cells:
            resolved_settings(known.server(cell.subject.server), cell.subject, 1)


def test_settings_of_the_kernel_are_those_that_a_trial_may_have(known):
    plans = [plan_of_plant(plant, known, SandboxChoice(), blocks=3, seed=1) for plant in PLANTS]
    settings = [pair for plan in plans for cell in plan.cells for pair in cell.sandbox.sysctl]
    # As the kernel shows it: what it shows otherwise counts as refused.
    assert dict(settings)["net.ipv4.ip_local_port_range"].count("\t") == 1
    assert [why_not(name, value) for name, value in settings] == [None] * len(settings)


def test_shards_share_out_every_plant_once():
    found = [plant.name for number in (1, 2, 3) for plant in in_shard(PLANTS, number, 3)]
    assert Counter(found) == Counter(plant.name for plant in PLANTS)


def test_plants_are_found_by_cause_by_server_and_by_their_own_name():
    assert {one.cause.name for one in matching(PLANTS, ["lock"], None)} == {"lock"}
    assert {one.server.name for one in matching(PLANTS, [], "cheroot*")} == {"cheroot", "cheroot@nginx"}
    assert [one.name for one in matching(PLANTS, ["lock-cheroot-long"], None)] == ["lock-cheroot-long"]
