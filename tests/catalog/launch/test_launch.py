"""From an entry to a command: placeholders, settings and their ranges, what a person would type."""

from dataclasses import replace

import pytest

from prony.catalog.launch import Seat, declared_facts, make_launch
from prony.catalog.launch.commands import command_for_user
from prony.catalog.schema.loader import load_catalog
from prony.catalog.schema.settings import resolved_settings
from prony.core.errors import UsageError
from prony.model.address import Address
from prony.model.launch import RoleRule, StopRule
from prony.model.subject import App, Interface, Subject


class Installed:
    def __init__(self, entry=None):
        programs = {name: f"/usr/bin/{name}" for name in (entry.install.programs if entry else {})}
        own = {"python": "/env/bin/python", "bin": "/env/bin", "build": "/build", "prony": "/parts"}
        self.places = {**own, **programs}


def seat(app_dir="/apps/hello", port=8123, cpus=2, run_dir="/runs/1"):
    return Seat(Address("127.0.0.1", port), app_dir, run_dir, cpus)


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


def subject_of(catalog, name, settings=None, interface=Interface.WSGI, app="hello"):
    entry, variant = catalog.find(name)
    return entry, Subject(f"{name}+{app}", entry.name, catalog.app(app), interface, variant, settings or {})


def launch_of(catalog, name, settings=None, interface=Interface.WSGI):
    entry, subject = subject_of(catalog, name, settings, interface)
    return make_launch(entry, subject, Installed(entry), seat())


def test_a_command_has_nothing_left_to_fill_in(catalog):
    for entry in catalog.servers.values():
        for interface in entry.interfaces:
            launch = launch_of(catalog, entry.name, interface=interface)
            assert not any("{" in argument for argument in launch.command)
            told = " ".join([*launch.command, *launch.files.values(), *launch.environment.values()])
            assert "8123" in told
            assert "127.0.0.1" in told


def test_gunicorns_command_is_the_one_of_its_manual(catalog):
    assert launch_of(catalog, "gunicorn-gthread", {"workers": "2*{cpus}+1"}).command == (
        *("/env/bin/gunicorn", "--bind", "127.0.0.1:8123", "--workers", "5", "--worker-class", "gthread"),
        *("--threads", "4", "--worker-connections", "1000", "--backlog", "2048", "--keep-alive", "2"),
        *("--timeout", "30", "hello:app"),
    )


def test_a_script_gets_everything_as_arguments(catalog):
    launch = launch_of(catalog, "twisted")
    assert launch.command[:2] == ("/env/bin/python", "/runs/1/serve.py")
    assert launch.command[2:] == ("127.0.0.1", "8123", "hello", "app", "10", "50")
    assert launch.files == dict(catalog.server("twisted").files)


def test_the_app_is_importable_and_nothing_is_written_beside_it(catalog):
    environment = launch_of(catalog, "wsgiref").environment
    assert environment["PYTHONPATH"] == "/apps/hello"
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"
    assert environment["HOME"] == "/runs/1"


def test_the_apps_own_environment_wins(catalog):
    app = App(
        "mine",
        "mine",
        "/mine",
        {Interface.WSGI: "mine:app"},
        environment={"PYTHONPATH": "/other", "KEY": "1"},
    )
    subject = Subject("s", "wsgiref", app, Interface.WSGI)
    launch = make_launch(catalog.server("wsgiref"), subject, Installed(), seat("/mine"))
    assert launch.environment["PYTHONPATH"] == "/other"
    assert launch.environment["KEY"] == "1"


def test_a_condition_adds_its_arguments(catalog):
    assert "--access-logfile" in launch_of(catalog, "gunicorn", {"access_log": True}).command
    assert "--access-logfile" not in launch_of(catalog, "gunicorn").command
    assert "--no-access-log" in launch_of(catalog, "uvicorn-quiet", interface=Interface.ASGI).command
    assert "--master" in launch_of(catalog, "uwsgi").command


def test_a_setting_that_the_server_decides_leaves_no_argument(catalog):
    assert "--blocking-threads" not in launch_of(catalog, "granian").command
    assert "--blocking-threads" in launch_of(catalog, "granian-one-thread").command


def test_roles_and_stop_come_from_the_entry(catalog):
    launch = launch_of(catalog, "gunicorn")
    assert launch.roles == (RoleRule("master", "main"), RoleRule("worker", "child"))
    assert launch.stop == StopRule("SIGTERM", 5_000_000_000)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "`--set gunicorn.workers=0`: expected a whole number from 1 to 512"),
        ({"workers": "513"}, "`--set gunicorn.workers=513`: expected a whole number from 1 to 512"),
        ({"workers": "many"}, "`--set gunicorn.workers=many`: expected a whole number from 1 to 512, or an"),
        ({"workers": True}, "`--set gunicorn.workers=True`: expected a whole number"),
        (
            {"worker_class": "gevent"},
            "`--set gunicorn.worker_class=gevent`: expected one of `sync`, `gthread`",
        ),
        ({"reuse_port": "perhaps"}, "`--set gunicorn.reuse_port=perhaps`: expected `true` or `false`"),
        ({"wrokers": 2}, "`--set gunicorn.wrokers=2`: expected one of the settings `access_log`, `backlog`"),
        ({"workers": "1\n--daemon"}, "`--set gunicorn.workers=1"),
    ],
)
def test_an_unfit_setting_is_refused_with_its_range(catalog, settings, message):
    entry, subject = subject_of(catalog, "gunicorn", settings)
    with pytest.raises(UsageError) as caught:
        resolved_settings(entry, subject, 2)
    assert caught.value.message.startswith(message)


def test_a_text_from_the_command_line_becomes_what_the_setting_is(catalog):
    entry, subject = subject_of(
        catalog, "gunicorn", {"workers": "3", "reuse_port": "on", "worker_class": "gthread"}
    )
    values = resolved_settings(entry, subject, 2)
    assert (values["workers"], values["reuse_port"], values["worker_class"]) == (3, True, "gthread")


def test_the_subjects_own_setting_wins_over_its_variants(catalog):
    entry, subject = subject_of(catalog, "gunicorn-gthread", {"threads": 9})
    values = resolved_settings(entry, subject, 2)
    assert (values["worker_class"], values["threads"]) == ("gthread", 9)


def test_an_interface_that_the_server_lacks_is_refused(catalog):
    with pytest.raises(UsageError, match="the server speaks asgi"):
        launch_of(catalog, "uvicorn", interface=Interface.WSGI)


def test_a_target_that_could_end_a_statement_is_refused(catalog):
    app = App("bad", "bad", "/bad", {Interface.WSGI: "bad:app;import os"})
    entry = catalog.server("wsgiref")
    with pytest.raises(UsageError, match="expected text without"):
        make_launch(entry, Subject("s", "wsgiref", app, Interface.WSGI), Installed(), seat("/"))


def test_facts_follow_the_settings(catalog):
    entry, subject = subject_of(catalog, "gunicorn-gthread", {"workers": 3, "keep_alive": 7, "backlog": 64})
    facts = declared_facts(entry, subject, 2)
    assert (facts.processes, facts.slots, facts.keep_alive, facts.keep_alive_idle_s, facts.backlog) == (
        *(3, 12, True, 7, 64),
    )


def test_facts_of_keep_alive_follow_a_condition(catalog):
    assert declared_facts(*subject_of(catalog, "gunicorn"), 2).keep_alive is False
    # gunicorn turns its class sync into gthread where there are several threads
    assert declared_facts(*subject_of(catalog, "gunicorn", {"threads": 2}), 2).keep_alive is True
    assert declared_facts(*subject_of(catalog, "uwsgi"), 2).keep_alive is True
    assert declared_facts(*subject_of(catalog, "uwsgi-router"), 2).keep_alive is False


def test_what_a_person_types_names_no_folder_of_prony(catalog):
    entry, subject = subject_of(catalog, "waitress")
    assert command_for_user(entry, subject, "/srv/my app", 2) == (
        "cd '/srv/my app' && PYTHONPATH=. waitress-serve --listen=127.0.0.1:8000 --threads=4 --backlog=1024"
        " --connection-limit=100 --channel-timeout=120 hello:app"
    )


def test_what_a_person_types_writes_its_script_first(catalog):
    entry, subject = subject_of(catalog, "wsgiref")
    assert command_for_user(entry, subject, "/srv/app", 2, port=80) == (
        "cd /srv/app && prony servers wsgiref --file serve.py > serve.py && "
        "PYTHONPATH=. python serve.py 127.0.0.1 80 hello app true"
    )


def test_what_a_person_types_names_the_python_that_the_server_asks_for(catalog):
    entry, subject = subject_of(catalog, "meinheld-cpython38")
    assert "PYTHONPATH=. python3.8 serve.py 127.0.0.1 " in command_for_user(entry, subject, "/srv/app", 2)


def test_what_a_person_types_holds_no_secret(catalog):
    entry, subject = subject_of(catalog, "waitress")
    secretive = replace(subject, app=replace(subject.app, environment={"TOKEN": "hunter2"}))
    command = command_for_user(entry, secretive, "/srv/app", 2)
    assert "hunter2" not in command
    assert 'TOKEN="$TOKEN"' in command
