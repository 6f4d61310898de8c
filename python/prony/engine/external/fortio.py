"""fortio: a closed loop of goroutines, with a report as JSON. Pure.

*Source*: fortio 1.63, its help, and stats/stats.go.

>>> TOOL.abilities.open
False
"""

from prony.engine.external.replies import by_status, reported
from prony.engine.external.text import json_in, number_in
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Reported, Tool
from prony.metrics import PERCENTILES
from prony.model import Json
from prony.units import SECOND_NS

__all__ = ["TOOL"]


def order(job: Job) -> Order:
    """Return what is started."""
    request = job.workload.request
    length = job.length("-t", f"{job.milliseconds}ms")
    options = ["-quiet", "-qps", "0", "-c", str(job.connections), *length, "-timeout", f"{job.timeout_ms}ms"]
    options += ["-p", ",".join(PERCENTILES.values()), "-r", "0.00001", "-json", "report.json"]
    # It stops at the first error otherwise.
    options += ["-allow-initial-errors", f"-keepalive={str(request.keep_alive).lower()}"]
    options += ["-X", request.method] if request.method != "GET" else []
    options += [*job.headers("-H"), *job.body("-payload-file")]
    command = (job.program, "load", *options, job.url)
    return Order((command,), job.files, ("report.json",), {"GOMAXPROCS": str(job.threads)})


def parse(output: Output, job: Job) -> Measured:
    """Return what it found."""
    told = json_in(output.files.get("report.json") or output.stderr, "its report")
    codes = dict(told.get("RetCodes") or {})
    # It has -1 and 0 for what ended without a reply.
    without = sum(int(number_in(codes.pop(code, 0), "a count")) for code in ("-1", "0"))
    ok, bad = by_status(codes, job.workload.expect_status)
    sizes = told.get("Sizes") or {}
    return Measured(
        duration_ns=round(number_in(told.get("ActualDuration"), "its time")),
        ok=ok,
        bad_status=bad,
        failed={"unspecified": without},
        latency=_latency(told),
        received_bytes=round(number_in(sizes.get("Sum") or 0, "the bytes")),
    )


def _latency(told: Json) -> Reported | None:
    histogram, errors = told.get("DurationHistogram") or {}, told.get("ErrorsDurationHistogram")
    count = int(number_in(histogram.get("Count") or 0, "the count"))
    failed = int(number_in((errors or {}).get("Count") or 0, "the count of errors"))
    percentiles = {
        f"{number_in(row['Percentile'], 'a percentile'):g}": row["Value"]
        for row in histogram.get("Percentiles") or ()
    }
    edges = {"min": histogram.get("Min"), "mean": histogram.get("Avg"), "max": histogram.get("Max")}
    # Its errors are in both: any other status than 200 is one.
    return reported("all" if failed else "ok", count, {**edges, **percentiles}, unit_ns=SECOND_NS)


TOOL = Tool(
    name="fortio",
    title="closed loop of goroutines",
    get="GOBIN=/usr/local/bin go install fortio.org/fortio@v1.63.7",
    ask_version=("version",),
    abilities=Abilities(),
    order=order,
    parse=parse,
    caveats=(
        "fortio interpolates its percentiles within wide buckets: they may lie where no request was",
        "fortio sends one request a connection before the load, which it does not count",
        "fortio leaves what is unanswered when its time is over out of its counts",
        "fortio times failed requests with the others",
    ),
)
