"""An interval log of HdrHistogram: one histogram a second, for the tools that read such logs.

*Source*: G. Tene, HdrHistogram, "Histogram log format version 1.3", as `HistogramLogReader` reads it.

>>> interval_log.__name__
'interval_log'
"""

from base64 import b64encode
from collections.abc import Iterator

from prony.model.recording import Recording
from prony.units import MILLISECOND_NS, seconds

_HEADER = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


def interval_log(recording: Recording) -> str:
    """Return the log of a load: the latencies of the valid replies of each second, in nanoseconds.

    They are response times in an open loop and service times in a closed one. Time-stamps are seconds from
    the opening of the window, and `Interval_Max` is in milliseconds, as the format has it. A second without a
    valid reply has no line.
    """
    return "\n".join([*_head(recording), *_intervals(recording)])


def _head(recording: Recording) -> Iterator[str]:
    start_s = seconds(recording.window.open_unix_ns or 0)
    kind = "response" if recording.is_open else "service"
    yield f"#[Logged with prony {recording.engine.version}: {kind} times of valid replies, in nanoseconds]"
    yield "#[Histogram log format version 1.3]"
    yield f"#[StartTime: {start_s:.3f} (seconds since epoch)]"
    yield f"#[BaseTime: {start_s:.3f} (seconds since epoch)]"
    yield _HEADER


def _intervals(recording: Recording) -> Iterator[str]:
    end_s = seconds(recording.window.drained_length_ns or 0)
    for one in recording.series:
        if one.latency is not None and one.latency.histogram is not None:
            encoded = b64encode(one.latency.histogram).decode()
            longest_ms = (one.latency.max_ns or 0) / MILLISECOND_NS
            # The last second ends with the load.
            length_s = min(1.0, end_s - one.second) if end_s > one.second else 1.0
            yield f"{one.second:.3f},{length_s:.3f},{longest_ms:.3f},{encoded}"
