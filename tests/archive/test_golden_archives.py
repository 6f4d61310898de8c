"""An archive that each format's own Prony wrote, as it is read and reported today."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from prony.archive import open_archive
from prony.archive.guard import FORMAT_VERSION
from prony.cli.report import report_data
from prony.model import Failed, Fault, FaultKind, Invalid, Ok, TrialFacts

ARCHIVES = Path(__file__).parents[1] / "golden" / "archives"
FORMATS = range(1, FORMAT_VERSION + 1)
MIX = f"{FORMAT_VERSION}-mix"
SUBJECTS = 8


@pytest.fixture(params=FORMATS)
def golden(request, tmp_path):
    return unpacked(request.param, tmp_path)


def unpacked(version, folder):
    path = folder / f"format-{version}.prony"
    path.write_bytes(gzip.decompress((ARCHIVES / f"{path.name}.gz").read_bytes()))
    return path


def trials_of(path):
    with open_archive(path) as archive:
        return [record.trial for record in archive.trials()]


def plan_of(path):
    with open_archive(path) as archive:
        return archive.plan()


def test_there_is_an_archive_of_every_format_and_of_no_other():
    assert {one.name for one in ARCHIVES.iterdir()} == {f"format-{one}.prony.gz" for one in (*FORMATS, MIX)}


def test_it_is_of_its_format(tmp_path):
    for version in FORMATS:
        assert int.from_bytes(unpacked(version, tmp_path).read_bytes()[60:64], "big") == version


def test_it_is_read(golden):
    before = golden.read_bytes()
    with open_archive(golden) as archive:
        assert len(archive.plan().subjects()) == len(archive.subjects()) == SUBJECTS
        assert all(run.fingerprint.free["kernel"] for run in archive.runs())
    found = trials_of(golden)
    assert {type(trial.outcome) for trial in found} >= {Ok, Invalid}
    assert sum(trial.recording is not None for trial in found) >= SUBJECTS - 2
    assert golden.read_bytes() == before


def test_a_mix_is_read_with_what_came_of_each_path(tmp_path):
    path = unpacked(MIX, tmp_path)
    found = trials_of(path)
    assert [[(one.path, one.account.ok) for one in trial.recording.paths] for trial in found] == [
        [("/", 1800), ("/cart", 200)]
    ] * len(found)
    (group,) = report_data(path)["groups"]
    p50 = group["cells"][1]["paths"][1]["percentiles"]["50"]
    assert (p50["mean"], p50["count"]) == (pytest.approx(9_100_000, rel=0.01), 5)


def test_it_is_reported(golden):
    report = report_data(golden)
    (group,) = report["groups"]
    p50 = {cell["subject"]: cell["metrics"].get("response_ok_p50") for cell in group["cells"]}
    assert p50["tornado+falcon-hello"]["mean"] == 790_527
    assert p50["wsgiref+flask-hello"] == {"missing": "no trial ran"}


def test_a_fault_that_stood_as_a_sentence_is_read_as_a_kind_with_its_figures(tmp_path):
    found = [trial for trial in trials_of(unpacked(2, tmp_path)) if trial.block == 3]
    assert [trial.fault for trial in found] == FAULTS
    assert [type(trial.outcome) for trial in found] == [*[Invalid] * 4, Ok, *[Invalid] * 5]
    assert found[0].facts == TrialFacts(strays=0)
    assert found[4].facts == TrialFacts()


def test_the_fields_of_a_driver_that_is_gone_are_passed_over_and_its_name_is_kept(tmp_path):
    path = unpacked(FORMAT_VERSION, tmp_path)
    before, plan = [trial.recording.spec for trial in trials_of(path) if trial.recording], plan_of(path)
    with closing(sqlite3.connect(path)) as database, database:
        by_ring = "'$.spec.driver', 'io_uring', '$.engine.driver', 'io_uring', '$.engine.fallback', 'none'"
        database.execute(f"UPDATE recording SET recording_json = json_set(recording_json, {by_ring})")
        database.execute("UPDATE cell SET engine_json = json_set(engine_json, '$.driver', 'io_uring')")
    found = [trial.recording for trial in trials_of(path) if trial.recording]
    assert [one.spec for one in found] == before
    assert {one.engine.driver for one in found} == {"io_uring"}
    assert plan_of(path) == plan
    assert report_data(path)["groups"]


def test_what_nobody_knows_the_kind_of_has_none(tmp_path):
    unknown, generator = trials_of(unpacked(1, tmp_path))[-2:]
    assert (unknown.outcome, unknown.fault) == (Invalid("steal was 4 %"), None)
    assert generator.fault == Fault(FaultKind.GENERATOR, text="it ended with status 1")


def test_the_present_format_has_every_kind_of_fault(tmp_path):
    found = trials_of(unpacked(FORMAT_VERSION, tmp_path))
    assert {trial.fault.kind for trial in found if trial.fault} == set(FaultKind)
    assert not any(trial.fault for trial in found if isinstance(trial.outcome, Failed))


FAULTS = [
    Fault(FaultKind.SLEPT, slept_ns=3_000_000_000),
    Fault(FaultKind.STOLEN_TIME, share=0.12),
    Fault(FaultKind.OTHER_LOAD, share=0.26),
    Fault(FaultKind.SANDBOX, text="no control group can be made"),
    Fault(FaultKind.OTHER_LOAD, share=0.26),
    Fault(FaultKind.GENERATOR, text="it ended with status 1"),
    Fault(FaultKind.NO_RECORDING),
    Fault(FaultKind.INTERRUPTED),
    Fault(FaultKind.LITTLES_LAW, share=-0.12),
    Fault(FaultKind.PRONY, text="KeyError: 'x'"),
]
