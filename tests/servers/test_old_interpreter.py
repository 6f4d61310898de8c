"""A server on an interpreter of its own: it runs where that is, and what cannot be had there is told."""

import pytest

from commands import Prony, cache, folder  # noqa: F401 - fixtures

pytestmark = [pytest.mark.servers, pytest.mark.slow]

SERVER = "meinheld-cpython38"


@pytest.fixture(autouse=True)
def interpreter(prony):
    missing = prony("doctor", SERVER, "--json").json["missing"]
    if missing:
        pytest.skip(f"{SERVER} needs {', '.join(missing)}")


def test_meinheld_passes_on_the_interpreter_that_it_asks_for(prony):
    done = prony("servers", "--check", SERVER, "--json", timeout_s=300)
    assert done.status == 0, done.out
    assert [row["server"] for row in done.json] == [SERVER, f"{SERVER}-keep-alive", f"{SERVER}-quiet"]
    for row in done.json:
        assert (row["passed"], row["version"]) == (True, "1.0.2")
        assert row["interpreter"].startswith("CPython 3.8.")
        assert row["requests"]["ok"] > 0


def test_an_app_that_does_not_exist_for_it_is_unavailable_with_the_resolvers_reason(prony):
    done = prony("servers", "--check", f"{SERVER}-quiet", "--app", "flask-hello", "--json", timeout_s=300)
    assert done.status == 3
    (row,) = done.json
    assert (row["passed"], row["stage"]) == (False, "install")
    assert f"`{SERVER}` and `flask==3.1.3` cannot be installed together" in row["reason"]
    assert "does not satisfy Python>=3.9" in row["reason"]
