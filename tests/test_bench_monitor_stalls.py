"""What `bench/monitor_stalls` reads of a trial."""

from benches import bench
from diagnosis.test_causes import SIX
from golden import build

MS = 1_000_000


def test_the_slowest_reply_of_each_second_is_read_of_a_recording():
    trial = build.trial(SIX, 0, 0, [MS] * 599 + [40 * MS])
    found = bench("monitor_stalls").slowest_ms(trial, 6)
    assert len(found) == len(trial.recording.series[:6])
    assert 39 <= max(found) <= 41
