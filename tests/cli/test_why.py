"""`prony why`: what limits the subjects of an archive, from the archive alone."""

import pytest

from golden import build
from prony.archive import open_archive
from prony.reading.study import read_archive
from prony.report.formats.as_json import reading_json


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return build.study_two(tmp_path_factory.mktemp("why") / "a.prony")


def words(text):
    return " ".join(text.split())


def test_the_beginning_of_a_name_is_enough(said, archive):
    out = words(said("why", archive, "wsgiref+falcon").out)
    assert "wsgiref+falcon-hello: 550/s limited by a full listen queue: 413 connections" in out
    assert "certain, in 3 of 3 trials. Means: the tail of the latency is waiting to connect. Try:" in out
    assert "tornado" not in out


def test_without_a_name_every_subject_is_explained(said, archive):
    out = said("why", archive).out
    assert all(f"{name}: 550/s" in out for name in ("tornado+falcon-hello", "twisted+flask-hello"))


def test_what_was_ruled_out_is_listed_with_how_busy_it_was(said, archive):
    assert "ruled out: its CPU (" in words(said("why", archive, "tornado+flask").out)


def test_a_name_that_fits_several_subjects_or_none_is_refused_with_those_that_there_are(said, archive):
    several, none = said("why", archive, "t"), said("why", archive, "puma")
    assert (several.status, none.status) == (2, 2)
    assert "`t` begins the names of 4 subjects; expected one of" in several.err
    assert "no subject is `puma`; expected one of" in none.err


def test_the_json_has_the_values_of_the_report_and_where_they_are(said, archive):
    with open_archive(archive) as opened:
        report = reading_json(read_archive(opened))
    found = said("why", archive, "--json").json["subjects"]
    for one in found:
        _, _, group, _, cell, _ = one["at"].split("/")
        assert one["diagnosis"] == report["groups"][int(group)]["cells"][int(cell)]["diagnosis"]
    assert len(found) == len(report["groups"][0]["cells"])


def test_it_reads_only_and_leaves_nothing(said, archive):
    before, beside = archive.read_bytes(), sorted(archive.parent.iterdir())
    said("why", archive)
    said("why", archive, "--json")
    assert archive.read_bytes() == before
    assert sorted(archive.parent.iterdir()) == beside
