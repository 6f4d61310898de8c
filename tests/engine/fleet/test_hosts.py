"""The file that names a fleet's machines, and what becomes of its words on the way to ssh."""

import shlex

import pytest

from prony.core.errors import UsageError
from prony.engine.fleet import fleet_of
from prony.engine.fleet.hosts import Host, read_hosts, ssh_command

PLAIN = """\
listen = "192.0.2.1"
certificates = "keys"

[[hosts]]
address = "load1.example"

[[hosts]]
address = "192.0.2.7"
name = "big"
user = "prony"
port = 2222
identity = "/home/me/.ssh/fleet"
python = "/opt/prony here/bin/python"
certificates = "/home/prony/keys"
workers = 2
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "keys").mkdir()
    for name in ("ca.pem", "certificate.pem", "key.pem"):
        (tmp_path / "keys" / name).touch()
    (tmp_path / "hosts.toml").write_text(PLAIN)
    return tmp_path / "hosts.toml"


def test_each_machine_has_its_generators_and_certificates_lie_beside_the_file(file):
    fleet = fleet_of(str(file))
    assert fleet.hosts.names == ("load1.example", "big-1", "big-2")
    assert fleet.hosts.certificates == str(file.parent / "keys")
    assert not fleet.is_here
    assert fleet.count == 3


def test_certificates_that_are_not_there_are_named(file):
    (file.parent / "keys" / "ca.pem").unlink()
    with pytest.raises(UsageError, match=r"lack `ca\.pem`"):
        fleet_of(str(file))


def test_the_options_of_a_machine_are_those_of_ssh_and_no_password_is_asked_for(file):
    command = ssh_command(read_hosts(file).hosts[1], "/home/me/config")
    assert command[0] == "ssh"
    assert "BatchMode=yes" in command
    for option, value in (
        ("-F", "/home/me/config"),
        ("-p", "2222"),
        ("-i", "/home/me/.ssh/fleet"),
        ("-l", "prony"),
    ):
        assert command[command.index(option) + 1] == value
    assert command[-3:-1] == ["--", "192.0.2.7"]
    assert shlex.split(command[-1])[0] == "/opt/prony here/bin/python"


@pytest.mark.parametrize("python", ["python3; touch /tmp/x", "$(id)", "`id`", "a'b", "python3\\ -c"])
def test_no_word_of_the_file_is_read_by_the_other_sides_shell(python):
    words = shlex.split(ssh_command(Host(address="h", python=python), None)[-1])
    assert words == [python, "-P", "-m", "prony.engine.fleet.cluster"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"load1.example"', '"-oProxyCommand=id"', "hosts.0.address: found `-oProxyCommand=id`"),
        ('"load1.example"', '"a b"', "hosts.0.address"),
        ('user = "prony"', 'user = "-x"', "hosts.1.user"),
        ("port = 2222", "port = 0", "hosts.1.port: found `0`; expected at least 1"),
        ("workers = 2", "workers = 65", "hosts.1.workers: found `65`; expected at most 64"),
        ("workers = 2", 'shell = "sh"', "hosts.1.shell: found `shell`; expected no such field"),
        ('listen = "192.0.2.1"', "", "listen: is missing"),
        ('python = "/opt/prony here/bin/python"', 'python = "a\\nb"', "hosts.1.python"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(file, old, new, said):
    assert old in PLAIN
    file.write_text(PLAIN.replace(old, new))
    with pytest.raises(UsageError) as refused:
        read_hosts(file)
    assert said in refused.value.message
    assert "docs/guides/fleet.md" in refused.value.hint


def test_two_generators_of_one_name_are_refused(file):
    file.write_text(PLAIN.replace('name = "big"', 'name = "x"') + '\n[[hosts]]\naddress = "x-1"\n')
    with pytest.raises(UsageError, match="two generators are called `x-1`"):
        read_hosts(file)


def test_a_file_without_machines_is_refused(file):
    file.write_text('listen = "192.0.2.1"\ncertificates = "keys"\nhosts = []\n')
    with pytest.raises(UsageError, match="hosts"):
        read_hosts(file)
