"""What root plants from outside, and which causes an ordinary user loses."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from faults.test_doubles import judged
from faults.test_judge import ASLEEP, LOCK
from prony.catalog.schema.loader import load_catalog
from prony.cli.selftest_rootless import _observed, first_of_each
from prony.errors import HostError
from prony.faces.json_faults import faults_json
from prony.faults import CAUSES, PLANTS
from prony.faults.judge import lost_causes
from prony.faults.sessions import spread_out
from prony.model import SandboxChoice
from prony.report.faults import faults_document
from prony.runas import RunAs
from prony.sandbox.cgroup.base import Limits
from prony.study.outside import LoadSign, Outsider, limits_of, plant_from_outside
from prony.study.planting import FAULTY, HEALTHY, plan_of_plant, with_planted_servers

QUOTA = next(one for one in PLANTS if one.cause.name == "quota")


class Group:
    def __init__(self, joined, log):
        self.join_paths, self._log = (f"/proc/self/fd/{joined}",), log

    def set_limits(self, limits):
        self._log.append(limits)
        return {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._log.append("gone")


class Tree:
    """Control groups of paper: what was asked for, in order, and which processes joined."""

    def __init__(self):
        # A pipe keeps all that is written; a file would have the last alone.
        self._joined, self._joining = os.pipe()
        self.log = []

    def create(self, name):
        return Group(self._joining, self.log)

    def joined(self):
        os.close(self._joining)
        with os.fdopen(self._joined) as pipe:
            return pipe.read()


def observed(tree, plant, observer, *told):
    """Let another thread say this, and plant what it says."""
    ours, theirs = socket.socketpair()

    def say():
        with contextlib.closing(Outsider(theirs.detach())) as outsider:
            for one in told:
                outsider.show(one)

    saying = threading.Thread(target=say)
    saying.start()
    with ours:
        plant_from_outside(ours, plant, observer, tree)
    saying.join()


# --- from outside -----------------------------------------------------------------------------------------


def test_a_side_is_limited_from_the_begin_of_its_load_to_its_end():
    """Who starts servers, and the generator, are not limited: they are the observer's own children."""
    tree = Tree()
    starter = ["sh", "-c", "sleep 100 & echo $!; wait"]
    with (
        subprocess.Popen(["sleep", "100"]) as generator,
        subprocess.Popen(starter, stdout=subprocess.PIPE, text=True) as started,
    ):
        server = int(started.stdout.readline())
        observed(tree, QUOTA, os.getpid(), LoadSign(FAULTY, began=True), LoadSign(FAULTY, began=False))
        for pid in (server, started.pid, generator.pid):
            os.kill(pid, signal.SIGKILL)
    assert tree.log == [Limits(cpu_quota=QUOTA.pair.faulty.cpu_quota), "gone"]
    assert tree.joined() == str(server)


def test_a_twin_without_limits_gets_no_group():
    tree = Tree()
    observed(tree, QUOTA, os.getpid(), LoadSign(HEALTHY, began=True), LoadSign(HEALTHY, began=False))
    assert tree.log == []


def test_a_side_whose_end_nobody_says_is_limited_no_longer_than_its_observer_lives():
    tree = Tree()
    observed(tree, QUOTA, os.getpid(), LoadSign(FAULTY, began=True))
    assert tree.log[-1] == "gone"


def test_an_observer_whom_nobody_heeds_ends():
    ours, theirs = socket.socketpair()
    ours.close()
    outsider = Outsider(theirs.detach())
    with pytest.raises(OSError, match=r"."):
        outsider.show(LoadSign(FAULTY, began=True))
    with contextlib.suppress(OSError):
        outsider.close()


def test_what_root_limits_is_not_in_the_plan_of_the_observer():
    known = with_planted_servers(load_catalog(()))
    cells = plan_of_plant(QUOTA, known, SandboxChoice(), blocks=3, seed=1, limited=False).cells
    assert {cell.sandbox.cpu_quota for cell in cells} == {None}
    assert limits_of(QUOTA.pair.faulty).asked() == {"cpu_quota": QUOTA.pair.faulty.cpu_quota}
    limited = plan_of_plant(QUOTA, known, SandboxChoice(), blocks=3, seed=1).cells
    assert {cell.sandbox.cpu_quota for cell in limited} == {None, QUOTA.pair.faulty.cpu_quota}


def test_each_cause_is_planted_once_and_no_public_case_and_no_pair():
    found = first_of_each(spread_out(PLANTS))
    assert [one.cause.name for one in found] == [one.name for one in CAUSES if one.of is None and one.named]


# --- what is lost -----------------------------------------------------------------------------------------


def named(plant, *symptoms):
    return judged(plant, 2.0, *symptoms)


def test_a_cause_is_lost_that_is_named_in_half_of_its_trials_or_less():
    (kind,), (other,) = ASLEEP.cause.named, LOCK.cause.named
    found = [named(ASLEEP, kind, kind, None), named(LOCK, other, kind, None)]
    assert lost_causes(found) == ("lock",)
    assert lost_causes([replace(found[1], hurt=False)]) == ()


def test_the_report_and_its_json_count_what_an_ordinary_user_loses():
    (kind,) = ASLEEP.cause.named
    found = [named(ASLEEP, kind, kind, kind), named(LOCK, kind, None, None)]
    document = faults_document("x", (), rootless=found)
    (section,) = (one for one in document.sections if "ordinary user" in str(one.heading))
    said = " ".join(str(block.text) for block in section.blocks)
    assert "1 of 2 causes are named in most trials" in said and "Lost: lock." in said
    told = json.loads(json.dumps(faults_json("x", (), rootless=found)))["rootless"]
    assert (told["causes"], told["named"], told["lost"]) == (2, 1, ["lock"])
    assert faults_json("x", ())["rootless"] is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_who_cannot_run_this_prony_is_named_with_the_reason(tmp_path, monkeypatch):
    """Nobody may run what lies in a folder that is closed to all but root."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    program = closed / "python"
    program.symlink_to("/bin/true")
    monkeypatch.setattr("prony.cli.selftest_rootless.own_command", lambda *words: [str(program), *words])
    nobody = RunAs("nobody", 65534, 65534, True, tmp_path)
    with pytest.raises(HostError, match=r"`nobody` cannot run this Prony: .*Permission denied"):
        _observed(QUOTA, Path("/"), nobody, Tree(), 1)
