"""Listeners that share an address: a reader sees when one was full and the others were not."""

from dataclasses import replace

import pytest

from golden import build
from prony.archive import open_archive
from prony.figures.accept_queue import SharedAddress
from prony.reading.study import read_archive
from prony.report.formats.as_json import reading_json
from prony.report.sections.sandbox import listeners


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    path = tmp_path_factory.mktemp("listeners") / "a.prony"
    with open_archive(build.closed_study(path)) as archive:
        return read_archive(archive)


def lines_of(reading, *shared):
    """Return what is said of the last subject when these were the shared addresses of its trials."""
    (group,) = reading.groups
    *others, last = group.cells
    counted = [
        replace(trial, shared_addresses=(one,)) for trial, one in zip(last.counted, shared, strict=False)
    ]
    changed = replace(group, cells=(*others, replace(last, counted=tuple(counted))))
    return [text for section in listeners(replace(reading, groups=(changed,))) for text in said(section)]


def said(section):
    return [str(text) for _, text in section.blocks[0].items]


def test_of_several_trials_the_one_with_the_fullest_queue_is_told(reading):
    few, full = SharedAddress("server", 8, 100, 1000, 90), SharedAddress("server", 8, 129, 128, 3)
    assert lines_of(reading, few, full, few) == [
        "gunicorn+hello: 8 listeners of the server, longest queue 129 of 128, of the others at most 3"
    ]


def test_queues_that_were_always_empty_are_said_to_be(reading):
    assert lines_of(reading, SharedAddress("server", 2, 0, 128, 0)) == [
        "gunicorn+hello: 2 listeners of the server, all queues empty in every sample"
    ]


def test_subjects_of_one_listener_each_have_no_such_section(reading):
    assert lines_of(reading) == []


def test_the_json_has_each_listener_by_block(reading):
    cells = {cell["name"]: cell for cell in reading_json(reading)["groups"][0]["cells"]}
    assert set(cells["gunicorn+hello"]["listeners"]) == {str(block) for block in range(6)}
    assert [(one["inode"], one["queued_max"]) for one in cells["gunicorn+hello"]["listeners"]["1"]] == [
        (70, 9),
        (71, 1),
    ]
    assert cells["bjoern+hello"]["listeners"]["0"] == []
