"""What a target may say: every other conversation ends in one clear line, and opens nothing here."""

import json
import random

import pytest

from prony.core.errors import EngineError
from prony.core.units import SECOND_NS
from prony.engine.answers import (
    MOST_ARCHIVE_BYTES,
    Cancel,
    Hello,
    LoadOrder,
    RunEnd,
    checked_spec,
    read_message,
)
from prony.model.address import Address
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from prony.plan.engine_spec import to_spec

HERE = "192.0.2.1"


def spec(**target):
    found = to_spec(Workload(ClosedLoop(2), DurationStop(SECOND_NS)), Address(HERE, 8000), EngineChoice())
    return {**found, "target": {**found["target"], **target}}


def order(found, authority=None, limit_ns=SECOND_NS):
    return LoadOrder(1, found, limit_ns, authority)


@pytest.mark.parametrize("file", ["/etc/passwd", {"sha256": "0" * 64}, {}])
def test_a_load_may_name_no_file_of_requests(file):
    found = spec()
    mix = {"seed": 1, "paths": [{"path": "/", "weight": 1}], "file": file}
    sent = order({**found, "workload": {**found["workload"], "mix": mix}})
    with pytest.raises(EngineError, match="a target may name no file of this machine"):
        checked_spec(sent, HERE, ())


def test_each_message_is_read():
    assert read_message({"hello": "1", "listen": HERE}) == Hello("1", HERE)
    assert read_message({"cancel": 3}) == Cancel(3)
    assert read_message({"ended": 3, "said": "x", "bytes": 0}) == RunEnd(3, "x", 0)
    sent = {"load": 1, "spec": spec(), "limit_ns": 7, "authority": None}
    assert read_message(sent) == order(sent["spec"], limit_ns=7)


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"load": {}, "spec": {}},
        {"load": 1},
        {"load": 1, "spec": 5, "limit_ns": 1, "authority": None},
        {"load": True, "spec": {}, "limit_ns": 1, "authority": None},
        {"cancel": []},
        {"cancel": 1, "more": 2},
        {"ended": "x", "said": "", "bytes": 0},
        {"ended": 0, "said": "", "bytes": -5},
        {"ended": 0, "said": "", "bytes": MOST_ARCHIVE_BYTES + 1},
        {"ended": 256, "said": "", "bytes": 0},
        {"ended": float("inf"), "said": "", "bytes": 0},
        {"hello": 5, "listen": HERE},
        {"\x1b[2J": 5},
    ],
)
def test_what_is_no_message_is_refused_in_one_line(message):
    with pytest.raises(EngineError) as refused:
        read_message(message)
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 400


def test_an_honest_load_is_sent_as_it_is_but_for_the_cpus():
    honest = spec(tls={"verify": True, "ca_file": "/there/authority.pem"})
    assert checked_spec(order(honest, authority="PEM"), HERE, {9}) == {**honest, "cpus": None}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (spec(host="192.0.2.2"), "only to `192.0.2.1`"),
        (spec(socket="unix"), "only to"),
        (spec(port=9), "another program's"),
        (spec(port=[]), "whole number"),
        (spec(others=["127.0.0.1"]), "unknown key `others`"),
        (spec(proxy={"host": "127.0.0.1"}), "unknown key `proxy`"),
        (spec(tls={"ca_file": "/etc/shadow"}), "no file of this machine"),
        (spec(tls={"certificate_file": "/root/key.pem"}), "no file of this machine"),
        (spec(tls={"key_file": "/root/key.pem"}), "no file of this machine"),
        (spec(tls=["ca_file"]), "expected an object"),
        ({**spec(), "threads": 10**6}, "1 to 1024"),
        ({**spec(), "threads": "1"}, "1 to 1024"),
        ({**spec(), "target": 5}, "expected an object"),
        ({**spec(), "log": "/etc/motd"}, "unknown key `log`"),
        ({**spec(), "workload": {"groups": [{"source": "192.0.2.9"}]}}, "no source addresses of this"),
    ],
)
def test_a_load_to_somewhere_else_or_with_a_file_of_this_machine_is_refused(found, said):
    with pytest.raises(EngineError, match=said):
        checked_spec(order(found), HERE, {9})


@pytest.mark.parametrize(
    "host",
    [
        *(
            "localhost",
            "0.0.0.0",
            "127.1",
            "2130706433",
            "0x7f000001",
            "::ffff:192.0.2.1",
            "192.0.2.1.",
            " 192.0.2.1",
        ),
        *(
            "192.0.2.1\0.x",
            "192.0.2.01",
            ["192.0.2.1"],
            None,
            3221225985,
            "192.0.2.1%lo",
            "/run/dbus/system_bus_socket",
        ),
    ],
    ids=str,
)
def test_however_an_address_is_written_only_the_one_that_was_named_is_loaded(host):
    with pytest.raises(EngineError, match=f"only to `{HERE}`"):
        checked_spec(order(spec(host=host)), HERE, ())


@pytest.mark.parametrize("authority", ["", "PEM", "/etc/shadow"])
def test_an_authority_of_a_load_without_tls_is_refused(authority):
    with pytest.raises(EngineError, match="expected an object"):
        checked_spec(order(spec(), authority=authority), HERE, ())


def test_a_load_without_an_end_is_refused():
    with pytest.raises(EngineError, match="limit_ns"):
        checked_spec(order(spec(), limit_ns=10**18), HERE, ())


def mutated(text, draw):
    """Return a text with a few letters changed, cut out or put in."""
    letters = list(text)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(letters))
        match draw.randrange(3):
            case 0:
                letters[place] = draw.choice('{}[]",:0179ntfe-.\\x')
            case 1:
                del letters[place : place + draw.randint(1, 8)]
            case 2:
                letters[place:place] = draw.choice(
                    ["{}", '"x":1,', "1e999", "[" * 50, "null", "-1", '"\\u202e"']
                )
        letters = letters or ["{"]
    return "".join(letters)


@pytest.mark.parametrize("seed", range(5))
def test_of_a_thousand_mutated_messages_each_is_read_or_refused_in_one_line(seed):
    draw = random.Random(seed)
    whole = [
        {"hello": "1", "listen": HERE},
        {"load": 1, "spec": spec(), "limit_ns": 7, "authority": None},
        {"cancel": 3},
        {"ended": 0, "said": "text", "bytes": 12},
    ]
    refused = 0
    for _ in range(1000):
        try:
            found = json.loads(mutated(json.dumps(draw.choice(whole)), draw))
        except (ValueError, RecursionError):
            continue
        if not isinstance(found, dict):
            continue
        try:
            message = read_message(found)
            if isinstance(message, LoadOrder):
                checked_spec(message, HERE, ())
        except EngineError as error:
            refused += 1
            assert error.message.isprintable()
            assert len(error.message) < 400
    assert refused > 50
