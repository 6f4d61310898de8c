"""fortio: a closed loop of goroutines, with a report as JSON. Pure.

*Source*: fortio 1.63, its help, and stats/stats.go.

>>> TOOL.abilities.open
False
"""

from prony.core.metrics import PERCENTILES
from prony.core.units import SECOND_NS
from prony.engine.external.replies import by_status, json_in, number_in, reported
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Reported, Tool
from prony.model.json_codec import Json


def order(job: Job) -> Order:
    """Return what to start."""
    request = job.workload.request
    length = job.length("-t", f"{job.milliseconds}ms")
    options = ["-quiet", "-qps", "0", "-c", str(job.connections), *length, "-timeout", f"{job.timeout_ms}ms"]
    options += ["-p", ",".join(PERCENTILES.values()), "-r", "0.00001", "-json", "report.json"]
    # Without this it stops at the first error.
    options += ["-allow-initial-errors", f"-keepalive={str(request.keep_alive).lower()}"]
    options += ["-X", request.method] if request.method != "GET" else []
    options += [*job.headers("-H"), *job.body("-payload-file"), *job.authority("-cacert")]
    command = (job.program, "load", *options, job.url)
    return Order((command,), job.files, ("report.json",), {"GOMAXPROCS": str(job.threads)})


def parse(output: Output, job: Job) -> Measured:
    """Return what it reported."""
    told = json_in(output.files.get("report.json") or output.stderr, "its report")
    codes = dict(told.get("RetCodes") or {})
    # It reports -1 and 0 for requests without a reply.
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
    # Errors are in both: for fortio every status except 200 is an error.
    return reported("all" if failed else "ok", count, {**edges, **percentiles}, unit_ns=SECOND_NS)


TOOL = Tool(
    name="fortio",
    title="closed loop of goroutines",
    get="GOBIN=/usr/local/bin go install fortio.org/fortio@v1.63.7",
    ask_version=("version",),
    abilities=Abilities(tls=True),
    order=order,
    parse=parse,
    caveats=(
        "fortio interpolates its percentiles within wide buckets: they may be values that no request had",
        "fortio sends one request on each connection before the load and does not count it",
        "fortio does not count requests that are unanswered when its time is over",
        "fortio's latencies include failed requests",
    ),
)
