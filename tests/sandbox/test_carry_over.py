"""On the host's loopback a trial is kept from what earlier ones have left, and what there is, is counted."""

import socket
from pathlib import Path

import pytest

from prony.core.users import RunAs
from prony.model.sandbox import Network, SandboxChoice
from prony.sandbox import open_sandbox
from prony.sandbox.journal import RunFolder
from prony.sandbox.remains import CarryOver, carried_over, read_sockets

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue\n"


def line(local: int, remote: int, state: str) -> str:
    return f"   1: 0100007F:{local:04X} 0100007F:{remote:04X} {state} 00000000:00000000 03:00000A 0 0 0\n"


def test_sockets_are_counted_by_state_and_port() -> None:
    text = HEAD + line(8000, 40000, "06") + line(40001, 8000, "06") + line(9000, 40002, "06")
    text += line(8000, 0, "0A") + line(8000, 40003, "01")
    assert carried_over(8000, text) == CarryOver(time_wait=3, on_port=2, listeners=1)
    assert not carried_over(8000, text).is_clean
    assert carried_over(8001, text).is_clean


def test_a_kernel_without_the_file_has_no_sockets(tmp_path: Path) -> None:
    assert carried_over(8000, read_sockets(tmp_path)) == CarryOver(0, 0, 0)


def in_time_wait() -> int:
    """Return the port of a server that has closed a connection, and itself."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        # Who closes first keeps the socket.
        accepted.close()
        client.close()
    return port


def test_a_port_that_an_earlier_trial_used_is_not_given_again(
    user: RunAs, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = in_time_wait()
    assert carried_over(used, read_sockets()).on_port == 1
    with socket.create_server(("127.0.0.1", 0)) as other:
        listened = int(other.getsockname()[1])
        draws = iter([used, listened, 20_001])
        monkeypatch.setattr("secrets.SystemRandom.choice", lambda _self, _ports: next(draws))
        sandbox = open_sandbox(SandboxChoice(network=Network.HOST), user, run.trial_folder("trial"))
        assert sandbox.free_port() == 20_001
