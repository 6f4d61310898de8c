"""oha: a closed loop of asynchronous tasks. Pure.

*Source*: oha, its help and its schema.json (JSON schema of the output).

>>> TOOL.abilities.open
False
"""

from prony.core.metrics import PERCENTILES
from prony.core.units import SECOND_NS, nanoseconds
from prony.engine.external.replies import by_kind, by_status, json_in, number_in, reported
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Reported, Tool
from prony.model.json_codec import Json


def order(job: Job) -> Order:
    """Return what to start."""
    request = job.workload.request
    length = job.length("-z", f"{job.milliseconds}ms")
    options = ["--no-tui", "--output-format", "json", "-c", str(job.connections), *length]
    options += ["-t", f"{job.timeout_ms}ms", "--redirect", "0", "-m", request.method]
    options += [] if request.keep_alive else ["--disable-keepalive"]
    options += [*job.headers("-H"), *job.body("-D")]
    environment = {"TOKIO_WORKER_THREADS": str(job.threads)}
    return Order(((job.program, *options, job.url),), job.files, environment=environment)


def parse(output: Output, job: Job) -> Measured:
    """Return what it reported."""
    told = json_in(output.stdout, "its report")
    ok, bad = by_status(told.get("statusCodeDistribution") or {}, job.workload.expect_status)
    summary = told.get("summary") or {}
    body = number_in(summary.get("totalData") or 0, "the bytes")
    return Measured(
        duration_ns=nanoseconds(number_in(summary.get("total"), "its time")),
        ok=ok,
        bad_status=bad,
        failed=by_kind(told.get("errorDistribution") or {}),
        latency=_latency(told, summary, ok + sum(bad.values())),
        body_bytes=round(body),
    )


def _latency(told: Json, summary: Json, replies: int) -> Reported | None:
    values = told.get("latencyPercentiles") or {}
    percentiles = {p: values[f"p{p}"] for p in PERCENTILES.values() if values.get(f"p{p}") is not None}
    edges = {"min": summary.get("fastest"), "mean": summary.get("average"), "max": summary.get("slowest")}
    return reported("answered", replies, {**edges, **percentiles}, unit_ns=SECOND_NS)


TOOL = Tool(
    name="oha",
    title="closed loop of asynchronous tasks",
    get="cargo install oha",
    ask_version=("--version",),
    abilities=Abilities(),
    order=order,
    parse=parse,
    caveats=(
        "oha's success rate counts every reply, whatever its status: Prony counts valid ones only",
        "oha aborts the requests that are in flight when its time is over: they count as unanswered",
        "oha's latencies include every reply, whatever its status",
    ),
)
