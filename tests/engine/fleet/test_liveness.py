"""Who is silent is lost, unless it was this side that did not listen."""

from prony.core.units import MILLISECOND_NS, SECOND_NS, nanoseconds
from prony.engine.fleet.member import BEAT_EVERY_S, SILENCE_NS, Liveness

LOOK_NS = 50 * MILLISECOND_NS


def looks(watch, begin_ns, end_ns, beating=()):
    """Look again and again, and return what was lost when."""
    lost = {}
    for at_ns in range(begin_ns, end_ns, LOOK_NS):
        for name in beating:
            watch.beat(name)
        for name in watch.look(at_ns):
            lost[name] = at_ns
    return lost


def test_a_loss_is_noticed_within_a_second_and_a_half():
    watch = Liveness(["dead", "alive"], 0)
    looks(watch, 0, SECOND_NS, ["dead", "alive"])
    lost = looks(watch, SECOND_NS, 4 * SECOND_NS, ["alive"])
    assert list(lost) == ["dead"]
    # A beat may have come just before it died, and a look just before it was silent for too long.
    assert lost["dead"] - SECOND_NS + nanoseconds(BEAT_EVERY_S) <= 1.5 * SECOND_NS


def test_who_beats_once_a_second_is_not_lost_in_an_hour():
    watch = Liveness(["slow"], 0)
    for second in range(3600):
        watch.beat("slow")
        assert looks(watch, second * SECOND_NS, (second + 1) * SECOND_NS) == {}


def test_the_first_beat_may_take_longer_and_no_other():
    watch = Liveness(["starting", "started"], 0, grace_ns=5 * SECOND_NS)
    looks(watch, 0, SECOND_NS, ["started"])
    assert list(looks(watch, SECOND_NS, 4 * SECOND_NS)) == ["started"]
    assert list(looks(watch, 4 * SECOND_NS, 8 * SECOND_NS)) == ["starting"]


def test_whose_load_has_ended_may_be_silent_for_longer_and_not_for_ever():
    watch = Liveness(["sending", "loading"], 0)
    watch.beat("sending", 10 * SECOND_NS)
    lost = looks(watch, 0, 20 * SECOND_NS)
    assert list(lost) == ["loading", "sending"]
    assert 10 * SECOND_NS < lost["sending"] < 12 * SECOND_NS


def test_silence_while_this_side_was_stopped_is_nobodys():
    watch = Liveness(["a", "b"], 0)
    assert watch.look(60 * SECOND_NS) == ()
    assert looks(watch, 60 * SECOND_NS, 62 * SECOND_NS, ["a", "b"]) == {}


def test_who_has_ended_is_not_waited_for_and_a_loss_is_reported_once():
    watch = Liveness(["done", "lost"], 0)
    watch.ended("done")
    assert list(looks(watch, 0, SILENCE_NS * 3)) == ["lost"]
    watch.beat("lost")
    assert looks(watch, SILENCE_NS * 3, SILENCE_NS * 6) == {}
