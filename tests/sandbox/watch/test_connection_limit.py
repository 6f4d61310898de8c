"""How many connections a database takes is read of its command and its files, where they can be read."""

import contextlib
import subprocess
import sys

import pytest

from prony.sandbox.watch import others
from prony.sandbox.watch.others import connection_limits


@contextlib.contextmanager
def program(folder, name, *words):
    """Run a program of this name that does nothing, and yield its number."""
    with contextlib.suppress(FileExistsError):
        (folder / name).symlink_to(sys.executable)
    command = [folder / name, "-c", "print(flush=True); input()", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def limit(folder, *words, name="postgres"):
    with program(folder, name, *words) as pid:
        return connection_limits([pid]).get(name)


@pytest.mark.parametrize(
    "words",
    [("-c", "max_connections=23"), ("-cmax_connections=23",), ("--max-connections=23",), ("-N", "23")],
)
def test_what_the_command_says_counts(tmp_path, words):
    assert limit(tmp_path, *words) == 20


def test_the_last_of_the_files_counts_and_a_remark_does_not(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "postgresql.conf").write_text("#max_connections = 9\nport = 5432\n")
    assert limit(tmp_path, "-D", str(data)) == 97
    (tmp_path / "own.conf").write_text("max_connections = 30\t# changed\n")
    words = ("-D", str(data), "-c", f"config_file={tmp_path / 'own.conf'}")
    assert limit(tmp_path, *words) == 27
    (data / "postgresql.auto.conf").write_text("max_connections = '50'\n")
    assert limit(tmp_path, *words) == 47


def test_what_cannot_be_read_is_not_known(tmp_path):
    assert limit(tmp_path, "-D", str(tmp_path / "closed")) is None
    assert limit(tmp_path, name="redis-server") is None
    assert connection_limits([0]) == {}


def test_in_a_container_only_the_command_is_known(tmp_path, monkeypatch):
    (tmp_path / "postgresql.conf").write_text("max_connections = 9\n")
    monkeypatch.setattr(others, "by_network", lambda pids: {3: pids})
    assert limit(tmp_path, "-D", str(tmp_path)) is None
    assert limit(tmp_path, "-D", str(tmp_path), "-N", "23") == 20


def test_mariadbs_configuration_lies_in_several_files(tmp_path, monkeypatch):
    files = (tmp_path / "my.cnf", tmp_path / "conf.d")
    monkeypatch.setattr(others, "_OF_MARIADB", [str(one) for one in files])
    assert limit(tmp_path, name="mariadbd") is None
    files[0].write_text("[mysqld]\n")
    assert limit(tmp_path, name="mariadbd") == 151
    files[1].mkdir()
    (files[1] / "50-server.cnf").write_text("[mariadbd]\nmax-connections = 40\n")
    assert limit(tmp_path, name="mariadbd") == 40


def test_of_two_of_one_name_nobody_knows_which_is_meant(tmp_path):
    with program(tmp_path, "postgres", "-N", "9") as one, program(tmp_path, "postgres", "-N", "8") as other:
        assert connection_limits([one, other]) == {}
