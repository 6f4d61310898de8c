"""Each listener of a trial, read back from its facts, and those that share an address."""

from dataclasses import asdict, replace

import pytest

from golden import build
from golden.build import SECOND
from prony.archive import create, open_archive
from prony.figures.accept_queue import SharedAddress, shared_addresses
from prony.model.address import AddressKind
from prony.model.facts import Fingerprint, TrialFacts
from prony.model.json_codec import ShapeError, decode
from prony.model.observation import ListenerUsage, Phase, Sample


def window(*sockets, process="server"):
    gauges = [{f"listen.{process}.sockets": count} for count in sockets]
    return [Sample(second, Phase.WINDOW, (), 0, 0, 0, each) for second, each in enumerate(gauges)]


def usage(inode, queued, limit=128, process="server"):
    return ListenerUsage(process, AddressKind.TCP4, "127.0.0.1:8000", inode, queued, limit, 3)


def test_what_the_monitor_keeps_is_read_back_from_the_archive(tmp_path):
    kept = (
        usage(70, 128),
        usage(71, 3),
        ListenerUsage(None, AddressKind.UNIX, "/run/control.sock", 9, 0, 64, 2),
    )
    load = build.Workload(build.ClosedLoop(1), build.DurationStop(SECOND))
    cell = build.Cell(1, build.subject("a+b"), load)
    trial = replace(build.trial(cell, 0, 0, [1] * 9), facts=TrialFacts(listeners=kept))
    plan = build.Plan("p", "", "", "quick", (cell,), 1, 1)
    with create(tmp_path / "a.prony", plan, Fingerprint()) as writer:
        writer.append(trial)
    with open_archive(tmp_path / "a.prony") as archive:
        (record,) = archive.trials()
    assert record.trial.facts.listeners == kept


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (7, "facts.listeners: expected an array, found 7"),
        (["text"], 'facts.listeners[0]: expected an object, found "text"'),
        ([{}], "facts.listeners[0].kind: expected one of tcp4, tcp6, unix, found nothing"),
        ([{**asdict(usage(1, 2)), "kind": "tcp5"}], "facts.listeners[0].kind: expected one of tcp4"),
    ],
)
def test_facts_of_another_shape_are_refused_with_their_place(told, words):
    with pytest.raises(ShapeError) as error:
        decode(TrialFacts, {"listeners": told}, "facts")
    assert words in str(error.value)


def test_the_fullest_of_listeners_that_share_an_address_is_held_against_all_others():
    each = [usage(1, 3), usage(2, 129), usage(3, 0), usage(4, 2)]
    assert shared_addresses(each, window(4, 4)) == (SharedAddress("server", 4, 129, 128, 3),)


def test_the_fullest_is_that_which_is_nearest_to_its_own_limit():
    each = [usage(1, 40, limit=1000), usage(2, 5, limit=5)]
    assert shared_addresses(each, window(2)) == (SharedAddress("server", 2, 5, 5, 40),)


def test_listeners_that_follow_each_other_share_nothing():
    assert shared_addresses([usage(1, 3), usage(2, 9)], window(1, 1)) == ()


def test_each_process_is_held_to_its_own_listeners():
    each = [usage(1, 3, process="frontend"), usage(2, 9, process="frontend"), usage(3, 100), usage(4, 7)]
    other = usage(5, 50, process=None)
    assert shared_addresses([*each, other], window(2, process="frontend")) == (
        SharedAddress("frontend", 2, 9, 128, 3),
    )


def test_without_a_window_nothing_is_said():
    assert shared_addresses([usage(1, 3), usage(2, 9)], []) == ()
