"""Pipelines and HTTP/1.0 on nginx, which leaves each connection after a thousand requests, and on Node."""

import pytest

from servers.nginx import SIZES
from servers.node import node_server

NODE = """
const server = require("http").createServer((request, reply) => { served += 1; reply.end("hello"); });
let served = 0;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("data", () => console.log(served));
"""


@pytest.mark.parametrize("page", ["small", "large"])
@pytest.mark.parametrize("load", [("-c", "2"), ("--rate", "2000")], ids=["closed", "open"])
def test_each_request_of_a_pipeline_is_counted_once_though_connections_are_left(prony, nginx, page, load):
    url = f"http://127.0.0.1:{nginx.first}/{page}"
    done = prony("load", url, "--pipeline", "8", *load, "-n", "3000", "--json", "-")
    assert done.status == 0, done.err
    account, connections = done.json["account"], done.json["connections"]
    assert (account["scheduled"], account["ok"]) == (3000, 3000)
    assert done.json["latency"]["ok"]["service_ns"]["count"] == 3000
    assert nginx.served() == {("HTTP/1.1", "200", str(SIZES[page])): 3000}
    assert connections["requests_sent"] == 3000 + connections["retried"]
    # A thousand on each, so connections were left while requests stood in line behind the last.
    assert connections["opened"] >= 3


@pytest.mark.parametrize(("keeps", "opened"), [((), 500), (("--keepalive",), 4)], ids=["closes", "keeps"])
def test_http10_closes_each_connection_unless_it_asks_to_keep_it(prony, nginx, keeps, opened):
    url = f"http://127.0.0.1:{nginx.first}/small"
    done = prony("load", url, "--http1.0", *keeps, "-c", "4", "-n", "500", "--json", "-")
    assert done.status == 0, done.err
    assert done.json["account"]["ok"] == 500
    assert done.json["connections"]["opened"] == opened
    assert nginx.served() == {("HTTP/1.0", "200", str(SIZES["small"])): 500}


@pytest.mark.parametrize(
    "wire", [("--pipeline", "16"), ("--http1.0",), ("--http1.0", "--keepalive")], ids=" ".join
)
def test_node_answers_each_request_of_older_wires(prony, wire):
    with node_server("-e", NODE) as server:
        done = prony(
            "load", f"http://127.0.0.1:{server.port}/", *wire, "-c", "4", "-n", "2000", "--json", "-"
        )
        assert done.status == 0, done.err
        assert done.json["account"]["ok"] == 2000
        assert server.counts() == 2000
