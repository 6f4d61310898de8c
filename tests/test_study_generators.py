"""Cells whose generator is not here, or cannot make the load, are left out before anything is started."""

from dataclasses import replace

import pytest

from golden.build import subject
from prony.model import Cell, ClosedLoop, CountStop, DurationStop, EngineChoice, Workload
from prony.study import generators
from prony.study.generators import foreseen, left_out, left_out_words

LOAD = Workload(ClosedLoop(1), DurationStop(1))
OWN = Cell(0, subject("wsgiref+flask-hello"), LOAD)


def under(name, number, load=LOAD):
    return replace(OWN, id=number, engine=EngineChoice(name), workload=load)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(
        generators, "not_here", lambda engine: "it is not installed" if engine.name == "oha" else None
    )


def test_pronys_own_engine_is_never_left_out(here):
    assert left_out([OWN]) == {}


def test_a_generator_that_is_not_here_is_left_out_of_all_its_cells(here):
    cells = [OWN, under("oha", 1), under("oha", 2), under("wrk", 3)]
    reasons = left_out(cells)
    assert reasons == {1: "it is not installed", 2: "it is not installed"}
    assert left_out_words(cells, reasons) == ("oha is left out: it is not installed",)


def test_what_will_be_left_out_is_foreseen_without_building_anything(monkeypatch):
    def never(tool):
        raise AssertionError(f"{tool} was built")

    monkeypatch.setattr("prony.engine.scripts.found.find_script", never)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("prony.engine.external.engine.SUBJECT_PATH", "/nowhere")
    found = foreseen([OWN, under("python-threads", 1), under("oha", 2)])
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
    assert left_out(cells) == {
        1: "wrk is only used without TLS: it has no option for an authority",
        3: "fortio does not take up earlier sessions of TLS",
    }


def test_a_generator_is_left_out_of_the_loads_that_it_cannot_make(here):
    reasons = left_out([under("wrk", 1), under("wrk", 2, replace(LOAD, stop=CountStop(5)))])
    assert reasons == {2: "wrk cannot stop after a number of requests"}
