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
from prony.catalog.discover.renumbered import renumbered
from prony.catalog.discover.sources import Folder
from prony.catalog.discover.units import command_of_unit
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
    assert 'ExecStart="/srv/50%% $off/.venv/bin/gunicorn"' in unit


def test_a_unit_keeps_the_quotes_of_a_call():
    made = forms(Candidate("gunicorn", 2, 2), app="shop:create_app('live')")["systemd"]
    assert shlex.split(made.splitlines()[-1])[-1] == "shop:create_app('live')"


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
            "gunicorn --workers 2 --threads 8 -k gthread --timeout 120 --preload -b :80 shop:app",
        ),
        (
            "gunicorn -k uvicorn.workers.UvicornWorker shop:app",
            Candidate("gunicorn-uvicorn", 2),
            "gunicorn --workers 2 -k uvicorn.workers.UvicornWorker shop:app",
        ),
        (
            "uwsgi --http :80 -p 4 --harakiri 30 --module shop:app",
            Candidate("uwsgi", 2, 8),
            "uwsgi --processes 2 --threads 8 --http :80 --harakiri 30 --module shop:app",
        ),
        (
            "granian --interface wsgi --workers 4 --no-ws shop:app",
            Candidate("granian", 2, 8),
            "granian --workers 2 --blocking-threads 8 --interface wsgi --no-ws shop:app",
        ),
        (
            "MODE=live gunicorn -w4 -b unix:/run/shop.sock --user shop --access-logfile /var/a.log shop:app",
            Candidate("gunicorn", 2, 8),
            "MODE=live gunicorn --workers 2 --threads 8 -b unix:/run/shop.sock --user shop "
            "--access-logfile /var/a.log shop:app",
        ),
        (
            "cd src && exec python -m gunicorn --workers=4 'shop:create_app(\"a b\")' >> a 2>&1",
            Candidate("gunicorn", 2, 8),
            "cd src && exec python -m gunicorn --workers 2 --threads 8 'shop:create_app(\"a b\")' >> a 2>&1",
        ),
        (
            "uvicorn --port $PORT \\\n  --workers ${N:-2} shop:app",
            Candidate("uvicorn", 3),
            "uvicorn --workers 3 --port $PORT shop:app",
        ),
    ],
)
def test_the_words_of_today_stay_with_other_numbers(typed, one, shell):
    recipe = recipe_of(one, "shop:app", "wsgi", today=current(typed))
    assert recipe.shell == shell
    assert read_command(recipe.shell) == one


@pytest.mark.parametrize(
    "text", ["./start.sh uwsgi.ini", "python serve.py", "uwsgi --ini a.ini -p 4", "uwsgi a.ini"]
)
def test_what_has_its_numbers_in_a_file_of_its_own_has_no_text_with_others(text):
    assert renumbered("uwsgi", text, {"--processes": 2}) is None


def found_in(files):
    """What runs today by the files of a folder."""
    return find_current(Folder(files.get, lambda path: [] if path else list(files)), ReadingAid()).current


def over(files):
    """The forms of other settings than those of today."""
    recipe = recipe_of(Candidate("gunicorn", 2, 8), "shop:app", "wsgi", today=found_in(files))
    return dict(recipe.forms("/srv/shop"))


def test_a_unit_of_today_keeps_all_else_that_it_has():
    start = "ExecStart=/srv/a/bin/gunicorn{} --access-logformat '%%(h)s' -b unix:/run/shop.sock shop:app"
    unit = f"[Service]\nUser=shop\n{start.format(' -w 4')}\n"
    made = over({"shop.service": unit})["systemd"]
    assert made.splitlines()[1:] == ["[Service]", "ExecStart=", start.format(" --workers 2 --threads 8")]
    again = command_of_unit({}.get, "shop.service", unit + made)
    assert read_command(again.text) == Candidate("gunicorn", 2, 8)


@pytest.mark.parametrize(
    ("command", "form"),
    [
        (
            'ENTRYPOINT ["gunicorn"]\nCMD ["-w", "4", "-b", "0.0.0.0:5000", "shop:app"]',
            'ENTRYPOINT []\nCMD ["gunicorn", "--workers", "2", "--threads", "8", "-b", "0.0.0.0:5000", '
            '"shop:app"]\n',
        ),
        (
            "CMD gunicorn -w 4 -b :$PORT shop:app",
            "CMD gunicorn --workers 2 --threads 8 -b :$PORT shop:app\n",
        ),
        (
            'CMD ["gunicorn", "--forwarded-allow-ips", "*", "shop:app"]',
            'CMD ["gunicorn", "--workers", "2", "--threads", "8", "--forwarded-allow-ips", "*", '
            '"shop:app"]\n',
        ),
    ],
)
def test_the_command_of_an_image_is_its_own_and_not_behind_its_entry(command, form):
    image = f"FROM python\n{command}\n"
    made = over({"Dockerfile": image})["Dockerfile"]
    assert made == form
    assert read_command(found_in({"Dockerfile": image + made}).text) == Candidate("gunicorn", 2, 8)


def test_a_procfile_of_today_keeps_its_words():
    made = over({"Procfile": "web: gunicorn -w 4 --bind unix:/tmp/a shop:app\n"})["Procfile"]
    assert made == "web: gunicorn --workers 2 --threads 8 --bind unix:/tmp/a shop:app\n"


def test_a_form_is_not_its_own_where_something_stands_around_the_command():
    made = over({"Procfile": "web: sh -c 'gunicorn -w 4 --timeout 9 shop:app'\n"})["Procfile"]
    assert made == "web: gunicorn --bind 0.0.0.0:$PORT --timeout 9 --workers 2 --threads 8 shop:app\n"
    unit = "[Service]\nExecStart=/bin/sh -c 'gunicorn -w 4 shop:app'\n"
    assert "ExecStart=/srv/shop/.venv/bin/gunicorn --bind" in over({"shop.service": unit})["systemd"]


def test_what_wins_over_a_configuration_and_over_variables_stands_above_them():
    made = over({"Procfile": "web: gunicorn -w 4 -c a.py shop:app\n", "a.py": "preload_app = True\n"})
    wins = "# without --workers in the command, which would win\n"
    assert made["gunicorn.conf.py"].startswith(f"# other lines of a.py stay\n{wins}workers = 2\n")
    assert made["environment"].startswith(f"{wins}WEB_CONCURRENCY=2\n")
    made = over({"Procfile": "web: gunicorn -c a.py shop:app\n", "a.py": "workers = 3\n"})
    assert made["environment"].startswith("# unless a.py says otherwise\n")
    image = "FROM python\nENV WEB_CONCURRENCY=5\nCMD gunicorn -c a.py shop:app\n"
    made = over({"Dockerfile": image, "a.py": "workers = 3\n"})
    assert made["environment"].startswith("# unless a.py says otherwise\n")
    assert over({"Dockerfile": image, "a.py": ""})["environment"].startswith("WEB_CONCURRENCY=2\n")


@pytest.mark.parametrize(
    ("name", "key", "text", "changed"),
    [
        (
            "uwsgi.ini",
            "workers",
            "[uwsgi]\nmodule = shop:app\nworkers = 4\nharakiri = 30\n",
            "# other lines of uwsgi.ini stay\nworkers = 2\nthreads = 8\n",
        ),
        (
            "conf/uwsgi.yaml",
            "processes",
            "uwsgi:\n  module: shop:app\n  harakiri: 30\n",
            "# other lines of conf/uwsgi.yaml stay\n  processes: 2\n  threads: 8\n",
        ),
        (
            "a.json",
            "processes",
            '{"uwsgi": {"module": "shop:app", "threads": 2}}',
            '"processes": 2,\n"threads": 8,\n',
        ),
        (
            "a.xml",
            "processes",
            "<uwsgi><module>shop:app</module></uwsgi>",
            "<processes>2</processes>\n<threads>8</threads>\n",
        ),
    ],
)
def test_what_has_its_numbers_in_a_file_of_uwsgis_is_told_the_lines_of_that(name, key, text, changed):
    files = {name: text, "Procfile": f"web: uwsgi {name}\n"}
    recipe = recipe_of(Candidate("uwsgi", 2, 8), "shop:app", "wsgi", today=found_in(files))
    assert dict(recipe.forms("/srv/shop")) == {name: changed}
    assert recipe.shell == f"uwsgi {name}  # with {key} = 2, threads = 8 in {name}"
    if name.endswith((".ini", ".yaml")):
        again = found_in({**files, name: text.replace("workers = 4\n", "") + changed})
        assert processes_and_threads(again, KNOWN) == (2, 8)


def test_numbers_beside_a_file_of_uwsgis_have_a_command_of_their_own():
    files = {"a.ini": "[uwsgi]\nmodule = shop:app\n", "Procfile": "web: uwsgi --ini a.ini -p 4\n"}
    recipe = recipe_of(Candidate("uwsgi", 2, 8), "shop:app", "wsgi", today=found_in(files))
    assert "--processes 2 --threads 8" in recipe.shell
    assert "Procfile" in dict(recipe.forms("/srv/shop"))


@pytest.mark.parametrize("counted", ["$(nproc)", "$((2 * $(nproc) + 1))", '"$(nproc --all)"', "`nproc`"])
def test_a_number_that_a_shell_counts_goes_with_its_option(counted):
    image = f"FROM python\nCMD gunicorn -w {counted} --timeout 9 shop:app\n"
    made = over({"Dockerfile": image})["Dockerfile"]
    assert made == 'CMD ["gunicorn", "--workers", "2", "--threads", "8", "--timeout", "9", "shop:app"]\n'


@pytest.mark.parametrize(
    ("program", "variable"), [("uvicorn", "UVICORN_WORKERS"), ("uwsgi --http :80 -w", "UWSGI_WORKERS")]
)
def test_the_variable_that_says_a_number_today_is_the_one_that_is_written(program, variable):
    found = found_in({"Dockerfile": f"FROM python\nENV {variable}=3\nCMD {program} shop:app\n"})
    assert processes_and_threads(found, KNOWN)[0] == 3
    made = recipe_of(Candidate(found.server, 2), "shop:app", "asgi", today=found).forms("/srv/shop")
    assert dict(made)["environment"] == f"{variable}=2\n"


def test_what_else_stands_in_a_variable_of_options_stays_there():
    image = (
        "FROM python\nENV GUNICORN_CMD_ARGS='--timeout 90 --threads 2 --workers 4'\nCMD gunicorn shop:app\n"
    )
    lines = shlex.split(over({"Dockerfile": image})["environment"], comments=True)
    assert "GUNICORN_CMD_ARGS=--workers 2 --threads 8 --timeout 90" in lines


def test_a_configuration_that_could_not_say_all_of_today_is_none():
    def has_file(typed):
        recipe = recipe_of(Candidate("gunicorn", 2, 8), "shop:app", "wsgi", today=current(typed))
        return "gunicorn.conf.py" in dict(recipe.forms("/srv"))

    assert has_file("gunicorn -k gthread -w 4 shop:app")
    assert not has_file("gunicorn --preload shop:app")
