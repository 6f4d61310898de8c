"""`prony studies`: the list, one in full, the same as data, and what is refused."""

import json

import pytest

from prony.catalog.schema.studies import built_in_studies

NAMES = tuple(built_in_studies())
PUBLISHED = set(NAMES) - {"tls-http2"}


def test_all_studies_are_listed_with_what_they_repeat_and_how_long_they_take(said):
    done = said("studies")
    assert (done.status, done.err) == (0, "")
    for name in NAMES:
        assert name in done.out
    assert "trials, about" in done.out
    assert "an article on Qiita" in " ".join(done.out.split())


def test_what_is_missing_here_is_named_with_the_reason(said):
    listed = json.loads(said("studies", "load-scripts", "--json").out)[0]
    absent = [name for name, here in listed["generators"].items() if here.startswith("needs")]
    out = said("studies").out
    assert all(f"{name} needs: {name}" in out for name in absent)


def test_of_generators_those_are_counted_and_not_the_one_server(said):
    (listed,) = json.loads(said("studies", "load-scripts", "--json").out)
    ready = [name for name, here in listed["generators"].items() if not here.startswith("needs")]
    row = next(line.split() for line in said("studies").out.splitlines() if line.startswith("load-scripts "))
    # Prony's own is always there.
    assert row[1:3] == [str(1 + len(listed["generators"])), str(1 + len(ready))]


@pytest.mark.parametrize(("name", "profile"), [("embedded-servers", "quick"), ("psgi-servers", "full")])
def test_a_profile_is_as_long_as_a_dry_run_says(said, name, profile):
    (study,) = json.loads(said("studies", name, "--json").out)
    *_, last = said("run", name, "--profile", profile, "--dry-run").out.splitlines()
    assert last.startswith(f"{study['profiles'][profile]['length']}, into ")


@pytest.mark.parametrize("name", NAMES)
def test_one_is_shown_with_its_notes_loads_claims_and_figures(said, name):
    data = json.loads(said("studies", name, "--json").out)[0]
    words = " ".join(said("studies", name).out.split())
    assert data["question"] in words
    for text in data["notes"]:
        assert text in words
    for claim in data["claims"]:
        assert f"{claim['name']}: {claim['text']}" in words
    for profile in data["profiles"]:
        assert f"Profile {profile}: {data['profiles'][profile]['blocks']} block" in words
    for profile in data["profiles"].values():
        for claim, needs in profile["unmet"].items():
            assert f"not {claim}: needs {needs}" in words
    assert ("Published: " in words) == (name in PUBLISHED)
    assert ("Otherwise than there" if name in PUBLISHED else "About this study") in words


@pytest.mark.parametrize(
    ("name", "deviation"),
    [
        ("wsgi-servers", "in each block; the original went through the connections in rising order"),
        ("wsgi-servers", "Eleven subjects are measured and not six"),
        ("wsgi-servers", "not in Docker, so there is no bridge and no address translation"),
        ("wsgi-servers", "Order and pauses"),
        ("embedded-servers", "vegeta's 30 s for each phase of a request"),
        ("embedded-servers", "waited for 60 s between two of them"),
        ("psgi-servers", "The kernel's settings of the original"),
        ("load-scripts", "a session for each coroutine, bodies unread"),
        ("load-scripts", "HTTPAdapter(max_retries=3)"),
        ("load-scripts", "in which failures count, as in the article"),
        ("django-fastcgi", "made the large load three or four times"),
    ],
)
def test_c9_what_differs_from_the_original_is_said_before_anyone_waits(said, name, deviation):
    assert deviation in " ".join(said("studies", name).out.split())


def test_before_a_run_one_is_shown_what_each_profile_cannot_test_on_this_machine(said):
    words = " ".join(said("studies", "embedded-servers").out.split())
    assert "It can test 5 of 10 claims here. not wsgiref-loses: needs a window of 60 s; it has 6 s" in words
    assert "Profile original: 5 blocks (as published: 1 run)" in words
    assert "kotauchisunsun, 2018-11-11, qiita.com/kotauchisunsun/items/562da22e9dad8c5865a5" in words


def test_the_same_as_data_holds_subjects_profiles_claims_and_figures(said):
    found = json.loads(said("studies", "--json").out)
    assert [study["name"] for study in found] == list(NAMES)
    (wsgi,) = (study for study in found if study["name"] == "wsgi-servers")
    # Six of the original, five that the study adds, and the six with the software of the time.
    assert len(wsgi["subjects"]) == 17
    assert sum("-as-of-2016+" in one["name"] for one in wsgi["subjects"]) == 6
    assert len(wsgi["originals"]) == 5 * 6 * 19
    original = wsgi["profiles"]["original"]
    assert (original["blocks"], original["as_published"]) == (5, "4 rounds")
    assert original["testable"] + len(original["unmet"]) == len(wsgi["claims"])
    assert wsgi["claims"][0]["kind"] == "highest"


def test_a_file_of_ones_own_is_shown_too(said, prony):
    (prony.folder / "mine.toml").write_text(
        'name = "mine"\ntitle = "Mine"\n[[subjects]]\nserver = "waitress"\napp = "hello"\n'
        '[[workloads]]\nloop = "closed"\nconnections = 5\n[profiles.short]\nblocks = 2\nduration = "1s"\n'
    )
    done = said("studies", "mine.toml")
    assert done.status == 0, done.err
    assert "Profile short: 2 blocks, 2 trials" in done.out
    assert "closed loop, 5 connections, 1 s" in done.out


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("wsgi-server", "did you mean `wsgi-servers`?"),
        ("nothing.toml", "`nothing.toml`: there is no such file"),
    ],
)
def test_what_is_no_study_is_refused(said, name, told):
    done = said("studies", name)
    assert (done.status, done.out) == (2, "")
    assert told in done.err


def test_a_study_is_narrowed_by_its_generators_whatever_their_threads(said):
    done = said("run", "load-scripts", "--only", "python-asyncio-processes", "--dry-run")
    assert done.status == 0, done.err
    assert "by python-asyncio-processes with 8 threads" in done.out
    assert "2 cells x 5 blocks" in done.out
