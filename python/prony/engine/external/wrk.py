"""wrk 4: a closed loop for a time, with threads and epoll. Pure.

*Source*: wrk 4.1.0, its manual, SCRIPTING, and src/wrk.c.

>>> TOOL.abilities.count
False
"""

from prony.core.units import MICROSECOND_NS
from prony.engine.external.replies import find, json_in, number_in, reported
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Reported, Tool
from prony.model.json_codec import Json

# Runs once, after the load: wrk's own report is rounded to three digits and has few percentiles.
_DONE = """\
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('\\nprony {"requests":%d,"duration_us":%d,"bytes":%d,',
    summary.requests, summary.duration, summary.bytes))
  io.write(string.format('"status":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d,',
    e.status, e.connect, e.read, e.write, e.timeout))
  io.write(string.format('"min_us":%d,"mean_us":%.3f,"max_us":%d,"percentiles_us":{',
    latency.min, latency.mean, latency.max))
  for i, p in ipairs({50, 90, 95, 99, 99.9, 99.99}) do
    io.write(string.format('%s"%g":%d', i > 1 and "," or "", p, latency:percentile(p)))
  end
  io.write('}}\\n')
end
"""


def _quoted(data: bytes) -> str:
    """Return a Lua string literal: every byte by its number."""
    return '"' + "".join(f"\\{byte:03d}" for byte in data) + '"'


def _script(job: Job) -> bytes:
    request = job.workload.request
    headers = [*request.headers, *(() if request.keep_alive else (("Connection", "close"),))]
    lines = [f"wrk.method = {_quoted(request.method.encode())}"]
    lines += [f"wrk.headers[{_quoted(name.encode())}] = {_quoted(value.encode())}" for name, value in headers]
    lines += [f"wrk.body = {_quoted(request.body)}"] if request.body else []
    return "\n".join([*lines, _DONE]).encode()


def order(job: Job) -> Order:
    """Return what to start."""
    load = ("-t", str(min(job.threads, job.connections)), "-c", str(job.connections), "-d", f"{job.seconds}s")
    command = (job.program, *load, "--timeout", f"{job.timeout_s}s", "-s", "done.lua", job.url)
    return Order((command,), {"done.lua": _script(job)})


def parse(output: Output, job: Job) -> Measured:
    """Return what it reported."""
    told = json_in(find(r"^prony (\{.*\})$", output.stdout, "its summary")[1], "its summary")
    count = {name: int(number_in(told.get(name), name)) for name in _COUNTS}
    ok = count["requests"] - count["status"] - count["timeout"]
    failed = {"timed_out": count["timeout"], "unspecified": sum(count[name] for name in _SOCKET)}
    lost = f"{count['connect']} connections could not be opened, and wrk did not try again"
    return Measured(
        duration_ns=count["duration_us"] * MICROSECOND_NS,
        ok=max(0, ok),
        bad_status={"400 and above": count["status"]} if count["status"] else {},
        failed=failed,
        latency=_latency(told, count["requests"] - count["timeout"]),
        received_bytes=count["bytes"],
        caveats=(lost,) if count["connect"] else (),
    )


_SOCKET = ("connect", "read", "write")
_COUNTS = ("requests", "duration_us", "bytes", "status", "timeout", *_SOCKET)


def _latency(told: Json, count: int) -> Reported | None:
    edges = {name: told.get(f"{name}_us") for name in ("min", "mean", "max")}
    return reported(
        "answered", count, {**edges, **(told.get("percentiles_us") or {})}, unit_ns=MICROSECOND_NS
    )


TOOL = Tool(
    name="wrk",
    title="closed loop, threads and epoll",
    get="apt-get install wrk",
    ask_version=("-v",),
    abilities=Abilities(count=False, whole_seconds=True, reports_status=False, repeats=False),
    order=order,
    parse=parse,
    caveats=(
        "wrk counts replies with an error status, and those that come after its time-out, as requests: Prony "
        "takes both out",
        "wrk adds invented latencies to correct for coordinated omission: its mean and its percentiles are "
        "computed from more values than it sent requests",
        "wrk does not count requests that are unanswered at the end",
        "wrk keeps waiting after its time-out, and leaves such replies out of its latencies",
        "wrk counts a connection that the server closes without announcing it as a read error, even if every "
        "reply came",
    ),
)
