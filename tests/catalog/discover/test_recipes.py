"""Each form of the settings, read back by what reads it."""

import ast
import configparser
import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.catalog.discover.configuration import python_values
from prony.catalog.discover.current import ReadingAid, find_current
from prony.catalog.discover.images import read_image
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


def current(text):
    """What a command starts, as `prony run` reads what runs today."""
    return find_current(Folder({}.get, lambda path: []), ReadingAid(text)).current


def read_command(text):
    """The candidate that a command starts."""
    found = current(text)
    processes, threads = processes_and_threads(found, KNOWN)
    settings = KNOWN.servers[found.server].settings
    has_workers = {"workers", "processes"} & set(settings)
    return Candidate(found.server, processes if has_workers else None, threads)


def forms(one, folder="/srv/shop", app="shop:app", root=""):
    return dict(recipe_of(one, app, "wsgi", root).forms(folder))


def commands(one, app, root=""):
    """The command, and that of each form that has one."""
    made = forms(one, app=app, root=root)
    unit = next(line for line in made["systemd"].splitlines() if line.startswith("ExecStart="))
    return {
        "shell": recipe_of(one, app, "wsgi", root).shell,
        "Procfile": made["Procfile"].removeprefix("web: ").rstrip(),
        "systemd": unit.removeprefix("ExecStart="),
        "Dockerfile": shlex.join(json.loads(made["Dockerfile"].partition("CMD ")[2])),
    }


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


@pytest.mark.parametrize("app", ["REPORTS.wsgi:application", "shop.PORT:app"])
@given(one=chosen)
def test_an_app_keeps_its_name_in_all_forms(one, app):
    assert {name: current(text).target for name, text in commands(one, app).items()} == dict.fromkeys(
        ("shell", "Procfile", "systemd", "Dockerfile"), app
    )


@pytest.mark.parametrize("server", ["gunicorn", "gunicorn-gevent", "granian", "uvicorn", "waitress", "uwsgi"])
def test_a_factory_is_called_in_all_forms(server):
    for text in commands(Candidate(server, 2, 2), "shop:create_app()").values():
        found = current(text)
        assert (found.target, found.call) == ("shop:create_app", "()"), text


def test_a_factory_that_a_server_cannot_call_has_no_form():
    assert recipe_of(Candidate("hypercorn", 2), "shop:create_app()", "wsgi") is None
    assert recipe_of(Candidate("uwsgi", 2, 2), "shop:create_app('live')", "wsgi") is None
    assert "create_app" in recipe_of(Candidate("gunicorn", 2, 2), "shop:create_app('live')", "wsgi").shell


@given(chosen)
def test_imports_begin_where_the_app_has_them(one):
    made = forms(one, root="src")
    recipe = recipe_of(one, "shop:app", "wsgi", "src")
    assert shlex.split(recipe.shell)[0] == "PYTHONPATH=src"
    assert shlex.split(made["Procfile"])[1] == "PYTHONPATH=src"
    assert 'Environment="PYTHONPATH=/srv/shop/src"' in made["systemd"].splitlines()
    image = read_image({"Dockerfile": f"FROM python\n{made['Dockerfile']}"}.get, "Dockerfile")
    assert image.environment["PYTHONPATH"] == "src"
    assert "PYTHONPATH=src" in made["environment"].splitlines()
    if "gunicorn.conf.py" in made:
        assert python_values(made["gunicorn.conf.py"], 1, {})["pythonpath"] == "src"


@given(st.integers(1, 9), st.integers(1, 9))
def test_uwsgi_listens_where_the_command_is_typed(workers, threads):
    found = current(recipe_of(Candidate("uwsgi", workers, threads), "shop:app", "wsgi").shell)
    assert found.options["--http11-socket"] == "127.0.0.1:8000"
    assert "its own protocol" not in " ".join(found.left_out)


@pytest.mark.parametrize(
    ("server", "worker_class"),
    [("gunicorn-uvicorn", "uvicorn_worker.UvicornWorker"), ("gunicorn-gevent", "gevent")],
)
def test_a_configuration_and_variables_have_the_class_too(server, worker_class):
    made = forms(Candidate(server, 2))
    assert python_values(made["gunicorn.conf.py"], 1, {}) == {"worker_class": worker_class, "workers": "2"}
    assert shlex.split(made["environment"])[-1] == f"GUNICORN_CMD_ARGS=--worker-class {worker_class}"


@pytest.mark.parametrize(
    ("typed", "one", "shell"),
    [
        (
            "gunicorn -w 4 -k gthread --timeout 120 --preload -b :80 shop:app",
            Candidate("gunicorn", 2, 8),
            "gunicorn -k gthread --timeout 120 --preload --workers 2 --threads 8 shop:app",
        ),
        (
            "gunicorn -k uvicorn.workers.UvicornWorker shop:app",
            Candidate("gunicorn-uvicorn", 2),
            "gunicorn -k uvicorn.workers.UvicornWorker --workers 2 shop:app",
        ),
        (
            "uwsgi --http :80 -p 4 --harakiri 30 --module shop:app",
            Candidate("uwsgi", 2, 8),
            "uwsgi --http 127.0.0.1:8000 --harakiri 30 --processes 2 --threads 8 --wsgi shop:app",
        ),
        (
            "granian --interface wsgi --workers 4 --no-ws shop:app",
            Candidate("granian", 2, 8),
            "granian --interface wsgi --no-ws --workers 2 --blocking-threads 8 shop:app",
        ),
    ],
)
def test_the_words_of_today_stay_with_other_numbers(typed, one, shell):
    recipe = recipe_of(one, "shop:app", "wsgi", today=current(typed))
    assert recipe.shell == shell
    assert read_command(recipe.shell) == one


def test_a_configuration_that_could_not_say_all_of_today_is_none():
    def has_file(typed):
        recipe = recipe_of(Candidate("gunicorn", 2, 8), "shop:app", "wsgi", today=current(typed))
        return "gunicorn.conf.py" in dict(recipe.forms("/srv"))

    assert has_file("gunicorn -k gthread -w 4 shop:app")
    assert not has_file("gunicorn --preload shop:app")
