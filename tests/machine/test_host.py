import json
import os
from pathlib import Path

from prony.figures.drift import WHAT_MATTERS, comparable, machine_key
from prony.machine.cpus import available_cpus
from prony.machine.fingerprint import brief_fingerprint, fingerprint, visible_environment, visible_parameters
from prony.model.facts import Fingerprint, Unknown
from prony.model.json_codec import decode, encode


def test_the_fingerprint_is_json_and_each_item_is_a_value_or_a_reason() -> None:
    facts = json.loads(json.dumps(encode(fingerprint())))

    def check(value: object, where: str) -> None:
        assert value != "", where
        if isinstance(value, dict):
            if "missing" in value:
                assert list(value) == ["missing"] and value["missing"], where
            for name, item in value.items():
                check(item, f"{where}.{name}")

    check({name: item for name, item in facts.items() if name not in ("environment", "cpu")}, "")
    assert facts["cpu"]["available"] == len(os.sched_getaffinity(0))
    assert facts["kernel"]["release"] == os.uname().release
    assert facts["memory"]["total_bytes"] > 0
    assert facts["boot"]["unix_s"] > 0


def test_what_makes_archives_comparable_is_there() -> None:
    facts = fingerprint()
    for path in WHAT_MATTERS.values():
        assert facts.fact(*path) != Unknown("not in the fingerprint")
    assert comparable(facts, decode(Fingerprint, json.loads(json.dumps(encode(facts))), "fingerprint")) == ()


def test_what_was_measured_by_force_is_marked() -> None:
    assert fingerprint().forced == ()
    assert fingerprint(forced=("ports: 10; needed: 100",)).forced == ("ports: 10; needed: 100",)


def test_no_address_and_no_name_of_this_machine_is_kept() -> None:
    shown = json.dumps({name: item for name, item in fingerprint().free.items() if name != "environment"})
    assert f'"{os.uname().nodename}"' not in shown
    for interface in Path("/sys/class/net").glob("*/address"):
        assert interface.read_text().strip() not in shown or interface.parent.name == "lo"


def test_values_of_the_environment_are_kept_only_when_known_to_be_harmless() -> None:
    facts = encode(
        fingerprint({"SECRET_KEY": "hunter2", "LANG": "C", "UV_INDEX_URL": "https://me:hunter2@x"})
    )
    assert facts["environment"] == {
        "LANG": "C",
        "SECRET_KEY": "<redacted>",
        "UV_INDEX_URL": "<redacted>",
    }
    assert "hunter2" not in json.dumps(facts)


def test_names_are_in_order_so_that_two_fingerprints_compare() -> None:
    assert list(visible_environment({"b": "", "a": ""})) == ["a", "b"]


def test_the_kernels_command_line_keeps_no_unknown_value() -> None:
    shown = visible_parameters("isolcpus=1 luks.key=abc quiet -- --token abc")
    assert shown.startswith("isolcpus=1 luks.key=<redacted> quiet")
    assert "abc" not in shown


def test_hardware_threads_of_one_core_share_its_number(tmp_path: Path) -> None:
    for cpu in os.sched_getaffinity(0):
        folder = tmp_path / f"cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text("0-63\n")
    assert {cpu.core for cpu in available_cpus(tmp_path)} == {0}
    assert len({cpu.core for cpu in available_cpus(tmp_path / "nothing")}) == len(os.sched_getaffinity(0))


def test_a_brief_fingerprint_names_the_same_machine_as_the_whole_one() -> None:
    assert machine_key(brief_fingerprint()) == machine_key(fingerprint())
