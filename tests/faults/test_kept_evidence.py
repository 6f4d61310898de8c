"""The rules judge committed evidence again: of planted faults in real servers, and of their twins.

`tried.jsonl.xz` has one fault of most causes, tried on a busy machine, so generator and other programs are
left out of it. `campaign` has what sessions on quiet machines measured: `prony selftest diagnosis --into`.
"""

from pathlib import Path

import pytest

from prony.cli.selftest_diagnosis import read_evidence
from prony.diagnosis import Confidence, Symptom, observe
from prony.faults import CAUSES, PLANTS, PlanPart
from prony.faults.judge import MOST_OF_A_CPU, judge_plants
from prony.faults.matrix import matrix_of

TRIED = Path(__file__).parent / "tried.jsonl.xz"
CAMPAIGN = Path(__file__).parent / "campaign"
CAUSE_OF = {plant.name: plant.cause for plant in PLANTS}
BUSY = {
    *(kind for kind in Symptom if kind.name.startswith("GENERATOR_")),
    *(Symptom.OTHERS_RAN, Symptom.STOLEN),
}


@pytest.fixture(scope="module")
def tried():
    return list(read_evidence(TRIED))


def test_evidence_is_kept_of_all_causes_but_those_that_need_a_quiet_machine(tried):
    planted = {cause.name for cause in CAUSES if cause.named and cause.of is None}
    assert planted - {CAUSE_OF[one.plant].name for one in tried} <= {
        "carried-over",
        "clipped-queue",
        "cold",
        "frontend-ports",
        "lazy-start",
        "one-core",
        "uneven-sleepers",
        "uneven-workers",
    }


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_a_planted_fault_that_was_tried_is_still_found(cause, tried):
    own = [one for one in tried if CAUSE_OF[one.plant] is cause and not one.healthy]
    for one in own:
        assert cause.named & {found.kind for found in observe(one.evidence).findings}, one.plant


def test_no_twin_that_was_tried_has_a_certain_finding(tried):
    for one in tried:
        found = [each for each in observe(one.evidence).findings if each.kind not in BUSY]
        certain = [each.kind for each in found if each.confidence is Confidence.CERTAIN]
        assert not (one.healthy and certain), (one.plant, certain)


@pytest.fixture(scope="module")
def campaign():
    if not CAMPAIGN.exists():
        pytest.skip("no campaign was measured yet: prony selftest diagnosis --into tests/faults/campaign")
    return judge_plants(PLANTS, read_evidence(CAMPAIGN))


def test_no_generator_of_the_campaign_took_the_cores_that_a_fault_needs(campaign):
    used = {one.plant.name: one.generator_cpus for one in campaign if one.generator_cpus is not None}
    assert {name: share for name, share in used.items() if share > MOST_OF_A_CPU} == {}


def test_the_campaign_is_named_as_its_page_says(campaign):
    found = matrix_of(campaign, CAUSES, PlanPart.HELD_OUT)
    assert found.false_certain.count == 0
    if {row.cause.name for row in found.rows} < {cause.name for cause in CAUSES if cause.of is None}:
        pytest.skip("the campaign has not measured every cause yet")
    assert found.recall.value >= 0.9 and found.precision.value >= 0.9
