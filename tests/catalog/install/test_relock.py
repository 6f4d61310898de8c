"""`prony servers --update`: locks of built-in servers are written anew, and only those."""

from types import SimpleNamespace

import pytest

from prony.catalog.install import resolve as module
from prony.catalog.schema.loader import load_catalog, load_generator, write_skeleton
from prony.core.errors import ExitCode, HostError


@pytest.fixture
def locks(tmp_path, monkeypatch):
    """A folder of locks, in which a server's own is `<name>==1`; nothing is resolved."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setattr(module, "LOCKS", folder)
    monkeypatch.setattr(module, "_resolved", lambda entry, install: f"{entry.name}==1\n")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def said(locks, monkeypatch, capsys):
    from prony.cli import main as command_line

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["prony", "servers", "--update", *arguments])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


def test_a_lock_says_whether_it_changed(said, locks):
    assert said("waitress") == (0, "waitress: changed\n", "")
    assert said("waitress") == (0, "waitress: unchanged\n", "")
    assert [file.name for file in locks.iterdir()] == ["waitress.txt"]


def test_a_variant_stands_for_its_server(said):
    assert said("uvicorn-quiet")[1] == "uvicorn: changed\n"


def test_without_names_all_that_came_with_prony_are_written_and_no_other(said, locks):
    entries = load_catalog().servers.values()
    built_in = {entry.name for entry in entries if entry.install.kind == "python"}
    write_skeleton("mine", load_catalog())
    assert said()[0] == 0
    assert {file.stem for file in locks.iterdir()} == built_in
    assert module.relock(load_generator("python-scripts"))
    assert {file.stem for file in locks.iterdir()} == {*built_in, "python-scripts"}


def test_a_users_own_entry_has_no_lock_to_write(said, locks):
    write_skeleton("mine", load_catalog())
    status, out, err = said("waitress", "mine")
    assert (status, out) == (ExitCode.USAGE, "")
    assert "`mine` did not come with Prony" in err
    assert list(locks.iterdir()) == []


@pytest.mark.parametrize(
    ("server", "version", "frameworks"), [("waitress", "3.11", True), ("meinheld-cpython38", "3.8", False)]
)
def test_a_lock_is_resolved_for_the_python_that_the_server_asks_for(
    server, version, frameworks, tmp_path, monkeypatch
):
    asked = []

    def run(command, **options):
        asked.append((command, options["input"]))
        return SimpleNamespace(returncode=0, stdout="locked\n", stderr="")

    monkeypatch.setattr(module, "LOCKS", tmp_path)
    monkeypatch.setattr("prony.catalog.install.resolve.subprocess.run", run)
    entry = load_catalog().server(server)
    assert module.relock(entry)
    ((command, wanted),) = asked
    assert command[command.index("--python-version") + 1] == version
    assert set(entry.install.requirements) <= set(wanted.splitlines())
    # Today's frameworks need not exist for an old Python.
    assert ("flask==" in wanted) is frameworks


def test_a_folder_that_is_not_there_is_told(locks, monkeypatch):
    monkeypatch.setattr(module, "LOCKS", locks / "nowhere")
    with pytest.raises(HostError, match="cannot write"):
        module.relock(load_catalog().server("waitress"))
