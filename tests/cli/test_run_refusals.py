"""`prony run` says what is wrong before anything is built or started, and `--dry-run` starts nothing."""

import os
import re
import subprocess
import sys

import pytest

from prony.cli.variables import _without_values, variables
from prony.study.admission import ONE_AT_A_TIME

STUDY = """\
format = 1
name = "two"
title = "Two servers"

[[subjects]]
server = ["wsgiref", "waitress"]
app = ["hello", "flask-hello"]

[[workloads]]
loop = "open"
rate = 550

[profiles.quick]
blocks = 5
duration = "2s"

[profiles.full]
blocks = 10
duration = "1m"
"""

APP = """\
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"hi"]
"""


@pytest.fixture
def refused(said, folder):
    """Run a command that must be refused, with 2 and without a trace; return what it said."""
    (folder / "two.toml").write_text(STUDY)
    (folder / "shop.py").write_text(APP)
    before = sorted(folder.iterdir())

    def run(*arguments):
        done = said("run", *arguments)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("error: ")
        assert sorted(folder.iterdir()) == before
        return done.err

    return run


def own(*arguments):
    return ("--app", "shop:app", "--servers", "wsgiref", *arguments)


# --- what is to be measured -------------------------------------------------------------------------------


def test_neither_study_nor_app_is_refused_with_examples_of_both(refused):
    assert refused() == (
        "error: name a study, or your own app with `--app module:attribute`, "
        "or a program with `--command`\n\n"
        "hint: prony run embedded-servers; prony run --help\n"
    )


def test_both_study_and_app_are_refused(refused):
    told = refused("two.toml", *own())
    assert "the study `two.toml` and `--app shop:app` exclude each other; expected one of them" in told


def test_an_unknown_study_is_told_with_the_nearest(refused):
    told = refused("embeded-servers")
    assert "there is no study `embeded-servers`" in told
    assert "did you mean `embedded-servers`?" in told


def test_an_unknown_profile_is_told_with_those_that_there_are(refused):
    assert "study `two` has no profile `fast`; it has quick, full" in refused("two.toml", "--profile", "fast")


def test_only_that_fits_nothing_is_told_with_the_subjects(refused):
    told = refused("two.toml", "--only", "nginx*")
    assert "`--only nginx*` matches no subject of `two`" in told
    assert "wsgiref+hello, wsgiref+flask-hello, waitress+hello, waitress+flask-hello" in told


def test_an_unknown_server_is_told_with_the_nearest(refused):
    told = refused("--app", "shop:app", "--servers", "wsgiref,waitres")
    assert "there is no server `waitres`" in told
    assert "`waitress`" in told


def test_a_server_that_cannot_call_the_app_is_told(refused):
    told = refused("--app", "shop:app", "--servers", "wsgiref,uvicorn")
    assert "`uvicorn` speaks asgi, but the app is wsgi (app(environ, start_response) in shop.py)" in told
    assert "--interface" in told
    assert "`uvicorn` speaks asgi, but the app `shop` offers wsgi" in refused(
        "--app", "shop:app", "--servers", "uvicorn", "--interface", "wsgi"
    )


# --- a study's file ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "rate = 550",
            'rate = "fast"',
            "two.toml:11 workloads.0.rate: found `fast`; expected requests per second",
        ),
        ('"2s"', '"2"', "two.toml:15 profiles.quick.duration: found `2`; expected a number and a unit"),
        ("blocks = 5", "blocks = 0", "two.toml:14 profiles.quick.blocks: found `0`; expected"),
        ("blocks = 5", "bloks = 5", "two.toml:14 profiles.quick.bloks: "),
        ('"open"', '"half-open"', "two.toml:10 workloads.0.loop: found `half-open`; expected"),
        ("rate = 550", "", "two.toml:9 workloads.0: "),
        (
            'server = ["wsgiref", "waitress"]',
            "server = []",
            "two.toml:6 subjects.0.server: found `a list`; expected at least one",
        ),
        ("format = 1", "format = 2", "two.toml:1 format: found `2`; expected"),
        ('name = "two"', 'name = "Two of them"', "two.toml:2 name: found `Two of them`; expected"),
        ("[[workloads]]", "[[workloads]", "two.toml:9: is not TOML"),
        ("rate = 550", "rate = inf", "two.toml:11 workloads.0.rate: found `inf`; expected"),
    ],
)
def test_a_mistake_in_a_study_is_told_by_file_line_and_field(refused, folder, old, new, told):
    (folder / "two.toml").write_text(STUDY.replace(old, new, 1))
    assert told in refused("two.toml")


def test_all_mistakes_of_a_file_are_told_at_once(refused, folder):
    (folder / "two.toml").write_text(STUDY.replace("550", "0").replace('"2s"', '"2"').replace("10", '"ten"'))
    assert refused("two.toml").count("two.toml:") == 3


def test_a_study_that_is_no_text_is_told(refused, folder):
    (folder / "two.toml").write_bytes(b"name = '\xff'\n")
    assert "two.toml:1: is not UTF-8 text" in refused("two.toml")


def test_a_study_that_names_what_the_catalogue_does_not_have_is_told(refused, folder):
    (folder / "two.toml").write_text(STUDY.replace('"waitress"', '"waitres"'))
    assert "study `two.toml`: there is no server `waitres`" in refused("two.toml")
    (folder / "two.toml").write_text(STUDY.replace('"flask-hello"', '"flask-hallo"'))
    assert "study `two.toml`: there is no app `flask-hallo`" in refused("two.toml")


@pytest.mark.parametrize("name", ["st/nofile.toml", "nofile.toml", "st/nofile"])
def test_a_file_of_a_study_that_is_not_there_is_told_as_a_file(refused, name):
    assert f"`{name}`: there is no such file" in refused(name)


def test_a_mistake_in_a_study_hints_at_the_studys_format(refused, folder):
    (folder / "two.toml").write_text(STUDY.replace("550", "0"))
    assert "hint: docs/reference/study-format.md" in refused("two.toml")


# --- settings, variables, files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("waitress", "`--set waitress`: expected `server.key=value`, such as `gunicorn.workers=4`"),
        ("waitress.threads", "expected `server.key=value`"),
        ("threads=4", "expected `server.key=value`"),
        ("waitres.threads=4", "there is no server `waitres`"),
        (
            "gunicorn.workers=4",
            "`--set gunicorn.workers=4`: no subject runs `gunicorn`; the servers are wsgiref, waitress",
        ),
        ("waitress.colour=4", "`--set waitress.colour=4`: expected one of the settings"),
        ("waitress.threads=many", "`--set waitress.threads=many`: expected a whole number from 1 to"),
        ("waitress.threads=0", "`--set waitress.threads=0`: expected a whole number from 1 to"),
        ("wsgiref.request_log=maybe", "`--set wsgiref.request_log=maybe`: expected"),
    ],
)
def test_a_setting_that_nothing_takes_is_refused(refused, setting, told):
    assert told in refused("two.toml", "--set", setting)


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("1A=2", "`--env 1A`: expected a variable's name, or `NAME=value`"),
        ("=2", "`--env `: the name before `=` is missing; expected `NAME=value`"),
        ("PRONY_NOT_SET_HERE", "`--env PRONY_NOT_SET_HERE`: no such variable is set here"),
    ],
)
def test_a_variable_that_is_none_is_refused(refused, variable, told):
    assert told in refused(*own("--env", variable))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1A=2", "vars.env:2: expected a variable's name"),
        ("=2", "vars.env:2: the name before `=` is missing"),
        ("PRONY_NOT_SET_HERE", "vars.env:2: no such variable is set here"),
    ],
)
def test_a_line_of_variables_that_is_none_is_told_by_file_and_line(said, folder, line, told):
    (folder / "shop.py").write_text(APP)
    (folder / "vars.env").write_text(f"# mine\n{line}\n")
    done = said("run", *own("--env-file", "vars.env"))
    assert (done.status, told in done.err) == (2, True), done.err


def test_a_file_of_variables_is_read_as_a_shell_reads_it(tmp_path):
    file = tmp_path / "vars.env"
    file.write_text("export A=1\nB=\"two words\"\nC='x'\nD=it's\n\n# no\n")
    assert variables(["A=2"], file) == {"A": "2", "B": "two words", "C": "x", "D": "it's"}


def test_secret_headers_and_variables_stay_out_of_the_command_line_that_is_kept():
    line = ["--env", "A=s3cret", "-H", "Cookie: s3cret", "-HX-Api-Key: s3cret", "--header=x-token: s3cret"]
    kept = _without_values([*line, "-H", "Accept: text/plain"])
    assert "s3cret" not in " ".join(kept)
    assert kept[-1] == "Accept: text/plain"


def test_a_file_of_variables_that_is_not_there_is_told(refused):
    assert "`--env-file nowhere`: cannot read `nowhere`" in refused(*own("--env-file", "nowhere"))


@pytest.mark.parametrize(
    ("app", "told"),
    [
        ("shops", "`shops` does not name an application; expected `module:attribute`"),
        ("shop:apps", "`shop:apps`: `shop.py` defines no `apps`"),
        ("shop:", "does not name an application"),
        (":app", "does not name an application"),
        ("../shop:app", "does not name an application"),
        ("store:app", "has no module `store`: neither `store.py` nor a package"),
        ("store:app", "--dir names the folder"),
        ("shop.inner:app", "has no module `shop.inner`"),
    ],
)
def test_an_app_that_is_not_there_is_told(refused, app, told):
    assert told in refused("--app", app, "--servers", "wsgiref")


def test_a_folder_that_is_not_there_is_told(refused):
    assert "is not a folder; expected the folder that contains the module `shop`" in refused(
        *own("--dir", "nowhere")
    )


@pytest.mark.parametrize("option", ["--requirements", "--python"])
def test_a_file_that_is_not_there_is_told_by_its_option(refused, option):
    assert f"`{option} nowhere`: there is no such file" in refused(*own(option, "nowhere"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts servers as another user")
def test_an_environment_that_is_closed_to_the_servers_user_is_told(said, folder):
    (folder / "shop.py").write_text(APP)
    (folder / "closed").mkdir(mode=0o700)
    done = said("run", *own("--python", "closed", "--run-as", "nobody"))
    assert (done.status, done.out) == (2, "")
    assert "`--python closed`: the user `nobody`, which servers run as, cannot read it" in done.err
    assert "--run-as" in done.err


def test_an_archive_is_never_overwritten(refused, folder):
    told = refused("two.toml", "--out", "two.toml")
    assert "`two.toml` exists already" in told
    assert (folder / "two.toml").read_text() == STUDY


def test_an_archive_in_a_folder_that_is_not_there_is_told(refused):
    assert "is not a writable folder" in refused("two.toml", "--out", "nowhere/two.prony")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-c", "0"], "`-c 0`: expected one or more counts"),
        (["-c", "1,x"], "`-c 1,x`: expected one or more counts"),
        (["--streams", "0"], "`--streams 0`: expected at least 1"),
        (["--streams", "10001"], "`--streams 10001`: expected at most 10000"),
        (["--rate", "-5"], "`--rate`: `-5` is not a rate"),
        (["--duration", "0s"], "`--duration 0s`: expected more than zero"),
        (["--warmup", "2"], "`--warmup`: `2` is not a duration"),
        (["--timeout", "0ms"], "`--timeout 0ms`: expected more than zero"),
        (["--repeats", "0"], "`--repeats 0`: expected at least 1"),
        (
            ["--seed", "9223372036854775808"],
            "`--seed 9223372036854775808`: expected at most 9223372036854775807",
        ),
        (["--path", "x"], "`x` is not a path; expected one that starts with `/`"),
        (["--net", "bridged"], "`--net bridged`: expected one of 'isolated', 'host'"),
        (["--interface", "cgi"], "`--interface cgi`: expected one of 'wsgi'"),
        (["--servers", ","], "`--servers ,`: expected one or more servers"),
        (["--expect-status", "99"], "`--expect-status 99`: expected statuses from 100 to 999"),
        (["--expect-body", "@nowhere"], "`--expect-body @nowhere`: cannot read `nowhere`"),
        (["-H", "a b: c"], "`-H a b: ...`: expected a header's name"),
        (["--run-as", "no-such-user"], "`--run-as no-such-user`: this machine has no such user"),
        (["--catalog", "nowhere.toml"], "`nowhere.toml` is neither a file nor a folder"),
        (["--engine-threads", "0"], "`--engine-threads 0`: expected at least 1"),
    ],
)
def test_a_bad_value_is_refused_by_option_value_and_expectation(refused, options, told):
    assert told in refused(*own(), *options)


# --- options that would change nothing ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        *(["--servers", "wsgiref"], ["--streams", "2"], ["--rate", "5"], ["--arrivals", "constant"]),
        *(["--duration", "1s"], ["--warmup", "1s"], ["--timeout", "1s"], ["--path", "/"], ["-m", "GET"]),
        *(["-H", "A: b"], ["--body", "x"], ["--env", "A=b"], ["--env-file", "x"], ["--expect-body", "x"]),
        *(["--expect-status", "200"], ["--dir", "."], ["--interface", "wsgi"], ["--requirements", "x"]),
        ["--python", "x"],
    ],
)
def test_an_option_of_ones_own_app_is_refused_with_a_study(refused, option):
    told = refused("two.toml", *option)
    assert f"`{option[0]}`: does not apply to the study `two.toml`" in told
    assert "--profile, --only, --connections, --repeats, --seed and --set apply to a study" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--profile", "full"], "`--profile` only works with a study: `--app` has no profiles"),
        (["--arrivals", "poisson"], "`--arrivals` only works in an open loop"),
        (["--rate", "5", "-c", "1,2"], "`-c 1,2`: with `--rate`, connections are only a limit"),
        (["--python", ".", "--requirements", "two.toml"], "expected one of them"),
        (["--engine-threads", "1000"], "`--engine-threads 1000`: the generator has "),
        (["--streams", "8"], "`--streams 8` needs a server that speaks HTTP/2, and none of these does"),
    ],
)
def test_an_option_that_would_change_nothing_with_ones_own_app_is_refused(refused, options, told):
    assert told in refused(*own(), *options)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("nowhere/x.json", "No such file or directory"),
        (".", "Is a directory"),
        ("two.toml/x", "Not a directory"),
    ],
)
def test_a_json_file_that_cannot_be_written_is_told_before_the_study(refused, target, why):
    assert f"cannot write `{target}`: {why}" in refused("two.toml", "--json", target)


# --- the dry run ------------------------------------------------------------------------------------------


@pytest.fixture
def dry(said, folder, monkeypatch):
    """Run `--dry-run` where starting a process is a failure."""
    (folder / "two.toml").write_text(STUDY)
    (folder / "shop.py").write_text(APP)
    before = sorted(folder.iterdir())

    def start(*arguments, **options):
        raise AssertionError(f"a dry run starts {arguments}")

    monkeypatch.setattr("subprocess.Popen.__init__", start)
    monkeypatch.setattr("os.posix_spawn", start)
    monkeypatch.setattr("os.fork", start)

    def run(*arguments):
        done = said("run", *arguments, "--dry-run")
        assert (done.status, done.err) == (0, "")
        assert sorted(folder.iterdir()) == before
        return done.out

    return run


def test_a_dry_run_lists_every_cell_with_its_command_and_starts_nothing(dry):
    shown = dry("two.toml")
    assert "4 cells x 5 blocks, seed 1, profile quick" in shown
    assert "waitress+flask-hello: open loop, 550/s constant, 2 s, GET /" in shown
    assert shown.count("waitress-serve --listen=127.0.0.1:8000") == 2
    assert "calibration, first, last and once inside each block: the reference server" in shown
    assert "39 trials, about" in shown


def test_a_dry_run_counts_and_names_cpus_in_words(dry):
    shown = dry("--app", "shop:app", "--servers", "wsgiref", "--repeats", "1", "--no-calibration")
    assert "1 cell x 1 block, seed" in shown
    assert "1 trial, about" in shown
    assert re.search(r"server on CPUs? [0-9, ]+, generator on CPUs? [0-9]", shown)


FIVE = ("--repeats", "5")


def test_an_app_of_which_nothing_is_said_is_asgi_where_that_is_all_that_its_servers_share(dry, folder):
    (folder / "shop.py").write_text("app = make()")
    assert "uvicorn+shop" in dry("--app", "shop:app", "--servers", "uvicorn,hypercorn,granian", *FIVE)


def test_a_dry_run_shows_what_was_set(dry):
    assert "--threads=7" in dry("two.toml", "--set", "waitress.threads=7")


def test_the_setting_of_a_server_may_be_an_expression_of_its_cpus(dry):
    assert re.search(r"--threads=[0-9]+0 ", dry("two.toml", "--set", "waitress.threads=10*{cpus}"))


def test_a_dry_run_shows_streams_and_names_who_does_not_take_them(dry):
    grid = ("--servers", "hypercorn", "--set", "hypercorn.wire=http,http2")
    shown = dry("--app", "shop:app", *grid, "-c", "4", "--streams", "8", "--repeats", "1", "--no-calibration")
    assert "hypercorn[wire=http2]+shop: closed loop, 4 connections, 8 streams each, 10 s, GET /" in shown
    assert f"hypercorn[wire=http]+shop is left out: {ONE_AT_A_TIME}" in shown
    assert "1 trial, about" in shown


def test_a_dry_run_of_ones_own_app_shows_its_grid(dry):
    typed = ("--servers", "wsgiref,gunicorn", "-c", "10,100", "--path", "/x", "-m", "post")
    shown = dry("--app", "shop:app", *typed, *FIVE)
    assert "shop:app on 2 servers" in shown
    assert "gunicorn+shop: closed loop, 100 connections, 10 s, POST /x" in shown
    assert "39 trials" in shown


def test_the_servers_of_an_app_are_those_usual_for_its_interface(dry, folder):
    (folder / "shop.py").write_text("async def app(scope, receive, send): ...")
    shown = dry("--app", "shop", *FIVE)
    assert re.findall(r"^(\w+)\+shop:", shown, re.MULTILINE) == ["uvicorn", "granian", "hypercorn"]
    assert "3 cells x 5 blocks" in shown


def test_an_app_in_a_src_layout_runs_in_its_projects_folder(dry, folder, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "shop.py").write_text(APP)
    shown = dry("--app", "shop:app", "--servers", "gunicorn", "--dir", str(tmp_path))
    assert f"cd {tmp_path} && PYTHONPATH=src gunicorn" in shown


def test_a_server_or_a_count_named_twice_is_measured_once(dry):
    assert "2 cells" in dry("--app", "shop:app", "--servers", "wsgiref,wsgiref", "-c", "1,2,01")


def test_an_app_is_asgi_when_all_servers_speak_only_that(dry, folder):
    (folder / "shop.py").write_text("app = make()")
    assert "uvicorn+shop" in dry("--app", "shop:app", "--servers", "uvicorn,uvicorn-quiet")


def test_the_folder_of_an_app_is_shown_without_dots(dry, folder):
    shown = dry("--app", "shop:app", "--servers", "gunicorn", "--dir", f"../{folder.name}")
    assert ".." not in shown


def test_only_narrows_ones_own_app(dry):
    shown = dry("--app", "shop:app", "--servers", "wsgiref,gunicorn", "--only", "wsgiref*")
    assert "gunicorn+shop" not in shown


def test_a_list_of_servers_may_hold_blanks(dry):
    assert "2 cells" in dry("--app", "shop:app", "--servers", " wsgiref, gunicorn ,")


def test_only_and_profile_narrow_a_dry_run(dry):
    shown = dry("two.toml", "--only", "waitress+fl*", "--profile", "full")
    assert "1 cell x 10 blocks" in shown
    assert "wsgiref" not in shown


def test_connections_of_a_study_are_those_of_its_loads_that_are_measured(dry):
    shown = dry("wsgi-servers", "--profile", "full", "-c", "100,10000", "--only", "meinheld*")
    assert "2 cells x 10 blocks" in shown
    assert "closed loop, 10000 connections" in shown


def test_the_built_in_study_is_eight_subjects_at_550_a_second_in_under_ten_minutes(dry):
    shown = dry("embedded-servers")
    assert shown.count("open loop, 550/s constant") == 8
    assert "55 trials, about" in shown
    assert int(shown.rpartition("about ")[2].split(" min")[0]) < 10


@pytest.mark.parametrize("name", ["gunicorn", "gunicorn-gthread", "nginx", "postgresql"])
def test_a_command_cannot_take_a_name_of_the_catalogue(refused, name):
    said = refused("--command", f"{name}=/bin/true {{port}}")
    assert f"the catalogue already has the name `{name}`" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--app", "hello", "--python", "/usr"], "`--python` only works with an app of your own"),
        (["--app", "hello", "--dir", "/"], "`--dir` only works with an app of your own"),
        (["--app", "hello", "--expect-status", "200"], "`hello` is a built-in app"),
        (["--app", "hello", "--servers", "wsgiref@"], "there is no frontend ``"),
        (["--app", "hello", "--servers", "wsgiref@apahce"], "did you mean `apache`"),
        (
            ["--app", "hello", "--servers", "uvicorn@nginx", "--set", "apache.workers=2"],
            "no subject stands behind",
        ),
        (["--app", "helo", "--servers", "wsgiref"], "did you mean `hello`"),
        (["--app", "none.psgi", "--servers", "starman"], "there is no such file"),
        (["--rps", "50"], "--rate is the number of requests per second"),
        (
            ["--app", "hello", "--servers", "gunicorn", "--set", "gunicorn.worker_class=gevent"],
            "`gunicorn-gevent` is a server of its own: --servers gunicorn-gevent",
        ),
        (
            ["--app", "hello", "--servers", "socketify"],
            "hint: `prony servers` lists them all; `prony servers --new",
        ),
        (
            ["--app", "hello", "--sandbox", "process", "--memory", "1G"],
            "`--memory 1G`: the sandbox `process` cannot enforce limits",
        ),
        (["--app", "hello", "--memory", "much"], "`--memory much`: expected a number"),
        (["--app", "hello", "--memory", "5"], "`--memory 5`: expected at least `1M`"),
    ],
)
def test_what_would_change_nothing_or_is_not_there_is_refused(refused, arguments, words):
    assert words in refused(*arguments)


def test_an_option_that_takes_one_value_is_refused_when_it_is_typed_twice(folder, prony):
    line = [*("-m", "prony"), *("run", "--app", "hello", "--rate", "50", "--rate", "60", "--dry-run")]
    done = subprocess.run([sys.executable, *line], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 2
    assert "`--rate` is typed 2 times; expected once" in done.stderr


# --- a mix of paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["wrk", "./my_load.sh {url}"])
def test_a_generator_that_sends_no_mix_is_refused_by_its_name(said, folder, engine):
    (folder / "shop.py").write_text(APP)
    mix = ("--path", "/=9", "--path", "/cart=1")
    done = said("run", "--app", "shop:app", "--servers", "wsgiref", *mix, "--engine", engine, "--dry-run")
    assert done.status == 2
    assert f"`--engine {engine}` cannot send a mix of paths" in done.err
    assert "Prony's own generator sends mixes" in done.err


def test_a_mix_that_is_none_is_refused_before_anything_is_built(said, folder):
    (folder / "shop.py").write_text(APP)
    done = said("run", "--app", "shop:app", "--servers", "wsgiref", "--path", "/", "--path", "/cart=x")
    assert done.status == 2
    assert "`x` is not a weight" in done.err


def test_a_mix_is_shown_with_its_weights_before_it_is_sent(said, folder):
    (folder / "shop.py").write_text(APP)
    mix = ("--path", "/=9", "--path", "/cart?a=1 =1")
    done = said("run", "--app", "shop:app", "--servers", "wsgiref", *mix, "--dry-run")
    assert done.status == 0
    assert "mix of 2 paths" in done.out
    assert "GET /=9 /cart?a=1 =1" in done.out
