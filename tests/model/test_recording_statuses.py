"""The requests of each status in a Recording: together the whole, exactly; nothing else passes."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest

from golden import build
from prony import _engine
from prony.archive import create, open_archive
from prony.model.address import Address
from prony.model.json_codec import ShapeError, encode
from prony.model.plan import Cell, Plan
from prony.model.recording import decode_recording
from prony.model.workload import ClosedLoop, EngineChoice, OpenLoop
from prony.plan.engine_spec import to_spec
from prony.reading.load import read_load
from prony.reading.study import read_archive
from prony.report.formats.as_json import document_json
from prony.report.formats.markdown import markdown
from prony.report.formats.sheets import sheets
from prony.report.load import load_document

# Of ten requests one fails; some replies are cut.
MIXED = {"port": 0, "error_every": 10, "error_status": 503, "body_bytes": 100, "short_after": 40}


def recorded(loop, server=MIXED):
    load = build.Workload(loop, build.DurationStop(build.SECOND // 4))
    with _engine.ReferenceServer(json.dumps(server)) as reference:
        spec = to_spec(load, Address("127.0.0.1", reference.port), EngineChoice(threads=2))
        return json.loads(_engine.run(json.dumps(spec)))


@pytest.fixture(
    scope="module", params=[ClosedLoop(4), OpenLoop(2000.0, connections=4)], ids=["closed", "open"]
)
def wire(request):
    return recorded(request.param)


def test_statuses_are_read_as_they_came_and_agree_with_the_account(wire):
    found = decode_recording(wire)
    assert encode(found) == wire
    assert set(found.statuses) == {"200", "503", "none"}
    account, bad, lost = found.account, found.statuses["503"], found.statuses["none"]
    assert found.statuses["200"].ok == account.ok_status["200"] == account.ok
    assert (bad.requests, bad.ok) == (account.bad_status["503"], 0)
    assert lost.requests == account.scheduled - account.ok - bad.requests
    assert sum(one.body_received for one in found.statuses.values()) == found.bytes.body_received
    assert 0 < lost.body_received < 100 * lost.requests
    assert bad.other_service.count == bad.requests + bad.carried_in


def test_a_reading_has_each_status_with_its_share_bytes_and_times(wire):
    found = read_load(decode_recording(wire))
    kind = "response_ns" if found.recording.is_open else "service_ns"
    assert sum(one.requests for one in found.statuses) == found.all_requests
    assert sum(one.errors for one in found.statuses) == found.requests_by_end.lost
    good, bad, lost = found.statuses
    assert good.latency["ok"][kind].count == found.recording.account.ok
    assert good.latency["all"][kind].count == good.requests
    assert bad.latency["ok"][kind] is None
    assert bad.latency["all"][kind].count == bad.requests
    assert lost.latency["all"][kind] is None
    shown = document_json(found)["statuses"]
    assert [one["status"] for one in shown] == ["200", "503", "none"]


def test_the_report_has_a_table_of_statuses_where_there_are_several(wire):
    words = markdown(load_document(read_load(decode_recording(wire))))
    assert "All statuses together are the whole." in words
    assert "no whole reply" in words
    plain = recorded(ClosedLoop(1), {"port": 0})
    assert "All statuses" not in markdown(load_document(read_load(decode_recording(plain))))


def test_an_archive_keeps_them_and_its_csv_has_a_row_for_each(wire, tmp_path):
    found = decode_recording(wire)
    cell = Cell(1, build.subject("a+hello"), build.Workload(ClosedLoop(4), build.DurationStop(build.SECOND)))
    plan = Plan("one", "One", "", "quick", (cell,), 1, 1, "Which is best?")
    with create(tmp_path / "a.prony", plan, build.FINGERPRINT) as writer:
        writer.append(replace(build.trial(cell, 0, 0, [build.MS]), recording=found))
        writer.finish()
    with open_archive(tmp_path / "a.prony") as archive:
        assert next(iter(archive.trials())).trial.recording.statuses == found.statuses
        sheet = next(one for one in sheets(read_archive(archive), archive.trials) if one.name == "statuses")
        rows = [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]
    assert [row["status"] for row in rows] == ["200", "503", "none"]
    assert sum(row["body_bytes [B]"] for row in rows) == found.bytes.body_received
    assert rows[0]["service_p50 [ns]"] > 0
    assert rows[2]["service_max [ns]"] is None


def changed(wire, *path):
    """The wire with one count changed by one."""
    found = deepcopy(wire)
    place = found["statuses"]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] += 1
    return found


@pytest.mark.parametrize(
    "path",
    [
        ("503", "requests"),
        ("200", "ok"),
        ("200", "carried_in"),
        ("none", "body_received"),
        ("200", "ok_service", "count"),
    ],
)
def test_statuses_that_are_not_the_whole_are_refused(wire, path):
    with pytest.raises(ShapeError, match="in all statuses, as in the whole"):
        decode_recording(changed(wire, *path))


def test_other_generators_tell_no_statuses(wire):
    without = {name: value for name, value in wire.items() if name != "statuses"}
    assert read_load(decode_recording(without)).statuses == ()
