"""HTTP/1.0 on nginx and on Node."""

import pytest

from servers.nginx import SIZES
from servers.node import node_server

NODE = """
const server = require("http").createServer((request, reply) => { served += 1; reply.end("hello"); });
let served = 0;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("data", () => console.log(served));
"""


@pytest.mark.parametrize(("keeps", "opened"), [((), 500), (("--keepalive",), 4)], ids=["closes", "keeps"])
def test_http10_closes_each_connection_unless_it_asks_to_keep_it(prony, nginx, keeps, opened):
    url = f"http://127.0.0.1:{nginx.first}/small"
    done = prony("load", url, "--http1.0", *keeps, "-c", "4", "-n", "500", "--json", "-")
    assert done.status == 0, done.err
    assert done.json["account"]["ok"] == 500
    assert done.json["connections"]["opened"] == opened
    assert nginx.served() == {("HTTP/1.0", "200", str(SIZES["small"])): 500}


@pytest.mark.parametrize("wire", [("--http1.0",), ("--http1.0", "--keepalive")], ids=" ".join)
def test_node_answers_each_request_of_http10(prony, wire):
    with node_server("-e", NODE) as server:
        done = prony(
            "load", f"http://127.0.0.1:{server.port}/", *wire, "-c", "4", "-n", "2000", "--json", "-"
        )
        assert done.status == 0, done.err
        assert done.json["account"]["ok"] == 2000
        assert server.counts() == 2000
