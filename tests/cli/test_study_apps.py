"""Apps of the user's own in a study's file: each as `--app` would have it, and said before it is run."""

import re

import pytest

from prony.archive import open_archive

APP = "def app(environ, start_response): ...\n"
ASYNC = "async def app(scope, receive, send): ...\n"
STUDY = """\
name = "mine"
title = "Mine"
{apps}
{subjects}
[[workloads]]
loop = "closed"
connections = 2
{workload}
[profiles.quick]
blocks = 1
duration = "1s"
"""
SHOP = '[apps.shop]\napp = "shop:app"\n'


def subjects(server='["yours", "waitress", "gunicorn@nginx"]', app='"shop"', more=""):
    return f"[[subjects]]\nserver = {server}\napp = {app}\n{more}\n"


@pytest.fixture
def planned(said, folder):
    """Return what a dry run of a study beside files shows: commands by subject, and what is said of it."""

    def run(files, apps=SHOP, parts=None, *words, status=0, workload=""):
        study = STUDY.format(apps=apps, subjects=subjects() if parts is None else parts, workload=workload)
        for name, text in {"mine.toml": study, **files}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        done = said("run", "mine.toml", *words, "--dry-run")
        assert done.status == status, done.err
        return dict(re.findall(r"^(\S+): closed loop.*\n +((?:.|\n  )*)$", done.out, re.MULTILINE)), done.err

    return run


FILES = {"shop.py": APP, "Procfile": "web: gunicorn -w 3 --preload -b :80 shop:app"}


def test_an_own_app_stands_beside_the_catalogues_servers_with_its_command_of_today(planned, folder):
    shown, err = planned(FILES)
    assert list(shown) == ["yours+shop", "waitress+shop", "gunicorn@nginx+shop"]
    assert shown["yours+shop"] == (
        f"cd {folder} && PYTHONPATH=. gunicorn --bind 127.0.0.1:8000 -w 3 --preload shop:app"
    )
    assert f"shop: shop:app in {folder}: wsgi" in err
    assert "shop: yours: gunicorn -w 3 --preload -b :80 shop:app, from `web` in Procfile" in err


def test_the_others_get_as_much_as_yours_unless_the_file_says_otherwise(planned):
    shown, err = planned(FILES)
    assert "--threads=3" in shown["waitress+shop"] and "--workers 3" in shown["gunicorn@nginx+shop"]
    assert "shop: the others get 3 processes, 1 thread each, as yours has" in err
    parts = subjects('["yours", "granian"]') + subjects('"gunicorn"', more="settings.workers = 2")
    shown, _ = planned({}, SHOP, parts)
    assert "--workers 2" in shown["gunicorn+shop"] and "--workers 3" in shown["granian+shop"]
    shown, _ = planned({}, SHOP, parts, "--set", "gunicorn.workers=5")
    assert "--workers 5" in shown["gunicorn+shop"]
    shown, _ = planned({}, SHOP, subjects('["gunicorn"]'))
    assert "--workers 1" in shown["gunicorn+shop"]


def test_each_app_has_a_command_of_its_own(planned, folder):
    apps = f'{SHOP}[apps.new]\ncommand = "./serve --port {{port}}"\ndir = "below"\n'
    (folder / "below").mkdir()
    (folder / "below" / "serve").write_text("#!/bin/sh\n")
    (folder / "below" / "serve").chmod(0o755)
    shown, err = planned(FILES, apps, subjects('"yours"', '["shop", "new"]'))
    assert "gunicorn" in shown["yours+shop"]
    assert shown["yours+new"].endswith(f"{folder / 'below' / 'serve'} --port 8000")
    assert f"new: ./serve --port {{port}} in {folder / 'below'}" in err


def test_names_of_loads_and_the_option_only_match_yours(planned):
    shown, _ = planned(FILES, SHOP, None, "--only", "yours*", workload='subjects = "yours+shop"')
    assert list(shown) == ["yours+shop"]


def test_a_program_beside_an_app_is_yours_and_servers_run_the_app(planned, folder):
    apps = f'{SHOP}command = "python3 shop.py {{port}}"\n'
    shown, err = planned({"shop.py": APP}, apps, subjects('["yours", "waitress"]'))
    assert shown["yours+shop"].endswith("python3 shop.py 8000")
    assert "waitress-serve" in shown["waitress+shop"]
    assert "shop: yours: python3 shop.py {port}" in err


def test_the_folder_is_named_from_that_of_the_file(planned, said, folder):
    apps = '[apps.shop]\napp = "shop:app"\ndir = "src"\n'
    shown, _ = planned({"src/shop.py": APP}, apps, subjects('"waitress"'))
    assert f"cd {folder / 'src'} " in shown["waitress+shop"]
    (folder / "deep").mkdir()
    (folder / "mine.toml").rename(folder / "deep" / "mine.toml")
    (folder / "src").rename(folder / "deep" / "src")
    assert f"cd {folder / 'deep' / 'src'} " in said("run", "deep/mine.toml", "--dry-run").out


def test_what_the_folder_has_is_found_as_with_the_option(planned, folder):
    apps = '[apps.shop]\napp = "."\n'
    made = "from flask import Flask\ndef create_app():\n    return Flask('a')\n"
    command = "web: cd back && gunicorn 'shop:create_app()'"
    files = {"back/shop.py": made, "back/requirements.txt": "flask", "Procfile": command}
    shown, err = planned(files, apps, subjects('["yours", "waitress"]'))
    assert f"the app is in {folder / 'back'}" in err
    assert all(command.endswith("prony_app:app") for command in shown.values())


def test_a_program_that_the_folder_has_is_yours(planned, folder):
    files = {"go.mod": "module shop\n", "main.go": "package main\n\nfunc main() {}\n"}
    shown, err = planned(files, '[apps.shop]\napp = "."\n', subjects('"yours"'))
    assert list(shown) == ["yours+shop"]
    assert f"in {folder}: go (" in err
    _, err = planned(files, '[apps.shop]\napp = "."\n', subjects('"waitress"'), status=2)
    assert "`server = waitress` does not apply to `--app .`, a program that serves by itself" in err


def test_both_interfaces_of_a_project_are_one_study(planned):
    files = {"shop/wsgi.py": APP, "shop/asgi.py": ASYNC, "shop/__init__.py": ""}
    servers = '["gunicorn", "uvicorn", "granian"]'
    shown, _ = planned(files, '[apps.shop]\napp = "shop.wsgi"\n', subjects(servers))
    ends = [re.search(r"shop\.\w+:app", command)[0] for command in shown.values()]
    assert ends == ["shop.wsgi:app", "shop.asgi:app", "shop.wsgi:app"]
    asked = subjects('"granian"', more='interface = "asgi"')
    assert "shop.asgi:app" in planned({}, '[apps.shop]\napp = "shop.wsgi"\n', asked)[0]["granian+shop"]


def test_one_app_with_other_requirements_is_another_app(run, folder):
    apps = "".join(
        f'[apps.{name}]\napp = "shop:app"\nrequirements = "{name}.txt"\n' for name in ("old", "new")
    )
    for name in ("old", "new"):
        (folder / f"{name}.txt").write_text("")
    parts = subjects('"waitress"', '["old", "new"]')
    (folder / "mine.toml").write_text(STUDY.format(apps=apps, subjects=parts, workload=""))
    (folder / "shop.py").write_text(APP)
    run("mine.toml")
    assert {name: one.declared.file.name for name, one in run.task.packages.items()} == {
        "old": "old.txt",
        "new": "new.txt",
    }


# --- variables, and what a file may not do ----------------------------------------------------------------


def test_variables_of_the_file_and_those_that_are_typed_reach_its_apps_alone(run, folder, monkeypatch):
    monkeypatch.setenv("OF_CALLER", "mine")
    (folder / "more.env").write_text("B=file\nC=file\n")
    apps = f'{SHOP}env = {{ A = "1", B = "2" }}\n'
    parts = subjects('"waitress"', '["shop", "hello"]')
    (folder / "mine.toml").write_text(STUDY.format(apps=apps, subjects=parts, workload=""))
    (folder / "shop.py").write_text(APP)
    run("mine.toml", "--env-file", "more.env", "--env", "C=typed")
    found = {one.app.name: one.app.environment for one in run.task.plan.subjects()}
    assert found["shop"] == {"A": "1", "B": "file", "C": "typed"}
    assert not found["hello"].keys() & {"A", "B", "C"}


def test_a_studys_file_passes_on_no_variable_of_the_callers(run, folder, monkeypatch):
    monkeypatch.setenv("OF_CALLER", "mine")
    apps = f'{SHOP}env = {{ A = "$OF_CALLER" }}\n'
    (folder / "mine.toml").write_text(STUDY.format(apps=apps, subjects=subjects('"waitress"'), workload=""))
    (folder / "shop.py").write_text(APP)
    run("mine.toml")
    (subject,) = run.task.plan.subjects()
    assert subject.app.environment == {"A": "$OF_CALLER"}
    run("mine.toml", "--env", "OF_CALLER", "--out", "other.prony")
    assert run.task.plan.subjects()[0].app.environment["OF_CALLER"] == "mine"


def test_what_is_run_is_said_before_anything_is(run, folder):
    (folder / "mine.toml").write_text(STUDY.format(apps=SHOP, subjects=subjects(), workload=""))
    for name, text in FILES.items():
        (folder / name).write_text(text)
    done = run("mine.toml")
    assert f"shop: shop:app in {folder}" in done.err
    assert done.err.index("shop: yours: gunicorn -w 3") < done.err.index("trials, about")


def test_an_archive_of_it_runs_nothing_and_is_gone_on_with_as_typed(run, said, folder):
    (folder / "mine.toml").write_text(STUDY.format(apps=SHOP, subjects=subjects(), workload=""))
    for name, text in FILES.items():
        (folder / name).write_text(text)
    run("mine.toml", "--out", "a.prony")
    with open_archive(folder / "a.prony") as archive:
        assert "[apps.shop]" in archive.plan().text
    (folder / "mine.toml").unlink()
    assert said("report", "a.prony").status in (0, 3)
    assert "there is no such file" in said("run", "mine.toml", "--out", "a.prony").err


def test_the_host_has_its_network_as_with_the_option(run, folder):
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "mine.toml").write_text(STUDY.format(apps=SHOP, subjects=subjects(), workload=""))
    run("mine.toml")
    assert {cell.sandbox.network for cell in run.task.plan.cells} == {"host"}


def test_the_page_of_studies_has_it_too(said, folder):
    (folder / "mine.toml").write_text(STUDY.format(apps=SHOP, subjects=subjects(), workload=""))
    for name, text in FILES.items():
        (folder / name).write_text(text)
    done = said("studies", "mine.toml")
    assert done.status == 0, done.err
    assert "yours+shop" in done.out and "gunicorn@nginx+shop" in done.out


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("apps", "parts", "told"),
    [
        (
            "[apps.shop]\n",
            None,
            "apps.shop: found `a table`; expected `app`, such as `shop:app`, or `command`",
        ),
        (f"{SHOP}speed = 1\n", None, "mine.toml:5 apps.shop.speed: found `speed`; expected no such field"),
        (f'{SHOP}interface = "http"\n', None, "apps.shop.interface: found `http`; expected one of `wsgi`"),
        (f"{SHOP}env = {{ POOL = 5 }}\n", None, "apps.shop.env.POOL: found `5`; expected text"),
        (f'{SHOP}current = "a"\ncommand = "b"\n', None, "expected `command` or `current`, not both"),
        (f'{SHOP}python = "a"\nrequirements = "b"\n', None, "expected `python` or `requirements`, not both"),
        (
            '[apps.shop]\ncommand = "./a {port}"\ninterface = "wsgi"\n',
            None,
            "expected `app` beside `interface`: a `command` has no use for it",
        ),
        (
            f'{SHOP}env = {{ API_KEY = "s3cr3t" }}\n',
            None,
            "apps.shop.env.API_KEY: found `API_KEY`; expected none that may be secret, for an archive keeps",
        ),
        (
            f'{SHOP}[apps.spare]\napp = "shop:app"\n',
            None,
            "apps.spare: found `spare`; expected an app that one of the subjects has",
        ),
        (
            f'{SHOP}current = "gunicorn shop:app"\n',
            subjects('"waitress"'),
            "apps.shop.current: found `gunicorn shop:app`; expected a subject with the server `yours`",
        ),
        (
            "",
            subjects('"yours"', '"hello"'),
            "subjects.0.app: found `hello`; expected an app of `[apps]`, whose command `yours` is",
        ),
        (
            '[apps.shop]\ncommand = "./a {port}"\n',
            subjects('["yours", "waitress"]'),
            "subjects.0.server: found `waitress`; expected `yours`: `shop` is a command",
        ),
    ],
)
def test_a_table_that_is_wrong_is_told_with_its_line_and_key(planned, apps, parts, told):
    _, err = planned({"shop.py": APP}, apps, parts, status=2)
    assert told in err
    assert "s3cr3t" not in err


@pytest.mark.parametrize(
    ("apps", "told", "hint"),
    [
        (
            '[apps.shop]\napp = "shpo:app"\n',
            "has no module `shpo`",
            "did you mean --app shop:app? --dir names the folder that contains the module; in a study "
            "`--env` and `--env-file` are typed, and the others are keys of `[apps.shop]`",
        ),
        (f'{SHOP}dir = "nowhere"\n', "nowhere` is not a folder; expected the folder that contains", None),
        (f'{SHOP}requirements = "no.txt"\n', "no.txt`: there is no such file", None),
        (f'{SHOP}current = "gunicorn other:app"\n', "which serves `other:app`, not `shop:app`", "--current"),
        (f'{SHOP}command = "./none {{port}}"\n', "cannot find a program `./none` to run", None),
        (
            SHOP,
            "a subject has `yours`, and no command of today was found",
            'current = "gunicorn -w 4 shop:app"',
        ),
        (
            '[apps.shop]\napp = "hello"\n',
            "`hello` is a built-in app; expected an app of your own",
            "[[subjects]]",
        ),
    ],
)
def test_what_is_wrong_with_an_app_is_told_with_its_table(planned, apps, told, hint):
    _, err = planned({"shop.py": APP}, apps, subjects('["yours", "waitress"]'), status=2)
    assert "error: study `mine.toml`, `[apps.shop]`: " in err
    assert told in err
    assert hint is None or hint in " ".join(err.split())


def test_an_app_may_not_have_the_name_of_a_built_in_one(planned):
    apps = SHOP.replace("apps.shop", "apps.hello")
    _, err = planned({"shop.py": APP}, apps, subjects('"waitress"', '"hello"'), status=2)
    assert "`[apps.hello]`: `hello` is a built-in app" in err


def test_variables_that_are_missing_are_named_with_what_sets_them(planned):
    files = {"shop.py": f"import os\nos.environ['URL']\n{APP}"}
    _, err = planned(files, SHOP, subjects('"waitress"'), status=2)
    assert "the app needs variables that are not set: `URL` (shop.py:2)" in err
    assert "--env URL=... sets them" in " ".join(err.split())
    assert planned({}, SHOP, subjects('"waitress"'), "--env", "URL=1")[0]


@pytest.mark.parametrize("words", [("--env", "A=1"), ("--before-each", "true"), ("--ready-timeout", "20s")])
def test_options_of_own_apps_are_refused_where_a_study_has_none(planned, words):
    _, err = planned({}, "", subjects('"waitress"', '"hello"'), *words, status=2)
    assert f"`{words[0]}`: does not apply to the study `mine.toml`" in err


def test_servers_that_lie_in_the_folder_do_not_run_because_a_study_has_an_app(planned, said, folder):
    assert said("servers", "--new", "mine").status == 0
    _, err = planned({"shop.py": APP}, SHOP, subjects('"mine"'), status=2)
    assert "wants `mine` of this folder's `prony.d`" in err


def test_a_study_with_one_is_not_sent_to_a_target(planned, said):
    planned(FILES)
    done = said("run", "mine.toml", "--target", "127.0.0.1")
    assert done.status == 2
    assert "`mine.toml` has an app of yours, `[apps.shop]`: with `--target` a study's" in done.err
