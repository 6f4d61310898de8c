"""What is loaded before Prony knows what it is asked for."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from prony import __main__, _engine
from prony.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent.parent
# What `prony --version` prints, then all modules that it loaded and no interpreter has by itself.
SCRIPT = """
import json, sys
before = set(sys.modules)
sys.argv = ["prony", "--version"]
from prony.__main__ import main
try:
    main()
finally:
    loaded = set(sys.modules) - before
    print(json.dumps(sorted(name for name in loaded if name.split(".")[0] not in sys.stdlib_module_names)))
"""


@pytest.fixture(scope="module")
def told():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_version_is_the_engines(told):
    assert told[0] == f"prony {_engine.__version__}"


def test_the_version_loads_no_command_and_no_package(told):
    assert json.loads(told[1]) == ["prony", "prony.__main__", "prony._engine"]


def test_the_installed_command_starts_where_python_m_starts():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["prony"]
    (installed,) = entry_points(group="console_scripts", name="prony")
    assert installed.value == declared
    assert installed.load() is __main__.main


LOAD = """
import json, sys
from prony.engine.process import LocalEngine
def run(*_):
    print(json.dumps(sorted(sys.modules)), flush=True)
    sys.exit()
LocalEngine.run = run
sys.argv = ["prony", "load", "http://127.0.0.1:1/", "-c", "1", "-d", "1s"]
from prony.__main__ import main
main()
"""


def test_a_load_begins_without_what_studies_need():
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "prony.cli.load_progress" in loaded
    assert loaded.isdisjoint({"numpy", "scipy", "prony.study"})


HELP = """
import json, sys
before = {name.split(".")[0] for name in sys.modules} | set(sys.stdlib_module_names)
sys.argv = ["prony", *sys.argv[1:]]
from prony.__main__ import main
try:
    main()
finally:
    names = {name.split(".")[0] for name in sys.modules} - before
    print(json.dumps(sorted(names | {name for name in sys.modules if name.startswith("prony.cli.")})))
"""
# Typer and what it needs.
LIGHT = {"annotated_doc", "prony", "shellingham", "typer", "typing_extensions"}


def loaded_by(*words):
    done = subprocess.run([sys.executable, "-c", HELP, *words], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_list_of_commands_imports_none_of_them():
    packages = {name for name in loaded_by("--help") if "." not in name}
    assert packages <= LIGHT
    assert not any(name == f"prony.cli.{command}" for name in loaded_by("--help") for command in COMMANDS)


@pytest.mark.parametrize("command", ["load", "run", "why", "report"])
def test_the_help_of_a_command_imports_no_package_but_typer(command):
    assert {name for name in loaded_by(command, "--help") if "." not in name} <= LIGHT
