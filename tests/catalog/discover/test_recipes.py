"""Each form of the settings, read back by what reads it."""

import ast
import configparser
import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.catalog.discover.current import ReadingAid, find_current
from prony.catalog.discover.recipes import recipe_of
from prony.catalog.discover.sources import Folder
from prony.catalog.discover.written import written_commands
from prony.catalog.schema.loader import load_catalog
from prony.study.equal_share import processes_and_threads
from prony.tune.space import Candidate

counts = st.integers(1, 512)
chosen = st.one_of(
    st.builds(Candidate, st.sampled_from(["gunicorn", "granian", "uwsgi"]), counts, counts),
    st.builds(
        Candidate, st.sampled_from(["uvicorn", "hypercorn", "gunicorn-uvicorn", "gunicorn-gevent"]), counts
    ),
    st.builds(Candidate, st.sampled_from(["waitress", "cheroot"]), st.none(), counts),
)


KNOWN = load_catalog(())


def read_command(text):
    """The candidate that a command starts, as `prony run` reads what runs today."""
    found = find_current(Folder({}.get, lambda path: []), ReadingAid(text)).current
    processes, threads = processes_and_threads(found, KNOWN)
    settings = KNOWN.servers[found.server].settings
    has_workers = {"workers", "processes"} & set(settings)
    return Candidate(found.server, processes if has_workers else None, threads)


def forms(one, folder="/srv/shop"):
    return dict(recipe_of(one, "shop:app", "wsgi").forms(folder))


@given(chosen)
def test_a_command_line_is_read_back(one):
    recipe = recipe_of(one, "shop:app", "wsgi")
    assert read_command(recipe.shell) == one


@given(chosen)
def test_a_procfile_is_read_back_and_listens_where_the_platform_says(one):
    files = {"Procfile": forms(one)["Procfile"]}
    (command,) = written_commands(Folder(files.get, lambda path: [] if path else list(files)))
    assert read_command(command.text) == one
    assert "$PORT" in forms(one)["Procfile"]
    assert "'$PORT" not in forms(one)["Procfile"]


@given(chosen)
def test_the_command_of_a_container_is_read_back(one):
    words = json.loads(forms(one)["Dockerfile"].removeprefix("CMD "))
    assert read_command(shlex.join(words)) == one
    assert any("0.0.0.0" in word for word in words)


@given(chosen)
def test_a_unit_is_read_back(one):
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(forms(one)["systemd"])
    assert read_command(unit["Service"]["ExecStart"]) == one
    assert unit["Service"]["WorkingDirectory"] == "/srv/shop"


def test_a_unit_keeps_a_folder_with_signs_of_its_own():
    unit = forms(Candidate("gunicorn", 2, 2), "/srv/50% $off")["systemd"]
    assert "WorkingDirectory=/srv/50%% $off" in unit
    assert 'ExecStart="/srv/50%% $$off/.venv/bin/gunicorn"' in unit


def test_gunicorns_configuration_is_python():
    tree = ast.parse(forms(Candidate("gunicorn", 4, 8))["gunicorn.conf.py"])
    found = {one.targets[0].id: ast.literal_eval(one.value) for one in tree.body}
    assert found == {"workers": 4, "threads": 8}


@pytest.mark.parametrize(
    ("one", "variables"),
    [
        (Candidate("gunicorn", 4, 8), {"WEB_CONCURRENCY": "4", "GUNICORN_CMD_ARGS": "--threads 8"}),
        (Candidate("granian", 2, 16), {"GRANIAN_WORKERS": "2", "GRANIAN_BLOCKING_THREADS": "16"}),
        (Candidate("granian", 2), {"GRANIAN_WORKERS": "2"}),
        (Candidate("uvicorn", 3), {"WEB_CONCURRENCY": "3"}),
        (Candidate("uwsgi", 3, 2), {"UWSGI_PROCESSES": "3", "UWSGI_THREADS": "2"}),
    ],
)
def test_variables_are_read_back_by_a_shell(one, variables):
    lines = shlex.split(forms(one)["environment"])
    assert dict(line.split("=", 1) for line in lines) == variables


def test_a_server_without_a_form_of_its_own_has_none():
    assert recipe_of(Candidate("bjoern"), "shop:app", "wsgi") is None
    assert "environment" not in forms(Candidate("waitress", None, 8))
    assert "gunicorn.conf.py" not in forms(Candidate("granian", 2))
