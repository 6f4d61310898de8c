"""The groups of users in a Recording: those of the load, and together the whole; nothing else passes."""

import json
from copy import deepcopy

import pytest

import documents
from golden import build
from prony import _engine
from prony.model.address import Address
from prony.model.json_codec import ShapeError, encode
from prony.model.recording import decode_recording
from prony.model.workload import ClosedLoop, EngineChoice, OpenLoop, UserGroup
from prony.plan.engine_spec import to_spec
from prony.reading.load import read_load
from prony.report.formats.as_json import document_json
from prony.report.formats.markdown import markdown
from prony.report.load import load_document

DELAY_NS = 40 * build.MS
SECRET = (("Authorization", "Bearer open sesame"), ("X-Region", "far"))
USERS = (UserGroup("near", 3.0), UserGroup("far", 1.0, SECRET, "127.0.0.9", DELAY_NS))


@pytest.fixture(
    scope="module", params=[ClosedLoop(4), OpenLoop(1000.0, connections=8)], ids=["closed", "open"]
)
def wire(request):
    load = build.Workload(request.param, build.DurationStop(build.SECOND // 2), groups=USERS)
    with _engine.ReferenceServer(json.dumps({"port": 0, "error_every": 10, "error_status": 503})) as server:
        spec = to_spec(load, Address("127.0.0.1", server.port), EngineChoice(threads=1))
        return json.loads(_engine.run(json.dumps(spec)))


def test_groups_are_read_as_they_came_and_are_the_whole(wire):
    found = decode_recording(wire)
    assert encode(found) == wire
    assert found.spec.workload.groups == USERS
    assert [one.name for one in found.groups] == ["near", "far"]
    assert sum(one.account.scheduled for one in found.groups) == found.account.scheduled
    # The far group has some twelve requests, and may have no reply that the server made bad.
    refused = [one.account.bad_status.get("503", 0) for one in found.groups]
    assert sum(refused) == found.account.bad_status["503"] > 0
    assert sum(one.bytes.received for one in found.groups) == found.bytes.received


def test_the_times_of_a_far_group_have_its_delay(wire):
    kind = "response_ns" if decode_recording(wire).is_open else "service_ns"
    near, far = document_json(read_load(decode_recording(wire)))["groups"]
    assert near[kind]["ok"]["min"] < DELAY_NS <= far[kind]["ok"]["min"]
    assert (near["asked"], far["asked"]) == (0.75, 0.25)
    assert near["requests"] + far["requests"] == decode_recording(wire).account.scheduled + (
        decode_recording(wire).account.carried_in.requests
    )


def test_the_report_has_a_line_for_each_group_and_no_secret(wire):
    reading = read_load(decode_recording(wire))
    words = markdown(load_document(reading))
    assert "All groups together are the whole." in words
    assert "| near | 0 s |" in words
    assert "| far | 40.0 ms |" in words
    printed = json.dumps(document_json(reading))
    assert "sesame" not in printed
    assert "X-Region" in printed


@pytest.mark.parametrize(
    "path", [("account", "ok"), ("bytes", "sent"), ("distributions", "ok_service", "count"), ("name",)]
)
def test_groups_that_are_not_the_whole_are_refused(wire, path):
    changed = deepcopy(wire)
    place = changed["groups"][1]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] += "s" if path == ("name",) else 1
    with pytest.raises(ShapeError, match=r"in all groups, as in the whole|the groups of the load"):
        decode_recording(changed)


def test_a_report_says_what_came_of_each_group():
    document, data = documents.of_groups()
    table = markdown(document).partition("## Groups")[2].partition("## ")[0]
    assert [line.split(" | ")[:6] for line in table.splitlines() if line.startswith("| ")][1:] == [
        ["| near", "0 s", "75.00 %", "2,355", "74.98 %", "0"],
        ["| far", "80.0 ms", "25.00 %", "786", "25.02 %", "**1**"],
    ]
    assert [one["account"].get("reset", 0) for one in data["groups"]] == [0, 1]


def test_users_who_are_alike_are_no_groups():
    _, data = documents.LOADS["a closed loop"]()
    assert data["groups"] == []
