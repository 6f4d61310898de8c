"""The command that runs today is read to the letter, from wherever a folder has it."""

import pytest

from catalog.discover.test_programs import folder
from prony.catalog.discover.compose import composed
from prony.catalog.discover.current import ReadingAid, find_current


def read(files, typed="", cpus=2, **variables):
    return find_current(folder(files), ReadingAid(typed, variables, cpus))


def typed(command, files=None, **variables):
    found = read(files or {}, command, **variables).current
    assert found is not None, read(files or {}, command, **variables).reason
    return found


# By the command: the catalogue's server, its words, and the app.
COMMANDS = {
    "gunicorn stall.web:app": ("gunicorn", ("{app}",), "stall.web:app"),
    "gunicorn -w 3 --threads=2 -t40 --preload config.wsgi": (
        "gunicorn",
        ("-w", "3", "--threads=2", "-t40", "--preload", "{app}"),
        "config.wsgi",
    ),
    "gunicorn --worker-class gevent --worker-connections 200 stall:app": (
        "gunicorn-gevent",
        ("--worker-class", "gevent", "--worker-connections", "200", "{app}"),
        "stall:app",
    ),
    "gunicorn -k uvicorn.workers.UvicornWorker -w 4 stall:api": (
        "gunicorn-uvicorn",
        ("-k", "uvicorn.workers.UvicornWorker", "-w", "4", "{app}"),
        "stall:api",
    ),
    "python3 -m uvicorn stall:api --workers 4 --no-access-log": (
        "uvicorn",
        ("{app}", "--workers", "4", "--no-access-log"),
        "stall:api",
    ),
    "hypercorn asgi:stall:api -w 2": ("hypercorn", ("{interface}:{app}", "-w", "2"), "stall:api"),
    "granian --interface asginl --workers 2 stall:api": (
        "granian",
        ("--interface", "asginl", "--workers", "2", "{app}"),
        "stall:api",
    ),
    "waitress-serve --threads=8 stall:app": ("waitress", ("--threads=8", "{app}"), "stall:app"),
    "python -m waitress --threads 8 stall:app": ("waitress", ("--threads", "8", "{app}"), "stall:app"),
    "daphne stall.asgi:application": ("daphne", ("{app}",), "stall.asgi:application"),
    "uwsgi --http-socket :80 -p 2 --die-on-term --module stall:app": (
        "uwsgi",
        ("-p", "2", "--die-on-term", "--wsgi", "{app}"),
        "stall:app",
    ),
    "uwsgi --http :80 --wsgi-file web/stall.py --callable api": (
        "uwsgi",
        ("--die-on-term", "--wsgi", "{app}"),
        "web.stall:api",
    ),
    "flask --app stall run -p 80": (
        "",
        ("{python}", "-m", "flask", "--app", "stall", "run", "--host", "{host}", "--port", "{port}"),
        "",
    ),
    "python -m flask run": (
        "",
        ("{python}", "-m", "flask", "run", "--host", "{host}", "--port", "{port}"),
        "",
    ),
    "fastapi run stall.py --workers 2": (
        "",
        (
            "{python}",
            "-m",
            "fastapi",
            "run",
            "stall.py",
            "--workers",
            "2",
            "--host",
            "{host}",
            "--port",
            "{port}",
        ),
        "",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_kept_to_the_letter_but_for_the_address(command):
    server, words, target = COMMANDS[command]
    found = typed(command)
    assert (found.server, found.words, found.target) == (server, words, target)


def test_a_script_of_the_folder_is_started_by_python():
    files = {"serve.py": "", "stall/__main__.py": ""}
    assert typed("python -u serve.py", files).words == ("{python}", "-u", "serve.py")
    assert typed("python3 -m stall", files).words == ("{python}", "-m", "stall")
    assert typed("python serve.py --port $PORT", {"serve.py": ""}).words == (
        "{python}",
        "serve.py",
        "--port",
        "{port}",
    )


def test_pythons_own_options_and_their_values_are_no_script():
    assert typed("python -X dev -W error serve.py", {"serve.py": "", "dev.py": ""}).words == (
        "{python}",
        "-X",
        "dev",
        "-W",
        "error",
        "serve.py",
    )
    found = typed("python -X dev -m gunicorn stall:app")
    assert (found.words, found.left_out) == (("{app}",), ("`-X dev` of Python",))


def test_a_script_that_is_a_program_is_started_by_python():
    found = typed("./manage.py runserver 0.0.0.0:80", {"manage.py": ""})
    assert found.words == ("{python}", "manage.py", "runserver", "{host}:{port}")
    assert typed("A=1 ./serve.py -q", {"serve.py": ""}).words == ("{python}", "serve.py", "-q")
    # What waits for another program starts the server behind it.
    assert typed("./wait.py db:5432 -- gunicorn stall:app", {"wait.py": ""}).server == "gunicorn"


COUNTED = {
    "gunicorn -w $(nproc) stall:app": "4",
    "gunicorn -w `nproc` stall:app": "4",
    "gunicorn -w $(nproc 2>/dev/null || echo 2) stall:app": "4",
    "gunicorn -w $((2 * $(nproc) + 1)) stall:app": "9",
    "gunicorn -w $(( ( $(getconf _NPROCESSORS_ONLN) + 1 ) * 2 )) stall:app": "10",
    "gunicorn -w ${WORKERS:-$(nproc)} stall:app": "4",
    "gunicorn -w $(shell nproc) stall:app": "4",
}


@pytest.mark.parametrize("command", COUNTED)
def test_the_number_of_cpus_is_filled_in_where_a_shell_asks_for_it(command):
    found = find_current(folder({}), ReadingAid(command, {}, 4)).current
    assert (found.words, found.left_out) == (("-w", COUNTED[command], "{app}"), ())


def test_the_number_of_cpus_is_filled_in_where_a_script_or_uwsgi_asks_for_it():
    script = "#!/bin/sh\nCOUNT=${COUNT:-$(( $(nproc) * 2 + 1 ))}\nexport WEB_CONCURRENCY=$(nproc)\n"
    start = {"Procfile": "web: ./go.sh"}
    found = read({**start, "go.sh": script + 'exec gunicorn -w "$COUNT" stall:app\n'}, cpus=4).current
    assert (found.words, found.environment) == (("-w", "9", "{app}"), {"WEB_CONCURRENCY": "4"})
    found = read({**start, "go.sh": script + "exec gunicorn stall:app\n"}, cpus=4).current
    assert found.options["--workers"] == "4"
    ini = "[uwsgi]\nmodule = stall:app\nprocesses = %k\n"
    assert typed("uwsgi a.ini", {"a.ini": ini}).options["--processes"] == "2"


def test_what_a_shell_runs_for_a_variable_is_not_passed_as_its_text():
    files = {"Procfile": "web: ./go.sh", "go.sh": "#!/bin/sh\nexport V=$(git log)\ngunicorn stall:app\n"}
    found = read(files).current
    assert (dict(found.environment), "`V`" in " ".join(found.left_out)) == ({}, True)


# By the command: the app, and where its imports begin.
TOOL_APPS = {
    "fastapi run service/http/entry.py": ("entry:app", "service/http"),
    "fastapi dev web/shop/pages.py --app site": ("shop.pages:site", "web"),
    "fastapi run": ("main:app", ""),
    "flask --app stall run": ("stall:create_app", ""),
    "flask --app 'stall:create_app(1)' run": ("stall:create_app", ""),
    "FLASK_APP=lib/board.py flask run": ("board:app", "lib"),
    "sanic stall:create_app --workers 2": ("stall:create_app", ""),
    "litestar --app main:app run": ("main:app", ""),
    "flask --app 'stall:create_app(secret())' run": ("", ""),
    "quart --app main run --port 80": ("main:app", ""),
    "QUART_APP=lib/board.py quart run": ("board:app", "lib"),
    "fastapi run --proxy-headers service/http/entry.py": ("entry:app", "service/http"),
}


@pytest.mark.parametrize("command", TOOL_APPS)
def test_the_app_of_a_frameworks_own_program_is_read(command):
    app, maker = "app = site = 1\n", "def create_app(): ...\n"
    files = {
        "service/http/entry.py": app,
        "web/shop/__init__.py": "",
        "web/shop/pages.py": app,
        "main.py": app,
    }
    found = typed(command, {**files, "stall.py": maker, "lib/board.py": app})
    assert (found.target, found.root) == TOOL_APPS[command]


def test_a_script_begins_imports_in_its_own_folder():
    end = "import uvicorn\nfrom parts import app\nif __name__ == '__main__':\n    uvicorn.run({}, port=80)\n"
    for app, target in (("app", "parts:app"), ("'main:app'", "main:app"), ("'web.main:app'", "web.main:app")):
        found = typed("python web/main.py", {"web/main.py": end.format(app), "web/parts.py": "app = 1"})
        assert (found.target, found.root) == (target, "" if "." in target else "web")
    found = typed("python web/main.py", {"web/main.py": ""})
    assert (found.script, found.root, found.words) == ("main", "web", ("{python}", "web/main.py"))


def test_imports_begin_where_pythonpath_says_and_what_lies_elsewhere_is_said():
    files = {"lib/web.py": "", "Procfile": "web: PYTHONPATH=/opt/x:.:lib gunicorn web:app"}
    found = read(files).current
    assert found.root == "lib"
    assert found.left_out == ("`/opt/x` in PYTHONPATH, which is not in the app's folder",)
    image = "WORKDIR /srv\nCOPY . .\nENV PYTHONPATH=/srv/lib\nCMD gunicorn web:app"
    assert read({"lib/web.py": "", "Dockerfile": image}).current.root == "lib"


def test_a_configuration_names_a_factory_with_its_call():
    found = typed("gunicorn", {"gunicorn.conf.py": "wsgi_app = \"shop:create_app('live')\"\n"})
    assert (found.target, found.call) == ("shop:create_app", "('live')")


def test_a_command_over_several_lines_is_said_in_one():
    unit = "[Service]\nExecStart=/bin/gunicorn \\\n    -w 4 \\ \n    stall:app\n"
    found = find_current(folder({"stall.service": unit}), ReadingAid()).current
    assert found.text == "/bin/gunicorn -w 4 stall:app"


def test_robyn_gets_the_address_in_variables_of_its_own():
    shop = "from robyn import Robyn\napp = Robyn(__file__)\napp.start(port=80)\n"
    for command in ("python shop.py --processes=2", "robyn shop.py --processes=2"):
        found = typed(command, {"shop.py": shop})
        assert found.words[-2:] == ("shop.py", "--processes=2")
        assert found.address == {"ROBYN_HOST": "{host}", "ROBYN_PORT": "{port}"}
    assert not typed("python shop.py", {"shop.py": ""}).address


def test_djangos_own_server_gets_the_address_as_a_word():
    found = typed("python manage.py runserver 0.0.0.0:80 --noreload", {"manage.py": ""})
    assert found.words == ("{python}", "manage.py", "runserver", "{host}:{port}", "--noreload")
    assert found.left_out == ("`0.0.0.0:80`",)


# Where a command stands, and what is said of its place.
PLACES = {
    "`web` in Procfile": {"Procfile": "release: true\nweb: gunicorn stall:app"},
    "`CMD` in Dockerfile": {
        "Dockerfile": 'FROM p AS a\nCMD ["gunicorn", "no:app"]\nFROM a\n# 1\nCMD gunicorn \\\n  stall:app'
    },
    "`ENTRYPOINT and CMD` in Containerfile": {
        "Containerfile": 'FROM python\nENTRYPOINT ["gunicorn"]\nCMD ["stall:app"]'
    },
    "`command` of `web` in compose.yaml": {
        "compose.yaml": "services:\n  db: {image: postgres}\n  web:\n    command: [gunicorn, 'stall:app']"
    },
    "`command` of `shop` in docker-compose.yml": {
        "docker-compose.yml": "services:\n  shop:\n    command: >\n      gunicorn\n      stall:app"
    },
    "`ExecStart` in deploy/stall.service": {
        "deploy/stall.service": "[Service]\nExecStart=a\nExecStart=\nExecStart=-/bin/gunicorn \\\n stall:app"
    },
    "start.sh, by `CMD` in Dockerfile": {
        "Dockerfile": 'FROM python\nCMD ["./start.sh"]',
        "start.sh": "#!/bin/sh\nset -e\nexec gunicorn stall:app\n",
    },
}


@pytest.mark.parametrize("source", PLACES)
def test_a_command_is_found_where_people_write_it(source):
    found = read(PLACES[source]).current
    assert found is not None
    assert (found.source, found.server, found.target, found.words) == (
        source,
        "gunicorn",
        "stall:app",
        ("{app}",),
    )


# A shell that is given its command as one word.
SHELLS = {
    "compose.yaml": 'services:\n  web:\n    command: sh -c "python m.py migrate && gunicorn stall:app"\n',
    "stall.service": "[Service]\nExecStart=/bin/bash -lc '. v/bin/activate && exec gunicorn stall:app'\n",
    "Procfile": "web: bash -o pipefail -c 'gunicorn stall:app | cat'\n",
    "Dockerfile": 'CMD sh -c "sleep 1; exec gunicorn stall:app"\n',
    "Containerfile": 'ENTRYPOINT ["sh", "-c"]\nCMD ["gunicorn stall:app"]\n',
    "Makefile": "run:\n\tA=1 sh -c \\\n\t\t'gunicorn stall:app'\n",
}


@pytest.mark.parametrize("file", SHELLS)
def test_what_a_shell_is_given_as_one_word_is_read_as_that_shell_reads_it(file):
    found = read({file: SHELLS[file]}).current
    assert (found.server, found.words, found.target) == ("gunicorn", ("{app}",), "stall:app")


def test_a_shell_may_be_typed_and_may_have_several_lines():
    assert typed("sh -c 'A=1 gunicorn stall:app'").target == "stall:app"
    image = {"compose.yaml": 'services: {a: {command: [sh, -c, "python go.py\\ngunicorn stall:app"]}}'}
    assert read({**image, "go.py": ""}).current.left_out == ("`python go.py`, which is not run",)


def test_a_script_of_the_folders_own_with_the_name_of_an_images_is_read():
    image = 'ENTRYPOINT ["./docker-entrypoint.sh"]\n{}'
    serves = "#!/bin/sh\npython manage.py migrate\nexec gunicorn stall:app\n"
    found = read({"Dockerfile": image.format(""), "docker-entrypoint.sh": serves}).current
    assert (found.server, found.left_out) == ("gunicorn", ("the rest of docker-entrypoint.sh",))
    handing = {"docker-entrypoint.sh": '#!/bin/sh\npython manage.py migrate\nexec "$@"\n'}
    found = read({"Dockerfile": image.format("CMD gunicorn stall:app"), **handing}).current
    assert found.left_out == ("`./docker-entrypoint.sh`, which is not run",)
    # That of an image prepares nothing of the app's.
    assert read({"Dockerfile": image.format("CMD gunicorn stall:app")}).current.left_out == ()


@pytest.mark.parametrize("name", ["start.sh", "bin/start", "scripts/run.sh"])
def test_a_script_that_people_start_by_hand_is_todays_where_nothing_else_says_it(name):
    text = '#!/bin/sh\ncd "$(dirname "$0")"\nexport MODE=live\nexec gunicorn -w 2 stall:app\n\n'
    found = read({name: text}).current
    assert (found.source, found.words, found.environment) == (name, ("-w", "2", "{app}"), {"MODE": "live"})
    assert read({name: text, "Procfile": "web: uvicorn stall:api"}).current.also == ()
    assert read({name: "#!/bin/sh\ngunicorn stall:app &\n./backup.sh\n"}).current is None


HANDS_ON = "#!/bin/sh\npython manage.py migrate\npython -m flask db upgrade\npython fill.py\n{}\n"


@pytest.mark.parametrize("end", ['exec "$@"', "exec supervisord -n"])
def test_what_a_script_prepares_is_not_what_serves(end):
    entry = {
        "Dockerfile": 'ENTRYPOINT ["./go.sh"]',
        "go.sh": HANDS_ON.format(end),
        "manage.py": "",
        "fill.py": "",
    }
    assert read(entry).current is None
    compose = "services: {a: {command: gunicorn stall:app}}"
    assert read({**entry, "compose.yaml": compose}).current.server == "gunicorn"


def test_a_server_above_the_end_of_a_script_counts():
    entry = HANDS_ON.format('[ $# = 0 ] && exec gunicorn stall:app\nexec "$@"')
    files = {"Dockerfile": 'ENTRYPOINT ["./go.sh"]', "go.sh": entry, "manage.py": "", "fill.py": ""}
    assert read(files).current.server == "gunicorn"


@pytest.mark.parametrize(
    "command",
    [
        "python manage.py migrate",
        "python manage.py runworker",
        "flask db upgrade",
        "litestar routes",
        "flask",
    ],
)
def test_only_what_serves_of_a_programs_commands_is_todays(command):
    assert read({"Procfile": f"web: {command}", "manage.py": ""}).current is None


@pytest.mark.parametrize("command", ["runserver_plus", "run_gunicorn -w 2", "serve"])
def test_a_command_of_a_projects_own_that_serves_is_todays(command):
    assert read({"Procfile": f"web: python manage.py {command}", "manage.py": ""}).current is not None


def test_what_was_typed_wins_and_the_others_are_named():
    files = {"Procfile": "web: gunicorn stall:app", "Dockerfile": "CMD uvicorn stall:api"}
    assert read(files, "waitress-serve stall:app").current.server == "waitress"
    found = read(files).current
    assert found.also == ("`CMD` in Dockerfile: `uvicorn stall:api`",)


LEFT_OUT = {
    "gunicorn -b :80 -D --pid=/run/a.pid stall:app": ("`-b :80`", "`-D`", "`--pid=/run/a.pid`"),
    "gunicorn --access-logfile /var/log/a stall:app": (
        "`--access-logfile /var/log/a`, which goes to standard output",
    ),
    "gunicorn --certfile a.pem stall:app": ("`--certfile a.pem`",),
    "gunicorn -w $WORKERS stall:app": ("`-w $WORKERS`, for `$WORKERS` is not known",),
    "gunicorn -w $(cat n) stall:app": ("`-w $(cat n)`, for `$(cat n)` is not known",),
    "gunicorn -w $(($N * (2 + 1))) stall:app": (
        "`-w $(($N * (2 + 1)))`, for `$(($N * (2 + 1)))` is not known",
    ),
    "gunicorn -w $(cat n 2>/dev/null) stall:app": (
        "`-w $(cat n 2>/dev/null)`, for `$(cat n 2>/dev/null)` is not known",
    ),
    "gunicorn --chdir /srv/stall stall:app": ("`--chdir /srv/stall`, which is not in the app's folder",),
    "gunicorn --access-logformat '{}' stall:app": (
        "`--access-logformat {}`, whose braces Prony does not pass on",
    ),
    "cd web && ./migrate.sh && exec gunicorn stall:app > log 2>&1": (
        "`cd web`, which is not run",
        "`./migrate.sh`, which is not run",
        "`> log`",
        "`2>&1`",
    ),
    "uv run --frozen gunicorn stall:app": ("`uv run --frozen`, which is not run",),
    "newrelic-admin run-program gunicorn stall:app": ("`newrelic-admin run-program`, which is not run",),
    "/srv/env/bin/gunicorn stall:app": (
        "`/srv/env`, in whose place Prony builds an environment (--python /srv/env takes it)",
    ),
    "uvicorn --uds /run/a.sock stall:api": ("`--uds /run/a.sock`",),
    "uwsgi --socket /run/a.sock -w stall:app": (
        "`--socket /run/a.sock`",
        "uWSGI's own protocol, for a frontend: it is measured over HTTP/1.1",
    ),
}


@pytest.mark.parametrize("command", LEFT_OUT)
def test_what_is_not_taken_over_is_said_by_name(command):
    assert typed(command).left_out == LEFT_OUT[command]


def test_variables_are_filled_in_from_the_user_the_place_and_their_defaults():
    command = "gunicorn -w $WORKERS --threads ${THREADS} -t ${TIME:-40} stall:app"
    files = {"Dockerfile": f"ENV WORKERS=3 THREADS=2\nCMD {command}"}
    assert read(files, WORKERS="5").current.words == ("-w", "5", "--threads", "2", "-t", "40", "{app}")


def test_variables_of_an_image_are_passed_on_unless_they_may_be_secrets():
    files = {"Dockerfile": "ENV DEBUG=0 PORT=80\nENV SECRET_KEY abc\nCMD gunicorn stall:app"}
    found = read(files).current
    assert found.environment == {"DEBUG": "0"}
    assert found.left_out == ("`SECRET_KEY`: --env NAME=value passes a variable",)


def test_a_text_in_a_dockerfile_has_no_instructions():
    text = "FROM python\nENV MODE=live\nRUN <<-'EOF'\n  from x import y\nEOF\nRUN a <<<b\nCMD gunicorn a:app"
    assert read({"Dockerfile": text}).current.environment == {"MODE": "live"}
    # One that never ends is none.
    assert read({"Dockerfile": text.replace("\nEOF", "")}).current.target == "a:app"


def test_a_whole_path_in_a_variable_is_one_of_the_apps_folder():
    variables = "MENU=/srv/data/menu.json LISTS=/srv/a:/srv/b DATA=/var/data"
    image = f"WORKDIR /srv\nENV {variables}\nCMD gunicorn stall:app"
    assert read({"Dockerfile": image}).current.environment == {
        "MENU": "data/menu.json",
        "LISTS": "/srv/a:/srv/b",
        "DATA": "/var/data",
    }


def test_plain_variables_of_compose_are_passed_where_none_is_of_its_network():
    def found(variables):
        web = f"{{command: gunicorn stall:app, environment: {variables}}}"
        return read({"compose.yaml": f"services: {{web: {web}, db: {{image: a}}}}"}).current

    plain = found("{MODE: live, WEB_CONCURRENCY: 3, DEBUG: false, SECRET_KEY: x}")
    assert plain.environment == {"MODE": "live", "WEB_CONCURRENCY": "3", "DEBUG": "false"}
    assert plain.options["--workers"] == "3"
    assert plain.left_out == ("`SECRET_KEY`: --env NAME=value passes a variable",)
    assert found("[MODE=live]").environment == {"MODE": "live"}
    for other in ("DB=db", "DB=db:5432", "URL=http://x", "D=/data", "HERE", "E=$HERE", "DB_PASS=x"):
        named = found(f'[MODE=live, "{other}"]')
        assert dict(named.environment) == {}, other
        assert "MODE, " in named.left_out[0], other


def test_variables_of_compose_and_files_of_a_unit_are_named_alone():
    compose = "services: {web: {command: gunicorn stall:app, environment: [DB=postgres://db/x]}}"
    found = read({"compose.yaml": compose}).current
    assert (dict(found.environment), found.left_out) == ({}, ("its variables, which are of its network: DB",))
    unit = "[Service]\nEnvironment=A=1 'B=2 3'\nEnvironmentFile=/etc/stall\nExecStart=gunicorn stall:app"
    found = read({"stall.service": unit}).current
    assert found.environment == {"A": "1", "B": "2 3"}
    assert found.left_out == ("the variables in `/etc/stall`, which Prony does not read: --env-file FILE",)


def test_a_path_below_the_folder_of_its_place_is_one_of_the_apps_folder():
    files = {
        "Dockerfile": "WORKDIR /srv\nCMD gunicorn -c /srv/conf/g.py --pythonpath=/srv stall:app",
        "conf/g.py": "workers = 3",
    }
    found = read(files).current
    assert found.words == ("-c", "conf/g.py", "--pythonpath=.", "{app}")
    assert found.options["--workers"] == "3"


@pytest.mark.parametrize(
    ("line", "workers"),
    [
        ("workers = 3", "3"),
        ("workers = multiprocessing.cpu_count() * 2 + 1", "5"),
        ('workers = int(os.environ.get("WEB", 4))', "4"),
        ('workers = int(os.getenv("SET", "4"))', "9"),
        ('workers = int(os.getenv("WEB") or 4)', "4"),
        ("workers = max(2, min(multiprocessing.cpu_count() * 2 + 1, 4))", "4"),
        ("workers = max(2, compute())", ""),
        ("workers = compute()", ""),
        ("workers: int = 3", "3"),
        ("workers = 1\nif os.getenv('LIVE'):\n    workers = 9", ""),
        ("workers = 1\nworkers += 2", ""),
        ("workers, threads = 2, 4", ""),
        ("from base import *", ""),
        ("from base import workers", ""),
        ("from base import *\nworkers = 3", "3"),
        ("workers = 3\ndef post_fork(server, worker):\n    workers = 9", "3"),
    ],
)
def test_a_configuration_in_python_is_read_and_never_run(line, workers):
    files = {
        "gunicorn.conf.py": f"import os\nraise SystemExit\n{line}\nworker_class = 'gevent'\npidfile = 'a'"
    }
    found = typed("gunicorn stall:app", files, SET="9")
    assert (found.options["--workers"], found.server) == (workers, "gunicorn-gevent")
    assert found.left_out == ("`pidfile` in gunicorn.conf.py, which stays as it is there",)
    assert typed("gunicorn -w 7 stall:app", files).options["--workers"] == "7"


def test_the_options_of_uwsgis_file_are_words_without_its_addresses():
    ini = "[uwsgi]\nmodule = stall.wsgi\nmaster = true\nprocesses = 4\nsocket = a\nchdir = %d\nlazy = false\n"
    found = typed("uwsgi --ini conf/stall.ini", {"conf/stall.ini": ini})
    assert found.words == ("--master", "--processes=4", "--die-on-term", "--wsgi", "{app}")
    assert found.target == "stall.wsgi:application"
    assert "`chdir = %d`, which uWSGI fills in" in found.left_out


def test_placeholders_of_a_file_of_uwsgis_are_filled_in_and_are_no_options():
    ini = (
        "[uwsgi]\nproject = stall\nuid = www\nbase = /home/%(uid)\nset-ph = kind=wsgi\n"
        "chdir = %(base)/%(project)\nmodule = %(project).%(kind):app\nprocesses = 3\ncheaper = %(processes)\n"
        "env = MODE=%(none)\n"
    )
    found = typed("uwsgi --ini a.ini", {"a.ini": ini})
    assert found.words == ("--processes=3", "--cheaper=3", "--die-on-term", "--wsgi", "{app}")
    assert found.target == "stall.wsgi:app"
    assert found.left_out[:3] == (
        "`env = MODE=%(none)`, which uWSGI fills in",
        "`--uid=www`",
        "`--chdir=/home/www/stall`",
    )


def test_a_factory_is_recognised_by_how_it_is_called():
    assert typed("gunicorn 'stall:create_app()'").call == "()"
    assert typed("uvicorn --factory stall:create_app").call == "()"
    assert typed("waitress-serve --call stall:create_app").call == "()"
    assert not typed("gunicorn stall:app").call
    assert (
        typed("""gunicorn "stall:create_app('live', debug=False)\"""").app
        == "stall:create_app('live', debug=False)"
    )
    # Gunicorn evaluates no other call.
    assert typed("gunicorn 'stall:create_app(os.getcwd())'").target == ""


def test_a_command_of_another_app_does_not_serve_this_one():
    found = typed("gunicorn config.wsgi")
    assert found.serves("config.wsgi:application")
    assert not found.serves("shop:app")
    assert not typed("gunicorn shop:app").serves("shop:other")


@pytest.mark.parametrize(
    "command", ["celery -A stall worker", "gunicorn 'stall", "uvicorn --workers 2", "python no.py", ""]
)
def test_what_serves_nothing_that_is_known_is_none(command):
    assert read({"Procfile": f"web: {command}"} if command else {}).current is None


UWSGI_FILES = {
    "uwsgi.ini": "[uwsgi]\nmodule = stall:app\nprocesses = 2\nmaster = true\nlazy = false\n",
    "uwsgi.yaml": "uwsgi:\n  module: stall:app\n  processes: 2\n  master: true\n  lazy: false\n",
    "uwsgi.json": '{"uwsgi": {"module": "stall:app", "processes": 2, "master": true, "lazy": false}}',
    "uwsgi.xml": (
        "<uwsgi><module>stall:app</module><processes>2</processes><master/><lazy>false</lazy></uwsgi>"
    ),
}


@pytest.mark.parametrize("file", UWSGI_FILES)
def test_uwsgis_file_is_read_in_each_of_its_formats(file):
    found = typed(f"uwsgi --{file.partition('.')[2]} {file}", {file: UWSGI_FILES[file]})
    assert found.words == ("--processes=2", "--master", "--die-on-term", "--wsgi", "{app}")
    assert found.target == "stall:app"


@pytest.mark.parametrize("text", ["{", "[1]", '{"uwsgi": 3}'])
def test_a_file_of_uwsgis_that_cannot_be_read_names_no_app(text):
    assert typed("uwsgi --json a.json", {"a.json": text}).target == ""


# By the command: the catalogue's server, and its words.
OF_PLACK = {
    "starman --workers 3 --port 80 app.psgi": ("starman", "--workers 3 {app_dir}/{app}"),
    "plackup -s Starman -E deployment -p 80 bin/app.psgi": ("starman", "-E deployment {app_dir}/{app}"),
    "plackup -s Twiggy app.psgi": ("twiggy", "-E development {app_dir}/{app}"),
    "plackup -E deployment -s Starlet app.psgi": (
        "starlet",
        "-s Starlet -E deployment {app_dir}/{app}",
    ),
    "plackup app.psgi": ("http-server-psgi", "-E development {app_dir}/{app}"),
    "plackup -r bin/app.psgi": ("http-server-psgi", "-E development -r {app_dir}/{app}"),
}


@pytest.mark.parametrize("command", OF_PLACK)
def test_a_command_of_placks_is_taken_over_as_the_server_that_it_starts(command):
    found = typed(command)
    assert (found.server, " ".join(found.words)) == OF_PLACK[command]


def test_a_server_of_placks_that_prony_does_not_know_is_none():
    assert read({}, "plackup -s Gazelle app.psgi").current is None


@pytest.mark.parametrize(
    ("files", "source"),
    [
        ({"Makefile": "test:\n\tpytest\nrun: install\n\t@python stall.py\n"}, "Makefile"),
        (
            {"main.py": "import os\nif __name__ == '__main__':\n    serve(os.environ['PORT'])\n"},
            "the end of main.py",
        ),
    ],
)
def test_a_script_that_serves_is_todays_command(files, source):
    found = read({**files, "stall.py": ""}).current
    assert (found.source, found.script) == (source, found.words[1].removesuffix(".py"))


def test_a_script_at_a_fixed_port_is_todays_command_where_it_starts_a_server_that_is_known():
    assert read({"main.py": "if __name__ == '__main__':\n    serve(8000)\n"}).current is None
    end = "import uvicorn\nif __name__ == '__main__':\n    uvicorn.run('main:app', port=8000, workers=4)\n"
    found = read({"main.py": end}).current
    assert (found.source, found.server, found.target) == ("the end of main.py", "uvicorn", "main:app")
    assert found.options["--workers"] == "4"


def test_a_service_that_is_built_from_another_folder_is_not_this_ones():
    compose = "services: {back: {build: ./back, command: gunicorn back:app}}"
    assert read({"compose.yaml": compose}).current is None
    assert [one.text for one in composed({"compose.yaml": compose}.get, "back")] == ["gunicorn back:app"]
