"""Layouts that templates and platforms make: what runs today, read from the folder alone."""

import json

import pytest

from prony.catalog.discover.current import ReadingAid
from prony.core.errors import UsageError
from prony.study.app_folder import app_folder, current_of, page_of, program_of, script_of, survey_of

GO = "package main\n\nfunc main() {}\n"
FASTAPI = "from fastapi import FastAPI\napp = FastAPI()\n"
UVICORN = "import os\nimport uvicorn\n\n\ndef main():\n    uvicorn.run('{}', port={}, workers=2)\n"
FROM_PORT = "int(os.environ.get('PORT', '8000'))"
MANAGE = "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'config.settings.local')\n"
WSGI = (
    "import os\nfrom django.core.wsgi import get_wsgi_application\n"
    "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'config.settings.production')\n"
    "application = get_wsgi_application()\n"
)
# In `compose/` lies what the image copies to its root.
DJANGO = {
    "manage.py": MANAGE,
    "config/settings/local.py": "",
    "config/settings/production.py": "import os\nKEY = os.environ['DJANGO_KEY']\n",
    "config/wsgi.py": WSGI,
    "requirements/production.txt": "django\ngunicorn\n",
    "compose/Dockerfile": (
        "ARG APP_HOME=/app\nFROM python\nARG APP_HOME\nWORKDIR ${APP_HOME}\n"
        "COPY ./compose/entrypoint /entrypoint\nCOPY ./compose/start /start\nCOPY . ${APP_HOME}\n"
        'ENTRYPOINT ["/entrypoint"]\n'
    ),
    "compose/entrypoint": '#!/bin/bash\nexport URL=$HOST_OF_DB\nexec "$@"\n',
    "compose/start": (
        "#!/bin/bash\npython /app/manage.py check\n"
        "exec /usr/local/bin/gunicorn config.wsgi --bind 0.0.0.0:5000 --chdir=/app\n"
    ),
    "docker-compose.production.yml": (
        "services:\n  django:\n    build: {context: ., dockerfile: ./compose/Dockerfile}\n"
        "    env_file: [./.envs/.django]\n    command: /start\n"
    ),
    ".envs/.django": "DJANGO_KEY=x\n",
}
# A server's configuration and script at the root of the image; the script has the usual values.
TEMPLATE = {
    "pyproject.toml": "[project]\nname = 'app'\ndependencies = ['fastapi']\n",
    "app/main.py": FASTAPI,
    "gunicorn_conf.py": "workers = 3\n",
    "scripts/start.sh": (
        '#! /usr/bin/env sh\nset -e\nexport GUNICORN_CONF=${GUNICORN_CONF:-"/gunicorn_conf.py"}\n'
        "CLASS=${CLASS:-uvicorn.workers.UvicornWorker}\n"
        'exec gunicorn -k "$CLASS" -c "$GUNICORN_CONF" "${MODULE:-app.main:app}"\n'
    ),
    "Dockerfile": (
        "FROM python\nWORKDIR /app/\nCOPY ./gunicorn_conf.py /gunicorn_conf.py\nCOPY ./app /app/app\n"
        'COPY scripts/start.sh /start.sh\nCMD ["/start.sh"]\n'
    ),
}
PYTHON = {
    "a compose file names the Dockerfile, whose scripts lie elsewhere": (
        DJANGO,
        ("gunicorn", "{app} --chdir=.", "config.wsgi"),
    ),
    "a script of an image has the values, and the configuration lies at its root": (
        TEMPLATE,
        ("gunicorn-uvicorn", "-k uvicorn.workers.UvicornWorker -c gunicorn_conf.py {app}", "app.main:app"),
    ),
    "a package in `src` is run, and serves where PORT says": (
        {
            "pyproject.toml": "[project]\nname = 'parcel'\ndependencies = ['fastapi']\n",
            "src/parcel/__init__.py": "",
            "src/parcel/web.py": FASTAPI,
            "src/parcel/__main__.py": UVICORN.format("parcel.web:app", FROM_PORT),
            "Dockerfile": 'FROM python\nCMD ["python", "-m", "parcel"]\n',
        },
        ("", "{python} -m parcel", "parcel.web:app"),
    ),
    "a script of the project's by name, at a fixed port": (
        {
            "pyproject.toml": "[project]\nname = 'ledger'\n[tool.poetry.scripts]\nup = 'ledger.run:main'\n",
            "ledger/run.py": UVICORN.format("ledger.run:app", 8000) + FASTAPI,
            "Procfile": "web: poetry run up\n",
        },
        ("uvicorn", "{app} --workers 2", "ledger.run:app"),
    ),
    "an image that starts Gunicorn by itself, of a package": (
        {
            "requirements.txt": "fastapi\n",
            "app/main.py": FASTAPI,
            "Dockerfile": "FROM tiangolo/uvicorn-gunicorn-fastapi:python3.11\nCOPY ./app /app/app\n",
        },
        ("gunicorn-uvicorn", "-k uvicorn.workers.UvicornWorker {app}", "app.main:app"),
    ),
    "a command of the project's by name": (
        {
            "pyproject.toml": "[project]\nname = 'b'\n[tool.pdm.scripts]\nup = 'hypercorn -w 3 board:app'\n",
            "board.py": FASTAPI,
            "Procfile": "web: pdm run up\n",
        },
        ("hypercorn", "-w 3 {app}", "board:app"),
    ),
}


@pytest.fixture
def laid(tmp_path):
    def write(files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize("layout", PYTHON)
def test_what_serves_python_today_is_found(layout, laid):
    files, (server, words, target) = PYTHON[layout]
    folder = laid(files)
    found = current_of(app_folder(folder, "."), ReadingAid()).current
    assert found is not None
    assert (found.server, " ".join(found.words), found.target) == (server, words, target)
    surveyed = survey_of(folder, ".", found)
    assert surveyed is not None and found.serves(surveyed.target)


GUNICORN = ("gunicorn", "-w 4 {app}", "app:app")
IMAGE = "FROM python\nWORKDIR /code\nCOPY . .\nWORKDIR /code/backend\nCMD gunicorn -w 4 app:app\n"
# By what says it: the files beside `backend/app.py`; also one that is at the top and means another app.
BELOW = {
    "a step": {"Procfile": "web: cd backend && gunicorn -w 4 app:app"},
    "a step behind another": {"Procfile": "web: ./migrate && cd ./backend/ && gunicorn -w 4 app:app"},
    "a step of a script": {
        "Procfile": "web: ./go.sh",
        "go.sh": "#!/bin/sh\ncd backend\nexec gunicorn -w 4 app:app",
    },
    "the image's folder": {"Dockerfile": IMAGE},
    "a folder of the machine's": {
        "a.service": "[Service]\nWorkingDirectory=/srv/x/backend\nExecStart=/v/gunicorn -w 4 app:app\n"
    },
    "a Dockerfile beside it": {
        "compose.yaml": "services: {a: {build: {context: ., dockerfile: backend/Dockerfile}}}",
        "backend/Dockerfile": "FROM python\nWORKDIR /app\nCOPY backend/ .\nCMD gunicorn -w 4 app:app\n",
    },
    "a folder that Compose mounts": {
        "compose.yaml": (
            "services: {a: {working_dir: /w/backend, volumes: ['.:/w'], command: gunicorn -w 4 app:app}}"
        ),
    },
    "a step of Compose's, in a shell": {
        "compose.yaml": 'services: {a: {command: sh -c "cd backend && gunicorn -w 4 app:app"}}'
    },
    "a step, beside another app": {"Procfile": "web: cd backend && gunicorn -w 4 app:app", "app.py": FASTAPI},
}


@pytest.mark.parametrize("said", BELOW)
def test_a_command_is_followed_into_the_folder_where_it_works(said, laid):
    folder = laid({"backend/app.py": FASTAPI, "backend/requirements.txt": "fastapi", **BELOW[said]})
    place = app_folder(folder, ".")
    assert place == folder / "backend"
    found = current_of(place, ReadingAid()).current
    assert (found.server, " ".join(found.words), found.target) == GUNICORN
    assert not [left for left in found.left_out if "cd" in left]
    assert survey_of(place, ".", found).target == "app:app"


def test_a_command_that_works_here_stays_here(laid):
    files = {
        "app.py": FASTAPI,
        "web/app.py": FASTAPI,
        "Procfile": "web: gunicorn app:app",
        "Dockerfile": IMAGE,
    }
    folder = laid({**files, "requirements.txt": "fastapi"})
    assert app_folder(folder, ".") == folder


def test_a_worker_in_a_folder_of_its_own_is_not_what_serves(laid):
    compose = (
        "services:\n  work: {command: sh -c 'cd work && python go.py'}\n"
        "  web: {command: sh -c 'cd web && python manage.py runserver'}\n"
    )
    folder = laid({"compose.yaml": compose, "work/go.py": "", "web/manage.py": MANAGE})
    assert app_folder(folder, ".") == folder / "web"


def test_of_several_folders_that_have_what_a_command_starts_none_is_guessed(laid):
    folder = laid({"a/app.py": FASTAPI, "b/app.py": FASTAPI, "Procfile": "web: gunicorn app:app"})
    with pytest.raises(UsageError, match="apps are in `a`, `b`"):
        app_folder(folder, ".")


def test_settings_of_production_and_the_file_that_has_their_variables_are_named(laid):
    folder = laid(DJANGO)
    found = survey_of(folder, ".", current_of(folder, ReadingAid()).current)
    assert [(one.name, one.path) for one in found.needed] == [("DJANGO_KEY", "config/settings/production.py")]
    assert (found.env_file, found.offered) == (".envs/.django", ("DJANGO_KEY",))


def test_a_unit_names_the_file_that_is_its_file_of_variables(laid):
    unit = "[Service]\nEnvironmentFile=/etc/tides/tides.env\nExecStart=/opt/v/bin/uvicorn tides:app -w ${N}\n"
    folder = laid({"systemd/tides.service": unit, "systemd/tides.env": "N=2\n", "tides.py": FASTAPI})
    found = current_of(folder, ReadingAid()).current
    assert found.env_file == "systemd/tides.env"
    assert any("--env-file systemd/tides.env" in left for left in found.left_out)


def test_a_script_in_src_that_offers_no_app_begins_its_imports_there(laid):
    folder = laid(
        {"src/tick/__main__.py": "import os\nserve(os.environ['PORT'])\n", "Procfile": "web: python -m tick"}
    )
    current = current_of(folder, ReadingAid()).current
    assert script_of(folder, ".", current, declared=True).root == "src"


def test_variables_in_the_body_of_a_class_are_needed(laid):
    folder = laid({"shop.py": "import os\nclass Config:\n    KEY = os.environ['KEY']\napp = Config\n"})
    assert [one.name for one in survey_of(folder, "shop:app", declared=True).needed] == ["KEY"]


def package(**scripts):
    return json.dumps({"scripts": scripts})


PROGRAMS = {
    "Make's variables, and variables before the command": (
        {
            "go.mod": "module depot\n",
            "cmd/server/main.go": GO,
            "cmd/worker/main.go": GO,
            "Makefile": "DIR ?= bin\nBINARY := $(DIR)/server\nrun: build\n\tPORT=80 ./$(BINARY) -config a\n",
        },
        "{build}/server -config a",
    ),
    "a program of Go's elsewhere than in `cmd`": (
        {
            "go.mod": "module hub\n",
            "services/api/main.go": GO,
            "services/mailer/main.go": GO,
            "build/package/Dockerfile": 'FROM scratch\nENTRYPOINT ["/usr/bin/api"]\n',
        },
        "{build}/server",
    ),
    "an entry that hands on to Puma": (
        {
            "config.ru": "run App",
            "bin/docker-entrypoint": '#!/bin/bash -e\necho migrating\nexec "${@}"\n',
            "Dockerfile": (
                'FROM ruby\nWORKDIR /rails\nENTRYPOINT ["/rails/bin/docker-entrypoint"]\n'
                'CMD ["bundle", "exec", "puma", "-w", "3"]\n'
            ),
        },
        "{puma} -b tcp://{host}:{port} -w 3",
    ),
    "an init before Node.js, and a whole path": (
        {
            "server.js": "",
            "lib/web.js": "",
            "package.json": "{}",
            "Dockerfile": 'WORKDIR /a\nENTRYPOINT ["/bin/tini", "--"]\nCMD ["node", "/a/lib/web.js"]\n',
        },
        "{node} lib/web.js",
    ),
    "what Compose starts of Rails in a shell, behind a step": (
        {
            "config.ru": "run App",
            "bin/rails": "",
            "compose.yaml": (
                "services:\n  db: {image: postgres}\n  web:\n    build: .\n    ports: ['3000:3000']\n"
                "    command: bash -c \"rm -f tmp/a.pid && bundle exec rails s -p 3000 -b '0.0.0.0'\"\n"
            ),
        },
        "{rails} s -b {host} -p {port}",
    ),
    "a tool of a package at a port of its own": (
        {"package.json": package(start="fastify start -l warn -p 3000 app.js"), "app.js": ""},
        "{npm} exec --silent -- fastify start -l warn -p {port} app.js",
    ),
    "a `start` that is for development": (
        {
            "package.json": json.dumps(
                {"scripts": {"build": "nest build", "start": "nest start", "start:prod": "node dist/main"}}
            )
        },
        "{node} dist/main",
    ),
    "Go's run, with words behind the package": (
        {
            "go.mod": "module a\n",
            "cmd/a/main.go": GO,
            "cmd/b/main.go": GO,
            "Makefile": "run:\n\tgo run ./cmd/a -addr :80\n",
        },
        "{build}/server -addr {host}:{port}",
    ),
    "Yarn, for a script that npm starts too": (
        {"package.json": package(web="node a.js"), "Procfile": "web: yarn web", "node_modules/.yarn": ""},
        "{npm} run --silent web",
    ),
    "Laravel's server": (
        {"Procfile": "web: php artisan serve --host=0.0.0.0 --port=$PORT", "artisan": ""},
        "{php} artisan serve --host={host} --port={port}",
    ),
    "Hypnotoad, whose address only the app has": (
        {
            "script/board": "#!/usr/bin/env perl\nuse Mojolicious::Commands;\n",
            "etc/board.service": (
                "[Service]\nWorkingDirectory=/srv\nExecStart=/usr/bin/hypnotoad /srv/script/board\n"
            ),
        },
        "{perl} script/board prefork -m production -l http://{host}:{port}",
    ),
}


@pytest.mark.parametrize("layout", PROGRAMS)
def test_what_starts_a_program_today_is_found(layout, laid):
    files, command = PROGRAMS[layout]
    folder = laid(files)
    assert app_folder(folder, ".") == folder
    assert " ".join(program_of(folder, ".").command) == command


@pytest.mark.parametrize(
    ("files", "page"),
    [
        ({"Dockerfile": 'FROM php:8-fpm\nCMD ["php-fpm"]\n', "public/index.php": ""}, "public/index.php"),
        ({"Procfile": "web: heroku-php-nginx -C a.conf site/", "site/index.php": ""}, "site/index.php"),
        ({"Procfile": "web: php -S 0.0.0.0:$PORT", "index.php": ""}, ""),
        (
            {
                "Dockerfile": 'FROM php:8-fpm\nCMD ["supervisord", "-n"]\n',
                "docker/supervisord.conf": "[program:web]\ncommand=nginx\n[program:a]\ncommand=php-fpm -F\n",
                "public/index.php": "",
            },
            "public/index.php",
        ),
    ],
)
def test_the_page_that_php_fpm_serves_today_is_found(files, page, laid):
    assert page_of(laid(files))[0] == page


def test_a_file_that_nothing_builds_is_refused_before_any_build(laid):
    folder = laid({"package.json": package(start="node --env-file .env dist/server.js")})
    with pytest.raises(UsageError, match=r"`dist/server\.js`, which is not there, and no script `build`"):
        program_of(folder, ".")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("app.yaml", "runtime: python312\nentrypoint: gunicorn -b :$PORT shop:app\n"),
        ("fly.toml", "app = 'shop'\n[processes]\n  app = 'gunicorn shop:app'\n"),
        ("railway.json", '{"deploy": {"startCommand": "gunicorn shop:app"}}'),
        ("render.yaml", "services:\n  - type: web\n    startCommand: gunicorn shop:app\n"),
    ],
)
def test_the_command_of_a_platform_is_todays(file, text, laid):
    found = current_of(laid({file: text}), ReadingAid()).current
    assert (found.source, found.target) == (file, "shop:app")


def test_a_worker_beside_the_server_is_not_what_serves(laid):
    compose = (
        "services:\n  work: {build: ., command: python work.py}\n  web: {build: ., command: gunicorn a:app}\n"
    )
    found = current_of(laid({"compose.yaml": compose, "work.py": ""}), ReadingAid()).current
    assert (found.target, found.also) == ("a:app", ("`command` of `work` in compose.yaml: `python work.py`",))


def test_what_a_variable_gives_gunicorn_counts_and_stays_there(laid):
    image = 'ENV GUNICORN_CMD_ARGS="-w 3 --threads=2"\nCMD gunicorn --threads 4 shop:app\n'
    found = current_of(laid({"Dockerfile": image}), ReadingAid()).current
    assert (found.options["--workers"], found.options["--threads"]) == ("3", "4")
    assert found.words == ("--threads", "4", "{app}")


def test_a_program_of_supervisor_is_todays_command(laid):
    conf = '[program:shop]\ncommand=/srv/v/bin/gunicorn -w 2 shop:app\nenvironment=A="1",B=2\n'
    found = current_of(laid({"deploy/shop.conf": conf}), ReadingAid()).current
    assert (found.target, dict(found.environment)) == ("shop:app", {"A": "1", "B": "2"})


PHP = {
    "an image that starts PHP-FPM by itself": (
        {"Dockerfile": "FROM php:8.3-fpm-alpine\nCOPY . /var/www/html\n", "public/index.php": ""},
        "public/index.php",
        "`FROM php:8.3-fpm-alpine` in Dockerfile starts PHP-FPM: "
        "the first is `public/index.php` on it, behind nginx",
    ),
    "a stage of an image that starts Apache by itself": (
        {
            "Dockerfile": "FROM php:8.2-apache AS base\nENV MODE=a\nFROM base\nCOPY src/ /var/www/html/\n",
            "src/index.php": "",
            "index.php": "",
        },
        "src/index.php",
        "`FROM php:8.2-apache` in Dockerfile starts PHP in Apache, which Prony does not: in its place "
        "`src/index.php` on PHP-FPM, behind nginx; left out: its variables MODE: --env NAME=value passes one",
    ),
    "an image that Compose names": (
        {
            "compose.yaml": (
                "services:\n  php:\n    image: php:8-fpm\n    environment: [DB=mysql://x]\n"
                "    volumes: ['./w:/var/www/html']\n"
            ),
            "w/public/index.php": "",
        },
        "w/public/index.php",
        "`image` of `php` in compose.yaml starts PHP-FPM: "
        "the first is `w/public/index.php` on it, behind nginx; left out: "
        "its variables, which are of its network: DB",
    ),
    "an image with a command of its own": (
        {"Dockerfile": 'FROM php:8-apache\nCMD ["php", "-S", "0.0.0.0:80"]\n', "index.php": ""},
        "",
        "",
    ),
}


@pytest.mark.parametrize("layout", PHP)
def test_what_an_image_of_php_starts_by_itself_is_known(layout, laid):
    files, *found = PHP[layout]
    assert list(page_of(laid(files))) == found


def test_what_an_image_of_gunicorns_lays_at_its_root_is_started_as_it_says(laid):
    image = "FROM tiangolo/uvicorn-gunicorn\nENV WEB_CONCURRENCY=3 VARIABLE_NAME=api\nCOPY ./src /app\n"
    files = {"Dockerfile": image, "src/main.py": FASTAPI.replace("app", "api")}
    folder = app_folder(laid(files), ".")
    found = current_of(folder, ReadingAid()).current
    assert (folder.name, found.target, found.options["--workers"]) == ("src", "main:api", "3")
    assert found.left_out == ()


def test_of_services_in_compose_the_one_with_ports_serves(laid):
    compose = (
        "services:\n  worker: {build: ., command: python worker.py}\n"
        "  api: {build: ., command: python api.py, ports: ['80:80']}\n"
    )
    folder = laid({"compose.yaml": compose, "worker.py": "", "api.py": ""})
    found = current_of(folder, ReadingAid()).current
    assert (found.script, found.also) == (
        "api",
        ("`command` of `worker` in compose.yaml: `python worker.py`",),
    )


def test_the_stage_that_compose_builds_is_read(laid):
    folder = laid(
        {
            "compose.yaml": "services: {web: {build: {context: ., target: Live}}}\n",
            "Dockerfile": (
                'ARG V=1\nFROM python AS live\nENV A=1\nCMD ["gunicorn", "a:app"]\n'
                'FROM live AS test\nCMD ["pytest"]\n'
            ),
        }
    )
    found = current_of(folder, ReadingAid()).current
    assert (found.source, found.target, found.environment) == (
        "`build` of `web` in compose.yaml",
        "a:app",
        {"A": "1"},
    )


@pytest.mark.parametrize(
    ("line", "server", "words"),
    [
        ("plackup -s Starman --workers 4 -a bin/app.psgi", "starman", "--workers 4 {app_dir}/{app}"),
        ("plackup -s Starman -p $PORT", "starman", "{app_dir}/{app}"),
        ("starman --workers 3", "starman", "--workers 3 {app_dir}/{app}"),
        ("plackup", "http-server-psgi", "{app_dir}/{app}"),
        (
            "uwsgi --http :80 --processes 2 --psgi bin/app.psgi",
            "uwsgi-psgi",
            "--processes 2 --die-on-term --psgi {app_dir}/{app}",
        ),
    ],
)
def test_the_psgi_app_is_that_of_an_option_or_has_the_usual_name(line, server, words, laid):
    folder = laid({"Procfile": f"web: {line}\n", "app.psgi": "", "bin/app.psgi": ""})
    found = current_of(folder, ReadingAid()).current
    assert (found.server, " ".join(found.words).removeprefix("-E development ")) == (server, words)


def test_without_a_psgi_app_plackup_is_none_of_this_folder(laid):
    assert current_of(laid({"Procfile": "web: plackup -s Starman\n"}), ReadingAid()).current is None


def test_a_node_app_that_a_dockerfile_lays_at_its_root_is_found_below(laid):
    folder = laid(
        {
            "Dockerfile": 'FROM node:20\nWORKDIR /app\nCOPY server/ .\nCMD ["node", "index.js", "-q"]\n',
            "server/index.js": "",
            "server/package.json": "{}",
        }
    )
    assert app_folder(folder, ".") == folder / "server"
    assert program_of(folder / "server", ".").command == ("{node}", "index.js", "-q")


@pytest.mark.parametrize(
    ("line", "files", "command"),
    [
        (
            "cd server && node index.js --port 80",
            {"server/index.js": "", "server/package.json": "{}", "package.json": package(start="a")},
            "{node} index.js --port {port}",
        ),
        (
            "cd api/ && bundle exec rails s -p $PORT",
            {"api/config.ru": "run App"},
            "{rails} s -b {host} -p {port}",
        ),
        ("cd api; exec ./api -q", {"api/go.mod": "module api\n", "api/main.go": GO}, "{build}/server -q"),
    ],
)
def test_a_procfile_leads_to_the_folder_of_a_program(line, files, command, laid):
    folder = laid({"Procfile": f"web: {line}\n", **files})
    place = app_folder(folder, ".")
    assert place.parent == folder
    assert " ".join(program_of(place, ".").command) == command


@pytest.mark.parametrize(
    ("file", "text", "command"),
    [
        ("Makefile", "run:\n\tuvicorn shop:app \\\n\t\t--host 0.0.0.0 \\\n\t\t--workers 4\n", "--workers 4"),
        ("Makefile", "dev:\n\tuvicorn shop:app --reload\nserver: build\n\t-@uvicorn shop:app\n", ""),
        ("Makefile", "run:\n\tdocker compose up\nup:\n\tuvicorn shop:app\n", ""),
        ("GNUmakefile", "dev:\n\tuvicorn shop:app --reload\n", "--reload"),
        (
            "justfile",
            "count := '3'\nserve port=\"80\" *more:\n    @uvicorn shop:app --port {{port}} \\\n"
            "        --workers {{ count }}\n",
            "--workers 3",
        ),
    ],
)
def test_what_make_or_just_starts_is_todays(file, text, command, laid):
    found = current_of(laid({file: text}), ReadingAid()).current
    assert (found.source, " ".join(found.words)) == (file, f"{{app}} {command}".strip())


RENDER = (
    "services:\n  - {type: worker, name: w, startCommand: gunicorn work:app}\n"
    "  - {type: web, name: front, rootDir: front, startCommand: node front.js}\n"
    "  - {type: web, name: api, startCommand: 'gunicorn shop:app'}\n"
)


def test_of_renders_services_one_of_the_web_at_this_folder_serves(laid):
    assert current_of(laid({"render.yaml": RENDER}), ReadingAid()).current.target == "shop:app"


def test_a_service_of_renders_with_a_root_of_its_own_is_that_folders(laid):
    folder = laid({"render.yaml": RENDER, "front/front.js": "", "front/package.json": package(start="a")})
    assert program_of(folder / "front", ".").command == ("{node}", "front.js")
