"""`prony tune` says what is wrong before anything starts, and asks for what was typed."""

import json
from dataclasses import replace

import pytest

from prony.cli.tune_search import (
    Today,
    how_to_start,
    said_of_kept_connections,
    said_of_numbers,
    said_of_threads,
    variables_beside,
)
from prony.machine.cpus import Cpu
from prony.report.formats.as_json import document_json
from prony.study.assembly import command_line
from prony.tune.race import Move, Recommendation
from prony.tune.space import Candidate
from tune import test_tune_answer

SHOP = ("--app", "shop:app")


@pytest.fixture
def tune(said, folder):
    """Run a command in a folder with an app; nothing may start."""
    (folder / "shop.py").write_text("def app(environ, start_response): ...\n")
    return lambda *arguments: said("tune", *arguments)


@pytest.fixture
def searches(monkeypatch):
    """Searches, none of which ran."""
    found = []
    monkeypatch.setattr("prony.cli.tune_search.TuneSearch.run", lambda search: found.append(search) or 0)
    return found


@pytest.fixture
def asked(monkeypatch):
    """What searches were asked for, none of which ran."""
    wishes = []
    monkeypatch.setattr(
        "prony.cli.tune_search.TuneSearch.run", lambda search: wishes.append(search.wish) or 0
    )
    return wishes


def started(search):
    """The command that a search measures first."""
    return command_line(search.template.catalog, search.template.plan.cells[0].subject, 1)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ((), "expected your own app"),
        ((*SHOP, "--command", "./shop {port}"), "a program has no settings that Prony can turn"),
        ((*SHOP, "--slo", "p99 is low"), "`--slo`: `p99 is low` is not a condition"),
        ((*SHOP, "--rate", "100"), "at one rate all settings carry the same"),
        ((*SHOP, "-c", "10,100"), "`-c 10,100`: expected one number of connections"),
        (
            (*SHOP, "--current", "flask run"),
            "`--current flask run`: starts no server whose number of processes is known",
        ),
        ((*SHOP, "--current", "gunicorn -w four shop:app"), "whose number of processes is known"),
        (
            (*SHOP, "--current", "granian --interface wsgi --blocking-threads 0 shop:app"),
            "whose number of processes is known",
        ),
        ((*SHOP, "--current", "gunicorn -w 4 other:app"), "which serves `other:app`, not `shop:app`"),
        ((*SHOP, "--current", "gunicorn -w $(cat n) shop:app"), "`-w $(cat n)` cannot be taken over"),
        ((*SHOP, "--current", "gunicorn -w $N shop:app"), "`-w $N` cannot be taken over"),
        (
            (*SHOP, "--current", "gunicorn -w 4 -k eventlet shop:app"),
            "`--worker-class eventlet` cannot be taken",
        ),
        (
            (*SHOP, "--current", "uwsgi --http :80 --cheaper 2 -p 8 -w shop:app"),
            "`--cheaper 2` cannot be taken",
        ),
        ((*SHOP, "--current", "gunicorn -c /etc/g.py shop:app"), "`-c /etc/g.py` cannot be taken over"),
        (
            ("--app", "hello", "--current", "gunicorn -w 4 hello:app"),
            "a built-in app, which nothing serves today",
        ),
        ((*SHOP, "--hold", "workers", "--hold", "threads"), "nothing is left to turn"),
        ((*SHOP, "--budget", "1m"), "`--budget 1m`: has room for"),
        ((*SHOP, "--budget", "soon"), "`--budget`: `soon` is not a duration"),
        ((*SHOP, "--servers", "wsgiref"), "wsgiref: no number of workers or threads"),
        ((*SHOP, "--servers", "nginx-gunicorn"), "nginx-gunicorn"),
        ((*SHOP, "--out", "shop.py"), "`shop.py` is a file; expected a folder"),
        ((*SHOP, "--out", "nowhere/deep"), "`nowhere` is not a writable folder"),
        ((*SHOP, "--json", "nowhere/deep"), "cannot write `nowhere/deep`"),
        ((*SHOP, "--try", "threads"), "`--try threads`: expected a setting of a server"),
        ((*SHOP, "--try", "nginx.workers=4"), "no server here is `nginx`; expected one of gunicorn"),
        (
            (*SHOP, "--current", "gunicorn -w 4 shop:app", "--try", "granian.workers=2"),
            "the app is served by `gunicorn` today; expected a setting of that",
        ),
        (
            (*SHOP, "--current", "gunicorn shop:app", "--servers", "granian", "--try", "granian.workers=2"),
            "hint: --servers granian without --try compares both servers; --no-current --servers granian",
        ),
        (
            (*SHOP, "--servers", "waitress", "--hold", "workers"),
            "`--hold workers`: no number of workers can be turned on waitress",
        ),
        (
            (*SHOP, "--try", "gunicorn.spokes=4"),
            "`gunicorn` has no setting `spokes`; expected one of workers",
        ),
        ((*SHOP, "--try", "gunicorn.threads=many"), "`--set gunicorn.threads=many`: expected"),
        ((*SHOP, "--try", "gunicorn.threads=1"), "`gunicorn.threads` is 1 already"),
        ((*SHOP, "--try", "gunicorn.threads=8", "--slo", "p99 < 9ms"), "`--slo` does not work with `--try`"),
        ((*SHOP, "--try", "gunicorn.threads=8", "--hold", "threads"), "`--hold` does not work with `--try`"),
        ((*SHOP, "--pairs", "9"), "`--pairs` only works with `--try`"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(tune, folder, typed, words):
    done = tune(*typed)
    assert done.status == 2
    assert words in done.err
    assert [one.name for one in folder.iterdir() if one.suffix != ".py" and "cache" not in one.name] == []


def test_the_settings_of_today_are_tried_with_their_server_though_others_are_named(tune, asked):
    tune(*SHOP, "--servers", "granian", "--current", "gunicorn -w 4 shop:app")
    [wish] = asked
    assert [one.server for one in wish.knobs] == ["gunicorn", "granian"]
    assert (wish.incumbent.workers, wish.incumbent.threads) == (4, 1)


def test_the_settings_of_today_are_found_in_the_folder(tune, asked, folder):
    (folder / "Procfile").write_text("web: gunicorn -c conf.py --threads 2 --max-requests 900 shop:app")
    (folder / "conf.py").write_text("workers = 3")
    tune(*SHOP)
    assert (asked[-1].incumbent.workers, asked[-1].incumbent.threads) == (3, 2)
    tune(*SHOP, "--no-current")
    assert (asked[-1].incumbent.workers, asked[-1].incumbent.threads) == (1, 1)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"Procfile": "web: gunicorn -w $(cat n) shop:app"}, "`-w $(cat n)`"),
        ({"Procfile": "web: gunicorn -w $WORKERS shop:app"}, "`-w $WORKERS`"),
        ({"Procfile": "web: gunicorn -k tornado shop:app"}, "`--worker-class tornado`"),
        ({"Procfile": "web: gunicorn -w 4 -k shop.Own shop:app"}, "`--worker-class shop.Own`"),
        (
            {"Procfile": "web: uwsgi a.ini", "a.ini": "[uwsgi]\nmodule = shop:app\nprocesses = %n"},
            "`processes = %n`",
        ),
        (
            {"Procfile": "web: gunicorn -c a.py shop:app", "a.py": "workers = count()"},
            "how many processes it starts",
        ),
        (
            {"Procfile": "web: gunicorn -c a.py -w 4 shop:app", "a.py": "worker_class = best()"},
            "`--worker-class ...`",
        ),
        ({"Procfile": "web: flask --app shop run"}, "`flask --app shop run` serves by itself"),
        (
            {"Dockerfile": "FROM python\nENV WEB_CONCURRENCY=$N\nCMD gunicorn shop:app"},
            "how many processes it starts",
        ),
        (
            {
                "Procfile": "web: gunicorn -c a.py shop:app",
                "a.py": "import os\nworkers = 1\nif os.getenv('LIVE'):\n    workers = 9\n",
            },
            "how many processes it starts",
        ),
        (
            {
                "Dockerfile": "FROM tiangolo/uvicorn-gunicorn\nENV APP_MODULE=shop:app\nCOPY . /app\n",
                "shop.py": "async def app(scope, receive, send): ...\n",
            },
            "`-w $WEB_CONCURRENCY`",
        ),
        (
            {
                "Procfile": "web: python serve.py",
                "serve.py": "import os, waitress\nfrom shop import app\n"
                "waitress.serve(app, port=80, threads=os.cpu_count())",
            },
            "`threads` in serve.py",
        ),
    ],
)
def test_what_runs_today_is_not_called_yours_where_its_numbers_cannot_be_read(
    tune, searches, folder, files, words
):
    for name, text in files.items():
        (folder / name).write_text(text)
    done = tune(*SHOP)
    [search] = searches
    assert search.today.origin == f"its default; yours could not be read: {words}", done.err
    assert search.wish.incumbent == search.wish.knobs[0].default


def test_the_command_of_another_app_is_not_yours(tune, searches, folder):
    (folder / "Procfile").write_text("web: gunicorn -w 9 other:app")
    assert "which serves `other:app`, not `shop:app`" in tune(*SHOP).err
    assert (searches[0].today.origin, searches[0].wish.incumbent.workers) == ("its default", 1)


def test_all_settings_of_a_server_keep_the_other_options_of_today(tune, searches):
    tune(
        *SHOP,
        "--current",
        "gunicorn -w 4 -k gthread --timeout 120 --preload --max-requests-jitter 5 -c conf.py shop:app",
    )
    [search] = searches
    assert search.today.origin == "yours"
    found = started(search)
    assert "gunicorn --preload --max-requests-jitter 5 -c conf.py --bind" in found
    assert "--worker-class gthread --threads 1" in found
    assert "--timeout 120" in found
    assert search.wish.knobs[0].default == Candidate("gunicorn", 1, 1)


def test_what_of_today_is_not_measured_stands_beside_it(tune, searches):
    tune(*SHOP, "--current", "gunicorn -w 4 --reload --backlog 0 --chdir $AT --worker-tmp-dir $DIR shop:app")
    [search] = searches
    assert search.today.origin == "yours without `--worker-tmp-dir $DIR`, `--reload`, `--backlog 0`"
    assert "reload" not in started(search)


def test_another_class_of_uvicorns_workers_is_the_one_that_is_measured(tune, searches, folder):
    (folder / "shop.py").write_text("async def app(scope, receive, send): ...\n")
    tune(*SHOP, "--current", "gunicorn -k uvicorn.workers.UvicornH11Worker shop:app")
    assert "--worker-class uvicorn_worker.UvicornH11Worker" in started(searches[0])


def test_the_variables_of_todays_source_are_the_apps(tune, searches, folder):
    (folder / "Dockerfile").write_text('FROM python\nENV DEBUG=0 MODE=a\nCMD ["gunicorn", "shop:app"]')
    tune(*SHOP, "--env", "MODE=b")
    (cell,) = searches[0].template.plan.cells
    assert dict(cell.subject.app.environment) == {"DEBUG": "0", "MODE": "b"}


@pytest.mark.parametrize(
    ("command", "variables", "found"),
    [
        ("uwsgi --http :80 -w shop:app", "UWSGI_PROCESSES=4 UWSGI_THREADS=2", Candidate("uwsgi", 4, 2)),
        ("granian --interface wsgi shop:app", "GRANIAN_WORKERS=3", Candidate("granian", 3)),
        ("gunicorn -w 2 shop:app", "WEB_CONCURRENCY=5", Candidate("gunicorn", 2, 1)),
        ("gunicorn shop:app", "WEB_CONCURRENCY=5", Candidate("gunicorn", 5, 1)),
        ("gunicorn -c g.py shop:app", "WEB_CONCURRENCY=5", Candidate("gunicorn", 3, 1)),
    ],
)
@pytest.mark.parametrize("is_typed", [False, True])
def test_variables_that_a_server_reads_are_its_numbers_and_no_candidate_has_its_own(
    tune, searches, folder, command, variables, found, is_typed
):
    (folder / "g.py").write_text("workers = 3\n")
    given = "" if is_typed else f"ENV {variables} KEPT=1\n"
    (folder / "Dockerfile").write_text(f"FROM python\n{given}CMD {command}")
    typed = [word for one in f"{variables} KEPT=1".split() for word in ("--env", one)]
    done = tune(*SHOP, *(typed if is_typed else ()))
    assert [one.wish.incumbent for one in searches] == [found], done.err
    # What a configuration may read too stays: options win over it.
    shared = {"WEB_CONCURRENCY": "5"} if "WEB_" in variables else {}
    assert dict(searches[0].template.plan.cells[0].subject.app.environment) == {"KEPT": "1", **shared}


def test_a_variable_that_says_the_numbers_of_today_is_named_beside_other_ones(tune, searches):
    tune(*SHOP, "--env", "WEB_CONCURRENCY=4", "--current", "gunicorn shop:app")
    tune(*SHOP, "--env", "WEB_CONCURRENCY=4", "--current", "gunicorn -w 2 shop:app")
    by_variable, by_option = searches
    assert said_of_numbers(by_variable.today, answer(by_variable, 2, 8)) == [
        "Today WEB_CONCURRENCY says how many: change that, or type the options above, which win over it."
    ]
    kept = replace(answer(by_variable, 2, 8), advice=Move.KEEP)
    assert said_of_numbers(by_variable.today, kept) == []
    assert said_of_numbers(by_option.today, answer(by_option, 2, 8)) == []


@pytest.mark.parametrize(
    ("name", "text", "said_so"),
    [
        (
            "supervisord.conf",
            "[program:shop]\ncommand=gunicorn -w 2 shop:app\nnumprocs = 4 ; four\n",
            "`numprocs=4`",
        ),
        (
            "supervisord.conf",
            "[program:shop]\ncommand=gunicorn -w 2 -b :80%(process_num)02d -n %(program_name)s shop:app\n"
            "numprocs = 2\nnumprocs_start = 10\n",
            "`numprocs=2`",
        ),
        (
            "shop@.service",
            "[Service]\nExecStart=/srv/bin/gunicorn -w 2 -b 127.0.0.1:800%i shop:app\n",
            "the instances of `shop@.service`",
        ),
        (
            "compose.yaml",
            "services: {web: {build: ., command: gunicorn -w 2 shop:app, deploy: {replicas: 3}}}",
            "`deploy.replicas: 3`",
        ),
        (
            "compose.yaml",
            "services: {web: {build: ., command: gunicorn -w 2 shop:app, scale: 2}}",
            "`scale: 2`",
        ),
    ],
)
def test_copies_of_a_command_are_named_as_what_is_not_measured(tune, searches, folder, name, text, said_so):
    place = folder / ("." if name.endswith(".yaml") else "deploy")
    place.mkdir(exist_ok=True)
    (place / name).write_text(text)
    done = tune(*SHOP)
    assert [one.today.origin for one in searches] == [f"yours without {said_so}"], done.err
    assert searches[0].wish.incumbent == Candidate("gunicorn", 2, 1)
    assert f"{said_so}, of which one is started" in done.err


def test_the_keep_alive_of_a_configuration_is_that_of_all_settings(tune, searches, folder):
    (folder / "gunicorn.conf.py").write_text("keepalive = 75\nreuse_port = False\ntimeout = 90\n")
    tune(*SHOP)
    found = started(searches[0])
    assert "--keep-alive 75" in found
    assert "--timeout 90" in found
    assert "--reuse-port" not in found


def test_a_server_without_the_number_that_is_held_is_named(tune, searches):
    done = tune(*SHOP, "--servers", "gunicorn,waitress", "--hold", "workers")
    said_so = "No number of workers can be turned on waitress: --hold workers holds none there."
    assert said_so in searches[0].remarks, done.err


def test_what_uwsgi_fills_in_and_an_address_has_is_not_missed(tune, searches, folder):
    ini = "module = shop:app\nsocket = %d/a.sock\nchdir = %d\nprocesses = 3\nprocname = %n\n"
    (folder / "uwsgi.ini").write_text(f"[uwsgi]\n{ini}")
    done = tune(*SHOP)
    assert [one.today.origin for one in searches] == ["yours without `procname = %n`"], done.err


def test_the_folder_of_imports_in_a_typed_command_is_kept(tune, searches, folder):
    (folder / "odd" / "place").mkdir(parents=True)
    (folder / "shop.py").rename(folder / "odd" / "place" / "shop.py")
    done = tune(*SHOP, "--current", "gunicorn --chdir odd/place -w 4 shop:app")
    assert [one.template.plan.cells[0].subject.app.root for one in searches] == ["odd/place"], done.err


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("gunicorn.conf.py", "workers = 3\nthreads = 2\n", Candidate("gunicorn", 3, 2)),
        ("uwsgi.ini", "[uwsgi]\nmodule = shop:app\nprocesses = 5\n", Candidate("uwsgi", 5, 1)),
        ("uwsgi.ini", "[uwsgi]\nmodule = other:app\nprocesses = 5\n", Candidate("gunicorn", 1, 1)),
    ],
)
def test_a_lone_configuration_says_what_runs_today(tune, searches, folder, name, text, found):
    (folder / name).write_text(text)
    done = tune(*SHOP)
    assert [one.wish.incumbent for one in searches] == [found], done.err


def test_a_configuration_of_a_server_that_cannot_serve_the_app_says_nothing(tune, searches, folder):
    (folder / "shop.py").write_text("async def app(scope, receive, send): ...\n")
    (folder / "gunicorn.conf.py").write_text("workers = 3\n")
    done = tune(*SHOP)
    assert [one.today for one in searches] == [Today()], done.err


YOURS = "gunicorn -w 4 -k gthread --timeout 120 --preload shop:app"


@pytest.mark.parametrize(
    ("advice", "command"),
    [
        (Move.KEEP, YOURS),
        (
            Move.CHANGE,
            "gunicorn --workers 2 --threads 8 -k gthread --timeout 120 --preload shop:app",
        ),
    ],
)
def test_the_command_to_use_is_the_one_of_today(tune, searches, advice, command):
    tune(*SHOP, "--current", YOURS)
    [search] = searches
    (cell,) = search.template.plan.cells
    answer = Recommendation(advice, search.wish.incumbent, Candidate("gunicorn", 2, 8), None, {}, {})
    start, forms = how_to_start(answer, cell.subject, search.today)
    assert start == command
    assert bool(forms) is (advice is Move.CHANGE)


def test_a_factory_below_a_folder_of_imports_is_started_as_it_is(tune, searches, folder):
    (folder / "src").mkdir()
    (folder / "shop.py").unlink()
    (folder / "src" / "shop.py").write_text("from flask import Flask\ndef create_app(): return Flask('a')\n")
    (folder / "requirements.txt").write_text("flask\n")
    done = tune("--app", "shop:create_app")
    assert searches, done.err
    answer = Recommendation(
        Move.CHANGE, Candidate("gunicorn", 1, 1), Candidate("gunicorn", 2, 8), None, {}, {}
    )
    start, _ = how_to_start(answer, searches[0].template.plan.cells[0].subject, Today())
    assert start == "PYTHONPATH=src gunicorn --workers 2 --threads 8 'shop:create_app()'"


def test_a_search_sends_the_requests_of_a_file(tune, monkeypatch, folder):
    seen = []

    def noted(search):
        (cell,) = search.template.plan.cells
        sha256 = cell.workload.mix.file.sha256
        seen.append(
            (cell.workload.mix.file.requests, cell.workload.follow, sha256 in search.template.requests)
        )
        return 0

    monkeypatch.setattr("prony.cli.tune_search.TuneSearch.run", noted)
    (folder / "urls.txt").write_text("/a\n/b\n")
    tune(*SHOP, "--requests-from", "urls.txt", "--follow", "2")
    assert seen == [(2, 2, True)]


def test_without_names_only_the_usual_server_is_tried(tune, asked):
    tune(*SHOP)
    assert [one.server for one in asked[0].knobs] == ["gunicorn"]
    assert [one.text for one in asked[0].conditions] == ["errors < 0.1%"]


def test_the_objective_and_the_time_decide_what_is_asked_for(tune, asked):
    tune(*SHOP, "--rate", "100", "--objective", "cpu", "--budget", "30m")
    tune(*SHOP, "--budget", "15m")
    assert (asked[0].metric, asked[0].higher_is_better) == ("cpu_ns_per_request", False)
    assert (asked[1].metric, asked[1].higher_is_better) == ("ok_per_s", True)
    assert asked[0].trials == pytest.approx(2 * asked[1].trials, abs=1)


@pytest.mark.parametrize(
    ("typed", "cpus", "is_shared"),
    [((), 4, True), (("--cpus", "3"), 3, True), (("--cpus", "2"), 2, False), (("--cpus", "0.5"), 0.5, False)],
)
def test_the_server_has_all_cpus_of_the_machine_or_as_many_as_are_asked_for(
    tune, searches, monkeypatch, typed, cpus, is_shared
):
    four = tuple(Cpu(number, number) for number in range(4))
    monkeypatch.setattr("prony.machine.cpus.available_cpus", lambda: four)
    monkeypatch.setattr("prony.machine.cgroups.cgroup", lambda: {"cpu_quota": None})
    tune(*SHOP, *typed)
    assert searches[0].wish.machine.cpus == cpus
    assert searches[0].template.plan.sandbox.share_cpus is is_shared


def test_a_container_has_what_its_groups_allow(tune, searches, monkeypatch):
    monkeypatch.setattr("prony.machine.cgroups.cgroup", lambda: {"cpu_quota": 0.5})
    monkeypatch.setattr("prony.machine.cgroups.memory", lambda: {"limit_bytes": 2**28})
    tune(*SHOP)
    machine = searches[0].wish.machine
    assert (machine.cpus, machine.memory_bytes) == (0.5, 2**28)


def answer(search, workers, threads):
    """The advice to use so many workers and threads of the server of today."""
    own = search.wish.incumbent
    return Recommendation(Move.CHANGE, own, Candidate(own.server, workers, threads), None, {}, {})


@pytest.mark.parametrize(
    ("today", "more", "is_said"),
    [
        ("gunicorn -w 4 shop:app", (), (True, True)),
        ("gunicorn -w 4 shop:app", ("--no-keepalive",), (True, False)),
        ("gunicorn -w 4 --threads 2 shop:app", (), (False, False)),
    ],
)
def test_what_threads_may_break_and_a_proxy_may_take_away_is_said(tune, searches, today, more, is_said):
    tune(*SHOP, "--current", today, *more)
    [search] = searches
    found = answer(search, 4, 16)
    assert (bool(said_of_threads(found)), bool(said_of_kept_connections(search, found))) == is_said
    kept = replace(found, advice=Move.KEEP)
    assert [*said_of_threads(kept), *said_of_kept_connections(search, kept)] == []


def test_variables_that_no_form_has_are_named(tune, searches, folder):
    (folder / "Dockerfile").write_text("FROM python\nENV MODE=live\nCMD gunicorn shop:app")
    tune(*SHOP)
    [search] = searches
    (cell,) = search.template.plan.cells
    _, forms = how_to_start(answer(search, 2, 8), cell.subject, search.today)
    assert variables_beside(search.today, forms) == [
        "The app had MODE as in `CMD` in Dockerfile; no form above repeats them."
    ]
    assert variables_beside(search.today, {}) == []


def test_a_number_is_left_as_it_is_today(tune, searches):
    tune(*SHOP, "--current", "gunicorn -w 3 --threads 2 shop:app", "--hold", "workers")
    [search] = searches
    assert search.wish.incumbent == Candidate("gunicorn", 3, 2)
    assert [(one.default, one.held_workers, one.held_threads) for one in search.wish.knobs] == [
        (Candidate("gunicorn", 3, 1), 3, None)
    ]


def test_a_database_allows_so_many_connections(tune, searches, folder):
    tune(*SHOP, "--database-connections", "20")
    tune(*SHOP, "--database-connections", "20", "--servers", "gunicorn-gevent")
    assert [one.wish.machine.connections for one in searches] == [20, 20]
    counted = "A worker of gunicorn-gevent was counted as one connection to the database"
    assert [any(counted in remark for remark in one.remarks) for one in searches] == [False, True]


@pytest.fixture
def tried(monkeypatch):
    """The plans of settings that were tried, of which none was measured."""
    plans = []

    def study(task, listener):
        plans.append(task.plan)
        raise KeyboardInterrupt

    monkeypatch.setattr("prony.study.run_study", study)
    return plans


def test_one_setting_is_tried_against_the_settings_of_today(tune, tried):
    done = tune(*SHOP, "--current", "gunicorn -w 4 shop:app", "--try", "gunicorn.threads=8", "--pairs", "5")
    assert done.status == 130
    assert "to go on, type again: `prony tune" in done.err
    [plan] = tried
    assert [dict(one.settings) for one in plan.subjects()] == [
        {"workers": 4, "threads": 1},
        {"workers": 4, "threads": 8},
    ]
    assert (plan.blocks, plan.calibration) == (5, None)


def test_a_folder_of_a_search_is_reported_and_another_is_refused(said, folder):
    found = test_tune_answer.raced()
    (folder / "search").mkdir()
    assert "`search` has no `answer.json`" in said("report", "search").err
    (folder / "search" / "answer.json").write_text(json.dumps(document_json(found)))
    assert said("report", "search").out.startswith("shop:app: which settings")
    assert json.loads(said("report", "search", "--json").out)["advice"] == "change"
    page = said("report", "search", "--html", "-").out
    assert "dropped after 2 (race)" in page
    assert "nothing from the network" in page
    assert "`--csv`: a search for settings has text" in said("report", "search", "--csv", "x").err


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"app": 3}', "[" * 100_000, '{"app": NaN}'])
def test_a_file_that_is_no_answer_is_refused_in_words(said, folder, content):
    (folder / "search").mkdir()
    (folder / "search" / "answer.json").write_text(content)
    done = said("report", "search")
    assert done.status == 3
    assert "is no answer of `prony tune`" in done.err
