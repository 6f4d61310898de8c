"""Apps as people have them: `prony run --app` in their folder finds the rest, and broken ones get a hint."""

import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from commands import BESIDE, eventually
from prony.archive import open_archive
from prony.core.users import SUBJECT_PATH
from prony.model.trial import Ok

pytestmark = [pytest.mark.usefixtures("nothing_left"), pytest.mark.slow]

# A busy machine is no matter here: nothing is compared.
SHORT = (
    "--force",
    "--repeats",
    "1",
    "--no-calibration",
    "--duration",
    "500ms",
    "--warmup",
    "100ms",
    "-c",
    "2",
)
QUICK = (*SHORT, "--timeout", "3s", "--ready-timeout", "8s", "--out", "out.prony")

MANAGE = """\
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
"""

SETTINGS = """\
from pathlib import Path

SECRET_KEY = "not secret"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "mysite.urls"
WSGI_APPLICATION = "mysite.wsgi.application"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.sessions"]
MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
"""

URLS = """\
from django.http import HttpResponse
from django.urls import path


def index(request):
    request.session["seen"] = True
    return HttpResponse("shop")


def save(request):
    return HttpResponse("saved")


def items(request):
    from django.contrib.sessions.models import Session

    return HttpResponse(str(Session.objects.count()))


urlpatterns = [path("", index), path("save", save), path("items", items)]
"""

WSGI = "from django.core.wsgi import get_wsgi_application\n\napplication = get_wsgi_application()\n"

DJANGO = {
    "manage.py": MANAGE,
    "mysite/__init__.py": "",
    "mysite/settings.py": SETTINGS,
    "mysite/urls.py": URLS,
    "mysite/wsgi.py": WSGI,
    "requirements.txt": "django==5.2.19\n",
}

HERE = Path(__file__).parent / "apps"
PYTHON = ("gunicorn", "waitress", "uwsgi-two-a-cpu", "granian")
ASYNC, PERL = ("uvicorn", "granian", "hypercorn"), ("starman", "starlet", "twiggy", "feersum")
# What is typed in the folder of each, and the servers on which it is measured.
APPS = {
    "flask": ("shop:app", PYTHON),
    "django": (".", PYTHON),
    "fastapi": ("shop.web", ASYNC),
    "starlette": ("main.py", ASYNC),
    "bottle": ("shop", PYTHON),
    "mojolicious": ("shop.psgi", PERL),
    "plack": ("bin/shop.psgi", PERL),
    "go": (".", ("go",)),
    "node": (".", ("node",)),
    "php": (".", ("php",)),
    "rack": (".", ("yours", "unicorn")),
}
# What they show, whatever serves them.
SHOWN = {
    "flask": b"<p>soupTrue</p>",
    "node": b"<p>soup</p>",
    "go": b"<p>soup",
    "php": b"<p>soup</p>",
    "rack": b"<p>soup</p>",
}
NEEDED = {
    "mojolicious": "/usr/share/perl5/Mojolicious.pm",
    "php": "php",
    "node": "npm",
    "go": "go",
    "rack": "puma",
}


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def unpack(folder, name):
    """Copy one of the apps into the folder in which Prony is started."""
    needed = NEEDED.get(name)
    if needed and not (
        shutil.which(needed, path=f"{SUBJECT_PATH}:/usr/local/go/bin") or Path(needed).exists()
    ):
        pytest.skip(f"{needed} is not on this machine")
    shutil.copytree(HERE / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.mark.parametrize("name", APPS)
def test_an_app_is_measured_on_the_usual_servers_with_nothing_else_said(prony, folder, trials, name):
    typed, servers = APPS[name]
    unpack(folder, name)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    done = prony("run", "--app", typed, *QUICK, timeout_s=400)
    assert done.status == 0, done.err
    assert len(done.err.split("\n  ")[0].splitlines()) >= 3
    found = trials(folder / "out.prony")
    assert len(found) == len(servers) - done.err.count(" is unavailable: ")
    assert any(trial.outcome == Ok() for trial in found)
    assert all(trial.recording and trial.recording.account.ok > 0 for trial in found if trial.outcome == Ok())
    (folder / "out.prony").unlink()
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path != folder} == before


FACTORY = "from flask import Flask\n\n\ndef create_app() -> Flask:\n    {}    return app\n"
STALL = FACTORY.format("app = Flask('a')\n    app.get('/')(lambda: 'soup')\n")
SERVED = "import os\nfrom stall import create_app\n\ncreate_app().run(port=int(os.environ['PORT']))\n"
INI = (
    "[uwsgi]\nmodule = stall:create_app()\nmaster = true\nprocesses = 2\nsocket = /run/stall\nvacuum = true\n"
)
# How an app is started today, and the words that must stand in its printed command.
TODAY = {
    "gunicorn": ({"Procfile": "web: gunicorn -w 2 --preload -b :80 'stall:create_app()'"}, "-w 2 --preload"),
    "configured": (
        {
            "gunicorn.conf.py": "workers = 2\nmax_requests = 9000\n",
            "Dockerfile": "CMD gunicorn 'stall:create_app()'",
        },
        "gunicorn --bind 127.0.0.1:8000 prony_app:app",
    ),
    "waitress": (
        {"compose.yaml": "services: {a: {command: waitress-serve --call stall:create_app}}"},
        "waitress-serve",
    ),
    "uwsgi": (
        {"stall.ini": INI, "a.service": "[Service]\nExecStart=uwsgi --ini stall.ini\n"},
        "--processes=2 --vacuum",
    ),
    "own": ({"serve.py": SERVED, "Procfile": "web: python -u serve.py"}, "python -u serve.py"),
}


@pytest.mark.parametrize("name", TODAY)
def test_what_runs_today_is_started_to_the_letter_and_measured_beside_others(prony, folder, trials, name):
    files, words = TODAY[name]
    write(folder, {"stall.py": STALL, "requirements.txt": "flask==3.1.2\n", **files})
    done = prony("run", "--app", ".", "--servers", "waitress", *QUICK, "--expect-body", "soup", timeout_s=300)
    assert done.status == 0, done.err
    assert [trial.outcome for trial in trials(folder / "out.prony")] == [Ok()] * 2
    with open_archive(folder / "out.prony") as archive:
        subjects = archive.subjects()
    assert next(iter(subjects)) == "yours+stall"
    assert words in subjects["yours+stall"].command_line


def test_a_page_in_php_is_measured_on_servers_of_the_catalogue(prony, folder, trials):
    unpack(folder, "php")
    typed = (
        "--app",
        "public/index.php",
        "--servers",
        "php-fpm@nginx,uwsgi-php",
        "--expect-body-contains",
        "soup",
    )
    done = prony("run", *typed, *QUICK, timeout_s=400)
    assert done.status == 0, done.err
    answered = [trial.recording.account.ok for trial in trials(folder / "out.prony") if trial.outcome == Ok()]
    assert len(answered) == 2
    assert answered[0] > 0


PORT_APP = """\
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()


HTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
"""
LOADING_NOTHING = ("-c", BESIDE)
PLAIN = (
    'def app(environ, start_response):\n    {body}\n    start_response("200 OK", [])\n    return [b"hi"]\n'
)
ONE = ("--servers", "wsgiref")


def plain(body, before=""):
    return {"shop.py": before + PLAIN.format(body=body)}


def django(settings="", path="/", *more):
    return {**DJANGO, "mysite/settings.py": SETTINGS + settings}, (
        "--app",
        "manage.py",
        "--path",
        path,
        *more,
    )


BROKEN = {
    "the host": (
        *django(
            "ALLOWED_HOSTS = ['shop.example']\nMIDDLEWARE += ['django.middleware.common.CommonMiddleware']"
        ),
        "-H 'Host: shop.example'",
    ),
    "a form": (
        *django("MIDDLEWARE += ['django.middleware.csrf.CsrfViewMiddleware']", "/save", "-m", "POST"),
        "CSRF token",
    ),
    "https": (
        *django(
            "MIDDLEWARE += ['django.middleware.security.SecurityMiddleware']\nSECURE_SSL_REDIRECT = True"
        ),
        "X-Forwarded-Proto",
    ),
    "no tables": (*django("DEBUG = True", "/items"), "manage.py migrate"),
    "an error that the app hides": (*django("", "/items"), "DEBUG = True"),
    "another path": (*django("", "/shop"), "--path"),
    "a closed file": (plain('open("/etc/shadow")'), (), "--run-as"),
    "no service": (
        plain('__import__("socket").create_connection(("127.0.0.1", 1))'),
        (),
        "cannot reach a service",
    ),
    "no variable": (plain("pass", 'import os\nkey = os.environ["SHOP_KEY"]\n'), (), "--env SHOP_KEY=value"),
    "no database file": (
        plain('__import__("sqlite3").connect("var/shop.db").execute("select 1")'),
        (),
        "create it before you measure",
    ),
    "a missing module": (plain("pass", "if True:\n    import humanize_\n"), (), "imports `humanize_`"),
    "a slow start": (plain("pass", "import time\ntime.sleep(30)\n"), (), "--ready-timeout 60s"),
    "a slow reply": (plain('__import__("time").sleep(20)'), (), "--timeout"),
    "another interface": (plain("pass"), ("--interface", "asgi", "--servers", "uvicorn"), "--interface"),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="closed files are closed to another user than root")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_app_ends_in_the_right_hint_before_any_load(prony, folder, name):
    files, arguments, hint = BROKEN[name]
    write(folder, files)
    typed = arguments if "--app" in arguments else ("--app", "shop:app", *arguments)
    servers = () if "--servers" in arguments else ONE
    done = prony("run", *typed, *servers, *QUICK, program=LOADING_NOTHING, timeout_s=200)
    assert done.status == 3, done.err
    error, _, shown = done.err.partition("\nhint: ")
    assert hint in shown, done.err
    assert "error: " in error
    assert not (folder / "out.prony").exists()


# What is changed in a healthy program, and what its user is to do.
BROKEN_PROGRAMS = [
    ("go", "main.go", ("log.Fatal(http", "log.Fatl(http"), "cannot be run: see the line above"),
    ("go", "main.go", ('"os"', '"os"\n\t_ "example.com/other"'), "go mod tidy"),
    ("go", "menu.txt", None, "relative paths begin at"),
    ("node", "package.json", ("4.2.0", "4.1.0"), "makes them fit"),
    ("node", "server.js", ('require("mustache")', 'require("moustache")'), "no package `moustache`"),
    ("php", "public/index.php", ("<?=", "<?= foo( ?><?="), "cannot be run: see the line above"),
]


@pytest.mark.parametrize(("name", "file", "change", "hint"), BROKEN_PROGRAMS)
def test_a_broken_program_ends_in_the_right_hint_before_any_load(prony, folder, name, file, change, hint):
    unpack(folder, name)
    if change is None:
        (folder / file).unlink()
    else:
        text = (folder / file).read_text()
        assert change[0] in text
        (folder / file).write_text(text.replace(*change))
    done = prony("run", "--app", ".", *QUICK, program=LOADING_NOTHING, timeout_s=200)
    assert done.status == 3, done.err
    assert hint in done.err.partition("\nhint: ")[2], done.err
    assert not (folder / "out.prony").exists()


def test_a_program_on_a_port_of_its_own_is_measured_there_and_its_command_says_so(prony, folder, trials):
    write(folder, {"serve.py": PORT_APP.format(port=23_456), "Procfile": "web: python3 -u serve.py"})
    done = prony("run", "--app", ".", *QUICK, timeout_s=120)
    assert done.status == 0, done.err
    assert done.err.count("listens on port 23456 of its own, not on the one in PORT: measured there") == 1
    found = trials(folder / "out.prony")
    assert [trial.outcome for trial in found] == [Ok()]
    assert found[0].recording.account.ok > 0
    assert found[0].nuisances["port"] == "23456"
    with open_archive(folder / "out.prony") as archive:
        (subject,) = archive.subjects().values()
    assert "PORT=23456" in subject.command_line


def test_two_programs_on_one_port_of_their_own_are_measured_in_turns(prony, folder, trials):
    write(folder, {"serve.py": PORT_APP.format(port=23_457)})
    both = [word for name in ("one", "two") for word in ("--command", f"{name}=/usr/bin/python3 serve.py")]
    done = prony("run", *both, *QUICK, "--rounds", "3", timeout_s=120)
    assert done.status == 0, done.err
    assert "listen on port 23457: they are measured in turns" in done.err
    assert [trial.outcome for trial in trials(folder / "out.prony")] == [Ok()] * 2


SEVERAL_PORTS = """\
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

for port in {ports}:
    server = HTTPServer(("127.0.0.1", port), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever).start()
"""


def test_a_program_on_two_ports_of_its_own_is_told_which(prony, folder):
    write(folder, {"serve.py": SEVERAL_PORTS.format(ports=(23_458, 23_459))})
    done = prony("run", "--command", "shop=/usr/bin/python3 serve.py", *QUICK, program=LOADING_NOTHING)
    assert done.status == 3, done.err
    assert "it listens on ports 23458 and 23459 instead" in done.err
    assert "{port}" in done.err.partition("hint: ")[2]


@pytest.mark.parametrize("network", [(), ("--net", "isolated")])
def test_a_program_may_listen_for_all_at_its_own_port(prony, folder, trials, network):
    text = PORT_APP.format(port=23_461).replace('"127.0.0.1"', '"0.0.0.0"')
    write(folder, {"serve.py": text})
    command = ("--command", "shop=/usr/bin/python3 serve.py", *network)
    done = prony("run", *command, *QUICK, timeout_s=120)
    assert done.status == 0, done.err
    assert [trial.outcome for trial in trials(folder / "out.prony")] == [Ok()]


STARTED = [
    ("flask", "gunicorn"),
    ("flask", "waitress"),
    # Without its router a connection keeps its only worker, and what starves others has no command.
    ("flask", "uwsgi-two-a-cpu"),
    ("go", ""),
    ("node", ""),
    ("php", ""),
]


@pytest.mark.parametrize(("name", "server"), STARTED)
def test_the_printed_command_starts_in_a_fresh_shell_what_was_measured(prony, folder, name, server):
    unpack(folder, name)
    servers = ("--servers", server) if server else ()
    done = prony("run", "--app", APPS[name][0], *servers, *QUICK, timeout_s=300)
    assert done.status == 0, done.err
    with open_archive(folder / "out.prony") as archive:
        (subject,) = archive.subjects().values()
        (trial, *_) = [record.trial for record in archive.trials() if record.trial.outcome == Ok()]
    assert subject.command_line in " ".join(done.out.split())
    shell = subprocess.Popen(
        ["/bin/sh", "-c", subject.command_line],
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        body = reply_of("http://127.0.0.1:8000/")
    finally:
        os.killpg(shell.pid, signal.SIGTERM)
        shell.wait(20)
        # What the shell started may end after it.
        assert eventually(lambda: is_gone(shell.pid), timeout_s=20)
    assert body.startswith(SHOWN[name])
    measured = trial.recording.account
    assert measured.ok > 0 and not measured.bad_status


def is_gone(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def reply_of(address):
    for _ in range(100):
        try:
            with urllib.request.urlopen(address, timeout=10) as reply:
                return reply.read()
        except OSError:
            time.sleep(0.1)
    pytest.fail("the command's server does not answer")


def test_what_a_lock_names_is_what_is_measured(prony, folder):
    write(
        folder,
        {
            "shop.py": "from flask import Flask\n\napp = Flask(__name__)\napp.get('/')(lambda: 'shop')\n",
            "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\ndependencies = ["flask>=3"]\n',
            "poetry.lock": '[[package]]\nname = "flask"\nversion = "3.0.3"\n\n'
            '[[package]]\nname = "click"\nversion = "8.1.7"\n',
        },
    )
    done = prony("run", "--app", "shop", *ONE, *QUICK, timeout_s=200)
    assert done.status == 0, done.err
    assert "packages of poetry.lock" in done.err
    with open_archive(folder / "out.prony") as archive:
        (subject,) = archive.subjects().values()
    assert subject.packages["flask"] == "3.0.3"
    assert subject.packages["click"] == "8.1.7"
    assert "django" not in subject.packages
