"""What servers cannot have side by side is found before they are, and they are measured in turns."""

import contextlib
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from prony.catalog.schema.command import command_app, command_entry
from prony.catalog.schema.loader import load_catalog, with_app, with_server
from prony.model.address import Address
from prony.model.exchange import Contract
from prony.model.facts import AskedProgram, TrialFacts
from prony.model.launch import Launch
from prony.sandbox.contract import listening_ports
from prony.sandbox.exchange import Reply
from prony.study import beside
from prony.study.beside import held_by, leave_crowds

HELD = """
import socket, sqlite3, sys
kept = sqlite3.connect(sys.argv[1], isolation_level=None)
kept.execute("create table if not exists t (n)")
read = sqlite3.connect(f"file:{sys.argv[2]}?mode=ro", uri=True)
read.execute("select * from t")
log = open(sys.argv[3], "a")
print("begun", file=log, flush=True)
one = socket.create_server(("127.0.0.1", 0))
print(one.getsockname()[1], flush=True)
input()
"""


@contextlib.contextmanager
def holder(folder):
    """Run a process that holds a database, another one to read, a log, and a port; yield the port."""
    import sqlite3

    sqlite3.connect(folder / "read.db").execute("create table t (n)")
    paths = [str(folder / name) for name in ("shop.db", "read.db", "shop.log")]
    command = [sys.executable, "-c", HELD, *paths]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline()), process.pid
        finally:
            process.kill()


def subject(tree, network=None):
    return SimpleNamespace(tree_pid=tree, seat=SimpleNamespace(network_namespace=network))


def launch(*words, port=1, folder=None):
    return Launch(words, Address("127.0.0.1", port), folder=folder)


@pytest.fixture
def held(monkeypatch):
    """What a process and no other one holds."""

    def run(pid, asked, network=None):
        monkeypatch.setattr(beside, "descendants", lambda _: [pid])
        return held_by(subject(pid, network), asked)

    return run


def test_a_port_and_a_database_that_is_open_to_write_are_held(tmp_path, held):
    with holder(tmp_path) as (port, pid):
        assert port in listening_ports([pid])
        database = f"keep the database {tmp_path / 'shop.db'} open"
        assert held(pid, launch("serve")) == (f"listen on port {port}", database)
        # That which it is given, and those of a network of its own, are nobody else's.
        assert held(pid, launch("serve", port=port)) == (database,)
        assert held(pid, launch("serve"), "/proc/7/ns/net") == (database,)
        # Another one lies there, as where a layer has a copy: the kernel names so what is gone.
        twin = tmp_path / "shop.db (deleted)"
        twin.write_bytes((tmp_path / "shop.db").read_bytes())
        (tmp_path / "shop.db").unlink()
        assert held(pid, launch("serve", port=port)) == ()


@pytest.mark.parametrize(
    ("words", "configuration"),
    [
        (("serve", "--pid", "{file}"), ""),
        (("serve", "--pidfile=run/shop.pid"), ""),
        (("serve", "-pid-file", "{file}"), ""),
        (("gunicorn", "shop:app"), "pidfile = 'run/shop.pid'"),
        (("gunicorn", "-c", "{conf}", "shop:app"), "pidfile = 'a' + 'b'\npidfile = '{file}'"),
    ],
)
def test_a_pid_file_is_named_by_a_command_or_by_gunicorns_configuration(tmp_path, held, words, configuration):
    file, conf = tmp_path / "run" / "shop.pid", tmp_path / "gunicorn.conf.py"
    if configuration:
        conf.write_text(configuration.format(file=file))
    words = [word.format(file=file, conf=conf) for word in words]
    asked = launch(*words, folder=str(tmp_path))
    assert not any("pid file" in one for one in held(os.getpid(), asked, "none"))
    file.parent.mkdir()
    file.touch()
    assert f"have the pid file {file}" in held(os.getpid(), asked, "none")


# --- connections ------------------------------------------------------------------------------------------


def crowd(monkeypatch, limit, *connections, program="postgres"):
    """Return which cells are measured in turns whose trials had so many connections, and what is said."""
    monkeypatch.setattr(beside, "connection_limits", lambda _: {"postgres": limit})
    said = []
    bench = SimpleNamespace(in_turns=set(), known=SimpleNamespace(idle={(7, 1): None}))
    turns = [
        SimpleNamespace(cell=SimpleNamespace(id=cell, subject=SimpleNamespace(name=f"s{cell}+shop")))
        for cell, _ in enumerate(connections)
    ]
    entries = {}
    for cell, number in enumerate(connections):
        for block, open_then in enumerate((1, number)):
            asked = (AskedProgram("database", program, "port 5432", open_then),)
            entries[cell, block, 0, 0, "subject"] = SimpleNamespace(facts=TrialFacts(asked=asked))
    leave_crowds(bench, turns, SimpleNamespace(entries=entries), SimpleNamespace(notice=said.append))
    return bench.in_turns, said


def test_pools_that_a_database_cannot_have_together_are_in_turns(monkeypatch):
    assert crowd(monkeypatch, 97, 60, 40) == (
        {0, 1},
        ["s0+shop and s1+shop have 100 connections to postgres, which takes 97: they are measured in turns"],
    )


def test_pools_that_fit_or_that_nobody_knows_stay_side_by_side(monkeypatch):
    assert crowd(monkeypatch, 100, 60, 40) == (set(), [])
    assert crowd(monkeypatch, None, 60, 400) == (set(), [])
    assert crowd(monkeypatch, 97, 60, 400, program="redis-server") == (set(), [])
    # It alone takes more than there are: that is no matter of turns.
    assert crowd(monkeypatch, 97, 120) == (set(), [])


def test_pools_are_added_up_before_the_rounds_of_each_block(world, monkeypatch):
    asked = []

    def leave(bench, turns, ledger, listener):
        asked.append((len(turns), len(ledger.entries)))
        bench.in_turns.update(turn.cell.id for turn in turns)

    monkeypatch.setattr("prony.study.rounds.leave_crowds", leave)
    study = world.study(workloads=[{"loop": "closed", "connections": 1}])
    design = replace(study.plan.design, rounds=3)
    world.measure(replace(study, plan=replace(study.plan, design=design)))
    # Two servers, whose trials of the block are there by then.
    assert asked == [(2, 2), (2, 4), (2, 6)]


def test_a_study_that_goes_on_looks_again_for_what_twins_share(world, monkeypatch):
    monkeypatch.setattr("prony.study.replies.held_by", lambda *_: ("listen on port 9",))
    monkeypatch.setattr("prony.study.replies.may_have_own_port", lambda _: False)
    monkeypatch.setattr("prony.study.replies.probe", lambda *_: Reply(200, b"hi"))
    catalog = with_app(load_catalog(), command_app(world.folder, Contract(), {}))
    for name in ("one", "two"):
        catalog = with_server(catalog, command_entry(name, ["/usr/bin/python3", "serve.py"]))
    study = world.study(catalog, subjects=[{"server": ["one", "two"], "app": "app"}])
    study = replace(study, plan=replace(study.plan, design=replace(study.plan.design, rounds=3)))
    world.errors = {3: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        world.measure(study)
    world.errors = {}
    world.measure(replace(study, resumes=True))
    said = "one+app and two+app listen on port 9: they are measured in turns"
    assert world.listener.notices.count(said) == 2
