"""What a program's log says of its end is found in what real programs wrote, plain and in colour.

`logs/` holds the outputs of Flask, Django and FastAPI under Gunicorn, Waitress, uWSGI and Uvicorn, of Plack
and Starman, and of Node; only folders and names of machines were changed, and long help texts cut.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.figures.last_error import last_error, plain_lines

LOGS = Path(__file__).parent / "logs"
NO_COUNT = 'Global symbol "$count" requires explicit package name (did you forget to declare "my $count"?)'
NO_BACKEND = "'django.db.backends.mysq' isn't an available database backend or couldn't be imported."
# By log: type, how the message begins, a line before or with it that shows the place.
EXPECTED = {
    "flask-run-module": ("ModuleNotFoundError", "No module named 'stripe'", "    import stripe"),
    "gunicorn-flask-module": ("ModuleNotFoundError", "No module named 'stripe'", "    import stripe"),
    "gunicorn-flask-syntax": ("SyntaxError", "'(' was never closed", "    app = Flask(__name__"),
    "gunicorn-flask-request": ("KeyError", "'price'", "    return {}['price']"),
    "gunicorn-django-registry": (
        "django.core.exceptions.AppRegistryNotReady",
        "Apps aren't loaded yet.",
        "    self.check_apps_ready()",
    ),
    "gunicorn-django-settings": (
        "django.core.exceptions.ImproperlyConfigured",
        NO_BACKEND,
        "    'mysql', 'oracle', 'postgresql', 'sqlite3'",
    ),
    "waitress-django-settings": (
        "django.core.exceptions.ImproperlyConfigured",
        NO_BACKEND,
        '    backend = load_backend(db["ENGINE"])',
    ),
    "waitress-flask-module": (
        "ModuleNotFoundError",
        "No module named 'stripe'",
        "1. No module named 'stripe'",
    ),
    "uwsgi-flask-module": ("ModuleNotFoundError", "No module named 'stripe'", "    import stripe"),
    "uvicorn-fastapi-module": ("ModuleNotFoundError", "No module named 'sqlmodel'", "    import sqlmodel"),
    "uvicorn-fastapi-startup": (
        "ConnectionRefusedError",
        "[Errno 111] Connection refused",
        '  File "/srv/shop/fast_startup.py", line 8, in lifespan',
    ),
    "uvicorn-fastapi-startup-coloured": (
        "ConnectionRefusedError",
        "[Errno 111] Connection refused",
        '  File "/srv/shop/fast_startup.py", line 8, in lifespan',
    ),
    "uvicorn-fastapi-settings": (
        "pydantic_core._pydantic_core.ValidationError",
        "2 validation errors for Settings",
        "  Field required [type=missing, input_value={}, input_type=dict]",
    ),
    "uvicorn-fastapi-workers": ("ModuleNotFoundError", "No module named 'sqlmodel'", "    import sqlmodel"),
    "python-coloured": ("ModuleNotFoundError", "No module named 'flask'", "    from flask import Flask"),
    "python-group": ("ValueError", "no such basket", '    |   File "/srv/shop/grp.py", line 2, in f'),
    "rich-coloured": ("ModuleNotFoundError", "No module named 'stripe'", None),
    "plackup-missing": (
        "",
        "Can't locate Shop/Basket.pm in @INC",
        "BEGIN failed--compilation aborted at /srv/shop/missing.psgi line 3.",
    ),
    "plackup-confess": ("", "no database", "\tShop::open_all(1) called at /srv/shop/confess.psgi line 5"),
    "starman-die": ("", "DATABASE_URL is not set", None),
    "starman-croak": ("", "no database", None),
    "starman-missing": ("", "Can't locate Shop/Basket.pm in @INC", None),
    "starman-syntax": ("", NO_COUNT, None),
    "starman-request": ("", "no such basket", None),
    "node-missing": ("Error", "Cannot find module 'express-shop'", "- /srv/shop/missing.js"),
    "node-missing-coloured": ("Error", "Cannot find module 'express-shop'", "- /srv/shop/missing.js"),
    "node-module": ("Error [ERR_MODULE_NOT_FOUND]", "Cannot find package 'express-shop' imported from", None),
    "node-throw": ("TypeError", "DATABASE_URL is not set", "/srv/shop/throw.js:3"),
    "node-reject-coloured": ("ShopError", "no such basket", "    at main (/srv/shop/reject.js:3:9)"),
    "node-busy": ("Error", "listen EADDRINUSE: address already in use :::18395", None),
    "node-cause": ("SyntaxError", "Expected property name or '}' in JSON at position 1", None),
}


def log(name):
    return (LOGS / f"{name}.txt").read_text()


def test_every_log_is_looked_at():
    assert set(EXPECTED) == {file.stem for file in LOGS.glob("*.txt")}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_error_of_a_real_program_is_found(name):
    kind, message, line = EXPECTED[name]
    found = last_error(log(name))
    assert found is not None
    assert found.kind == kind
    assert found.message.startswith(message)
    assert line is None or line in found.lines
    assert any(message in one for one in found.lines)
    assert len(found.lines) <= 13


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_written_on_the_way_down_is_left_out(name):
    found = "\n".join(last_error(log(name)).lines)
    for words in ("Worker exiting", "Shutting down", "Server closing", "exited with status", "GAME OVER"):
        assert words not in found
    for words in ("Application startup failed", "Stopping parent", "Node.js v20"):
        assert words not in found


@pytest.mark.parametrize("name", EXPECTED)
def test_no_colour_is_left_in_what_is_shown(name):
    assert "\x1b" not in "".join(last_error(log(name)).lines)


TRACE = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n'
HALTED = """Traceback (most recent call last):
  File "shop.py", line 1, in <module>
KeyError: 'PRICE'
Traceback (most recent call last):
  File "gunicorn/arbiter.py", line 209, in run
    self.sleep()
gunicorn.errors.HaltServer: <HaltServer 'Worker failed to boot.' 3>
"""


def test_the_error_of_an_end_is_not_taken_for_its_cause():
    assert last_error(HALTED).kind == "KeyError"


def test_the_error_of_an_end_is_taken_where_there_is_no_other():
    interrupted = (
        'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nKeyboardInterrupt\n'
    )
    assert last_error(interrupted).line == "KeyboardInterrupt"


def test_an_error_that_names_itself_needs_no_traceback():
    found = last_error("starting\n\x1b[31mMemoryError\x1b[0m: out of memory\nbye\n")
    assert (found.kind, found.message) == ("MemoryError", "out of memory")


def test_the_name_of_an_error_has_no_module():
    assert last_error(log("gunicorn-django-settings")).name == "ImproperlyConfigured"


def test_a_warning_of_perl_is_no_error():
    assert last_error("Use of uninitialized value $x in addition (+) at shop.psgi line 3.\n") is None


@pytest.mark.parametrize("text", ["", "listening on 8000\n", "[1] [ERROR] Connection reset\n", "a: b\n"])
def test_a_log_without_an_error_has_none(text):
    assert last_error(text) is None


def test_a_traceback_that_was_cut_off_has_no_error():
    assert last_error('Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n') is None


def test_what_a_logger_writes_after_an_error_is_no_part_of_its_message():
    found = last_error(TRACE + "ValueError: two things\n[8] [INFO] Booting\n    with 2 workers\n")
    assert found.lines[-1] == "ValueError: two things"


def test_lines_that_are_indented_or_begin_an_indented_part_belong_to_the_message():
    found = last_error(
        TRACE + "ValidationError: two errors\nprice\n  is missing\nname\n  is long\nbye\nend\n"
    )
    assert found.lines[-5:] == ("ValidationError: two errors", "price", "  is missing", "name", "  is long")


@given(st.text())
def test_any_text_is_read_without_a_fault(text):
    found = last_error(text)
    assert found is None or set(found.lines) <= set(plain_lines(text))
