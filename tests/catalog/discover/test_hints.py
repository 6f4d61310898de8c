"""What a user can do about an app that fails: each row of the table, by what real apps say."""

from dataclasses import replace

import pytest

from prony.catalog.discover.hints import _ROWS, Refusal, hint_for
from prony.catalog.discover.masks import is_alike, template

SAID = {
    "the host": Refusal("Invalid HTTP_HOST header: '127.0.0.1:8000'. You may need to add", 400),
    "the token of a form": Refusal("<p>CSRF verification failed. Request aborted.</p>", 403),
    "https": Refusal("", 301, location="https://127.0.0.1/"),
    "a Perl module": Refusal("Can't locate Text/CSV.pm in @INC (you may need to install"),
    "a file that is loaded": Refusal("Error: Cannot find module './routes/items'\nRequire stack:"),
    "gems of a lock": Refusal("Could not find rack-3.1.0 in locally installed gems (Bundler::GemNotFound)"),
    "a gem": Refusal("app.rb:1:in `require': cannot load such file -- rack_csv/parser (LoadError)"),
    "a module of Node.js": Refusal("Error: Cannot find module 'express'"),
    "packages and their lock": Refusal("npm error `npm ci` can only install packages when your package.json"),
    "a package that is not there": Refusal("npm error code ETARGET\nnpm error notarget No matching version"),
    "packages of Go": Refusal("main.go:9:2: missing go.sum entry for module providing package x"),
    "another Python": Refusal("the current Python version (3.12.3) does not satisfy Python>=3.14 and"),
    "a file in /tmp": Refusal("Error: ENOENT: no such file or directory, open '/tmp/rates.json'"),
    "a module of a package": Refusal("ModuleNotFoundError: No module named 'shop.mail'"),
    "a Python module": Refusal("ModuleNotFoundError: No module named 'humanize'"),
    "a name of its own": Refusal("ImportError: cannot import name 'Item' from 'shop.db' (/srv/shop/db.py)"),
    "an import": Refusal("ImportError: cannot import name 'x' from 'y'"),
    "a table of the database": Refusal("sqlite3.OperationalError: no such table: shop_item", 500),
    "the database's file": Refusal("sqlite3.OperationalError: unable to open database file", 500),
    "a file's permissions": Refusal("PermissionError: [Errno 13] Permission denied: 'secret.txt'", 500),
    "the account of a service": Refusal('FATAL:  password authentication failed for user "shop"'),
    "a service": Refusal("psycopg2.OperationalError: connection to server failed: Connection refused", 500),
    "settings of Pydantic": Refusal(
        "ValidationError: 1 validation error for Settings\nkey\n  Field required"
    ),
    "a variable": Refusal("KeyError: 'DATABASE_URL'"),
    "settings": Refusal("django.core.exceptions.ImproperlyConfigured: Requested setting"),
    "the interface": Refusal("TypeError: app() missing 1 required positional argument: 'send'", 500),
    "what a build makes": Refusal("main.go:9:12: pattern dist/*: no matching files found"),
    "an extension of PHP": Refusal("PHP Fatal error:  Uncaught Error: Call to undefined function mb_trim()"),
    "an error in the source": Refusal("SyntaxError: invalid syntax"),
    "another folder": Refusal("FileNotFoundError: [Errno 2] No such file: 'menu.txt'", 500),
    "a port in use": Refusal("Error: listen EADDRINUSE: address already in use :::9187"),
    "another port": Refusal("the server was not ready within 15 s; it listens on port 3000 instead"),
    "no reply in time": Refusal("GET /: no complete reply within 10 s"),
    "a slow start": Refusal("the server was not ready within 15 s: nothing listens on 127.0.0.1:8000"),
    "a hidden error": Refusal("<h1>Server Error (500)</h1>", 500),
    "nothing at the path": Refusal("", 404, path="/shop"),
    "the method": Refusal("", 405),
    "who asks": Refusal("", 401),
    "a limit of rate": Refusal("", 429),
    "what is sent": Refusal("", 422),
    "a program that is not there": Refusal("sh: 1: tsx: not found"),
    "an early end": Refusal("the server exited with status 0 before it was ready\nconfig.json is missing"),
}


def test_every_row_of_the_table_has_an_example():
    assert [row.name for row in _ROWS] == list(SAID)


@pytest.mark.parametrize("name", SAID)
def test_a_symptom_has_the_hint_of_its_row(name):
    found = hint_for(SAID[name])
    assert found.name == name
    assert "{" not in found.text.replace("{port}", "")


def test_what_lies_beside_the_apps_folder_in_tmp_is_no_file_that_servers_lack():
    refusal = Refusal(
        "FileNotFoundError: No such file or directory: '/tmp/shop/menu'", folder="/tmp/shop/web"
    )
    assert hint_for(refusal).name == "another folder"
    assert (
        "--env FILE=/tmp/menu," in hint_for(replace(refusal, folder="/srv", text=f"{NO_FILE} /tmp/menu")).text
    )


NO_FILE = "fopen(): No such file or directory:"


def test_a_perl_module_is_named_with_debians_package():
    assert "libtext-csv-perl" in hint_for(SAID["a Perl module"]).text
    assert "ruby-rack-csv" in hint_for(SAID["a gem"]).text


@pytest.mark.parametrize(
    "text",
    [
        "./main.go:22:6: undefined: log.Fatl",
        "ReferenceError: x is not defined",
        "PHP Parse error: Unclosed '('",
        'syntax error at app.psgi line 3, near "sub"',
        "src/app.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
    ],
)
def test_a_source_that_cannot_be_run_is_said_in_any_language(text):
    assert hint_for(Refusal(text)).name == "an error in the source"


@pytest.mark.parametrize(
    "text",
    [
        "[2026-11-29 20:00:00 +0000] [412] [ERROR] Connection in use: ('0.0.0.0', 9187)",
        "[Errno 98] error while attempting to bind on address ('0.0.0.0', 9187): address already in use",
        "2026/11/29 20:00:00 listen tcp :9187: bind: address already in use",
    ],
)
def test_the_port_that_is_in_use_is_named(text):
    assert "port 9187," in hint_for(Refusal(text)).text


def test_all_that_settings_of_pydantic_lack_is_named_at_once():
    said = (
        "pydantic_core._pydantic_core.ValidationError: 2 validation errors for AppSettings\n"
        "database_url\n  Field required [type=missing, input_value={}, input_type=dict]\n"
        "    For further information visit https://errors.pydantic.dev/2.11/v/missing\n"
        "secret_key\n  Field required [type=missing, input_value={}, input_type=dict]\n"
    )
    assert "lack DATABASE_URL, SECRET_KEY: --env DATABASE_URL=value --env SECRET_KEY=value" in (
        hint_for(Refusal(said)).text
    )
    # A body that lacks a field is no settings.
    body = Refusal(said.replace("AppSettings", "Order"), 422)
    assert hint_for(body).name == "what is sent"


@pytest.mark.parametrize(
    "text",
    [
        "decouple.UndefinedValueError: DATABASE_URL not found. Declare it as envvar or define a default.",
        'environs.exceptions.EnvError: Environment variable "DATABASE_URL" not set',
        "django.core.exceptions.ImproperlyConfigured: Set the DATABASE_URL environment variable",
        "KeyError: \"Config 'DATABASE_URL' is missing, and has no default.\"",
        'config.rb:3:in `fetch\': key not found: "DATABASE_URL" (KeyError)',
        "Error: Missing required environment variable: DATABASE_URL",
        "Error: DATABASE_URL is not set",
        "2026/11/29 20:00:00 DATABASE_URL must be set",
        "panic: environment variable DATABASE_URL is empty",
        "RuntimeError: please set DATABASE_URL before you start",
        "Missing environment variables:\n    DATABASE_URL: the database",
    ],
)
def test_the_variable_that_a_program_lacks_is_named(text):
    assert "--env DATABASE_URL=value" in hint_for(Refusal(text)).text


@pytest.mark.parametrize(
    "text",
    [
        "ERROR missing file",
        "the offset MAX_SIZE was given",
        "TypeError: app() missing 1 required positional argument: 'HTTP_ENV'",
        "DEBUG_MODE is set",
    ],
)
def test_what_names_no_variable_that_is_lacking_is_another_error(text):
    assert hint_for(Refusal(text)).name != "a variable"


@pytest.mark.parametrize(
    "text",
    [
        "Error: getaddrinfo EAI_AGAIN db",
        "dial tcp: lookup db on 127.0.0.53:53: no such host",
        'psycopg.OperationalError: could not translate host name "db" to address',
    ],
)
def test_a_service_whose_name_is_not_known_is_a_service(text):
    assert hint_for(Refusal(text)).name == "a service"


def test_a_file_of_the_apps_own_is_no_package():
    for text in (
        "cannot load such file -- /srv/tea/lib/menu (LoadError)",
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/srv/tea/menu.js' imported from /srv/tea/app.js",
        "PHP Fatal error:  Uncaught Error: Failed opening required '/srv/tea/menu.php' (include_path='.')",
    ):
        assert "`/srv/tea/" in hint_for(Refusal(text)).text, text
    own = hint_for(SAID["a module of a package"]).text
    assert "`shop` has no `shop.mail`" in own
    venv = "cannot import name 'x' from 'yaml' (/v/lib/python3.12/site-packages/yaml/__init__.py)"
    assert hint_for(Refusal(f"ImportError: {venv}")).name == "an import"


def test_extensions_of_php_are_named_with_debians_packages():
    assert "install php-mbstring" in hint_for(SAID["an extension of PHP"]).text
    assert "php-sqlite3 or php-mysql" in hint_for(Refusal("PDOException: could not find driver")).text


def test_a_hint_names_what_was_tried():
    assert "`/shop`" in hint_for(SAID["nothing at the path"]).text
    assert "--env DATABASE_URL=value" in hint_for(SAID["a variable"]).text
    assert "--env SECRET_KEY=value" in hint_for(Refusal("KeyError: 'SECRET_KEY'")).text
    said = '  File "/shop/app.py", line 1, in <module>\n    from flask import Flask\n'
    for marks in ("", "    ^^^^^\n"):
        refusal = Refusal(f"{said}{marks}ModuleNotFoundError: No module named 'flask'")
        assert "imports `flask` (app.py:1)" in hint_for(refusal).text
    assert "`nobody`" in hint_for(Refusal("EACCES", 500, user="nobody")).text
    assert "`poetry.lock`" in hint_for(Refusal("ImportError: x", requirements="`poetry.lock`")).text


def test_what_no_row_fits_gets_a_way_to_look_further():
    found = hint_for(Refusal("ZeroDivisionError: division by zero", 500))
    assert found.name == "unknown"
    assert "--dry-run" in found.text


def test_what_varies_between_two_replies_of_one_server_may_vary_in_another():
    varies = template(b'<p id="a1">3 items, 10:01:07</p>', b'<p id="b2">3 items, 10:01:08</p>')
    assert is_alike(varies, b'<p id="zz">3 items, 10:01:59</p>')
    assert not is_alike(varies, b'<p id="zz">4 items, 10:01:59</p>')
