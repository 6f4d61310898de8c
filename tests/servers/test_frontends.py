"""Frontends before real servers, and yardsticks: they pass the catalogue's own check, and leave nothing."""

import pytest

from commands import cache, folder, prony  # noqa: F401 - fixtures
from servers.world import processes_of

pytestmark = pytest.mark.servers

# One server for each wire, and each frontend with connections kept and not kept.
SUBJECTS = (
    "gunicorn@nginx",
    "gunicorn-gthread@nginx-keepalive",
    "uwsgi-socket@nginx",
    "uwsgi-scgi@nginx",
    "flup@nginx",
    "gunicorn-gthread@apache",
    "uwsgi-socket@apache",
    "uwsgi-scgi@apache",
    "flup@apache",
)
YARDSTICKS = ("nginx-static", "node-http", "go-net-http", "rust-hyper", "java-httpserver")


def passes(prony, *names):  # noqa: F811
    """Skip where a package of the system is missing; else check ``names`` and return the rows."""
    entries = {part.partition("-")[0] if "@" in name else part for name in names for part in name.split("@")}
    missing = prony("doctor", *sorted(entries), "--json").json["missing"]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    done = prony("servers", "--check", "--json", *names, timeout_s=600)
    faults = [f"{row['server']}: {row['reason']}\n{row['log']}" for row in done.json if not row["passed"]]
    assert faults == []
    assert done.status == 0
    assert processes_of(prony.cache) == []
    assert not list((prony.cache / "run").glob("*"))
    return done.json


def test_every_wire_passes_through_every_frontend(prony):  # noqa: F811
    rows = passes(prony, *SUBJECTS)
    assert [row["server"] for row in rows] == list(SUBJECTS)


@pytest.mark.parametrize("name", YARDSTICKS)
def test_a_yardstick_answers_like_hello(prony, name):  # noqa: F811
    rows = passes(prony, name)
    assert {row["interface"] for row in rows} == {"none"}
    assert all(row["version"][0].isdigit() for row in rows)
