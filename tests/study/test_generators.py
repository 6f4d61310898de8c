"""Cells whose generator is not here, or cannot make the load, are left out before anything is started."""

from dataclasses import replace

import pytest

from golden.build import subject
from prony.catalog.schema.loader import load_catalog
from prony.model.exchange import Request
from prony.model.plan import Cell
from prony.model.subject import Frontend
from prony.model.workload import ClosedLoop, CountStop, DurationStop, EngineChoice, Workload
from prony.study import admission
from prony.study.admission import (
    ALWAYS_KEPT,
    ONE_AT_A_TIME,
    ONLY_WITH_TLS,
    left_out,
    left_out_words,
    to_leave_out,
)

LOAD = Workload(ClosedLoop(1), DurationStop(1))
CATALOG = load_catalog()
OWN = Cell(0, replace(subject("gunicorn+flask-hello"), server="gunicorn"), LOAD)
SHARED = replace(LOAD, streams=8)


def under(name, number, load=LOAD):
    return replace(OWN, id=number, engine=EngineChoice(name), workload=load)


def left_out_here(cells):
    return left_out(cells, CATALOG)


def speaking(wire, number, load=LOAD, **more):
    server = replace(OWN.subject, name=f"hypercorn[wire={wire}]+hello", server="hypercorn")
    settings = {} if wire is None else {"wire": wire}
    return replace(OWN, id=number, subject=replace(server, settings=settings, **more), workload=load)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(
        admission, "not_here", lambda engine: "it is not installed" if engine.name == "oha" else None
    )


def test_pronys_own_engine_is_never_left_out(here):
    assert left_out_here([OWN]) == {}


def test_a_generator_that_is_not_here_is_left_out_of_all_its_cells(here):
    cells = [OWN, under("oha", 1), under("oha", 2), under("wrk", 3)]
    reasons = left_out_here(cells)
    assert reasons == {1: "it is not installed", 2: "it is not installed"}
    assert left_out_words(cells, reasons) == ("oha is left out: it is not installed",)


def test_what_will_be_left_out_is_foreseen_without_building_anything(monkeypatch):
    def never(tool):
        raise AssertionError(f"{tool} was built")

    monkeypatch.setattr("prony.engine.own_program.find_script", never)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("prony.engine.external.engine.SUBJECT_PATH", "/nowhere")
    found = to_leave_out([OWN, under("python-threads", 1), under("oha", 2)], CATALOG)
    assert list(found) == [2]
    assert "`oha` is not installed; " in found[2]


def test_a_generator_is_left_out_where_the_server_speaks_tls_and_it_cannot_verify(here):
    encrypted = replace(OWN.subject, settings={"tls": "ecdsa"})
    resuming = replace(OWN.subject, settings={"tls": "ecdsa", "tls_resumption": "true"})
    cells = [
        replace(under("wrk", 1), subject=encrypted),
        replace(under("fortio", 2), subject=encrypted),
        replace(under("fortio", 3), subject=resuming),
        replace(under("wrk", 4), subject=replace(OWN.subject, settings={"tls": "off"})),
        replace(OWN, id=5, subject=resuming),
    ]
    assert left_out_here(cells) == {
        1: "wrk is only used without TLS: it has no option for an authority",
        3: "fortio does not take up earlier sessions of TLS",
    }


def test_a_generator_is_left_out_of_the_loads_that_it_cannot_make(here):
    reasons = left_out_here([under("wrk", 1), under("wrk", 2, replace(LOAD, stop=CountStop(5)))])
    assert reasons == {2: "wrk cannot stop after a number of requests"}


def test_a_load_with_streams_is_not_for_a_subject_that_has_one_request_at_a_time(here):
    behind = replace(OWN.subject, name="gunicorn@nginx+hello", frontend=Frontend("nginx"))
    cells = [
        speaking("http2", 1, SHARED),
        speaking("http", 2, SHARED),
        speaking(None, 3, SHARED),
        speaking("http", 4),
        replace(OWN, id=5, subject=behind, workload=SHARED),
    ]
    reasons = left_out_here(cells)
    assert reasons == dict.fromkeys((2, 3, 5), ONE_AT_A_TIME)
    assert left_out_words(cells, reasons)[0] == f"hypercorn[wire=http]+hello is left out: {ONE_AT_A_TIME}"


def test_a_frontend_that_speaks_http2_takes_a_load_with_streams(here):
    before = replace(OWN.subject, name="gunicorn@nginx[http2=true]+hello")
    front = Frontend("nginx", settings={"http2": "true"})
    cells = [replace(OWN, id=1, subject=replace(before, frontend=front), workload=SHARED)]
    assert left_out_here(cells) == {}


def test_a_server_that_needs_tls_for_a_wire_is_left_out_without(here):
    plain = replace(OWN.subject, name="go-net-http[wire=http2]+hello", server="go-net-http")
    cells = [
        replace(OWN, id=1, subject=replace(plain, settings={"wire": "http2"})),
        replace(OWN, id=2, subject=replace(plain, settings={"wire": "http2", "tls": "ecdsa"})),
        replace(OWN, id=3, subject=replace(plain, settings={"wire": "http"})),
    ]
    reasons = left_out_here(cells)
    assert reasons == {1: ONLY_WITH_TLS}
    assert left_out_words(cells, reasons) == (f"go-net-http[wire=http2]+hello is left out: {ONLY_WITH_TLS}",)


def test_what_a_variant_speaks_is_known_before_it_is_started(here):
    preset = CATALOG.server("hypercorn").variants["uvloop"].model_copy(update={"settings": {"wire": "http2"}})
    entry = CATALOG.server("hypercorn").model_copy(update={"variants": {"h2": preset}})
    known = replace(CATALOG, servers={**CATALOG.servers, "hypercorn": entry})
    assert to_leave_out([speaking(None, 1, SHARED, variant="h2")], known) == {}
    assert to_leave_out([speaking("http", 1, SHARED, variant="h2")], known) == {1: ONE_AT_A_TIME}


def test_a_connection_for_each_request_is_not_for_http2(here):
    each = replace(LOAD, request=Request(keep_alive=False))
    assert left_out_here([speaking("http2", 1, each), speaking("http", 2, each)]) == {1: ALWAYS_KEPT}


def test_a_generator_is_left_out_where_the_server_speaks_what_it_does_not(here):
    cells = [replace(speaking("http2", 1), engine=EngineChoice("wrk")), speaking("http2", 2)]
    assert left_out_here(cells) == {1: "wrk speaks HTTP only, not http2"}
