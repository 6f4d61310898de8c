"""Two measurements at once on one machine refuse each other."""

import os
import secrets
import socket
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


AS_ANOTHER_USER = """
import ctypes, os, socket, sys, tempfile, time
name, inode = sys.argv[1].replace('@', chr(0)), sys.argv[2]
held = socket.socket(socket.AF_UNIX)
exec(sys.argv[3])
print("held", flush=True)
time.sleep(600)
"""
# What another user can do with the name; `inode` is of a socket of root's.
SQUATTERS = {
    "has its queue full": """
held.bind(name); held.listen(0)
full = [socket.socket(socket.AF_UNIX) for _ in range(3)]
for one in full:
    one.setblocking(False); one.connect_ex(name)
""",
    "gives it into nobody's hands": """
held.bind(name); here, there = socket.socketpair()
socket.send_fds(here, [b"x"], [held.fileno()]); held.close()
""",
    "writes a line for root": """
held.bind(name); line = socket.socket(socket.AF_UNIX)
os.chdir(tempfile.mkdtemp()); line.bind(f"a\\n0 00000002 0 00010000 0001 01 {inode} @{name[1:]}")
""",
    "writes a line of nothing": """
held.bind(name); line = socket.socket(socket.AF_UNIX)
os.chdir(tempfile.mkdtemp()); line.bind(f"a\\n @{name[1:]}")
""",
    "has a command without an end": """
import mmap, struct
held.bind(name); held.listen(1)
of_stat = open("/proc/self/stat").read().rpartition(")")[2].split()
libc = ctypes.CDLL(None); libc.mmap.restype = libc.sbrk.restype = ctypes.c_void_p
size = 1 << 40
at = libc.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, ctypes.c_long(0))
code, data = of_stat[23:25], of_stat[42:45]
places = [*map(int, (*code, *data)), libc.sbrk(0), int(of_stat[25]), at, at + size, *map(int, of_stat[47:49])]
mapped = struct.pack("=12QiI", *places, 0, 0, 0xFFFFFFFF)
libc.prctl(35, 14, mapped, len(mapped), 0)
""",
}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
@pytest.mark.parametrize("what", SQUATTERS)
def test_nothing_that_another_user_does_with_the_name_stops_root(name, what, tmp_path):
    with socket.socket(socket.AF_UNIX) as roots:
        roots.bind(str(tmp_path / "roots"))
        given = [name.replace("\0", "@"), str(os.fstat(roots.fileno()).st_ino), SQUATTERS[what]]
        command = ["/usr/bin/python3", "-c", AS_ANOTHER_USER, *given]
        with subprocess.Popen(command, stdout=subprocess.PIPE, user=65534, group=65534, cwd="/") as process:
            try:
                assert process.stdout.readline() == b"held\n"
                with claim_machine(name) as told:
                    assert "root does not wait for other users" in told[0]
            finally:
                process.kill()


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
