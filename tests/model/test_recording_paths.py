"""The paths of a mix in a Recording: those of the load, and together the whole; nothing else passes."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import build
from mixes import SHOP, of_mix, wire_of_mix
from prony.archive.codec import decode_workload, encode_workload
from prony.model.json_codec import ShapeError, encode
from prony.model.recording import decode_recording
from prony.model.workload import Mix, MixPath, fault_of_mix
from prony.reading.load import read_load

MS = 1_000_000
LOAD = of_mix(build.Workload(build.OpenLoop(100), build.DurationStop(2 * build.SECOND)))
OK = {"/": [MS + k for k in range(170)], "/cart": [9 * MS + k for k in range(17)]}
WIRE = wire_of_mix(LOAD, OK, {"/cart": {"reset": 3}})


def test_the_paths_of_a_mix_are_written_as_they_came():
    found = decode_recording(WIRE)
    assert found.spec.workload == LOAD
    assert [one.path for one in found.paths] == ["/", "/cart"]
    assert decode_recording(json.loads(json.dumps(encode(found)))) == found


def test_what_the_engine_tells_of_a_mix_is_written_as_it_came():
    from prony import _engine
    from prony.model.address import Address
    from prony.model.workload import ClosedLoop, EngineChoice, OpenLoop
    from prony.plan.engine_spec import to_spec

    with _engine.ReferenceServer(json.dumps({"port": 0})) as server:
        for loop in (ClosedLoop(2), OpenLoop(500.0, connections=2)):
            load = of_mix(build.Workload(loop, build.DurationStop(build.SECOND // 5)))
            spec = to_spec(load, Address("127.0.0.1", server.port), EngineChoice(threads=2))
            recorded = json.loads(_engine.run(json.dumps(spec)))
            found = decode_recording(recorded)
            assert encode(found) == recorded
            assert sum(one.account.ok for one in found.paths) == found.account.ok


def test_a_path_has_its_share_its_errors_and_its_times():
    found = read_load(decode_recording(WIRE))
    home, cart = found.paths
    assert (home.asked, cart.asked) == (0.9, 0.1)
    assert (home.account.requests, home.share, home.account.lost) == (170, 170 / 190, 0)
    assert (cart.account.requests, cart.account.lost, cart.kind) == (20, 3, "response")
    assert home.ok.percentiles["50"] == pytest.approx(MS, rel=0.001)
    assert (cart.all.count, cart.all.infinite_from) == (20, 85)


def test_a_load_of_one_path_has_no_paths():
    load = replace(LOAD, mix=None)
    assert read_load(decode_recording(build.wire(load, OK["/"], {}, (), None, ()))).paths == ()


def changed(*path, value):
    """The wire with one value changed."""
    found = deepcopy(WIRE)
    place = found
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return found


LIES = {
    "a path has one more request": changed("paths", 1, "account", "scheduled", value=21),
    "a path has one more reply": changed("paths", 0, "account", "ok", value=171),
    "a path has a status that nothing else has": changed(
        "paths", 0, "account", "bad_status", value={"500": 1}
    ),
    "a path has a class that nothing else has": changed("paths", 0, "account", "odd", value=1),
    "the whole has one more failure": changed("account", "reset", value=4),
    "a path has more bytes": changed("paths", 0, "bytes", "received", value=10**9),
    "a path has more times": changed("paths", 0, "ok_response", value=WIRE["distributions"]["ok_response"]),
    "a path is missing": changed("paths", value=WIRE["paths"][:1]),
    "a path is there twice": changed("paths", value=[*WIRE["paths"], WIRE["paths"][1]]),
    "a path is another one": changed("paths", 1, "path", value="/other"),
    "a weight is another one": changed("paths", 1, "weight", value=2.0),
    "no mix was asked for": changed("spec", value={"target": None}),
    "a mix of one path": changed("spec", "workload", "mix", "paths", value=[{"path": "/", "weight": 1}]),
    "a mix with a weight of 0": changed("spec", "workload", "mix", "paths", 0, "weight", value=0),
    "a mix with a line break": changed("spec", "workload", "mix", "paths", 0, "path", value="/\r\nx"),
}


@pytest.mark.parametrize("lie", LIES)
def test_paths_that_are_not_the_whole_are_refused(lie):
    with pytest.raises(ShapeError, match="recording"):
        decode_recording(LIES[lie])


def test_the_refusal_names_what_differs():
    with pytest.raises(ShapeError, match=r"recording\.paths: expected 187 of `ok` in all paths.*found 188"):
        decode_recording(LIES["a path has one more reply"])


@pytest.mark.parametrize(
    ("expected", "mix"),
    [
        ("2 to 100 paths", Mix(())),
        ("2 to 100 paths", Mix((MixPath("/"),))),
        ("2 to 100 paths", Mix(tuple(MixPath(f"/{n}") for n in range(101)))),
        ("starts with `/`", Mix((MixPath("/"), MixPath("@other.host/")))),
        ("each path once", Mix((MixPath("/"), MixPath("/")))),
        ("a weight from", Mix((MixPath("/"), MixPath("/a", 0.0)))),
        ("a weight from", Mix((MixPath("/"), MixPath("/a", 1e9)))),
    ],
)
def test_a_workload_of_an_archive_has_a_sound_mix(expected, mix):
    with pytest.raises(ShapeError, match=expected):
        decode_workload(encode_workload(replace(LOAD, mix=mix)))


def test_the_request_of_a_mix_is_the_first_of_its_paths():
    other = replace(LOAD, request=replace(LOAD.request, path="/cart"))
    with pytest.raises(ShapeError, match="first path"):
        decode_workload(encode_workload(other))


@given(st.lists(st.floats(1e-4, 1e8), min_size=2, max_size=100), st.integers(0, 2**63))
def test_a_mix_is_written_and_read_as_the_same(weights, seed):
    mix = Mix(tuple(MixPath(f"/{n}", weight) for n, weight in enumerate(weights)), seed)
    assert fault_of_mix(mix) is None
    load = of_mix(LOAD, mix)
    assert decode_workload(json.loads(json.dumps(encode_workload(load)))) == load
    assert sum(map(mix.share, mix.paths)) == pytest.approx(1)


def test_a_load_of_one_path_is_written_as_before():
    assert "mix" not in encode_workload(replace(LOAD, mix=None))


def test_a_mix_is_described_by_its_paths():
    assert LOAD.describe() == "open loop, 100/s constant, mix of 2 paths, 2 s"
    assert LOAD.describe_request() == "GET /=9 /cart=1"
    assert [one.path for one in LOAD.requests] == ["/", "/cart"]
    assert LOAD.asking_for([MixPath("/a")]).mix is None
    assert LOAD.asking_for(SHOP.paths, 7).mix.seed == 7
