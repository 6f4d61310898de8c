"""k6: virtual users that run JavaScript, in a closed loop or at a constant rate. Pure.

*Source*: k6 0.57, its documentation of executors, options and metrics.

>>> TOOL.abilities.open
True
"""

import json
from base64 import b64encode

from prony.core.metrics import PERCENTILES
from prony.core.units import MILLISECOND_NS
from prony.engine.external.replies import is_good, json_in, number_in, reported
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Reported, Tool
from prony.model.json_codec import Json
from prony.model.workload import OpenLoop

_SCRIPT = """\
import http from "k6/http";
import encoding from "k6/encoding";
import { Counter } from "k6/metrics";

const order = %s;
export const options = order.options;
const codes = {};
for (const code of order.codes) codes[code] = new Counter("code_" + code);
const other = new Counter("code_other");
const body = order.body === null ? null : encoding.b64decode(order.body);
http.setResponseCallback(http.expectedStatuses(order.expected));

export default function () {
  const reply = http.request(order.method, order.url, body, order.parameters);
  (codes[reply.status === 0 ? "error_" + reply.error_code : reply.status] || other).add(1);
}

export function handleSummary(data) {
  return { "report.json": JSON.stringify(data) };
}
"""
_ERRORS = {"1050": "timed_out", "1210": "connect_timed_out", "1212": "connect_refused", "1220": "reset"}
_CODES = (200, 201, 204, 301, 302, 304, 400, 401, 403, 404, 405, 408, 413, 429, 500, 501, 502, 503, 504)


def order(job: Job) -> Order:
    """Return what to start."""
    request, wanted = job.workload.request, job.workload.expect_status
    told = {
        "options": {
            "scenarios": {"load": _scenario(job)},
            "summaryTrendStats": ["count", "min", "avg", "max", *(f"p({p})" for p in PERCENTILES.values())],
            "thresholds": {"http_req_duration{expected_response:true}": []},
            "noConnectionReuse": not request.keep_alive,
            "discardResponseBodies": True,
            "batchPerHost": 0,
        },
        "codes": [*_CODES, *(f"error_{code}" for code in _ERRORS)],
        "expected": wanted or {"min": 200, "max": 399},
        "method": request.method,
        "url": job.url,
        "body": b64encode(request.body).decode() if request.body else None,
        "parameters": {"headers": dict(request.headers), "timeout": f"{job.timeout_ms}ms", "redirects": 0},
    }
    # Without its own server: in the subject's network that would take the subject's orders.
    command = (job.program, "run", "--address", "", "--quiet", "--no-usage-report", "--no-color", "load.js")
    script = (_SCRIPT % json.dumps(told)).encode()
    environment = {"GOMAXPROCS": str(job.threads), "HOME": ".", "K6_NO_USAGE_REPORT": "true"}
    return Order((command,), {"load.js": script}, ("report.json",), environment)


def _scenario(job: Job) -> Json:
    match job.workload.loop:
        case OpenLoop(rate_per_s):
            return {
                "executor": "constant-arrival-rate",
                # Whole numbers only, so per 1000 seconds.
                "rate": round(rate_per_s * 1000),
                "timeUnit": "1000s",
                "duration": f"{job.milliseconds}ms",
                "preAllocatedVUs": min(job.connections, 100),
                "maxVUs": job.connections,
                "gracefulStop": f"{job.timeout_ms}ms",
            }
    if job.requests:
        return {
            "executor": "shared-iterations",
            "vus": min(job.connections, job.requests),
            "iterations": job.requests,
            "maxDuration": "24h",
        }
    length = {"duration": f"{job.milliseconds}ms", "gracefulStop": f"{job.timeout_ms}ms"}
    return {"executor": "constant-vus", "vus": job.connections, **length}


def parse(output: Output, job: Job) -> Measured:
    """Return what it reported."""
    told = json_in(output.files.get("report.json", "") or output.stderr, "its report")
    metrics = {
        str(name): (one or {}).get("values") or {} for name, one in (told.get("metrics") or {}).items()
    }

    def count(name: str) -> int:
        return int(number_in(metrics.get(name, {}).get("count") or 0, name))

    wanted = job.workload.expect_status
    good = "http_req_duration{expected_response:true}"
    ok, requests, dropped = count(good), count("http_reqs"), count("dropped_iterations")
    bad = {str(code): count(f"code_{code}") for code in _CODES if not is_good(code, wanted)}
    failed = {kind: count(f"code_error_{code}") for code, kind in _ERRORS.items()}
    rest = requests - ok - sum(bad.values()) - sum(failed.values())
    state = told.get("state") or {}
    measured_ns = round(number_in(state.get("testRunDurationMs"), "its time") * MILLISECOND_NS)
    return Measured(
        duration_ns=min(measured_ns, job.duration_ns or measured_ns),
        ok=ok,
        bad_status={code: number for code, number in bad.items() if number},
        failed={**failed, "unspecified": max(0, rest), "not_sent_queue": dropped},
        latency=_latency(metrics.get(good, {}), ok),
        received_bytes=count("data_received"),
    )


def _latency(values: Json, ok: int) -> Reported | None:
    edges = {"min": values.get("min"), "mean": values.get("avg"), "max": values.get("max")}
    percentiles = {p: values[f"p({p})"] for p in PERCENTILES.values() if f"p({p})" in values}
    return reported("ok", ok, {**edges, **percentiles}, unit_ns=MILLISECOND_NS)


TOOL = Tool(
    name="k6",
    title="closed loop or constant rate, scripted in JavaScript",
    get="GOBIN=/usr/local/bin go install go.k6.io/k6@v0.57.0",
    ask_version=("version",),
    abilities=Abilities(open=True, repeats=False),
    order=order,
    parse=parse,
    caveats=(
        "k6's latencies begin when a request is sent: they leave out waiting for a connection or, at a "
        "constant rate, for a free user",
        "k6 interpolates its percentiles between neighbouring requests",
        "k6 waits for the last replies after its duration and counts them: Prony counts them too",
    ),
)
