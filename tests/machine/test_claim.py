"""Two measurements at once on one machine refuse each other."""

import os
import secrets
import subprocess
import sys

import pytest

from prony.core.errors import ExitCode, HostError
from prony.machine.claim import claim_machine


@pytest.fixture
def name():
    return f"\0prony-test-{secrets.token_hex(8)}"


def test_the_second_is_told_who_the_first_is(name):
    with claim_machine(name), pytest.raises(HostError) as caught, claim_machine(name):
        pytest.fail("both hold it")
    assert f"process {os.getpid()} of the user `" in caught.value.message
    assert caught.value.exit_code == ExitCode.COULD_NOT_MEASURE


def test_it_is_free_again_afterwards_and_after_a_failure(name):
    with pytest.raises(ZeroDivisionError), claim_machine(name):
        raise ZeroDivisionError
    with claim_machine(name):
        pass


def test_a_holder_that_is_killed_holds_nothing(name):
    program = (
        "import sys, time\n"
        "from prony.machine.claim import claim_machine\n"
        "with claim_machine(sys.argv[1].replace('@', chr(0))):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)\n"
    )
    given = name.replace("\0", "@")
    with subprocess.Popen([sys.executable, "-c", program, given], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(HostError, match=f"process {holder.pid}"), claim_machine(name):
            pytest.fail("both hold it")
        holder.kill()
    with claim_machine(name):
        pass


SQUATTER = """
import socket, sys, time
held = socket.socket(socket.AF_UNIX)
held.bind(sys.argv[1].replace('@', chr(0)))
if sys.argv[2] == "listens":
    held.listen(1)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["listens", "only holds the name"])
def squatter(request, name):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    command = ["/usr/bin/python3", "-c", SQUATTER, name.replace("\0", "@"), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, user=65534, group=65534, cwd="/") as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_another_user_who_holds_the_name_does_not_stop_root_and_is_named(name, squatter):
    with claim_machine(name) as told:
        (words,) = told
    assert words.startswith(f"process {squatter.pid} of the user `nobody`, `/usr/bin/python3 -c")
    assert "root does not wait for other users" in words


@pytest.mark.usefixtures("squatter")
def test_root_excludes_root_though_another_user_holds_the_name(name):
    with claim_machine(name), pytest.raises(HostError) as caught, claim_machine(name):
        pytest.fail("both hold it")
    assert f"process {os.getpid()} of the user `root`" in caught.value.message


def test_an_ordinary_user_is_told_whose_process_it_is(name, monkeypatch):
    with claim_machine(name):
        monkeypatch.setattr("os.geteuid", lambda: 1000)
        with pytest.raises(HostError) as caught, claim_machine(name):
            pytest.fail("both hold it")
        monkeypatch.undo()
    assert f"process {os.getpid()} of the user `" in caught.value.message


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_only_root_can_enter_the_folder_of_roots_lock_and_nothing_stays_in_it(name, monkeypatch, tmp_path):
    folder = tmp_path / "prony"
    monkeypatch.setattr("prony.machine.claim._FOLDER", folder)
    with claim_machine(name):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert len(list(folder.iterdir())) == 1
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    with pytest.raises(HostError, match="others can enter it"), claim_machine(name):
        pytest.fail("it is not root's alone")
