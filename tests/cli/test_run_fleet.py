"""`prony run --fleet`: what it takes, and what it refuses in words."""

import os

import pytest

from prony.engine.fleet.certificates import write_certificates

APP = ("run", "--app", "hello", "--servers", "waitress", "--share-cpus", "--dry-run")


@pytest.fixture
def hosts(folder):
    """A file of a fleet beyond this machine."""
    write_certificates(folder / "certificates", 1)
    (folder / "hosts.toml").write_text(
        'listen = "192.0.2.1"\ncertificates = "certificates"\n[[hosts]]\naddress = "load1.example"\n'
    )
    return "hosts.toml"


@pytest.mark.parametrize("option", ["--engine", "--fleet"])
def test_generators_of_this_machine_are_named_as_they_are_typed(said, option):
    assert "by local:2@20%, GET /" in said(*APP, option, "local:2@20%").out


def test_servers_use_each_cpu_where_the_load_comes_from_other_machines(said, hosts):
    done = said(*APP[:5], "--dry-run", "--fleet", hosts, "--listen", "127.0.0.1")
    assert done.status == 0, done.err
    assert "by fleet, GET /" in done.out
    cpus = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
    assert f"server on CPUs {cpus}, " in done.out or cpus == "0"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--fleet", "local:0"), "the fleet `local:0`: expected local:N with 1 to 64 generators"),
        (("--engine", "local:x"), "the fleet `local:x`: expected local:N with 1 to 64 generators"),
        (("--engine", "local:4@500%"), "local:N@P%, each with at most P % of a CPU, 1 to 99"),
        (("--engine", "fleet"), "the generator `fleet` has no machines"),
        (("--fleet", "nowhere.toml"), "nowhere.toml: cannot be read: No such file"),
        (("--fleet", "hosts.toml"), "--listen 192.0.2.1"),
        (("--fleet", "hosts.toml", "--listen", "192.0.2.1"), "is no address of this machine"),
        (("--fleet", "hosts.toml", "--listen", "shop.example"), "expected an IPv4 address of this machine"),
        (("--fleet", "hosts.toml", "--listen", "0.0.0.0"), "expected one address of this machine, not all"),
        (("--fleet", "hosts.toml", "--net", "isolated"), "do not reach a network of the trial's own"),
        (("--fleet", "local:2", "--listen", "127.0.0.1"), "is of no use: the generators are on this machine"),
        (("--fleet", "local:2", "--engine", "wrk"), "`--engine` and `--fleet` exclude each other"),
        (("--listen", "127.0.0.1"), "`--listen` only works with `--fleet`"),
    ],
)
def test_what_cannot_be_a_fleet_is_refused(said, hosts, words, message):
    done = said(*APP, *words)
    assert done.status == 2
    assert message in done.err
