"""Documents that are no study's report, each with the JSON that its command prints with --json."""

from functools import partial

from golden import build
from prony.faces.json_load import load_result
from prony.model.shapes import encode
from prony.reading.load import read_load
from prony.report.load import load_document
from recordings import with_parts

__all__ = ["REPORTS"]

MS = 1_000_000


# --- prony load -------------------------------------------------------------------------------------------


def load(loop, ok, errors=None, censored=(), **changes):
    workload = build.Workload(loop, build.DurationStop(build.SECOND))
    spec = {"target": {"host": "127.0.0.1", "port": 8000}, "workload": encode(workload)}
    recording = with_parts(build.recording(workload, ok, errors, censored), spec=spec, **changes)
    reading = read_load(recording)
    return load_document(reading), load_result(reading)


SPREAD = [MS + 7919 * k % (20 * MS) for k in range(12_000)]
SAMPLES = [{"class": "reset", "detail": f"os error {104 + k % 2}", "at_ns": k} for k in range(5)]
COSTS = {
    "limit": {"kind": "late", "lag_ns": 12_500_000},
    "cpu_ns_per_request": 9100.5,
    "spin_share": 0.31,
}

LOADS = {
    "a closed loop": partial(load, build.ClosedLoop(10), SPREAD),
    "an open loop with failures": partial(
        load,
        build.OpenLoop(12_500.0),
        SPREAD,
        {"bad_status": {"503": 400, "500": 7}, "reset": 12, "timed_out": 30},
        [2_000_000_000] * 30,
        error_samples=SAMPLES,
        connections={"retried": 4},
        generator=COSTS,
        little={"residual": -0.0123},
    ),
    "few replies of one time": partial(load, build.ClosedLoop(1), [MS] * 20),
    "nothing answered": partial(load, build.OpenLoop(10), [], {"connect_refused": 50}),
    "a window that never opened": partial(
        load, build.ClosedLoop(1), [], {"connect_refused": 1200}, window={"open_ns": None}
    ),
    "nothing sent": partial(load, build.OpenLoop(10), []),
}

REPORTS = {f"load: {name}": lambda _path, made=made: made() for name, made in LOADS.items()}
