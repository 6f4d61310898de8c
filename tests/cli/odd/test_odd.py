"""Each request of a load on an odd but legal server is in the class that the server counted it for."""

import pytest

from cli.odd import cgi, http1, http2
from cli.odd.peer import serving

REQUESTS = 24
# More than the kernel keeps for a server that does not read.
UPLOAD = 1 << 20


def classes(account):
    """Return the requests of an account by class, those of bad statuses by class and status."""
    statuses = {f"bad_status {status}": count for status, count in account["bad_status"].items()}
    plain = {name: count for name, count in account.items() if isinstance(count, int) and count}
    return {**{name: plain[name] for name in plain.keys() - {"scheduled", "answered_early"}}, **statuses}


def agree(found, server):
    """Check that a load and its server counted the same."""
    counts, connections = server.counts, found["connections"]
    assert server.faults == []
    assert classes(found["account"]) == server.classes
    assert server.classes.total() == found["account"]["scheduled"] == REQUESTS
    assert found["bytes"]["body_received"] == counts["body_bytes"]
    assert connections["requests_sent"] - connections["retried"] <= counts["requests"]
    assert counts["requests"] <= connections["requests_sent"]
    assert connections["opened"] == counts["connections"]
    assert counts["sent against a limit"] == 0


def load(said, folder, server, *typed, scheme="http"):
    (folder / "upload").write_bytes(b"x" * UPLOAD)
    url = f"{scheme}://127.0.0.1:{server.port}/"
    done = said("load", url, *typed, "-c", "3", "-n", str(REQUESTS), "--timeout", "8s", "--json", "-")
    assert done.status in (0, 3), done.err
    return done.json


@pytest.mark.parametrize("name", http1.BEHAVIOURS)
def test_http1(said, prony, name):
    odd = http1.BEHAVIOURS[name]
    with serving(odd.handle) as server:
        agree(load(said, prony.folder, server, *odd.typed), server)
    if odd.connections is not None:
        assert server.counts["connections"] <= odd.connections


@pytest.mark.parametrize("name", http2.BEHAVIOURS)
def test_http2(said, prony, name):
    odd = http2.BEHAVIOURS[name]
    with serving(odd.handle) as server:
        agree(load(said, prony.folder, server, "--http2", "--streams", "4", *odd.typed), server)


@pytest.mark.parametrize("name", cgi.BEHAVIOURS)
def test_cgi(said, prony, name):
    odd = cgi.BEHAVIOURS[name]
    with serving(odd.handle) as server:
        agree(load(said, prony.folder, server, *odd.typed, scheme=odd.scheme), server)
