"""`prony engines`: which load generators are installed, and how to get the others."""

import json

import pytest

from prony.engine.registry import ENGINES


@pytest.fixture
def none_here(monkeypatch):
    from prony.engine.external import engine

    monkeypatch.setattr(engine.shutil, "which", lambda *_, **__: None)


def test_every_engine_is_listed(said):
    listed = json.loads(said("engines", "--json").out)["engines"]
    assert {row["name"] for row in listed} == {*ENGINES, "local:N"}


def test_what_is_not_here_is_told_with_how_to_get_it(said, none_here):
    out = said("engines").out
    assert "wrk                       not installed     " in out
    assert "  ab                      apt-get install apache2-utils" in out
    assert "prony                     built in" in out


def test_what_each_counts_wrongly_is_in_the_json(said, none_here):
    rows = {row["name"]: row for row in json.loads(said("engines", "--json").out)["engines"]}
    assert not rows["wrk"]["here"]
    assert any("invented latencies" in caveat for caveat in rows["wrk"]["caveats"])
    assert all(row["caveats"] for name, row in rows.items() if name not in ("prony", "local:N"))
