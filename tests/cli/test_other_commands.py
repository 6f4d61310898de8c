"""`prony servers`, `host`, `env`, `clean`, `report`, `reference`, and Prony without a command."""

import json
import os
import re
import signal
from pathlib import Path
from urllib.request import urlopen

import pytest

import prony
from commands import ended
from golden.build import study_two
from prony.catalog.schema.loader import load_catalog
from prony.machine.claim import claim_machine


def test_prony_alone_shows_its_commands_and_is_a_misuse(said):
    done = said()
    assert (done.status, done.out) == (2, "")
    assert all(
        f"\n  {name} " in done.err for name in ("run", "load", "report", "servers", "host", "env", "clean")
    )


def test_an_unknown_command_is_told(said):
    done = said("lode")
    assert (done.status, done.out) == (2, "")
    assert "error: no such command 'lode'" in done.err


def test_the_version_is_one_line(said):
    assert said("--version").out.startswith("prony ")


def test_a_fault_of_pronys_own_is_said_in_a_line_and_exits_with_4(said, monkeypatch):
    def fail(**_):
        raise ZeroDivisionError("seven by nothing")

    monkeypatch.setattr("prony.machine.fingerprint.fingerprint", fail)
    done = said("host")
    assert (done.status, done.out) == (4, "")
    assert done.err == (
        "error: a fault in Prony itself: ZeroDivisionError: seven by nothing\n\n"
        "hint: set PRONY_TRACE=1 and repeat the command to see where\n"
    )


# --- servers ----------------------------------------------------------------------------------------------


def test_servers_fit_two_screens_each_by_its_name_with_a_sign_of_its_variants(said):
    shown = said("servers").out
    names = set(re.findall(r"[\w-]+", shown))
    catalog = load_catalog()
    assert {entry.name for entry in catalog.entries()} <= names
    shown_names = set(shown.replace(",", " ").split())
    for server in ("gunicorn", "waitress"):
        assert (f"{server}*" in shown_names) is bool(catalog.servers[server].variants)
    assert len(shown.splitlines()) <= 48


def test_one_server_is_shown_with_its_settings_and_their_sources(said):
    shown = said("servers", "gunicorn").out
    assert "worker_class" in shown
    assert "gunicorn/config.py" in shown


def test_a_variants_name_shows_its_server(said):
    assert said("servers", "gunicorn-gthread").out == said("servers", "gunicorn").out


def test_an_unknown_server_is_told_with_the_nearest(said):
    done = said("servers", "gunicor")
    assert (done.status, done.out) == (2, "")
    assert "there is no server `gunicor`" in done.err
    assert "`gunicorn`" in done.err


def test_servers_are_also_data(said):
    entries = said("servers", "--json").json
    assert {"gunicorn", "waitress", "uwsgi"} <= {entry["name"] for entry in entries}
    assert [entry["name"] for entry in said("servers", "waitress", "--json").json] == ["waitress"]


def test_the_script_of_a_server_is_printed_as_it_is_run(said):
    compile(said("servers", "tornado", "--file", "serve.py").out, "serve.py", "exec")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tornado", "--file", "nothing.py"], "no such file"),
        (["--file", "serve.py"], "expected the name of one server before it"),
    ],
)
def test_a_file_that_no_server_has_is_refused(said, arguments, words):
    done = said("servers", *arguments)
    assert (done.status, done.out) == (2, "")
    assert words in done.err


def test_an_entry_of_ones_own_is_listed_too(said, folder):
    built_in = Path(prony.__file__).parent / "catalog" / "servers" / "wsgiref.toml"
    text = (
        built_in.read_text()
        .replace('name = "wsgiref"', 'name = "mine"')
        .replace('title = "', 'title = "Mine: ')
    )
    (folder / "mine.toml").write_text(text)
    assert "Mine" in said("servers", "--catalog", "mine.toml", "mine").out


# --- host, env, clean -------------------------------------------------------------------------------------


def test_the_host_is_shown_and_is_also_data(said):
    assert "CPU" in said("host").out
    found = said("host", "--json").json
    assert set(found) == {"fingerprint", "preflight", "calibration"}
    assert found["fingerprint"]["kernel"]["release"] == os.uname().release


def test_a_cache_that_is_empty_is_no_error(said, folder, monkeypatch):
    said("host")  # takes the fixture's environment, in which the next line changes one variable
    monkeypatch.setattr("commands.Prony.environment", lambda self: {"PRONY_CACHE": str(folder / "empty")})
    assert said("env").status == 0


@pytest.fixture
def own_cache(said, folder, monkeypatch):
    """A cache with an environment, an app and the remains of a run, in place of the shared one."""
    for part in ("environments/waitress-1", "apps/hello-1"):
        (folder / "cache" / part).mkdir(parents=True)
        (folder / "cache" / part / "file").write_bytes(b"x" * 5000)
    monkeypatch.setenv("PRONY_CACHE", str(folder / "cache"))
    return folder / "cache"


def test_env_shows_what_is_kept_with_its_size(said, own_cache):
    shown = said("env").out
    assert "waitress-1" in shown
    assert "8.00 KiB" in shown


def test_env_is_also_data(said, own_cache):
    found = said("env", "--json").json
    assert found["cache"] == str(own_cache)
    assert {(item["kind"], item["name"]) for item in found["items"]} == {
        ("apps", "hello-1"),
        ("environments", "waitress-1"),
    }


def test_clean_alone_keeps_environments(said, own_cache):
    assert said("clean").status == 0
    assert (own_cache / "environments/waitress-1").exists()


def test_clean_all_frees_environments_and_apps(said, own_cache):
    assert "freed 16.0 KiB" in said("clean", "--all").out
    assert not list(own_cache.glob("*/*"))


def test_nothing_is_freed_while_another_prony_measures_with_it(said, own_cache):
    with claim_machine():
        done = said("clean", "--all")
    assert (done.status, "another Prony is measuring on this machine" in done.err) == (3, True)
    assert (own_cache / "environments/waitress-1").exists()


# --- report -----------------------------------------------------------------------------------------------


def test_a_report_is_made_from_an_archive_alone(said, folder):
    study_two(folder / "two.prony")
    done = said("report", "two.prony")
    assert (done.status, done.err) == (0, "")
    assert "has the best figure; too few repeats for a verdict" in done.out
    assert done.out.endswith("Archive: two.prony\nEverything: prony report two.prony --full\n")
    assert "\nAnswer\n" in said("report", "two.prony", "--full").out
    assert said("report", "two.prony", "--json").json["plan"]["name"] == "embedded-servers"
    assert [path.name for path in folder.iterdir()] == ["two.prony"]


@pytest.mark.parametrize(
    ("content", "status", "told"),
    [
        (b"", 3, "`x.prony` is not a Prony archive"),
        (b"x" * 5000, 3, "`x.prony` is not a Prony archive"),
        (None, 2, "`x.prony`: there is no such file"),
    ],
)
def test_a_file_that_is_no_archive_is_told(said, folder, content, status, told):
    if content is not None:
        (folder / "x.prony").write_bytes(content)
    done = said("report", "x.prony")
    assert (done.status, done.out) == (status, "")
    assert f"error: {told}" in done.err
    assert "hint: an archive is the file `*.prony` that `prony run` names" in done.err


def test_a_database_of_another_program_is_told(said, folder):
    import sqlite3

    database = sqlite3.connect(folder / "x.prony")
    database.execute("CREATE TABLE trial (x)")
    database.commit()
    database.close()
    done = said("report", "x.prony")
    assert (done.status, done.out) == (3, "")
    assert "is a SQLite file, but not a Prony archive" in done.err


def test_a_folder_is_no_archive(said):
    assert said("report", ".").status == 3


# --- reference --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_reference_server_serves_until_it_is_told_to_end_and_prints_its_counts(prony, number):
    with ended(prony.start("reference", "--port", "0", "--body", "1KiB")) as process:
        address = process.stderr.readline().split()[-1]
        with urlopen(address, timeout=10) as reply:
            assert len(reply.read()) == 1024
        process.send_signal(number)
        out, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    assert json.loads(out)["requests"] == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--port", "99999"], "`--port 99999`: expected at most 65535"),
        (["--delay", "5"], "`--delay`: `5` is not a duration"),
        (["--distribution", "normal"], "`--distribution normal`: expected one of 'fixed', 'exponential'"),
        (["--body", "huge"], "`--body`: `huge` is not a size"),
        (["--framing", "none"], "`--framing none`: expected one of 'content_length'"),
        (["--stall-after", "1s"], "`--stall-after` and `--stall-for` only work together"),
        (["--stall-after", "1s", "--stall-for", "0s"], "`--stall-for 0s`: expected more than zero"),
        (["--error-every", "0"], "`--error-every 0`: expected at least 1"),
        (["--threads", "0"], "`--threads 0`: expected at least 1"),
    ],
)
def test_what_the_reference_server_cannot_do_is_refused(said, options, told):
    done = said("reference", "--port", "0", *options)
    assert (done.status, done.out) == (2, "")
    assert told in done.err


def test_a_port_that_is_taken_is_told(said, reference):
    port = reference.rpartition(":")[2]
    done = said("reference", "--port", port)
    assert done.status in (2, 3)
    assert port in done.err


def test_a_template_is_printed_filled_in_for_the_variant_and_the_app(said):
    out = said("servers", "nginx-wsgi-tuned", "--file", "nginx.conf", "--app", "shop.web:app").out
    assert "prony_wsgi shop.web:app;" in out
    assert "access_log off;" in out
    assert "listen 127.0.0.1:8000" in out
    own = ("--set", "nginx.wire=fastcgi", "--set", "nginx.workers=3")
    out = said("servers", "nginx", "--file", "nginx.conf", *own).out
    assert "fastcgi_pass" in out
    assert "worker_processes 3;" in out
    out = said("servers", "nginx", "--file", "nginx.conf", "--app", "shop.php", *own).out
    assert 'fastcgi_param SCRIPT_FILENAME "./shop.php";' in out
    out = said("servers", "nginx", "--file", "nginx.conf", "--app", "public/shop.php", *own).out
    assert 'fastcgi_param SCRIPT_FILENAME "./public/shop.php";' in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nginx", "--set", "nginx.wire=gopher"], "expected one of http, fastcgi, uwsgi, scgi"),
        (["nginx", "--set", "nginx.port=abc"], "expected a port"),
        (["nginx", "--set", "nginx.port=80; evil x"], "expected a port"),
        (["nginx", "--set", "apache.workers=2"], "the file is one of `nginx`"),
        (["nginx-wsgi", "--app", "x;evil:app"], "expected a built-in app"),
        (["nginx", "--set", "nginx.workers=0"], "expected a whole number from 1"),
        (["nginx", "tornado"], "expected the name of one server before it"),
    ],
)
def test_what_a_template_cannot_take_is_refused(said, arguments, words):
    done = said("servers", *arguments, "--file", "nginx.conf")
    assert (done.status, done.out) == (2, "")
    assert words in done.err


def test_the_schema_of_reports_is_printed_without_an_archive(said):
    done = said("report", "--schema")
    assert done.status == 0
    assert json.loads(done.out)["$schema"].startswith("https://json-schema.org/")
