"""Each listener of a trial, read back from its facts, and those that share an address."""

from dataclasses import asdict, replace

import pytest

from golden import build
from prony.analysis.listeners import SharedAddress, listener_usage, shared_addresses
from prony.archive import open_archive
from prony.model import AddressKind, ListenerUsage, Phase, Sample


def window(*sockets, process="server"):
    gauges = [{f"listen.{process}.sockets": count} for count in sockets]
    return [Sample(second, Phase.WINDOW, (), 0, 0, 0, each) for second, each in enumerate(gauges)]


def usage(inode, queued, limit=128, process="server"):
    return ListenerUsage(process, AddressKind.TCP4, "127.0.0.1:8000", inode, queued, limit, 3)


def trial_with(tmp_path, facts):
    with open_archive(build.closed_study(tmp_path / "a.prony", blocks=1)) as archive:
        (record, *_) = archive.trials()
    return replace(record.trial, facts=facts)


def test_what_the_monitor_keeps_is_read_back_from_the_facts(tmp_path):
    kept = [
        usage(70, 128),
        usage(71, 3),
        ListenerUsage(None, AddressKind.UNIX, "/run/control.sock", 9, 0, 64, 2),
    ]
    trial = trial_with(tmp_path, {"listeners": [asdict(one) for one in kept]})
    assert listener_usage(trial) == tuple(kept)


def test_an_archive_without_listeners_has_none(tmp_path):
    assert listener_usage(trial_with(tmp_path, {})) == ()


@pytest.mark.parametrize(
    "told", [7, [7], ["text"], [{}], [{**asdict(usage(1, 2)), "kind": "tcp5"}], [{"process": "server"}]]
)
def test_facts_of_another_shape_are_an_error_that_the_reader_turns_into_its_own(tmp_path, told):
    trial = trial_with(tmp_path, {"listeners": told})
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        listener_usage(trial)


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
