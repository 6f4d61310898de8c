import json
import os
import resource
from pathlib import Path

import pytest

from prony.host import Cpu, available_cpus, fingerprint, preflight, visible_environment
from prony.host.environment import visible_parameters
from prony.host.preflight import file_limit, listen_queue, ports, processors


def test_the_fingerprint_is_json_and_each_item_is_a_value_or_a_reason() -> None:
    facts = json.loads(json.dumps(fingerprint()))

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
    for section, name in (
        ("cpu", "model"),
        ("kernel", "release"),
        ("cpu", "governor"),
        ("cpu", "available"),
        ("memory", "limit_bytes"),
    ):
        assert name in facts[section]


def test_values_of_the_environment_are_kept_only_when_known_to_be_harmless() -> None:
    facts = fingerprint({"SECRET_KEY": "hunter2", "LANG": "C", "UV_INDEX_URL": "https://me:hunter2@x"})
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


@pytest.mark.parametrize(
    ("check", "level", "command"),
    [
        (file_limit(1000, 20_000), "ok", None),
        (file_limit(1000, resource.RLIM_INFINITY), "ok", None),
        (file_limit(20_000, 20_000), "fail", "sudo prlimit --pid $$ --nofile=20100:20100"),
        (ports(1000, 32768, 60999), "ok", None),
        (ports(20_000, 32768, 60999), "warn", 'sudo sysctl -w net.ipv4.ip_local_port_range="10000 65535"'),
        (ports(40_000, 32768, 60999), "fail", 'sudo sysctl -w net.ipv4.ip_local_port_range="10000 65535"'),
        (listen_queue("net/core/somaxconn", 1000, 4096), "ok", None),
        (listen_queue("net/core/somaxconn", 1000, 128), "warn", "sudo sysctl -w net.core.somaxconn=1000"),
        (listen_queue("net/core/somaxconn", 1000, None), "warn", None),
        (processors([Cpu(0, 0), Cpu(1, 1)]), "ok", None),
        (processors([Cpu(0, 0), Cpu(1, 0)]), "warn", None),
        (processors([Cpu(0, 0)]), "fail", "prony ... --share-cpus"),
    ],
)
def test_a_check_says_how_bad_it_is_and_what_mends_it(check: object, level: str, command: str | None) -> None:
    assert (check.level, check.command) == (level, command)  # type: ignore[attr-defined]


def test_preflight_names_each_check_once() -> None:
    checks = preflight(1000)
    names = [check.name for check in checks]
    assert len(names) == len(set(names)) == 10
    assert all(check.found and check.wanted for check in checks)
    assert all(check.command is None for check in checks if check.level == "ok")
