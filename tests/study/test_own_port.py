"""A program that listens on a port of its own is measured there, if that is one port and harms nobody."""

from dataclasses import replace

import pytest

from prony.catalog.schema.command import command_app, command_entry, may_have_own_port
from prony.catalog.schema.loader import load_catalog, with_app, with_server
from prony.core.errors import SubjectError
from prony.model.exchange import Contract
from prony.model.trial import Ok
from prony.sandbox.contract import ListeningPort
from prony.sandbox.exchange import Reply
from prony.study.replies import own_port

HERE = "127.0.0.1"


def chosen(*ports, host=HERE):
    return own_port([ListeningPort(port, host) for port in ports], {20_000, 20_001})


def test_who_listens_nowhere_or_where_it_should_has_no_port_of_its_own():
    assert chosen() == chosen(20_000) == chosen(8080, 20_000) == ""


def test_the_only_other_port_is_taken_of_both_families_too():
    assert chosen(8080) == 8080
    assert own_port([ListeningPort(8080, HERE), ListeningPort(8080, "::1")], {1}) == 8080


def test_of_two_ports_none_is_taken_and_both_are_named():
    assert chosen(8080, 3000) == "it listens on ports 3000 and 8080 instead"


@pytest.mark.parametrize("host", [HERE, "::1", "0.0.0.0", "::", "192.0.2.1"])
def test_an_address_is_the_apps_own_as_at_the_port_that_it_is_given(host):
    assert chosen(8080, host=host) == 8080


def test_only_of_a_users_program_it_is_not_known_that_it_listens_where_it_should():
    assert may_have_own_port(command_entry("serve", ["python3", "serve.py"]))
    assert not any(may_have_own_port(entry) for entry in load_catalog().servers.values())


# --- in a study -------------------------------------------------------------------------------------------


def programs(world, *names):
    catalog = with_app(load_catalog(), command_app(world.folder, Contract(), {}))
    for name in names:
        catalog = with_server(catalog, command_entry(name, ["/usr/bin/python3", "serve.py"]))
    return {"catalog": catalog, "subjects": [{"server": list(names), "app": "app"}]}


@pytest.fixture
def at_8080(world, monkeypatch):
    """All programs listen on this port, whatever they are given."""

    def fail(launch):
        return None if launch.is_own_port else SubjectError("nothing listens")

    world.fail = fail
    monkeypatch.setattr("prony.study.replies.look_for_port", lambda *_: 8080)
    monkeypatch.setattr("prony.study.replies.probe", lambda *_: Reply(200, b"hi"))
    return world


def test_a_program_is_started_again_for_its_own_port_and_measured_there(at_8080):
    at_8080.run(**programs(at_8080, "serve"))
    first, *others = [launch for _, launch in at_8080.happened("start")]
    assert first.address.port != 8080
    assert {launch.address.port for launch in others} == {8080}
    trials, subjects, _ = at_8080.archive()
    assert {trial.outcome for trial in trials} == {Ok()}
    assert {trial.nuisances["port"] for trial in trials} == {"8080"}
    assert "PORT=8080" in subjects["serve+app"].command_line
    said = "serve+app listens on port 8080 of its own, not on the one in PORT: measured there"
    assert at_8080.listener.notices.count(said) == 1


def test_a_study_that_goes_on_finds_the_port_again(at_8080):
    study = at_8080.study(**programs(at_8080, "serve"))
    at_8080.errors = {3: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        at_8080.measure(study)
    at_8080.errors, before = {}, len(at_8080.happened("start"))
    at_8080.measure(replace(study, resumes=True))
    ports = [launch.address.port for _, launch in at_8080.happened("start")[before:]]
    assert ports[0] != 8080
    assert set(ports[1:]) == {8080}
    assert "PORT=8080" in at_8080.archive()[1]["serve+app"].command_line


def test_two_programs_on_one_port_are_measured_in_turns(at_8080):
    said = "one+app and two+app listen on port 8080: they are measured in turns"
    study = at_8080.study(**programs(at_8080, "one", "two"))
    design = replace(study.plan.design, rounds=3)
    at_8080.measure(replace(study, plan=replace(study.plan, design=design)))
    assert said in at_8080.listener.notices
    assert not any(trial.slices for trial in at_8080.archive()[0])


def test_without_rounds_all_are_in_turns_and_nothing_is_said_of_it(at_8080):
    at_8080.run(**programs(at_8080, "one", "two"))
    assert not any("in turns" in one for one in at_8080.listener.notices)


def test_a_port_that_is_not_found_is_a_refusal_with_the_reason(world, monkeypatch):
    world.fail = "nothing listens"
    monkeypatch.setattr("prony.study.replies.look_for_port", lambda *_: "it listens on ports 1 and 2 instead")
    with pytest.raises(SubjectError, match="nothing listens; it listens on ports 1 and 2 instead"):
        world.run(**programs(world, "serve"))
