"""pip's settings as uv's."""

from pathlib import Path

import pytest

from prony.catalog.install.pip_settings import configuration_files, uv_settings


@pytest.mark.parametrize(
    ("pip", "uv"),
    [
        ({"PIP_INDEX_URL": "https://mirror/simple"}, {"UV_DEFAULT_INDEX": "https://mirror/simple"}),
        ({"PIP_FIND_LINKS": "/a /b"}, {"UV_FIND_LINKS": "/a,/b"}),
        ({"PIP_CERT": "/etc/ca.pem"}, {"SSL_CERT_FILE": "/etc/ca.pem"}),
        ({"PIP_TRUSTED_HOST": "one two"}, {"UV_INSECURE_HOST": "one two"}),
        ({"PIP_DEFAULT_TIMEOUT": "180"}, {"UV_HTTP_TIMEOUT": "180"}),
        ({"PIP_TIMEOUT": "20"}, {"UV_HTTP_TIMEOUT": "20"}),
        ({"PIP_NO_INDEX": "1"}, {"UV_NO_INDEX": "true"}),
        ({"PIP_NO_INDEX": "0"}, {}),
        ({"PIP_DISABLE_PIP_VERSION_CHECK": "1"}, {}),
        ({"PIP_INDEX_URL": ""}, {}),
        (
            {"PIP_EXTRA_INDEX_URL": "https://one https://two"},
            {"UV_EXTRA_INDEX_URL": "https://one https://two", "UV_INDEX_STRATEGY": "unsafe-best-match"},
        ),
    ],
)
def test_each_setting_of_pip_has_its_like(pip, uv):
    assert uv_settings(pip, []) == uv


@pytest.mark.parametrize(
    "said",
    [
        {"UV_DEFAULT_INDEX": "https://mine", "PIP_INDEX_URL": "https://pip"},
        {"UV_INDEX_URL": "https://mine", "PIP_INDEX_URL": "https://pip"},
        {"SSL_CERT_FILE": "/mine.pem", "PIP_CERT": "/pip.pem"},
        {"UV_INDEX": "https://mine", "PIP_EXTRA_INDEX_URL": "https://pip"},
        {"UV_HTTP_TIMEOUT": "5", "PIP_TIMEOUT": "180"},
    ],
)
def test_what_uv_was_told_is_left_alone(said):
    assert uv_settings(said, []) == {}


def test_a_configuration_file_is_read_and_the_environment_wins(tmp_path):
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://file\ntimeout = 60\n[install]\nfind-links =\n    /a\n    /b\n"
    )
    assert uv_settings({"PIP_INDEX_URL": "https://environment"}, [file]) == {
        "UV_DEFAULT_INDEX": "https://environment",
        "UV_HTTP_TIMEOUT": "60",
        "UV_FIND_LINKS": "/a,/b",
    }


def test_a_later_file_wins(tmp_path):
    for number in (1, 2):
        (tmp_path / f"{number}.conf").write_text(f"[global]\nindex_url = https://{number}\n")
    files = [tmp_path / "1.conf", tmp_path / "2.conf"]
    assert uv_settings({}, files) == {"UV_DEFAULT_INDEX": "https://2"}


@pytest.mark.parametrize("content", [b"no section\n", b"\xff\xfe", b"[global]\nindex-url = a%(b\n"])
def test_a_broken_file_does_not_disturb(tmp_path, content):
    file = tmp_path / "pip.conf"
    file.write_bytes(content)
    uv_settings({}, [file, tmp_path / "absent.conf"])


def test_the_chosen_file_comes_last_and_may_be_none():
    home = Path("/home/someone")
    assert configuration_files({"PIP_CONFIG_FILE": "/my.conf"}, home)[-1] == Path("/my.conf")
    assert configuration_files({"PIP_CONFIG_FILE": "/dev/null"}, home) == ()
    assert home / ".config/pip/pip.conf" in configuration_files({}, home)
