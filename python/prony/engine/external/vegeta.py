"""vegeta: a constant rate, or as many requests at once as it may. Pure.

*Source*: vegeta 12, its README, lib/attack.go and lib/metrics.go.

>>> TOOL.abilities.count
False
"""

from prony.engine.external.replies import by_kind, by_status, json_in, number_in, reported
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Reported, Tool
from prony.model.json_codec import Json
from prony.model.workload import OpenLoop


def order(job: Job) -> Order:
    """Return what to start: the attack, then the report on it."""
    request = job.workload.request
    options = [*_pace(job), "-duration", f"{job.milliseconds}ms", "-timeout", f"{job.timeout_ms}ms"]
    most = str(job.connections)
    options += ["-max-workers", most, "-connections", most, "-redirects", "-1"]
    options += ["-targets", "targets", "-output", "results", f"-keepalive={str(request.keep_alive).lower()}"]
    options += [*job.body("-body"), *job.headers("-header"), *job.authority("-root-certs")]
    files = {"targets": f"{request.method} {job.url}\n".encode(), **job.files}
    attack = (job.program, "attack", *options)
    report = (job.program, "report", "-type=json", "results")
    return Order((attack, report), files, environment={"GOMAXPROCS": str(job.threads)})


def _pace(job: Job) -> list[str]:
    match job.workload.loop:
        case OpenLoop(rate_per_s):
            # vegeta accepts whole requests in a whole time: requests per 1000 seconds keep three digits of a
            # rate.
            return ["-rate", f"{round(rate_per_s * 1000)}/1000s"]
        case _:
            return ["-rate", "0", "-workers", str(job.connections)]


def parse(output: Output, job: Job) -> Measured:
    """Return what it reported."""
    told = json_in(output.stdout, "its report")
    codes = dict(told.get("status_codes") or {})
    without = int(number_in(codes.pop("0", 0), "a count"))
    ok, bad = by_status(codes, job.workload.expect_status)
    # Its list names each error once, without a count: a single kind explains all, several cannot be
    # separated.
    kinds = by_kind(dict.fromkeys(_errors(told, bad), 1))
    kind = next(iter(kinds)) if len(kinds) == 1 else "unspecified"
    requests = int(number_in(told.get("requests"), "how many requests there were"))
    return Measured(
        duration_ns=round(number_in(told.get("duration"), "its time")),
        ok=ok,
        bad_status=bad,
        failed={kind: without},
        latency=_latency(told.get("latencies") or {}, requests, without),
        body_bytes=round(number_in((told.get("bytes_in") or {}).get("total") or 0, "the bytes")),
    )


def _errors(told: Json, bad: dict[str, int]) -> list[str]:
    return [str(text) for text in told.get("errors") or () if str(text)[:3] not in bad]


def _latency(values: Json, requests: int, without: int) -> Reported | None:
    edges = {name: values.get(name) for name in ("min", "mean", "max")}
    percentiles = {p: values.get(f"{p}th") for p in ("50", "90", "95", "99")}
    return reported("all" if without else "answered", requests, {**edges, **percentiles}, unit_ns=1)


TOOL = Tool(
    name="vegeta",
    title="constant rate",
    get="GOBIN=/usr/local/bin go install github.com/tsenart/vegeta/v12@v12.12.0",
    ask_version=("--version",),
    abilities=Abilities(open=True, count=False, tls=True),
    order=order,
    parse=parse,
    caveats=(
        "vegeta's latencies begin when a request is sent: they leave out its own send lag",
        "vegeta's latencies include failed requests",
        "vegeta's percentiles are estimates of a t-digest",
    ),
)
