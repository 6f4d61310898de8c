"""Close looks, on paper: after the last block, once for each cell, and without a say in any figure."""

from dataclasses import replace

import pytest

from prony.archive import open_archive
from prony.diagnosis.confirmation import confirmation_of
from prony.diagnosis.evidence import Evidence
from prony.model.facts import CloseLook
from prony.model.trial import TrialRole
from prony.reading.study import read_archive
from prony.sandbox.watch.waits import SwitchCounters
from prony.study.blocks import number_of_look
from prony.study.extent import extent_of


@pytest.fixture(autouse=True)
def no_kernel(monkeypatch):
    """What a kernel would let be seen is tested elsewhere: here it refuses."""

    def refuse(self, watch):
        raise RuntimeError("the kernel refuses")

    monkeypatch.setattr(SwitchCounters, "_add", refuse)


def closely(study):
    design = replace(study.plan.design, confirm=(CloseLook.SWITCHES,))
    return replace(study, plan=replace(study.plan, design=design))


def reading_of(world):
    with open_archive(world.folder / "out.prony") as archive:
        return read_archive(archive)


def looks_of(world):
    return [trial for trial in world.archive()[0] if trial.role is TrialRole.CONFIRMATION]


def test_each_cell_is_looked_at_once_after_the_last_block(world):
    study = world.measure(closely(world.study()))
    looks, cells = looks_of(world), study.plan.cells
    assert [trial.cell_id for trial in looks] == [number_of_look(cell.id) for cell in cells]
    assert [trial.facts.close.cell_id for trial in looks] == [cell.id for cell in cells]
    assert world.archive()[0][-len(cells) :] == looks


def test_nothing_is_looked_at_closely_that_is_not_asked_for(world):
    world.run()
    assert looks_of(world) == []
    trials, _, _ = world.archive()
    assert {trial.facts.close for trial in trials} == {None}
    assert not any(name.startswith("switches.") for trial in trials for name in trial.missing)


def test_only_the_confirming_trials_are_disturbed(world):
    world.measure(closely(world.study()))
    trials, _, _ = world.archive()
    watched = {trial.role for trial in trials if "switches.threads" in trial.missing}
    assert watched == {TrialRole.CONFIRMATION}


def test_a_look_enters_no_figure(world):
    study = world.measure(closely(world.study()))
    reading = reading_of(world)
    assert {cell.total for cell in reading.cells} == {study.plan.blocks}
    assert len(reading.cells) == len(study.plan.cells)


def test_what_was_not_seen_is_said(world):
    study = world.measure(closely(world.study()))
    for cell, look in zip(study.plan.cells, looks_of(world), strict=True):
        found = confirmation_of(Evidence(cell, look, None), None, cpu_bound=True)
        assert "the kernel refuses" in found.missing[0]


def test_looks_are_planned_and_a_study_that_goes_on_has_them_once(world):
    study = closely(world.study())
    cells = len(study.plan.cells)
    assert (
        extent_of(study.plan, study.catalog).trials[1]
        == extent_of(world.study().plan, study.catalog).trials[1] + cells
    )
    world.measure(study)
    assert world.listener.of("planned") == [cells * (study.plan.blocks + 1)]
    world.measure(replace(study, resumes=True))
    assert len(looks_of(world)) == cells
    assert world.listener.of("planned")[-1] == 0
