"""Which requirements can be had without that a package's code runs."""

import time

import pytest

from prony.catalog.install.resolve import LOCKS, is_locked, lines_of_plain, plain_requirements

HASH = f"--hash=sha256:{64 * 'a'}"


@pytest.mark.parametrize(
    "line",
    [
        *("./mine", "-e ./mine", "/srv/mine", "mine/", "mine @ file:///srv/mine", "git+https://x/mine"),
        *(
            "https://x/mine-1.tar.gz",
            "-r other.txt",
            "--no-binary :all:",
            "--index-url https://x/",
            "${HOME}",
        ),
        *("mine[a] @ ./b", "six --config-settings=x", "six; x @ y"),
        *("mine-1-py3-none-any.whl", "mine-1.tar.gz", "MINE-1.ZIP", "mine.tar.bz2#egg=x"),
    ],
)
def test_what_could_run_code_is_no_plain_requirement(line):
    assert lines_of_plain(f"six==1.17.0\n{line}\n") is None


@pytest.mark.parametrize(
    "line",
    ["six", "six==1.17.0", "six[a,b]>=1,<2", "six ~= 1.2 ; python_version < '3.12'", f"six==1 {HASH} {HASH}"],
)
def test_names_and_versions_are_plain(line):
    assert lines_of_plain(f"# ours\n{line}  # theirs\n") == (line,)


def test_each_lock_that_comes_with_prony_is_one():
    assert [file.name for file in LOCKS.glob("*.txt") if not is_locked(file.read_text())] == []


@pytest.mark.parametrize("line", ["six==1.17.0", f"six>=1 {HASH}", f"./six {HASH}", f"-e six==1 {HASH}"])
def test_what_has_no_version_or_no_hash_is_no_lock(line):
    assert not is_locked(f"{line}\n")


@pytest.mark.parametrize(
    ("more", "plain"),
    [
        ("dependencies = ['six']", ("six",)),
        ("dynamic = ['dependencies']", None),
        ("dependencies = ['six']\n[tool.uv]\nno-binary = true", None),
    ],
)
def test_a_project_is_plain_if_its_dependencies_stand_there(tmp_path, more, plain):
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[project]\nname = 'x'\nversion = '1'\n{more}\n")
    assert plain_requirements(file) == plain


LONG = {
    "spaces": " " * 200_000,
    "letters": "a" * 200_000 + "@",
    "dashes": "a-" * 100_000 + "@",
    "spaces in a line": "a" + " " * 200_000 + "@",
    "markers": "a==" + ";" * 200_000,
    "extras": "a[" * 100_000,
    "endings": "a.tar." * 40_000,
    "spaces before a hash": "a==1" + " " * 200_000 + "x@",
}


@pytest.mark.parametrize("what", LONG)
def test_a_line_takes_a_time_in_proportion_to_its_length(what):
    begun_s = time.process_time()
    lines_of_plain(LONG[what])
    is_locked(LONG[what])
    assert time.process_time() - begun_s < 1


def test_a_project_with_keys_in_keys_is_left_to_uv(tmp_path):
    file = tmp_path / "pyproject.toml"
    file.write_text("[project]\nname = 'x'\ndependencies = ['six']\n" + ".".join(["a"] * 100_000) + " = 1\n")
    begun_s = time.process_time()
    assert plain_requirements(file) is None
    assert time.process_time() - begun_s < 1
