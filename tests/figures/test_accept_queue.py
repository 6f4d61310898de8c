"""How full the accept queues were, from the samples' gauges."""

import pytest

from prony.figures.accept_queue import AcceptQueue, accept_queue_metrics, accept_queues, entrance
from prony.figures.missing import Missing
from prony.model.observation import Phase, Sample


def window(*gauges):
    return [Sample(second, Phase.WINDOW, (), 0, 0, 0, each) for second, each in enumerate(gauges)]


def listen(process, queued, limit):
    return {f"listen.{process}.queued": queued, f"listen.{process}.limit": limit}


def test_the_fullest_queue_counts_by_its_share_of_its_own_limit():
    found = accept_queue_metrics(
        window(listen("server", 5, 100), {**listen("server", 1, 100), **listen("frontend", 300, 500)})
    )
    assert found["accept_queue_peak"] == pytest.approx(0.6)
    assert (found["accept_queue_longest"], found["accept_queue_limit"]) == (300, 500)


def test_of_empty_queues_that_of_the_clients_entrance_is_told():
    found = accept_queue_metrics(window({**listen("server", 0, 100), **listen("frontend", 0, 511)}))
    assert (found["accept_queue_longest"], found["accept_queue_limit"]) == (0, 511)


def test_each_process_keeps_its_fullest_moment():
    samples = window(listen("server", 6, 5), listen("server", 2, 5))
    assert accept_queues(samples) == {"server": AcceptQueue("server", 6, 5)}
    assert accept_queues(samples)["server"].full
    assert not AcceptQueue("server", 5, 5).full


def test_connections_are_those_at_the_entrance():
    samples = window({"established.server": 9, "established.frontend": 40}, {"established.frontend": 30})
    assert entrance(samples) == "frontend"
    assert accept_queue_metrics(samples)["connections_peak"] == 40
    assert accept_queue_metrics(window({"established.server": 9}))["connections_peak"] == 9


def test_queues_that_were_not_read_have_a_reason():
    assert all(isinstance(value, Missing) for value in accept_queue_metrics(window({})).values())
