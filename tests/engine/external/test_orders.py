"""What external generators are started with, and what they are not asked for."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from prony.engine.external import TOOLS
from prony.engine.external.tool import Job, refusal
from prony.engine.registry import cannot_make
from prony.model.address import Address, AddressKind, Tls, TlsCipher, Wire
from prony.model.exchange import Request
from prony.model.workload import (
    Arrivals,
    ClosedLoop,
    ConnectionStage,
    CountStop,
    DurationStop,
    EngineChoice,
    Mix,
    MixPath,
    OpenLoop,
    Workload,
)

ADDRESS = Address("127.0.0.1", 8000)
CLOSED, OPEN = ClosedLoop(4), OpenLoop(550.5, connections=64)
# Those with an option for an authority.
VERIFYING = ["fortio", "vegeta"]
TIME, COUNT = DurationStop(1_500_000_000), CountStop(1000)
POST = Request(
    "POST", "/echo", (("X-A", "b c"), ("Content-Type", "text/plain")), b'a"\\\xff\n', keep_alive=False
)


def refused(tool, loop=CLOSED, stop=TIME, address=ADDRESS, **load):
    return cannot_make(EngineChoice(tool), Workload(loop, stop, **load), address)


def command(tool, loop=CLOSED, stop=TIME, **load):
    return TOOLS[tool].order(Job(tool, Workload(loop, stop, **load), ADDRESS, threads=2))


def test_every_file_of_a_tool_is_listed_and_is_an_engine():
    import prony.engine.external

    files = {path.stem for path in Path(prony.engine.external.__file__).parent.glob("*.py")}
    assert set(TOOLS) == files - {
        "__init__",
        "child",
        "engine",
        "histogram",
        "recording",
        "replies",
        "text",
        "tool",
    }
    assert all(tool.name == name for name, tool in TOOLS.items())


@pytest.mark.parametrize("tool", sorted(TOOLS))
@pytest.mark.parametrize(
    ("reason", "load"),
    [
        ("HTTP only, not fastcgi", {"address": Address("127.0.0.1", 1, wire=Wire.FASTCGI)}),
        ("without TLS", {"address": Address("127.0.0.1", 1, tls=Tls())}),
        ("Unix socket", {"address": Address("/s", 0, AddressKind.UNIX)}),
        ("Poisson", {"loop": OpenLoop(1.0, Arrivals.POISSON)}),
    ],
)
def test_what_no_tool_can_do_is_refused_in_a_sentence(tool, reason, load):
    assert tool in refused(tool, **{"stop": COUNT if tool == "weighttp" else TIME, **load})
    if "TLS" in reason and tool in VERIFYING:
        return
    if tool in ("k6", "vegeta") or "Poisson" not in reason:
        assert reason in refused(tool, **{"stop": COUNT if tool == "weighttp" else TIME, **load})


def test_only_tools_that_verify_what_they_are_told_to_are_used_with_tls():
    study = Tls(ca_file="/run/authority.pem", resumption=False)
    address = replace(ADDRESS, tls=study)
    stop = {"weighttp": COUNT}
    assert [
        tool for tool in sorted(TOOLS) if not refused(tool, stop=stop.get(tool, TIME), address=address)
    ] == VERIFYING
    assert "no option for an authority" in refused("wrk", stop=TIME, address=address)
    for tool in VERIFYING:
        job = Job(tool, Workload(CLOSED, TIME), address, threads=2)
        words = TOOLS[tool].order(job).commands[0]
        assert "/run/authority.pem" in words
        assert not [word for word in words if "insecure" in word]
        assert "/run/authority.pem" not in command(tool).commands[0]


@pytest.mark.parametrize("tool", VERIFYING)
def test_a_tool_takes_up_no_earlier_session_and_verifies(tool):
    resuming, any_certificate = Tls(), Tls(verify=False, resumption=False)
    assert "take up earlier" in refused(tool, stop=TIME, address=replace(ADDRESS, tls=resuming))
    assert "verified" in refused(tool, stop=TIME, address=replace(ADDRESS, tls=any_certificate))
    chosen = Tls(resumption=False, ciphers=(TlsCipher.AES_128,))
    assert "choose the cipher suites" in refused(tool, stop=TIME, address=replace(ADDRESS, tls=chosen))


@pytest.mark.parametrize("tool", ["wrk", "vegeta", "k6"])
def test_no_tool_has_a_time_out_for_connecting_alone(tool):
    apart = Workload(CLOSED if tool == "wrk" else OpenLoop(1.0), TIME, connect_timeout_ns=1)
    assert "no time-out for connecting alone" in str(refusal(TOOLS[tool], apart, ADDRESS))


@pytest.mark.parametrize("tool", ["wrk", "hey", "k6"])
def test_no_tool_changes_its_connections_in_stages(tool):
    loop = ClosedLoop(2, (ConnectionStage(10**9, 1, 2),))
    assert "cannot change its load in stages" in refused(tool, loop=loop, stop=TIME)


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_no_tool_sends_a_mix_of_paths(tool):
    stop = COUNT if tool == "weighttp" else TIME
    mix = Mix((MixPath("/"), MixPath("/cart")))
    assert "cannot send a mix of paths" in refused(
        tool, loop=OPEN if tool == "vegeta" else CLOSED, stop=stop, mix=mix
    )


@pytest.mark.parametrize("tool", ["wrk", "hey", "k6"])
def test_a_header_is_sent_twice_or_not_at_all(tool):
    twice = Request(headers=(("X-Forwarded-For", "192.0.2.1"), ("x-forwarded-for", "192.0.2.2")))
    assert refused(tool, stop=TIME, request=twice).endswith("cannot send a header twice")
    assert refused("oha", stop=TIME, request=twice) is None


def test_which_tools_have_an_open_loop():
    assert {tool for tool in TOOLS if refused(tool, loop=OPEN) is None} == {"k6", "vegeta"}


def test_which_tools_have_a_number_of_requests():
    assert {tool for tool in TOOLS if refused(tool, stop=COUNT)} == {"wrk", "vegeta"}
    assert {tool for tool in TOOLS if refused(tool)} == {"weighttp"}


def test_which_tools_cannot_close_connections():
    load = {"request": Request(keep_alive=False), "stop": COUNT}
    assert {tool for tool in set(TOOLS) - {"wrk", "vegeta"} if refused(tool, **load)} == {"h2load"}


def test_prony_itself_is_not_refused_here():
    assert refused("prony") is None


def test_hey_is_not_asked_for_what_it_would_cut_down():
    assert "not a multiple of its connections" in refused("hey", stop=CountStop(1002))
    assert refused("hey", stop=CountStop(1000)) is None


@pytest.mark.parametrize("tool", sorted(set(TOOLS) - {"weighttp", "h2load"}))
def test_method_headers_and_body_are_passed_on(tool):
    order = command(tool, stop=COUNT if refused(tool) else TIME, request=POST)
    said = "\n".join([*order.commands[0], *(text.decode("latin-1") for text in order.files.values())])
    if tool == "wrk":
        assert "\\080\\079\\083\\084" in said  # POST
        assert "\\097\\034\\092\\255\\010" in said  # the body
        return
    assert "POST" in said
    assert "b c" in said
    assert tool == "k6" or order.files["body"] == POST.body


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_a_hostile_url_stays_one_argument(tool):
    stop = COUNT if tool == "weighttp" else TIME
    order = command(tool, stop=stop, request=Request(path='/a";os.execute("x")//'))
    for words in order.commands:
        assert not [word for word in words if "os.execute" in word and not word.startswith("http://")]
    if tool == "k6":
        script = order.files["load.js"].decode()
        told = script.partition("const order = ")[2].partition(";\nexport const options")[0]
        assert json.loads(told)["url"].endswith('/a";os.execute("x")//')


def test_whole_seconds_are_rounded_up():
    assert "2s" in command("wrk").commands[0]
    assert "1500ms" in command("hey").commands[0]


def test_vegeta_and_k6_keep_the_fractions_of_a_rate():
    assert "550500/1000s" in command("vegeta", loop=OPEN).commands[0]
    assert '"rate": 550500, "timeUnit": "1000s"' in command("k6", loop=OPEN).files["load.js"].decode()


@pytest.mark.parametrize("limit", [{"connection_requests": 9}, {"connection_age_ns": 10**9}])
def test_no_tool_ends_connections_by_a_limit(limit):
    assert "does not end connections by a limit" in refused("wrk", **limit)


def test_k6_serves_nothing_to_the_subject_in_whose_network_it_is():
    (words,) = command("k6").commands
    assert words[words.index("--address") + 1] == ""
