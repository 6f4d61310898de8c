"""What is said of catalogue files that are wrong: each `hostile/*.toml` against its `.expected`."""

from pathlib import Path

import pytest

from prony.catalog.schema.apps import load_apps
from prony.catalog.schema.loader import load_catalog, load_frontend, load_server, load_service
from prony.core.errors import UsageError

HOSTILE = Path(__file__).parent / "hostile"
VALID = ("valid", "frontend-valid", "service-valid")
FILES = sorted(file for file in HOSTILE.glob("*.toml") if file.stem not in VALID)
APPS = sorted(HOSTILE.glob("apps/*/app.toml"))


def load(file):
    """Read a file as what the beginning of its name says that it is."""
    if file.name == "app.toml":
        return load_apps(file)
    kinds = {"frontend": load_frontend, "service": load_service}
    return kinds.get(file.stem.partition("-")[0], load_server)(file)


@pytest.mark.parametrize("file", [*FILES, *APPS], ids=lambda file: str(file.relative_to(HOSTILE)))
def test_a_wrong_entry_is_refused_with_line_field_found_and_expected(file, update_golden):
    with pytest.raises(UsageError) as caught:
        load(file)
    said = caught.value.message.replace(f"{HOSTILE}/", "") + "\n"
    expected = file.with_suffix(".expected")
    if update_golden:
        expected.write_text(said)
    assert said == expected.read_text()


@pytest.mark.parametrize("name", VALID)
def test_the_entries_that_the_wrong_ones_are_made_from_are_right(name):
    assert load(HOSTILE / f"{name}.toml").name == name


def test_a_file_that_is_not_text_is_refused(tmp_path):
    file = tmp_path / "binary.toml"
    file.write_bytes(b'name = "x"\ntitle = "\xff\xfe"\n')
    with pytest.raises(UsageError, match=r"binary\.toml:2: is not UTF-8 text"):
        load_server(file)


def test_a_huge_file_is_refused_without_being_parsed(tmp_path):
    file = tmp_path / "huge.toml"
    file.write_text("a = 1\n" * 100_000)
    with pytest.raises(UsageError, match="is larger than"):
        load_server(file)


def test_deep_nesting_is_refused(tmp_path):
    file = tmp_path / "deep.toml"
    file.write_text("a = " + "[" * 5_000 + "]" * 5_000)
    with pytest.raises(UsageError):
        load_server(file)


def test_an_own_entry_is_added_and_named_as_own():
    catalog = load_catalog([HOSTILE / "valid.toml"])
    assert catalog.own == {"valid"}
    assert catalog.find("valid-many")[1] == "many"


def test_an_own_entry_cannot_take_a_built_in_name(tmp_path):
    text = (HOSTILE / "valid.toml").read_text().replace('name = "valid"', 'name = "gunicorn"')
    (tmp_path / "gunicorn.toml").write_text(text)
    with pytest.raises(UsageError, match="expected a name that is not taken yet"):
        load_catalog([tmp_path])


def test_an_own_entry_cannot_take_the_name_of_a_variant(tmp_path):
    text = (HOSTILE / "valid.toml").read_text().replace('name = "valid"', 'name = "gunicorn-gthread"')
    (tmp_path / "gunicorn-gthread.toml").write_text(text)
    with pytest.raises(UsageError, match="`gunicorn-gthread` is a server and a variant of `gunicorn`"):
        load_catalog([tmp_path])


def test_the_problems_of_all_files_are_told_at_once():
    with pytest.raises(UsageError) as caught:
        load_catalog([HOSTILE / "not-toml.toml", HOSTILE / "another-name.toml"])
    assert "not-toml.toml:2" in caught.value.message
    assert "another-name.toml:1" in caught.value.message
