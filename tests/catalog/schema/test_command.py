"""Any program as a server: `prony run --command`."""

from pathlib import Path

import pytest

from prony.catalog.discover.sources import Program
from prony.catalog.launch import Seat, make_launch
from prony.catalog.schema.command import (
    command_app,
    command_entry,
    named_commands,
    parse_command,
    program_entry,
)
from prony.core.errors import UsageError
from prony.model.address import Address
from prony.model.exchange import Contract
from prony.model.subject import Interface, Subject


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "my_server.py"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


class Nothing:
    places: dict[str, str] = {}  # noqa: RUF012


def test_a_command_is_named_after_its_program_or_as_it_is_told(program: Path) -> None:
    name, words = parse_command("./my_server.py --port {port} 'two words'", program.parent)
    assert (name, words) == ("my-server", [str(program), "--port", "{port}", "two words"])
    assert parse_command("old=./my_server.py", program.parent)[0] == "old"
    assert parse_command("sh -c 'A=1 exec x'", program.parent)[0] == "sh"


@pytest.mark.parametrize(("environment", "slots"), [({}, 1), ({"PHP_CLI_SERVER_WORKERS": "20"}, 20)])
def test_phps_own_server_answers_one_request_at_a_time_in_each_process(environment, slots, tmp_path) -> None:
    program = Program("php", "other", "index.php", ("{php}", "-S", "{host}:{port}"), {"php": ("php",)})
    assert program_entry(program, tmp_path, environment).facts.concurrency.slots == slots
    other = Program("node", "other", "server.js", ("{node}", "server.js"), {"node": ("node",)})
    assert program_entry(other, tmp_path, environment).facts.concurrency.slots is None


def test_the_program_that_a_shell_would_start_comes_before_the_systems(
    program, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    made = Program("mine", "other", "run", ("{mine}",), {"mine": ("my_server.py", "/usr/bin/mine")})
    found = program_entry(made, tmp_path, {}).install.programs["mine"]
    assert found == (str(program), "my_server.py", "/usr/bin/mine")


def test_it_works_in_its_own_folder_and_is_told_where_to_listen(program: Path) -> None:
    (entry,) = named_commands(["mine=./my_server.py {host}:{port} {cpus}"], program.parent)
    app = command_app(program.parent, Contract(), {"KEY": "1"})
    subject = Subject("mine+app", "mine", app, Interface.NONE)
    seat = Seat(Address("127.0.0.1", 8123), str(program.parent), "/runs/1", 3)
    launch = make_launch(entry, subject, Nothing(), seat)
    assert launch.command == (str(program), "127.0.0.1:8123", "3")
    assert launch.folder == str(program.parent)
    assert launch.environment == {"HOST": "127.0.0.1", "PORT": "8123", "KEY": "1"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a program and its arguments"),
        ("./no-such-server {port}", "cannot find a program `./no-such-server`"),
        ("no-such-program-anywhere", "cannot find a program `no-such-program-anywhere`"),
        ("./my_server.py 'half", "No closing quotation"),
    ],
)
def test_what_is_no_command_is_refused(program: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_command(text, program.parent)


def test_a_placeholder_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match=r"found `\{prot\}`; expected one of the placeholders"):
        command_entry("mine", ["/bin/true", "{prot}"])
    with pytest.raises(UsageError, match="each brace to belong to a placeholder"):
        command_entry("mine", ["/bin/true", '{"json": 1}'])


def test_two_commands_of_one_name_are_refused(program: Path) -> None:
    with pytest.raises(UsageError, match="two commands are named `my-server`"):
        named_commands(["./my_server.py 1", "./my_server.py 2"], program.parent)
