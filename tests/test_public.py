"""What users and their scripts rely on: commands, options, exit codes, names of quantities."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

from prony.cli.main import COMMANDS, app_with
from prony.core.errors import ExitCode
from prony.core.glossary import TERMS
from prony.core.metrics import METRICS

GOLDEN = Path(__file__).parent / "golden" / "cli"
NAMES = list(COMMANDS)


def parameters(name):
    return get_command(app_with()).commands[name].params


def described(name):
    """Return a command's arguments and options, one a line, as they are typed."""
    lines = []
    for parameter in parameters(name):
        names = [*parameter.opts, *parameter.secondary_opts]
        kind = "argument" if parameter.param_type_name == "argument" else "option"
        lines.append(f"{kind} {' '.join(names)}{' (repeated)' if parameter.multiple else ''}")
    return "\n".join(sorted(lines)) + "\n"


def compare(file, text, update):
    path = GOLDEN / file
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"public names have changed; see --update-golden and {path.name}"


@pytest.fixture(scope="module")
def help_of():
    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "prony", *arguments, "--help"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "COLUMNS": "110", "NO_COLOR": "1"},
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


def test_the_commands_have_their_names(update_golden):
    compare("commands.txt", "\n".join(sorted(NAMES)) + "\n", update_golden)


@pytest.mark.parametrize("name", NAMES)
def test_a_commands_options_have_their_names(name, update_golden):
    compare(f"{name}.txt", described(name), update_golden)


def test_quantities_have_their_names_units_and_directions(update_golden):
    rows = [f"{metric.name} {metric.unit} {metric.better}" for metric in METRICS.values()]
    compare("metrics.txt", "\n".join(sorted(rows)) + "\n", update_golden)


def test_exit_codes_have_their_numbers(update_golden):
    compare("exit_codes.txt", "".join(f"{code.value} {code.name}\n" for code in ExitCode), update_golden)


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_shows_examples_of_it(help_of, name):
    shown = help_of(name)
    examples = shown.partition("Examples:")[2]
    assert f"prony {name}" in examples
    assert "\x1b" not in shown


@pytest.mark.parametrize("name", ["run", "load", "report", "compare", "selftest", "calibrate"])
def test_the_help_of_a_main_command_ends_with_the_terms_that_it_uses(help_of, name):
    last = " ".join(help_of(name).rpartition("\n\n")[2].split())
    assert last.startswith("Terms (docs/glossary.md): ")
    assert set(last.partition(": ")[2].split(", ")) <= set(TERMS)


PANELS = {
    "run": [
        *("What to measure", "Your own app", "Load", "Requests", "Requests from files", "Valid replies"),
        *("How sure", "Sandbox", "Output"),
    ],
    "load": [
        "Load",
        "Requests",
        "Protocol",
        "Requests from files",
        "Names and ways",
        "TLS",
        "Valid replies",
        "Failing",
        "Two servers",
        "Several generators",
        "Output",
    ],
}


@pytest.mark.parametrize("name", PANELS)
def test_the_help_groups_options_by_what_they_are_about(help_of, name):
    headings = re.findall(r"^(\S[^\n]*):$", help_of(name).partition("Examples:")[0], re.MULTILINE)
    assert headings == ["Arguments", *PANELS[name], "Options"]


def test_the_help_explains_every_exit_status(help_of):
    told = help_of().partition("Exit status:")[2]
    assert all(re.search(rf"^ +{code.value}  \w", told, re.MULTILINE) for code in ExitCode)


def test_the_help_lists_every_command(help_of):
    shown = help_of()
    assert all(re.search(rf"^  {name} +\w", shown, re.MULTILINE) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_explained(name):
    assert [parameter.name for parameter in parameters(name) if not getattr(parameter, "help", None)] == []


@pytest.mark.parametrize("name", NAMES)
def test_examples_use_options_that_there_are(name):
    module = import_module(f"prony.cli.{name}")
    examples = "\n".join(re.findall(rf"prony {name}\b.*", module.EPILOG))
    used = set(re.findall(r"(?<!\S)(--?[a-zA-Z](?:[\w-]|\.\d)*)", examples))
    known = {
        option for parameter in parameters(name) for option in (*parameter.opts, *parameter.secondary_opts)
    }
    assert used - known == set()
    assert getattr(module, name).__doc__
