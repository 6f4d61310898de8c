"""Every entry of the built-in catalogue: that it is complete, and that nothing is left over."""

import re

import pytest

from prony.catalog.install.resolve import LOCKS, shared_requirements
from prony.catalog.launch import declared_facts
from prony.catalog.schema.apps import BUILT_IN_APPS, load_apps
from prony.catalog.schema.entry import HostEntry, ProcessEntry, SystemInstall
from prony.catalog.schema.expression import names_in_template
from prony.catalog.schema.loader import (
    BUILT_IN_FRONTENDS,
    BUILT_IN_SERVERS,
    BUILT_IN_SERVICES,
    load_catalog,
    load_frontend,
    load_server,
    load_service,
)
from prony.core.errors import UsageError
from prony.model.subject import Interface, Subject

SERVERS = sorted(BUILT_IN_SERVERS.glob("*.toml"))
FRONTENDS = sorted(BUILT_IN_FRONTENDS.glob("*.toml"))
SERVICES = sorted(BUILT_IN_SERVICES.glob("*.toml"))
# Only what is installed from a package index has a lock.
LOCKED = [file for file in SERVERS if 'kind = "python"' in file.read_text()]
APPS = sorted(BUILT_IN_APPS.glob("*/app.toml"))


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


def load_any(file):
    """Return the entry of a file in any of the catalogue's folders."""
    return {"servers": load_server, "frontends": load_frontend, "services": load_service}[file.parent.name](
        file
    )


def words_of(entry):
    """Return all that reaches the process: its arguments, variables and rendered files."""
    arguments = [
        part if isinstance(part, str) else " ".join((*part.then, *part.otherwise)) for part in entry.command
    ]
    return " ".join([*arguments, *entry.environment.values(), *entry.templates.values()])


def is_asked_for(name, entry):
    """Return whether a placeholder or a setting reaches the process, or decides what does."""
    parts = [part for part in entry.command if not isinstance(part, str)]
    conditions = {one.setting for part in parts for one in (part, part.also) if one}
    in_templates = {asked for text in entry.templates.values() for asked in names_in_template(text)}
    return f"{{{name}}}" in words_of(entry) or name in conditions | in_templates


@pytest.mark.parametrize("file", LOCKED, ids=lambda file: file.stem)
class TestEachLock:
    def test_its_server_is_pinned_to_exact_versions(self, file):
        install = load_server(file).install
        for requirement in (*install.requirements, *install.overrides):
            assert re.fullmatch(r"[a-z0-9-]+(\[[a-z0-9,]+\])?==[0-9a-z.]+", requirement)

    def test_its_lock_holds_its_pins_and_those_of_all_apps(self, file):
        locked = (LOCKS / f"{file.stem}.txt").read_text().lower()
        entry = load_server(file)
        install = entry.install
        for requirement in (*install.requirements, *install.overrides, *shared_requirements(entry)):
            assert re.sub(r"\[.*\]", "", requirement) in locked

    def test_its_lock_names_no_package_index(self, file):
        locked = (LOCKS / f"{file.stem}.txt").read_text()
        assert "://" not in locked
        assert "--index" not in locked
        assert "--extra-index" not in locked
        assert "--find-links" not in locked
        assert "--trusted-host" not in locked

    def test_every_package_of_its_lock_has_hashes(self, file):
        for line in (LOCKS / f"{file.stem}.txt").read_text().splitlines():
            assert "==" not in line or line.endswith("\\")


@pytest.mark.parametrize("file", [*SERVERS, *FRONTENDS, *SERVICES], ids=lambda file: file.stem)
class TestEachEntry:
    def test_it_is_named_after_its_file(self, file):
        assert load_any(file).name == file.stem

    def test_it_says_where_it_comes_from_and_which_version_is_there(self, file):
        entry = load_any(file)
        assert entry.upstream or entry.install.prony
        assert entry.licence
        assert not isinstance(entry.install, SystemInstall) or entry.install.version

    def test_what_it_builds_from_is_there(self, file):
        entry = load_any(file)
        for step in entry.install.build.steps if entry.install.build else ():
            for word in step.run:
                name = word.removeprefix("{source}/")
                assert name == word or (entry.folder / name).exists()

    def test_every_source_is_a_place_and_not_a_shrug(self, file):
        for source in sources(load_any(file)):
            assert len(source) > 8
            assert "prony" not in source.lower()

    def test_it_listens_only_where_it_is_told_to(self, file):
        entry = load_any(file)
        assert is_asked_for("port", entry)
        assert is_asked_for("host", entry) or "127.0.0.1" in words_of(entry)
        assert "0.0.0.0" not in words_of(entry)

    def test_every_setting_is_used(self, file):
        entry = load_any(file)
        assert [key for key in entry.settings if not is_asked_for(key, entry)] == []


@pytest.mark.parametrize("file", SERVERS, ids=lambda file: file.stem)
class TestEachServer:
    def test_its_facts_can_be_worked_out_for_every_variant(self, file, catalog):
        entry = load_server(file)
        for variant in ("", *entry.variants):
            subject = Subject("s", entry.name, catalog.app("hello"), entry.interfaces[0], variant)
            facts = declared_facts(entry, subject, cpus=2)
            assert facts.processes >= 1
            assert facts.backlog is None or facts.backlog >= 1

    def test_some_app_speaks_its_interface(self, file, catalog):
        entry = load_server(file)
        for interface in entry.interfaces:
            assert entry.serves or any(interface in app.targets for app in catalog.apps.values())
        assert all(app in catalog.apps for app in entry.serves)


@pytest.mark.parametrize("file", APPS, ids=lambda file: file.parent.name)
class TestEachApp:
    def test_its_modules_exist(self, file):
        for target in load_apps(file)[0].targets.values():
            module, colon, _ = target.partition(":")
            assert (file.parent / (f"{module}.py" if colon else target)).is_file()

    def test_it_has_a_contract(self, file):
        for app in load_apps(file):
            checks = app.contract.checks
            assert checks
            assert checks[0].body
            assert checks[0].status == 200

    def test_its_requirements_are_pinned(self, file):
        assert all("==" in requirement for requirement in load_apps(file)[0].requirements)


def test_no_lock_is_left_over():
    # The load scripts have one too: they are no server.
    editions = {one.name for file in LOCKED for one in load_server(file).as_editions()}
    locked = {"python-scripts", *editions, *(file.stem for file in LOCKED)}
    assert {file.stem for file in LOCKS.glob("*.txt")} == locked


def test_the_catalogue_holds_every_file(catalog):
    editions = [one.name for file in SERVERS for one in load_server(file).as_editions()]
    assert list(catalog.servers) == sorted([*editions, *(file.stem for file in SERVERS)])
    assert list(catalog.apps) == sorted(app.name for file in APPS for app in load_apps(file))
    assert not catalog.own


def test_a_variant_is_found_by_its_full_name(catalog):
    entry, variant = catalog.find("gunicorn-gthread")
    assert (entry.name, variant) == ("gunicorn", "gthread")
    assert catalog.split("gunicorn-embedded") == ("gunicorn-embedded", "")
    assert catalog.interfaces("granian-one-thread") == (Interface.WSGI, Interface.ASGI)


def test_an_unknown_server_is_answered_with_the_nearest_names(catalog):
    with pytest.raises(UsageError, match="there is no server `gunicron`") as caught:
        catalog.find("gunicron")
    assert "`gunicorn`" in caught.value.hint


def test_an_unknown_app_is_answered_with_the_nearest_names(catalog):
    with pytest.raises(UsageError, match="there is no app `helo`") as caught:
        catalog.app("helo")
    assert "`hello`" in caught.value.hint


@pytest.mark.parametrize(
    ("server", "backlog"),
    [
        ("wsgiref", 5),
        ("cheroot", 5),
        ("cherrypy", 5),
        ("twisted", 50),
        ("daphne", 50),
        ("hypercorn", 100),
        ("uwsgi", 100),
        ("uwsgi-psgi", 100),
        ("uwsgi-php", 100),
        ("twiggy", 128),
        ("anyevent-httpd", 128),
        ("starman", 1024),
        ("puma", 1024),
        ("unicorn", 1024),
        ("starlet", 4096),
        ("php-fpm", 4096),
        ("gevent-pywsgi", 128),
        ("tornado", 128),
        ("bjoern", 1024),
        ("waitress", 1024),
        ("granian", 1024),
        ("meinheld", 4096),
        ("meinheld-cpython38", 4096),
        ("gunicorn", 2048),
        ("gunicorn-gevent", 2048),
        ("gunicorn-uvicorn", 2048),
        ("uvicorn", 2048),
    ],
)
def test_the_listen_queue_is_the_servers_own_default(catalog, server, backlog):
    entry = catalog.server(server)
    subject = Subject("s", server, catalog.app("hello"), entry.interfaces[0])
    assert declared_facts(entry, subject, cpus=2).backlog == backlog


def test_what_a_server_needs_in_front_of_it_is_a_frontend_that_speaks_its_wire(catalog):
    needed = {entry.name: entry.behind for entry in catalog.servers.values() if entry.behind}
    assert needed == {"php-fpm": "nginx"}
    for name, front in needed.items():
        assert catalog.server(name).wires[0] in catalog.frontends[front].forwards


def test_meinheld_is_the_same_on_both_interpreters_but_for_what_it_runs_on(catalog):
    today, old = catalog.server("meinheld"), catalog.server("meinheld-cpython38")
    assert (today.command, today.files, today.settings) == (old.command, old.files, old.settings)
    assert (today.roles, today.readiness, today.stop) == (old.roles, old.readiness, old.stop)
    assert today.facts.model_copy(update={"caveats": ()}) == old.facts.model_copy(update={"caveats": ()})
    assert {name: variant.settings for name, variant in today.variants.items()} == {
        name: variant.settings for name, variant in old.variants.items()
    }
    assert (old.install.python, old.install.overrides) == ("3.8", ())


def test_an_entry_of_an_old_python_says_so_in_its_title_and_remark(catalog):
    for entry in catalog.servers.values():
        if entry.install.kind == "python" and entry.install.python:
            assert f"CPython {entry.install.python}" in entry.title
            assert f"CPython {entry.install.python}" in (entry.remark or "")


def sources(entry: ProcessEntry):
    yield from (setting.source for setting in entry.settings.values())
    if not isinstance(entry, HostEntry):
        return
    facts = entry.facts
    yield from (facts.backlog.source, facts.concurrency.source)
    yield from (fact.source for fact in facts.keep_alive)
    yield from (caveat.source for caveat in facts.caveats)
