"""A unit that the machine has for an app's folder says how the app is served today."""

import os
from types import SimpleNamespace

import pytest

from prony.catalog.discover.current import ReadingAid
from prony.study import app_folder as units
from prony.study.app_folder import app_folder, current_of, program_of
from prony.study.own_app import said_of

APP = "def app(environ, start_response): ...\n"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A folder with an app, and the folders of this machine's units: one's system, and one's user."""
    shop, system, of_user = tmp_path / "srv" / "shop", tmp_path / "units", tmp_path / "users"
    for one in (shop, system, of_user):
        one.mkdir(parents=True)
    (shop / "shop.py").write_text(APP)
    managers = [((system, tmp_path / "lib"), "/root"), ((of_user,), str(tmp_path))]
    monkeypatch.setattr(units, "_managers", lambda: iter(managers))
    return SimpleNamespace(shop=shop, system=system, of_user=of_user, other=tmp_path / "lib")


def unit(*lines):
    return "\n".join(["[Unit]", "After=network.target", "[Service]", *lines, ""])


def today(machine):
    return current_of(machine.shop, ReadingAid()).current


def test_a_unit_that_works_in_the_folder_is_found_and_said(machine):
    file = machine.system / "shop.service"
    file.write_text(
        unit(
            f"WorkingDirectory={machine.shop}",
            f"EnvironmentFile=-{machine.shop}/../shop.env",
            f"ExecStart={machine.shop}/.venv/bin/gunicorn -w 3 -c {machine.shop}/g.py -b unix:/s shop:app",
        )
    )
    (machine.shop / "g.py").write_text("threads = 2\n")
    found = today(machine)
    assert (found.server, found.options["--workers"], found.options["--threads"]) == ("gunicorn", "3", "2")
    assert "g.py" in found.words
    assert said_of(found).startswith("yours: ")
    assert f"from `ExecStart` in {file}; left out: " in said_of(found)
    assert f"--env-file {machine.shop}/../shop.env" in said_of(found)


def test_a_program_is_started_as_its_unit_starts_it(machine):
    (machine.shop / "shop.py").unlink()
    (machine.shop / "server.js").write_text("require('http')")
    (machine.shop / "package.json").write_text('{"name": "shop", "scripts": {"start": "node other.js"}}')
    (machine.system / "shop.service").write_text(
        unit(f"WorkingDirectory={machine.shop}", "ExecStart=/usr/bin/node server.js --fast")
    )
    found = program_of(machine.shop, ".")
    assert found.source == f"`ExecStart` in {machine.system / 'shop.service'}"
    assert found.command[-2:] == ("server.js", "--fast")


@pytest.mark.parametrize("base", ["", "WorkingDirectory=/", "WorkingDirectory=/usr"])
def test_a_unit_that_starts_a_file_of_the_folder_is_of_it(machine, base):
    command = f"ExecStart={machine.shop}/.venv/bin/gunicorn --chdir {machine.shop} -w 5 shop:app"
    (machine.system / "shop.service").write_text(unit(base, command))
    found = today(machine)
    assert found.options["--workers"] == "5"
    assert any("`WorkingDirectory=/usr`" in left for left in found.left_out) == base.endswith("/usr")


def test_a_unit_in_the_apps_folder_goes_before_that_of_the_machine_and_this_before_guesses(machine):
    (machine.system / "shop.service").write_text(
        unit(f"WorkingDirectory={machine.shop}", "ExecStart=/usr/bin/gunicorn -w 5 shop:app")
    )
    (machine.shop / "Makefile").write_text("run:\n\tgunicorn -w 9 shop:app\n")
    assert today(machine).options["--workers"] == "5"
    (machine.shop / "shop.service").write_text(unit("ExecStart=/usr/bin/gunicorn -w 2 shop:app"))
    found = today(machine)
    assert (found.source, found.options["--workers"]) == ("`ExecStart` in shop.service", "2")
    assert any(str(machine.system) in one for one in found.also)


@pytest.mark.parametrize("place", ["elsewhere", "..", "../shop2", "missing"])
def test_a_unit_of_another_folder_is_not_taken(machine, place):
    (machine.shop.parent / "shop2").mkdir()
    base = machine.shop.parent / "elsewhere" if place == "elsewhere" else machine.shop / place
    beside = f"{machine.shop}2/bin/gunicorn"
    (machine.system / "other.service").write_text(
        unit(f"WorkingDirectory={base}", f"ExecStart={beside} -w 5 shop:app")
    )
    assert today(machine) is None


def test_a_unit_that_works_above_and_starts_a_file_of_the_folder_is_not_of_it(machine):
    (machine.system / "shop.service").write_text(
        unit(f"WorkingDirectory={machine.shop.parent}", f"ExecStart={machine.shop}/v/bin/gunicorn shop:app")
    )
    assert today(machine) is None


def test_a_folder_is_found_by_its_other_name_and_a_users_unit_by_the_home(machine):
    (machine.shop.parent / "current").symlink_to(machine.shop)
    (machine.of_user / "shop.service").write_text(
        unit(
            "WorkingDirectory=%h/srv/current",
            "ExecStart=%h/srv/current/.venv/bin/gunicorn -w 4 -c %h/srv/current/g.py shop:app",
        )
    )
    (machine.shop / "g.py").touch()
    found = today(machine)
    assert found.options["--workers"] == "4"
    assert "g.py" in found.words


def test_an_app_below_is_found_by_its_unit(machine):
    (machine.shop / "shop.py").unlink()
    for name in ("api", "backend"):
        (machine.shop / name).mkdir()
        (machine.shop / name / "main.py").write_text(APP)
    (machine.system / "shop.service").write_text(
        unit(f"WorkingDirectory={machine.shop}/backend", "ExecStart=/usr/bin/gunicorn -w 4 main:app")
    )
    assert app_folder(machine.shop, ".") == machine.shop / "backend"
    assert current_of(machine.shop / "backend", ReadingAid()).current.options["--workers"] == "4"


def test_what_is_dropped_in_is_read_too_and_one_of_two_units_of_a_name_counts(machine):
    machine.other.mkdir()
    for place, workers in ((machine.system, 3), (machine.other, 8)):
        (place / "shop.service").write_text(
            unit(f"WorkingDirectory={machine.shop}", f"ExecStart=/usr/bin/gunicorn -w {workers} shop:app")
        )
    assert today(machine).options["--workers"] == "3"
    dropped = machine.system / "shop.service.d"
    dropped.mkdir()
    (dropped / "override.conf").write_text(unit("ExecStart=", "ExecStart=/usr/bin/gunicorn -w 7 shop:app"))
    found = today(machine)
    assert found.options["--workers"] == "7"
    assert found.source.endswith("shop.service with override.conf")


@pytest.mark.parametrize("kind", ["masked", "huge", "closed", "folder", "pipe", "loop", "empty"])
def test_a_unit_that_cannot_be_read_is_passed_over(machine, kind):
    file = machine.system / "shop.service"
    text = unit(f"WorkingDirectory={machine.shop}", "ExecStart=/usr/bin/gunicorn -w 3 shop:app")
    match kind:
        case "masked":
            file.symlink_to("/dev/null")
        case "huge":
            file.write_text(text + "#" * (2 << 20))
        case "closed":
            if os.geteuid() == 0:
                pytest.skip("root can read it")
            file.write_text(text)
            file.chmod(0)
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "loop":
            file.symlink_to(file)
        case "empty":
            file.touch()
    assert today(machine) is None
