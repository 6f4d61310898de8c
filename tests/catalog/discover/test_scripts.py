"""Scripts in Python that start a server: the same as a command, by the call and by the project's names."""

import pytest

from catalog.discover.test_current import typed
from catalog.discover.test_programs import folder
from prony.catalog.discover.current import ReadingAid, find_current
from prony.catalog.discover.scripts import of_project, served_by
from prony.catalog.discover.sources import Sources

FLASK = "from flask import Flask\nimport os, uvicorn, waitress\ndef create_app():\n    return Flask('x')\n"
GUARD = "if __name__ == '__main__':\n    "
# By the end of `shop.py`: the command, and the processes.
SERVES = {
    "uvicorn.run(app, port=80, access_log=False, reload=False, log_config=None, workers=3)": (
        "uvicorn shop:app --no-access-log --workers 3",
        "3",
    ),
    "waitress.serve(create_app(), listen='*:80', threads=8, expose_tracebacks=True)": (
        "waitress-serve --call shop:create_app --threads=8 --expose-tracebacks",
        "",
    ),
    "app = create_app()\n    uvicorn.run(app)": ("uvicorn --factory shop:create_app", ""),
    "app.run(host='0.0.0.0', port=80, debug=True)": ("flask --app shop:app run --debug", ""),
    "socketio = SocketIO(app)\n    socketio.run(app, port=80)": ("flask --app shop:app run", ""),
    "site = create_app()\n    site.run()": ("flask --app shop:create_app run", ""),
}


@pytest.mark.parametrize("end", SERVES)
def test_what_a_script_starts_is_a_command_of_the_same_server(end):
    shop = f"{FLASK}app = create_app()\n{GUARD}{end}\n"
    found = served_by(Sources({"shop.py": shop}.get), "shop")
    assert (found.text, found.workers) == SERVES[end]


def test_arguments_that_are_computed_are_named():
    shop = f"{FLASK}app = create_app()\nuvicorn.run(app, workers=os.cpu_count())\n"
    found = served_by(Sources({"shop.py": shop}.get), "shop")
    assert (found.text, found.left_out) == ("uvicorn shop:app", ("`workers` in shop.py",))


@pytest.mark.parametrize("end", ["asyncio.run(main())", "loop.run()", "uvicorn.run(made(os.environ))"])
def test_what_starts_no_app_that_is_known_is_none(end):
    assert served_by(Sources({"shop.py": f"{FLASK}{GUARD}{end}\n"}.get), "shop") is None


def test_a_script_at_a_fixed_port_is_the_servers_command_and_that_is_said():
    files = {"shop.py": f"{FLASK}app = create_app()\n{GUARD}uvicorn.run(app, port=80)\n"}
    found = typed("python shop.py", files)
    assert (found.server, found.words, found.text) == ("uvicorn", ("{app}",), "python shop.py")
    assert found.left_out == ("`shop.py`, whose port is fixed: `uvicorn shop:app` in its place",)


def test_a_script_that_is_given_its_port_is_started_as_it_is():
    shop = f"{FLASK}app = create_app()\n{GUARD}uvicorn.run(app, port=int(os.environ['PORT']), workers=2)\n"
    found = typed("python shop.py", {"shop.py": shop})
    assert (found.words, found.target) == (("{python}", "shop.py"), "shop:app")
    assert found.options["--workers"] == "2"
    assert typed("python shop.py --port 80", {"shop.py": FLASK}).words[-2:] == ("--port", "{port}")


def test_a_script_of_the_project_that_serves_is_todays_where_nothing_else_says_it():
    project = "[project.scripts]\ncheck = 'shop.web:check'\nserve = 'shop.web:main'\n"
    web = f"{FLASK}app = create_app()\ndef main():\n    uvicorn.run(app, port=80, workers=2)\n"
    files = {"pyproject.toml": project, "shop/web.py": web}
    found = find_current(folder(files), ReadingAid()).current
    assert (found.source, found.server) == ("the script `serve` of the project", "uvicorn")
    assert (found.target, found.options["--workers"]) == ("shop.web:app", "2")
    files["shop/web.py"] = web.replace("80", "int(os.environ['PORT'])")
    assert find_current(folder(files), ReadingAid()).current.words[:2] == ("{python}", "-c")
    # A command of another name may want a word more.
    files["pyproject.toml"] = project.replace("serve", "shop")
    assert find_current(folder(files), ReadingAid()).current is None
    files = {"pyproject.toml": "[tool.pdm.scripts]\ntest = 'pytest'\nstart = 'gunicorn shop:app'\n"}
    assert find_current(folder(files), ReadingAid()).current.target == "shop:app"


PROJECTS = {
    "poetry run up -q": (
        "[tool.poetry.scripts]\nup = 'shop.web:main'",
        "python -c 'import shop.web; shop.web.main()' -q",
    ),
    "uv run --frozen up": ("[project.scripts]\nup = 'shop:main'", "python -c 'import shop; shop.main()'"),
    "up": ("[project.scripts]\nup = 'shop:main'", "python -c 'import shop; shop.main()'"),
    "pdm run up": ("[tool.pdm.scripts.up]\ncmd = ['gunicorn', 'shop:app']", "gunicorn shop:app"),
    "hatch run prod:up": (
        "[tool.hatch.envs.prod.scripts]\nup = ['a b', 'gunicorn shop:app']",
        "gunicorn shop:app",
    ),
    "uv run --no-dev -m shop": ("", "python -m shop"),
    "uv run shop.py": ("", "python shop.py"),
    "poetry run gunicorn shop:app": ("", "poetry run gunicorn shop:app"),
}


@pytest.mark.parametrize("text", PROJECTS)
def test_a_script_that_a_project_names_is_what_it_runs(text):
    project, command = PROJECTS[text]
    assert of_project({"pyproject.toml": project}.get, text) == command
    assert of_project({"pyproject.toml": "["}.get, "up") == "up"
