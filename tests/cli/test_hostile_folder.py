"""A folder that somebody else can write: what lies in it is neither executed, followed nor removed."""

import ast
import os
import subprocess
from pathlib import Path

import pytest

from golden import build
from modules import ROOT as PACKAGE
from prony.core import atomic_files as drafts
from prony.core.version import own_command

TOKEN = "0123456789abcdef"
# What Prony and Python import early, and what they import late.
SHADOWED = (
    "prony",
    "typer",
    "rich",
    "json",
    "socket",
    "sqlite3",
    "numpy",
    "vl_convert",
    "encodings",
    "sitecustomize",
)
VICTIM = "not to be touched\n"


@pytest.fixture
def archive(folder):
    return build.study_two(folder / "s.prony")


@pytest.fixture
def foreseen(monkeypatch):
    """Let the name of each draft be known before."""
    monkeypatch.setattr(drafts.secrets, "token_hex", lambda _bytes: TOKEN)


def shadowed(folder):
    """Put modules into a folder which say that they were executed."""
    ran = folder / "ran"
    for name in SHADOWED:
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write({name!r} + chr(10))\n")
    (folder / "venv.py").write_text(f"open({str(ran)!r}, 'a').write('venv')\n")
    return ran


@pytest.mark.parametrize(
    "start", [[str(PACKAGE.parents[1] / "prony")], own_command()], ids=["clone", "own command"]
)
def test_no_module_of_the_folder_is_executed(archive, folder, start):
    ran = shadowed(folder)
    for words in (["studies"], ["report", archive.name], ["report", archive.name, "--html", "a.html"]):
        done = subprocess.run([*start, *words], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert not ran.exists()


def test_prony_starts_itself_in_one_way():
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.List):
                words = [one.value for one in node.elts if isinstance(one, ast.Constant)]
                found += [path.name] if {"-m", "prony"} <= set(words) else []
    assert found == ["version.py"]


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_what_lies_in_the_place_of_a_draft_is_left_alone(said, archive, folder, foreseen, kind, option):
    victim, draft = folder / "victim", folder / f".{TOKEN}.unfinished"
    victim.write_text(VICTIM)
    if kind == "link":
        draft.symlink_to(victim)
    elif kind == "hard link":
        os.link(victim, draft)
    else:
        os.mkfifo(draft)
    done = said("report", archive, option, folder / "out")
    assert (done.status, "cannot write" in done.err) == (2, True)
    assert victim.read_text() == VICTIM
    assert os.path.lexists(draft)
    assert not (folder / "out").exists()


def test_a_name_that_an_earlier_prony_gave_its_drafts_is_nothing_to_this_one(said, archive, folder):
    victim, planted = folder / "victim", folder / ".out.html.unfinished"
    victim.write_text(VICTIM)
    planted.symlink_to(victim)
    assert said("report", archive, "--html", folder / "out.html").status == 0
    assert (victim.read_text(), planted.is_symlink()) == (VICTIM, True)
    assert not (folder / "out.html").is_symlink()


@pytest.mark.parametrize("option", ["--site", "--csv", "--figures"])
def test_a_folder_beside_the_one_to_make_is_kept(said, archive, folder, option):
    (folder / ".out.unfinished").mkdir()
    (folder / ".out.unfinished" / "mine").touch()
    (folder / "out").mkdir()
    (folder / "out" / "a").touch()
    done = said("report", archive, option, folder / "out")
    assert (done.status, "exists already" in done.err) == (2, True)
    assert (folder / ".out.unfinished" / "mine").exists()


def test_a_name_may_be_as_long_as_the_file_system_allows(said, archive, folder):
    out = folder / ("a" * 255)
    assert said("report", archive, "--markdown", out).status == 0
    assert out.exists()


def test_a_file_that_is_replaced_keeps_its_mode(said, archive, folder):
    out = folder / "a.md"
    out.touch(mode=0o600)
    assert said("report", archive, "--markdown", out).status == 0
    assert out.stat().st_mode & 0o777 == 0o600


def test_names_that_are_no_text_have_pages_and_links(said, folder):
    sources = folder / "archives"
    sources.mkdir()
    for name in (b"a\xff.prony", b"javascript:alert(1).prony", b"a#b?c%41.prony"):
        build.study_two(Path(os.fsdecode(bytes(sources) + b"/" + name)))
    done = said("report", sources, "--site", folder / "site")
    assert done.status == 0, done.err
    index = (folder / "site" / "index.html").read_text("utf-8")
    for link in ("./a%FF.html", "./javascript%3Aalert%281%29.html", "./a%23b%3Fc%2541.html"):
        assert f'href="{link}"' in index


def test_a_site_from_a_folder_that_is_gone_is_refused(said, archive, folder, monkeypatch):
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = said("report", archive, "--site", "site")
    assert (done.status, "cannot write" in done.err) == (2, True)
