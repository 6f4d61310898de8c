"""ab, the Apache HTTP server's benchmark: a closed loop in one thread, HTTP/1.0. Pure.

*Source*: ab 2.3, its manual, and support/ab.c of httpd 2.4.

>>> TOOL.abilities.count
True
"""

import re

from prony.core.units import MILLISECOND_NS, nanoseconds
from prony.engine.external.replies import counts_in, find, number_in
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Reported, Tool

# It reserves a record of 32 bytes for each request at the start; unused ones cost only address space.
_MOST_PER_S = 100_000
_MOST_REQUESTS = 50_000_000


def order(job: Job) -> Order:
    """Return what to start."""
    request = job.workload.request
    most = min(_MOST_REQUESTS, max(job.connections, job.seconds * _MOST_PER_S))
    # The time option comes first: it also sets a number of requests.
    length = job.length("-t", str(job.seconds), "-n", str(most))
    options = ["-q", "-r", "-l", *(("-k",) if request.keep_alive else ()), "-s", str(job.timeout_s)]
    options += [*job.headers("-H"), *job.body("-p")]
    options += ["-m", request.method] if request.method != "GET" else []
    command = (job.program, *options, "-c", str(job.connections), *length, "-e", "served.csv", job.url)
    return Order((command,), job.files, ("served.csv",))


def parse(output: Output, job: Job) -> Measured:
    """Return what it reported."""
    text = output.stdout
    seconds = number_in(find(r"^Time taken for tests:\s+([0-9.]+) seconds", text, "its time")[1], "its time")
    (done,) = counts_in(r"^Complete requests:\s+(\d+)", text, "how many requests were done")
    bad = re.search(r"^Non-2xx responses:\s+(\d+)", text, re.MULTILINE)
    bad_count = int(bad[1]) if bad else 0
    connect, receive, exceptions = _broken(text)
    (received,) = counts_in(r"^Total transferred:\s+(\d+) bytes", text, "the bytes")
    # Only requests that failed while their reply was read are among the complete ones; a connection that
    # could not be opened counts there and as an exception.
    broken = connect + max(receive, exceptions)
    return Measured(
        duration_ns=nanoseconds(seconds),
        ok=max(0, done - bad_count - receive),
        bad_status={"other than 2xx": bad_count} if bad_count else {},
        failed={"unspecified": broken},
        latency=_latency(output.files.get("served.csv", ""), text, done, broken),
        received_bytes=received,
    )


def _broken(text: str) -> tuple[int, int, int]:
    """Return how often a connection could not be opened, a reply not be read, and a socket had an error."""
    found = re.search(r"\(Connect: (\d+), Receive: (\d+), Length: \d+, Exceptions: (\d+)\)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else (0, 0, 0)


def _latency(csv: str, text: str, done: int, broken: int) -> Reported | None:
    rows = dict(re.findall(r"^(\d+),([0-9.]+)$", csv, re.MULTILINE))
    total = re.search(r"^Total:\s+(\d+)\s+(\d+)\s+[0-9.]+\s+(\d+)\s+(\d+)", text, re.MULTILINE)
    if not rows or total is None or not done:
        return None
    values = {name: round(number_in(value, "a percentile") * MILLISECOND_NS) for name, value in rows.items()}
    mean = re.search(r"^Time per request:\s+([0-9.]+) \[ms\] \(mean\)$", text, re.MULTILINE)
    # Its mean is connections x time / requests, which is the mean latency of a closed loop.
    mean_ns = number_in(mean[1], "the mean") * MILLISECOND_NS if mean else None
    percentiles = {name: values[name] for name in ("50", "90", "95", "99") if name in values}
    population = "all" if broken else "answered"
    return Reported(population, done, values.get("0"), mean_ns, values.get("100"), percentiles)


TOOL = Tool(
    name="ab",
    title="closed loop, one thread, HTTP/1.0",
    get="apt-get install apache2-utils",
    ask_version=("-V",),
    abilities=Abilities(whole_seconds=True, reports_status=False),
    order=order,
    parse=parse,
    caveats=(
        "ab speaks HTTP/1.0: the server may answer differently than with HTTP/1.1",
        "ab counts replies with an error status as complete, and in its rate: Prony takes them out",
        "ab counts a reply of another length as failed: Prony switches that off (-l)",
        "ab leaves reset connections out of its complete requests, or counts them twice as failed",
        "ab aborts the whole run when nothing arrives for the length of its time-out",
        "ab always has one thread",
        "ab's mean is connections x time / requests, not the mean of measured latencies",
    ),
)
