"""Frontends before real servers: a request's body passes over every wire through each of them."""

import os

import pytest

from servers.world import processes_of

pytestmark = pytest.mark.servers

# One server for each wire.
SERVERS = ("gunicorn", "uwsgi-socket", "uwsgi-scgi", "flup")


@pytest.mark.parametrize("frontend", ["nginx", pytest.param("apache", marks=pytest.mark.slow)])
def test_a_body_comes_back_over_every_wire(prony, frontend):
    missing = prony("doctor", frontend, "--json").json["missing"]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"needs {', '.join(missing)}")
    names = [f"{server}@{frontend}" for server in SERVERS]
    done = prony("servers", "--check", "--json", "--app", "page-echo", *names, timeout_s=600)
    faults = [f"{row['server']}: {row['reason']}\n{row['log']}" for row in done.json if not row["passed"]]
    assert faults == []
    plain = [row["server"] for row in done.json if (row["clients"], row["tls"]) == ("http", None)]
    assert plain == names
    assert processes_of(prony.cache) == []
    assert not list((prony.cache / "run").glob("*"))
