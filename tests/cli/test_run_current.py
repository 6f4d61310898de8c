"""What runs today is the first server of a user's own app, and the others get as much as it has."""

import re
import subprocess

import pytest

APP = "def app(environ, start_response): ...\n"
ASYNC = "async def app(scope, receive, send): ...\n"


@pytest.fixture
def planned(said, folder):
    """Return what a dry run shows of files: the commands by subject, and what is said beside them."""

    def run(files, *arguments, status=0):
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        done = said("run", "--app", ".", *arguments, "--dry-run")
        assert done.status == status, done.err
        return dict(re.findall(r"^(\S+): closed loop.*\n +cd \S+ && (.*)$", done.out, re.MULTILINE)), done.err

    return run


def test_yours_is_first_and_the_others_get_its_processes_and_threads(planned):
    shown, err = planned(
        {"shop.py": APP, "Procfile": "web: gunicorn -w 3 --threads 2 --preload -b :80 shop:app"}
    )
    assert list(shown) == ["yours+shop", "waitress+shop", "uwsgi-router-keepalive+shop", "granian+shop"]
    assert shown["yours+shop"] == (
        "PYTHONPATH=. gunicorn --bind 127.0.0.1:8000 -w 3 --threads 2 --preload shop:app"
    )
    assert "--threads=6" in shown["waitress+shop"]
    assert "--processes 3 --threads 2" in shown["uwsgi-router-keepalive+shop"]
    assert "--workers 3" in shown["granian+shop"] and "--blocking-threads 2" in shown["granian+shop"]
    assert "from `web` in Procfile; left out: `-b :80`" in err
    assert "the others get 3 processes, 2 threads each, as yours has; waitress is one process" in err


def test_what_the_user_sets_stays(planned):
    files = {"shop.py": APP, "Procfile": "web: gunicorn -w 3 shop:app"}
    shown, _ = planned(files, "--servers", "waitress,gunicorn-gthread", "--set", "waitress.threads=9")
    assert "--threads=9" in shown["waitress+shop"]
    assert "--workers 3" in shown["gunicorn-gthread+shop"] and "--threads 4" in shown["gunicorn-gthread+shop"]


def test_yours_may_be_given_a_place_or_left_out(planned):
    files = {"shop.py": APP, "Procfile": "web: gunicorn -w 3 shop:app"}
    assert list(planned(files, "--servers", "waitress,yours")[0]) == ["waitress+shop", "yours+shop"]
    shown, err = planned(files, "--no-current")
    assert "yours+shop" not in shown and "yours" not in err
    assert "gunicorn+shop" in shown


def test_event_loops_get_processes_alone(planned):
    command = "gunicorn -k uvicorn.workers.UvicornWorker -w 4 shop:app"
    shown, err = planned({"shop.py": ASYNC}, "--current", command)
    assert "-k uvicorn.workers.UvicornWorker -w 4 shop:app" in shown["yours+shop"]
    assert all("--workers 4" in shown[f"{name}+shop"] for name in ("uvicorn", "granian", "hypercorn"))
    assert "the others get 4 processes, as yours has" in err


def test_a_number_that_is_computed_is_not_guessed(planned):
    files = {"shop.py": APP, "gunicorn.conf.py": "workers = count()", "Procfile": "web: gunicorn shop:app"}
    shown, err = planned(files)
    assert "how many processes it starts is not known" in err
    assert "--workers 1" in shown["granian+shop"]


def test_where_no_command_of_today_is_found_that_is_said(planned):
    said = "without yours: no command of today found in Procfile, Dockerfile,"
    shown, err = planned({"app.py": APP})
    assert "gunicorn+app" in shown
    assert said in err and "--current '...' names it" in err
    assert said not in planned({}, "--app", "app:app")[1]
    assert said not in planned({}, "--current", "gunicorn app:app")[1]


def test_a_script_that_starts_a_server_is_yours_and_the_others_get_its_processes(planned):
    main = f"import uvicorn\n{ASYNC}if __name__ == '__main__':\n    uvicorn.run('main:app', workers=4)\n"
    shown, err = planned({"main.py": main, "requirements.txt": "uvicorn"})
    assert shown["yours+main"].endswith("main:app --workers 4")
    assert "--workers 4" in shown["granian+main"]
    assert "from the end of main.py" in err


def test_a_folder_that_a_procfile_changes_to_is_the_apps(planned, folder):
    files = {"Procfile": "web: cd back && gunicorn -w 3 shop:app", "back/shop.py": APP}
    shown, err = planned(files)
    assert f"the app is in {folder / 'back'}" in err
    assert shown["yours+shop"].endswith("-w 3 shop:app")


def test_a_program_that_serves_by_itself_is_started_as_it_is(planned):
    shown, _ = planned({"app.py": APP, "Procfile": "web: python app.py --fast"})
    assert shown["yours+app"].endswith("python app.py --fast")


def test_a_command_of_another_app_is_named_and_left_out(planned):
    files = {"shop.py": APP, "Procfile": "web: gunicorn other:app"}
    shown, err = planned(files, "--app", "shop:app")
    assert "yours+shop" not in shown
    assert (
        "without yours: `web` in Procfile is `gunicorn other:app`, which serves `other:app`, not `shop:app`"
        in err
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("celery -A shop", "no server or program in Python that Prony knows"),
        ("gunicorn other:app", "which serves"),
    ],
)
def test_a_typed_command_that_is_none_of_this_app_is_refused(planned, command, message):
    _, err = planned({"shop.py": APP}, "--app", "shop:app", "--current", command, status=2)
    assert message in err
    assert "hint: name a server and the app" in err


def test_a_factory_is_called_by_the_same_module_for_all_servers(planned):
    factory = "from flask import Flask\ndef create_app():\n    return Flask('a')\n"
    files = {"shop.py": factory, "requirements.txt": "flask", "Procfile": "web: gunicorn 'shop:create_app()'"}
    shown, _ = planned(files)
    assert len(shown) == 4
    for command in shown.values():
        assert r"printf 'from shop import create_app\n\napp = create_app()\n' > prony_app.py &&" in command
        assert command.endswith("prony_app:app")


def test_imports_begin_where_the_command_of_today_changes_to(planned):
    files = {"shop/web.py": APP, "shop/pages.py": "", "Procfile": "web: gunicorn --chdir shop web:app"}
    shown, _ = planned(files)
    assert shown["yours+web"].endswith("--chdir shop web:app")
    assert "PYTHONPATH=shop" in shown["waitress+web"]


def test_of_a_folder_that_a_dockerfile_lays_at_its_workdir_all_is_found(planned, folder):
    docker = "FROM python\nWORKDIR /srv\nCOPY needs/x.txt /a/\nRUN pip install -r /a/x.txt\nCOPY code/ .\n"
    files = {
        "Dockerfile": f'{docker}CMD ["gunicorn", "-c", "conf.py", "web:app"]',
        "code/web.py": f"import flask\n{APP}",
        "code/conf.py": "workers = 3\n",
        "needs/x.txt": "flask\n",
    }
    shown, err = planned(files)
    assert f"the app is in {folder / 'code'}" in err
    assert shown["yours+web"].endswith("-c conf.py web:app")
    assert "the others get 3 processes" in err


def test_a_configuration_that_is_a_module_is_read(planned):
    files = {
        "shop.py": APP,
        "conf/live.py": "workers = 3\n",
        "Procfile": "web: gunicorn -c python:conf.live shop:app",
    }
    shown, err = planned(files)
    assert shown["yours+shop"].endswith("-c python:conf.live shop:app")
    assert "the others get 3 processes" in err


def test_the_psgi_file_of_the_command_of_today_is_the_app(planned):
    files = {
        "bin/www.psgi": "",
        "a.psgi": "",
        "tea.service": "[Service]\nExecStart=/usr/bin/starman -l :5 bin/www.psgi",
    }
    shown, _ = planned(files)
    assert shown["yours+www"].endswith("bin/www.psgi")


def test_a_rack_app_has_the_command_of_today_and_the_other_server_beside_it(planned):
    files = {
        "config.ru": "run App",
        "config/puma.rb": "workers 3\nthreads 1, 2\n",
        "Procfile": "web: bundle exec puma -C config/puma.rb",
    }
    shown, err = planned(files)
    yours, other = shown
    assert (yours[:6], other[:8]) == ("yours+", "unicorn+")
    assert shown[yours].endswith("puma -b tcp://127.0.0.1:8000 -C config/puma.rb")
    assert "--set unicorn.workers=3" in shown[other]
    assert "the others get 3 processes, 2 threads each, as yours has; unicorn has no setting" in err


def test_what_rackup_starts_stands_beside_it_too(planned):
    shown, _ = planned({"config.ru": "run App", "Procfile": "web: rackup -p $PORT"})
    assert [name.partition("+")[0] for name in shown] == ["yours", "puma", "unicorn"]
    (puma,) = (line for name, line in shown.items() if name.startswith("puma"))
    assert "--config - --workers 0 --threads 5:5" in puma


def test_a_factory_is_given_what_the_command_of_today_gives_it_on_each_server(planned):
    made = "from flask import Flask\ndef build(name):\n    return Flask(name)\n"
    files = {
        "shop.py": made,
        "requirements.txt": "flask",
        "Procfile": "web: gunicorn \"shop:build('50% off')\"",
    }
    shown, _ = planned(files)
    assert len(shown) == 4
    for command in shown.values():
        line = command[command.index("printf") : command.index(" > ")]
        printed = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
        assert printed.stdout == "from shop import build\n\napp = build('50% off')\n"


def test_both_interfaces_of_a_project_are_one_study(planned):
    files = {"shop/wsgi.py": APP, "shop/asgi.py": ASYNC, "shop/__init__.py": ""}
    shown, _ = planned(files, "--app", "shop.wsgi", "--servers", "gunicorn,uvicorn,granian")
    ends = [re.search(r"shop\.\w+:app", command)[0] for command in shown.values()]
    assert ends == ["shop.wsgi:app", "shop.asgi:app", "shop.wsgi:app"]
    asked, _ = planned(files, "--app", "shop.wsgi", "--interface", "asgi", "--servers", "granian")
    assert "--interface asgi" in asked["granian+shop-asgi"] and "shop.asgi:app" in asked["granian+shop-asgi"]


def test_what_lies_broken_above_is_no_matter_of_the_app(said, folder):
    (folder / "package.json").write_text("[")
    shop = folder / "shop"
    shop.mkdir()
    (shop / "package.json").write_text('{"scripts": {"start": "node shop.js"}}')
    (shop / "shop.js").write_text("")
    done = said("run", "--app", ".", "--dir", str(shop), "--dry-run")
    assert (done.status, "node shop.js" in done.out) == (0, True)


WINDOW = r"closed loop, 10 connections, (\d+) s"


@pytest.mark.parametrize(
    ("typed", "window", "blocks"),
    [
        (("--servers", "gunicorn"), "10", "5 blocks"),
        (("--servers", "gunicorn,waitress,granian,bjoern"), "3", r"about \d\d blocks"),
        (("--servers", "gunicorn", "--set", "gunicorn.workers=1,2,3,4,5,6,7,8,9,10,11,12"), "3", "5 blocks"),
        (("--servers", "gunicorn,waitress,granian,bjoern", "--repeats", "5"), "10", "5 blocks"),
        (("--servers", "gunicorn,waitress,granian,bjoern", "--duration", "8s"), "8", "5 blocks"),
        (("--servers", "gunicorn,waitress,granian", "--command", "own=sleep {port}"), "10", "5 blocks"),
    ],
)
def test_the_answer_on_an_own_app_takes_five_minutes_where_nobody_says_how_long(
    said, folder, typed, window, blocks
):
    (folder / "shop.py").write_text(APP)
    done = said("run", "--app", "shop:app", *typed, "--dry-run")
    assert re.search(WINDOW, done.out)[1] == window
    assert re.search(rf"cells? x {blocks},", done.out)


def test_the_app_of_a_folder_below_is_measured_there(planned, folder):
    shown, err = planned({"backend/main.py": ASYNC, "backend/requirements.txt": ""})
    assert f"the app is in {folder / 'backend'}" in err
    assert "uvicorn+main" in shown


def test_what_an_app_needs_is_read_for_another_interpreter_and_not_for_an_environment(planned, folder):
    files = {
        "shop.py": f"import flask\n{APP}",
        "envs/bin/python": "",
        "envs/pyvenv.cfg": "",
        "bare/python": "",
    }
    shown, _ = planned(files, "--python", "envs/bin/python")
    assert shown
    _, err = planned(files, "--python", "bare/python", status=2)
    assert "no file of its folder declares that" in err


def test_all_missing_variables_are_named_with_what_sets_them(planned, folder):
    files = {"app.py": f"import os\nos.environ['KEY'], os.environ['URL']\n{APP}", ".env": "URL=x\n"}
    _, err = planned(files, status=2)
    assert "variables that are not set: `KEY` (app.py:2), `URL` (app.py:2)" in err
    assert f"hint: --env-file {folder / '.env'} --env KEY=... sets them" in err
    shown, err = planned(files, "--env", "KEY=1", "--env", "URL=2")
    assert shown and f"--env-file {folder / '.env'} sets URL" in err


def test_several_folders_are_one_app_each_on_the_same_servers(said, folder):
    for name in ("main", "branch"):
        (folder / name).mkdir()
        (folder / name / "shop.py").write_text(APP)
        (folder / name / "Procfile").write_text(f"web: gunicorn -w {len(name)} shop:app")
    words = ("run", "--app", ".", "--dir", "main", "--dir", "branch", "--servers", "gunicorn", "--dry-run")
    done = said(*words)
    assert done.status == 0, done.err
    shown = dict(re.findall(r"^(\S+): closed loop.*\n +cd (\S+) && ", done.out, re.MULTILINE))
    assert shown == {
        f"{server}+shop-{name}": str(folder / name)
        for server in ("yours", "gunicorn")
        for name in ("main", "branch")
    }
    assert (
        f"{folder / 'branch'} has another command, which is not measured: gunicorn -w 6 shop:app" in done.err
    )


def test_of_several_folders_each_must_have_an_app_for_servers(said, folder):
    (folder / "shop.py").write_text(APP)
    (folder / "go").mkdir()
    (folder / "go" / "go.mod").write_text("module a")
    (folder / "go" / "main.go").write_text("package main\n\nfunc main() {}\n")
    done = said("run", "--app", ".", "--dir", ".", "--dir", "go", "--dry-run")
    assert done.status == 2 and "this one has a program" in done.err


PASTE = "[app:main]\nuse = call:guestbook:main\n[server:main]\nuse = egg:waitress#main\n"


def test_pserve_gets_our_address_by_an_ini_file_that_takes_all_else_from_the_authors(planned):
    files = {
        "wsgi.py": APP.replace("app", "application"),
        "guestbook.py": "",
        "conf/live.ini": f"{PASTE}listen = *:6543\nthreads = 8\n",
        "Procfile": "web: pserve conf/live.ini",
    }
    shown, err = planned(files)
    command = shown["yours+wsgi"]
    assert command.endswith("pserve prony-live.ini")
    assert "/conf/live.ini" in command and "listen = 127.0.0.1:8000" in command
    assert "left out: `listen = *:6543` in conf/live.ini" in err
    assert "--threads=8" in shown["waitress+wsgi"]


def test_an_ini_file_without_a_server_is_not_taken_for_one(planned):
    files = {"wsgi.py": APP, "live.ini": "[app:main]\n", "Procfile": "web: pserve live.ini"}
    shown, err = planned(files)
    assert "yours" not in shown and "without yours" in err


def test_workers_beyond_the_servers_cpus_are_said(planned):
    files = {"shop.py": APP, "Procfile": "web: gunicorn -w 99 shop:app"}
    assert "--share-cpus gives them all" in planned(files)[1]
    assert "--share-cpus" not in planned(files, "--current", "gunicorn -w 1 shop:app")[1]
    _, err = planned(files, "--no-current", "--servers", "gunicorn", "--set", "gunicorn.workers=1,2")
    assert "--share-cpus gives them all" in err
    assert "--share-cpus gives" not in planned(files, "--share-cpus")[1]


def test_a_module_that_is_mistyped_is_named_with_the_one_that_is_there(planned):
    _, err = planned({"shop.py": APP, "Procfile": "web: gunicorn shpo:app"}, status=2)
    assert "no module `shpo`" in err and "did you mean --app shop:app?" in err


@pytest.mark.parametrize(
    ("typed", "why"),
    [("", "it is empty"), ("a && b", "`&&` is of one"), ("a 'b", "No closing quotation")],
)
def test_what_only_a_shell_could_run_before_each_trial_is_refused(planned, typed, why):
    _, err = planned({"shop.py": APP}, "--before-each", typed, status=2)
    assert why in err


def test_where_a_command_runs_before_each_trial_no_server_stays_for_rounds(planned):
    typed = ("--before-each", "python fill.py", "--servers", "gunicorn,waitress")
    _, err = planned({"shop.py": APP}, *typed, "--rounds", "5", status=2)
    assert "the servers must be measured in turns: `--before-each` runs while" in err
    _, err = planned({"shop.py": APP}, *typed, "--for", "10m")
    assert "no rounds of short windows: `--before-each` runs while other servers stay" in err


def test_what_runs_before_each_trial_is_said(planned):
    assert (
        "before each trial: python fill.py -n 3"
        in planned({"shop.py": APP}, "--before-each", "python fill.py -n 3")[1]
    )
