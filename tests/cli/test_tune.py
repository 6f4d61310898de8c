"""`prony tune` says what is wrong before anything starts, and asks for what was typed."""

import json

import pytest

from prony.report.formats.as_json import document_json
from tune import test_tune_answer

SHOP = ("--app", "shop:app")


@pytest.fixture
def tune(said, folder):
    """Run a command in a folder with an app; nothing may start."""
    (folder / "shop.py").write_text("def app(environ, start_response): ...\n")
    return lambda *arguments: said("tune", *arguments)


@pytest.fixture
def asked(monkeypatch):
    """What searches were asked for, none of which ran."""
    wishes = []
    monkeypatch.setattr(
        "prony.cli.tune_search.TuneSearch.run", lambda search: wishes.append(search.wish) or 0
    )
    return wishes


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
        ((*SHOP, "--current", "granian --blocking-threads 0 a:b"), "whose number of processes is known"),
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
            (*SHOP, "--try", "gunicorn.spokes=4"),
            "`gunicorn` has no setting `spokes`; expected one of workers",
        ),
        ((*SHOP, "--try", "gunicorn.threads=many"), "`--set gunicorn.threads=many`: expected"),
        ((*SHOP, "--try", "gunicorn.threads=1"), "`gunicorn.threads` is 1 already"),
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


def test_a_database_allows_so_many_connections(tune, asked):
    tune(*SHOP, "--database-connections", "20")
    assert asked[0].machine.connections == 20


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
