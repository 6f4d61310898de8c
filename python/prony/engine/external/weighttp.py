"""weighttp: a number of requests over a number of connections. Pure.

*Source*: weighttp, its README and src/weighttp.c, by its documented output.

>>> TOOL.abilities.duration
False
"""

import re

from prony.core.errors import EngineError
from prony.core.units import MICROSECOND_NS, MILLISECOND_NS, SECOND_NS
from prony.engine.external.replies import by_class, counts_in
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Tool


def order(job: Job) -> Order:
    """Return what to start."""
    threads = str(min(job.threads, job.connections))
    options = ["-n", str(job.requests), "-c", str(job.connections), "-t", threads]
    options += ["-k"] if job.workload.request.keep_alive else []
    return Order(((job.program, *options, *job.headers("-H"), job.url),))


def parse(output: Output, job: Job) -> Measured:
    """Return what it reported."""
    text = output.stdout
    parts = r"^finished in (\d+) sec, (\d+) millisec and (\d+) microsec,"
    seconds, milliseconds, microseconds = counts_in(parts, text, "its time")
    counts = counts_in(_REQUESTS, text, "how many requests were done")
    started, done, succeeded, failed, errored = counts
    good, bad = by_class(text)
    if done > started or succeeded + failed != done:
        raise EngineError("the figures of weighttp contradict each other")
    ok = min(succeeded, good)
    received = re.search(r"^traffic: (\d+) bytes total", text, re.MULTILINE)
    return Measured(
        duration_ns=seconds * SECOND_NS + milliseconds * MILLISECOND_NS + microseconds * MICROSECOND_NS,
        ok=ok,
        bad_status=bad,
        failed={"unspecified": max(errored, done - ok - sum(bad.values()))},
        received_bytes=int(received[1]) if received else None,
    )


_REQUESTS = r"^requests: \d+ total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored"


TOOL = Tool(
    name="weighttp",
    title="closed loop for a number of requests, threads and epoll",
    get="build it from its sources; no distribution packages it",
    ask_version=("-v",),
    abilities=Abilities(duration=False, bodies=False, reports_status=False),
    order=order,
    parse=parse,
    caveats=(
        "weighttp does not measure latencies",
        "weighttp repeats a request when its connection was closed, and does not count the failure",
        "weighttp has no time-out: with an unanswered request the run lasts until its deadline",
    ),
)
