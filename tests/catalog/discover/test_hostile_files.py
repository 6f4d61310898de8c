"""Files of an app's folder that mean harm: each reading of it ends soon, as usual or in one clear line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from prony.catalog.discover.configuration import python_values
from prony.catalog.discover.current import ReadingAid
from prony.core.errors import PronyError, UsageError
from prony.study import app_folder as found

APP = "def app(environ, start_response):\n    return []\n"
LEVELS = [chr(code) for code in range(ord("b"), ord("k"))]


def nine_of(level: str, before: str) -> str:
    return f"{level}: &{level} [{','.join([f'*{before}'] * 9)}]\n"


# What is named again and again: nine to the power of nine values.
LAUGHS = "a: &a [x]\n" + "".join(nine_of(level, chr(ord(level) - 1)) for level in LEVELS)
MERGED = "a: &a {k: v}\n" + "".join(
    f"{level}: &{level} {{<<: [{','.join(['*' + chr(ord(level) - 1)] * 9)}]}}\n" for level in LEVELS
)
XML = "<!DOCTYPE l [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {level} '{('&' + chr(ord(level) - 1) + ';') * 10}'>" for level in LEVELS
)
FILES = {
    "a command of nine to the nine words": {"compose.yaml": LAUGHS + "services: {web: {command: *j}}"},
    "a service merged nine to the nine times": {"compose.yaml": MERGED + "services: {web: {<<: *j}}"},
    "services in themselves": {"compose.yaml": "services: &a\n  web: *a\n"},
    "options of uWSGI, named": {"uwsgi.yaml": LAUGHS + "uwsgi: *j\n", "Procfile": "web: uwsgi uwsgi.yaml"},
    "options of uWSGI, in entities": {
        "uwsgi.xml": XML + "]><uwsgi><processes>&j;</processes></uwsgi>",
        "Procfile": "web: uwsgi --xml uwsgi.xml",
    },
    "a file of this machine in an entity": {
        "uwsgi.xml": "<!DOCTYPE l [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><uwsgi><processes>&a;</processes></uwsgi>",
        "Procfile": "web: uwsgi --xml uwsgi.xml",
    },
    "levels in JSON": {"uwsgi.json": "[" * 10**5, "Procfile": "web: uwsgi --json uwsgi.json"},
    "levels in Node.js's file": {"package.json": '{"scripts": ' + "[" * 10**5},
    "levels in TOML": {"pyproject.toml": "a = " + "[" * 10**5},
    "sums in Python": {"shop.py": APP + "y = " + "+".join(["1"] * 1500)},
    "sums in gunicorn.conf.py": {
        "gunicorn.conf.py": "workers = " + "+".join(["1"] * 1500),
        "Procfile": "web: gunicorn shop:app",
    },
    "signs in Python": {"shop.py": APP + "y = " + "-" * 10**5 + "1"},
    "requirements of itself": {"requirements.txt": "-r requirements.txt\n-r /dev/zero\n"},
    "a file of uWSGI in itself": {
        "uwsgi.ini": "[uwsgi]\nini = uwsgi.ini\n",
        "Procfile": "web: uwsgi uwsgi.ini",
    },
}
READINGS: dict[str, Callable[[Path], object]] = {
    "today's command": lambda folder: found.current_of(folder, ReadingAid("", {}, 2)),
    "its folder": lambda folder: found.app_folder(folder, "."),
    "an app": lambda folder: found.survey_of(folder, "shop:app"),
    "any app": lambda folder: found.survey_of(folder, "."),
    "a program": lambda folder: found.program_of(folder, "."),
}


@pytest.mark.parametrize("files", FILES.values(), ids=FILES)
def test_a_folder_that_means_harm_is_read_or_refused_in_one_line(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is not stopped at its kind meets the deadline, which says so.
    monkeypatch.setattr(found, "_LONGEST_S", 5.0)
    for name, text in {"shop.py": APP, **files}.items():
        (tmp_path / name).write_text(text)
    for read in READINGS.values():
        try:
            read(tmp_path)
        except PronyError as error:
            assert error.message.isprintable()
            assert len(error.message) < 500
            assert "s to read" not in error.message


def test_a_folder_whose_files_take_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "_LONGEST_S", 0.3)
    # A quarter of a second for each ten thousand, squared.
    (tmp_path / "pyproject.toml").write_text(".".join(["a"] * 50_000) + " = 1")
    (tmp_path / "shop.py").write_text(APP)
    with pytest.raises(UsageError, match="take more than 0 s to read") as refused:
        found.survey_of(tmp_path, "shop:app")
    assert "--command" in str(refused.value.hint)


def test_a_number_without_an_end_is_no_setting() -> None:
    squares = "workers = 9\n" + "workers = workers * workers\n" * 40
    assert python_values(squares, 2, {})["workers"] == ""
