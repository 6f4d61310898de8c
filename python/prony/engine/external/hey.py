"""hey: a closed loop of goroutines. Pure.

*Source*: hey 0.1.4, its help, requester/report.go and requester/requester.go.

>>> TOOL.abilities.open
False
"""

import re

from prony.core.errors import EngineError
from prony.core.units import SECOND_NS, nanoseconds
from prony.engine.external.replies import by_kind, by_status, find, number_in, reported
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Reported, Tool

# It keeps the latencies of this many requests only, but counts all of them.
_MOST_RESULTS = 1_000_000


def order(job: Job) -> Order:
    """Return what to start."""
    request = job.workload.request
    length = job.length("-z", f"{job.milliseconds}ms")
    options = [*length, "-c", str(job.connections), "-t", str(job.timeout_s), "-m", request.method]
    options += ["-disable-compression", "-disable-redirects", "-cpus", str(job.threads)]
    options += [] if request.keep_alive else ["-disable-keepalive"]
    options += [*job.headers("-H"), *job.body("-D")]
    return Order(((job.program, *options, job.url),), job.files)


def parse(output: Output, job: Job) -> Measured:
    """Return what it reported."""
    text = output.stdout
    seconds = number_in(find(r"^\s+Total:\s+([0-9.]+) secs", text, "its time")[1], "its time")
    codes = dict(re.findall(r"^\s+\[(\d{3})\]\t(\d+) responses", text, re.MULTILINE))
    kinds = text.partition("Error distribution:")[2]
    errors = {told: count for count, told in re.findall(r"^\s+\[(\d+)\]\t(.*)$", kinds, re.MULTILINE)}
    ok, bad = by_status(codes, job.workload.expect_status)
    replies = ok + sum(bad.values())
    if replies and not re.search(r"^Latency distribution:", text, re.MULTILINE):
        raise EngineError("the generator stopped within its report")
    return Measured(
        duration_ns=nanoseconds(seconds),
        ok=ok,
        bad_status=bad,
        failed=by_kind(errors),
        latency=_latency(text, replies),
        caveats=_kept(replies),
    )


def _kept(replies: int) -> tuple[str, ...]:
    return ("hey timed only its first million requests",) if replies >= _MOST_RESULTS else ()


def _latency(text: str, replies: int) -> Reported | None:
    if not replies:
        return None

    names = {"min": "Fastest", "mean": "Average", "max": "Slowest"}
    edges = {
        name: find(rf"^\s+{told}:\s+([0-9.]+) secs", text, f"its {told}")[1] for name, told in names.items()
    }
    shares = dict(re.findall(r"^\s+(50|90|95|99)%+ in ([0-9.]+) secs", text, re.MULTILINE))
    return reported("answered", replies, {**edges, **shares}, unit_ns=SECOND_NS)


TOOL = Tool(
    name="hey",
    title="closed loop of goroutines",
    get="apt-get install hey",
    ask_version=(),
    # It silently reduces any other number.
    abilities=Abilities(even_counts=True, repeats=False),
    order=order,
    parse=parse,
    caveats=(
        "hey counts failed requests in its rate: Prony's rate counts valid replies only",
        "hey's latencies are rounded to 0.1 ms and include every reply, whatever its status",
        "hey counts a truncated reply as complete",
        "hey computes a wrong mean latency above a million requests",
    ),
)
