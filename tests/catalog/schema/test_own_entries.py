"""A user's own entries: the skeleton is right as it stands; `prony.d` is read, but runs only when named."""

from pathlib import Path

import pytest

from prony.catalog.launch import declared_facts
from prony.catalog.schema.loader import load_catalog, load_server, skeleton, write_skeleton
from prony.core.errors import ExitCode, HostError, UsageError
from prony.model.subject import Interface, Subject
from prony.study.catalog_check import names_to_check

STUDY = """\
format = 1
name = "own"
title = "Own"
[[subjects]]
server = ["wsgiref", "mine-deep-queue"]
app = ["hello"]
[[workloads]]
loop = "closed"
connections = 2
[profiles.quick]
blocks = 1
duration = "500ms"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the server `mine` in its `prony.d`."""
    monkeypatch.chdir(tmp_path)
    write_skeleton("mine", load_catalog())
    return tmp_path


@pytest.fixture
def said(folder, monkeypatch, capsys):
    from prony.cli import main as command_line

    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PRONY_CACHE", str(folder / "cache"))

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["prony", *arguments])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


# --- the skeleton -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mine", "a-1", "x" * 64])
def test_the_skeleton_is_valid_as_it_stands(tmp_path, name):
    (tmp_path / f"{name}.toml").write_text(skeleton(name))
    entry = load_server(tmp_path / f"{name}.toml")
    assert entry.name == name
    subject = Subject("s", name, load_catalog().app("hello"), entry.interfaces[0], "deep-queue")
    assert declared_facts(entry, subject, cpus=2).backlog == 1024
    compile(entry.files["serve.py"], "serve.py", "exec")


@pytest.mark.parametrize("interface", list(Interface))
def test_the_skeleton_of_each_interface_is_valid_as_it_stands(tmp_path, interface):
    (tmp_path / "mine.toml").write_text(skeleton("mine", interface))
    entry = load_server(tmp_path / "mine.toml")
    assert (entry.name, entry.interfaces[0]) == ("mine", interface)


def test_an_interface_without_a_new_entry_is_refused(said):
    status, _, err = said("servers", "--interface", "asgi")
    assert status == ExitCode.USAGE and "`--interface` only works with `--new`" in err


def test_a_new_entry_is_written_and_known(said, folder):
    status, out, err = said("servers", "--new", "yours")
    assert (status, err) == (0, "")
    assert out.startswith("prony.d/yours.toml")
    assert {"mine", "yours"} <= load_catalog().own


def test_a_file_is_never_written_over(said, folder):
    before = (folder / "prony.d/mine.toml").read_bytes()
    status, _, err = said("servers", "--new", "mine")
    assert status == ExitCode.USAGE
    assert "a server of that name exists" in err
    (folder / "prony.d/broken.txt").touch()
    with pytest.raises(UsageError, match="already exists"):
        write_skeleton("mine", load_catalog(found=folder / "nowhere"), folder / "prony.d")
    assert (folder / "prony.d/mine.toml").read_bytes() == before


@pytest.mark.parametrize("name", ["gunicorn", "gunicorn-gthread", "mine-deep-queue"])
def test_a_name_that_is_taken_is_refused(folder, name):
    with pytest.raises(UsageError, match="a server of that name exists"):
        write_skeleton(name, load_catalog())


@pytest.mark.parametrize("name", ["", "../mine", "Mine", "mine.toml", "a--b", "x" * 65, "a b"])
def test_what_is_no_name_is_refused(folder, name):
    with pytest.raises(UsageError, match="expected a name of small letters"):
        write_skeleton(name, load_catalog())


def test_a_folder_that_cannot_be_made_is_told(folder):
    (folder / "file").touch()
    with pytest.raises(HostError, match="cannot write"):
        write_skeleton("yours", load_catalog(), folder / "file" / "prony.d")


# --- prony.d ----------------------------------------------------------------------------------------------


def test_entries_of_the_working_folder_are_listed(said):
    _, out, _ = said("servers")
    assert "mine*" in out


def test_they_are_own_and_were_not_asked_for(folder):
    catalog = load_catalog()
    assert catalog.unasked == catalog.own == {"mine"}


def test_one_that_is_given_too_was_asked_for(folder):
    catalog = load_catalog([Path("prony.d/mine.toml")])
    assert (catalog.own, catalog.unasked) == ({"mine"}, frozenset())
    assert load_catalog([folder / "prony.d"]).unasked == frozenset()


def test_without_names_they_are_not_checked(folder):
    catalog = load_catalog()
    assert "mine" not in names_to_check(catalog, ())
    assert names_to_check(catalog, ["mine"]) == ("mine", "mine-deep-queue")


@pytest.mark.parametrize("name", ["gunicorn", "gunicorn-gthread"])
def test_a_built_in_name_cannot_be_shadowed(folder, name):
    (folder / f"prony.d/{name}.toml").write_text(skeleton(name))
    with pytest.raises(UsageError, match=r"name that is not taken|is a server and a variant"):
        load_catalog()


def test_a_mistake_is_told_with_file_line_and_field(said, folder):
    file = folder / "prony.d/mine.toml"
    file.write_text(file.read_text().replace("default = 5", 'default = "many"'))
    status, _, err = said("servers")
    assert status == ExitCode.USAGE
    line = file.read_text().splitlines().index('default = "many"') + 1
    assert f"error: prony.d/mine.toml:{line} settings.backlog.default: found" in err


def test_a_studys_file_cannot_make_them_run(said, folder):
    (folder / "own.toml").write_text(STUDY)
    status, out, err = said("run", "own.toml", "--dry-run")
    assert (status, out) == (ExitCode.USAGE, "")
    assert "`own.toml` wants `mine` of this folder's `prony.d`" in err
    assert "--catalog prony.d/mine.toml" in err


def test_named_on_the_command_line_they_run(said, folder):
    (folder / "own.toml").write_text(STUDY)
    (folder / "shop.py").write_text("def app(environ, start_response): ...\n")
    status, out, err = said("run", "own.toml", "--dry-run", "--catalog", "prony.d/mine.toml")
    assert (status, err) == (0, "")
    assert "mine-deep-queue+hello" in out
    status, out, err = said("run", "--app", "shop:app", "--servers", "mine", "--dry-run")
    assert (status, err) == (0, "")
    assert "mine+shop" in out
