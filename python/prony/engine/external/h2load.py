"""h2load of nghttp2, over HTTP/1.1: a closed loop with threads. Pure.

*Source*: h2load 1.52, its manual, and src/h2load.cc.

>>> TOOL.abilities.without_keep_alive
False
"""

from prony.core.errors import EngineError
from prony.engine.external.replies import by_class, counts_in, find, parse_time_ns
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Reported, Tool


def order(job: Job) -> Order:
    """Return what to start."""
    request = job.workload.request
    length = job.length("-D", str(job.seconds))
    options = ["--h1", "-c", str(job.connections), "-t", str(min(job.threads, job.connections)), *length]
    options += ["-N", f"{job.timeout_s}s", *job.headers("-H")]
    options += ["-H", f":method: {request.method}"] if request.method != "GET" else []
    options += job.body("-d")
    return Order(((job.program, *options, job.url),), job.files)


def parse(output: Output, job: Job) -> Measured:
    """Return what it reported."""
    text = output.stdout
    duration = parse_time_ns(find(r"^finished in ([0-9.]+(?:us|ms|s|m|h)),", text, "its time")[1])
    counts = counts_in(_REQUESTS, text, "how many requests were done")
    started, done, succeeded, failed, errored, timed_out = counts
    _, bad = by_class(text)
    if succeeded + sum(bad.values()) > started or failed < errored:
        raise EngineError("the figures of h2load contradict each other")
    (received,) = counts_in(r"^traffic: .*?\((\d+)\) total", text, "the traffic")
    return Measured(
        duration_ns=duration,
        ok=succeeded,
        bad_status=bad,
        failed={"timed_out": timed_out, "unspecified": max(0, failed - sum(bad.values()) - timed_out)},
        latency=_latency(text, done),
        received_bytes=received,
    )


_REQUESTS = (
    r"^requests: \d+ total, (\d+) started, (\d+) done, (\d+) succeeded, "
    r"(\d+) failed, (\d+) errored, (\d+) timeout"
)


def _latency(text: str, done: int) -> Reported | None:
    if not done:
        return None
    times = find(r"^time for request:\s+(\S+)\s+(\S+)\s+(\S+)", text, "its latencies")
    low, high, mean = (parse_time_ns(value) for value in times.groups())
    return Reported("answered", done, low, float(mean), high, {})


TOOL = Tool(
    name="h2load",
    title="closed loop, threads, over HTTP/1.1",
    get="apt-get install nghttp2-client",
    ask_version=("--version",),
    abilities=Abilities(without_keep_alive=False, whole_seconds=True, reports_status=False),
    order=order,
    parse=parse,
    caveats=(
        "h2load prints no percentiles of its latencies",
        "h2load's minimum, mean and maximum come from a sample of its requests when there are many",
        "h2load's time-out is for a connection without traffic, not for a request",
        "h2load does not reopen a connection that the server closed; with a duration it does not report the "
        "requests that were lost with it",
    ),
)
