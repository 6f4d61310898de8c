from dataclasses import replace

import pytest

from prony._engine import CIPHERS
from prony.core.errors import EngineError, UsageError
from prony.engine.registry import ENGINES, open_engine
from prony.model.address import Address, AddressKind, Tls, TlsCipher, Wire
from prony.model.exchange import Request
from prony.model.workload import (
    Arrivals,
    ClosedLoop,
    CountStop,
    DurationStop,
    EngineChoice,
    OpenLoop,
    Pacing,
    Workload,
)
from prony.plan.engine_spec import hard_limit_ns, to_spec

ADDRESS = Address("127.0.0.1", 8000)


def test_a_closed_loop_is_written_as_the_reference_shows_it() -> None:
    workload = Workload(ClosedLoop(10), DurationStop(10_000_000_000), Request(headers=(("accept", "*/*"),)))
    assert to_spec(workload, ADDRESS, EngineChoice(), (1,)) == {
        "target": {"host": "127.0.0.1", "port": 8000, "socket": "tcp", "wire": {"kind": "http"}},
        "workload": {
            "loop": {"kind": "closed", "connections": 10},
            "stop": {"kind": "duration", "duration_ns": 10000000000},
            "warmup_ns": 0,
            "timeout_ns": 10000000000,
            "grace_ns": 10000000000,
            "request": {
                "method": "GET",
                "path": "/",
                "headers": [["accept", "*/*"]],
                "body": None,
                "keep_alive": True,
            },
            "expect": {"status": None, "body": None},
        },
        "threads": 1,
        "cpus": [1],
        "pacing": "precise",
        "ceiling_per_s": None,
    }


def test_streams_are_of_the_wire_there_and_only_http2_has_them() -> None:
    workload = Workload(ClosedLoop(4), DurationStop(1), streams=8)
    spec = to_spec(workload, replace(ADDRESS, wire=Wire.HTTP2), EngineChoice())
    assert spec["target"]["wire"] == {"kind": "http2", "streams": 8}
    assert "streams" not in spec["workload"]
    with pytest.raises(EngineError, match="8 streams on each connection to"):
        to_spec(workload, ADDRESS, EngineChoice())


def test_an_open_loop_a_count_and_bytes() -> None:
    workload = Workload(
        OpenLoop(550.0, Arrivals.POISSON, seed=7, connections=64),
        CountStop(100),
        Request(method="POST", body=b"\xff"),
        expect_status=201,
        expect_body=b"",
    )
    spec = to_spec(workload, ADDRESS, EngineChoice(pacing=Pacing.ECONOMICAL, threads=2))
    assert spec["workload"]["loop"] == {
        "kind": "open",
        "rate_per_s": 550.0,
        "arrivals": "poisson",
        "seed": 7,
        "connections": 64,
    }
    assert spec["workload"]["stop"] == {"kind": "requests", "requests": 100}
    assert spec["workload"]["request"]["body"] == "/w=="
    assert spec["workload"]["expect"] == {"status": 201, "body": ""}
    assert (spec["threads"], spec["cpus"], spec["pacing"]) == (2, None, "economical")


def test_a_unix_socket_and_another_wire_are_named() -> None:
    address = Address("/run/socket", 0, AddressKind.UNIX, wire=Wire.FASTCGI)
    spec = to_spec(Workload(ClosedLoop(1), CountStop(1)), address, EngineChoice())
    assert spec["target"] == {
        "host": "/run/socket",
        "port": 0,
        "socket": "unix",
        "wire": {"kind": "fastcgi"},
    }


def test_what_is_asked_of_a_server_with_tls_is_in_the_target() -> None:
    address = Address("127.0.0.1", 8443, tls=Tls(ca_file="/ca.pem", server_name="shop.test"))
    spec = to_spec(Workload(ClosedLoop(1), CountStop(1)), address, EngineChoice())
    assert spec["target"]["tls"] == {
        "verify": True,
        "ca_file": "/ca.pem",
        "certificate_file": None,
        "key_file": None,
        "server_name": "shop.test",
        "least_version": "1.2",
        "resumption": True,
    }


def test_the_ciphers_that_can_be_asked_for_are_those_of_the_engine() -> None:
    assert tuple(TlsCipher) == CIPHERS
    address = Address("127.0.0.1", 8443, tls=Tls(ciphers=(TlsCipher.AES_128,)))
    spec = to_spec(Workload(ClosedLoop(1), CountStop(1)), address, EngineChoice())
    assert spec["target"]["tls"]["ciphers"] == ["TLS_AES_128_GCM_SHA256"]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            Address("/run/socket", 0, AddressKind.UNIX, tls=Tls(), wire=Wire.FASTCGI),
            "cannot speak fastcgi with TLS to `/run/socket`; expected HTTP, or no TLS",
        ),
    ],
)
def test_an_address_it_does_not_speak_to_is_refused(address: Address, message: str) -> None:
    with pytest.raises(EngineError, match=f"the engine {message}"):
        to_spec(Workload(ClosedLoop(1), CountStop(1)), address, EngineChoice())


@pytest.mark.parametrize(
    ("workload", "limit_s"),
    [
        (Workload(ClosedLoop(1), DurationStop(3 * 10**9), warmup_ns=10**9), 34),
        (Workload(OpenLoop(10.0), CountStop(50)), 25),
        (Workload(ClosedLoop(10), CountStop(11), timeout_ns=10**9, grace_ns=0), 4),
        (Workload(OpenLoop(10.0), CountStop(50), connect_timeout_ns=2 * 10**9), 27),
    ],
)
def test_the_limit_is_every_wait_at_its_longest(workload: Workload, limit_s: int) -> None:
    assert hard_limit_ns(workload) == limit_s * 10**9


def test_a_time_out_of_connections_alone_is_only_said_where_there_is_one() -> None:
    address = Address("127.0.0.1", 80)
    plain = Workload(ClosedLoop(1), CountStop(1))
    assert "connect_timeout_ns" not in to_spec(plain, address, EngineChoice())["workload"]
    apart = replace(plain, connect_timeout_ns=5)
    assert to_spec(apart, address, EngineChoice())["workload"]["connect_timeout_ns"] == 5


def test_every_engine_opens_and_an_unknown_one_is_named() -> None:
    for name in ENGINES:
        assert open_engine(EngineChoice(name))
    with pytest.raises(UsageError, match="no engine `wrk3`"):
        open_engine(EngineChoice("wrk3"))
