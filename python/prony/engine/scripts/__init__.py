"""Four load generators in Python, written as people write them; and once more as an article printed them.

The code in ``python-scripts`` runs in an environment of its own and knows nothing of Prony.

>>> sorted(SCRIPTS)[0]
'printed-asyncio'
"""

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

from prony.engine.external.replies import find, json_in, number_in
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Tool
from prony.model.json_codec import Json
from prony.model.recording import Completed

_CODE = Path(__file__).parent / "python-scripts"
_SHARED = ("tally.py", "with_requests.py", "with_aiohttp.py")


_PRINTED = "printed-"


def _order(name: str, script: str, job: Job) -> Order:
    request, workload = job.workload.request, job.workload
    told = {
        "method": request.method,
        "url": job.url,
        "headers": dict(request.headers),
        "body": _base64(request.body),
        "keep_alive": request.keep_alive,
        "workers": job.connections,
        "processes": min(job.threads, job.connections),
        "warmup_ns": workload.warmup_ns,
        "duration_ns": job.duration_ns,
        "timeout_ns": workload.timeout_ns,
        "expect_status": workload.expect_status,
        "expect_body": _base64(workload.expect_body),
        "as_printed": name.startswith(_PRINTED),
    }
    files = {name: (_CODE / name).read_bytes() for name in (script, *_SHARED)}
    return Order(((job.program, script, "order.json"),), {**files, "order.json": json.dumps(told).encode()})


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _parse(output: Output, job: Job) -> Measured:
    """Return what a script counted; its latencies are a distribution of their own."""
    told = json_in(find(r"^prony (\{.*\})$", output.stdout, "what it counted")[1], "what it counted")
    classes = {str(name): _count(n) for name, n in (told.get("classes") or {}).items()}
    bad = {str(code): _count(n) for code, n in (told.get("statuses") or {}).items()}
    ok = classes.pop("ok", 0)
    classes.pop("bad_status", 0)
    window = {name: _count(told.get(name)) for name in ("open_ns", "close_ns")}
    completed = Completed(*(_count((told.get("completed") or {}).get(name)) for name in ("ok", "failed")))
    return Measured(
        duration_ns=window["close_ns"] - window["open_ns"],
        ok=ok,
        bad_status=bad,
        failed={"failed_validation": 0, "timed_out": 0, "connect_refused": 0, **classes},
        body_bytes=_count(told.get("body_bytes")),
        open_ns=window["open_ns"],
        completed=completed,
        latencies=_latencies(told, ok),
        caveats=_own_words(output.stdout),
    )


def _own_words(stdout: str) -> tuple[str, ...]:
    """Return what a script prints of itself, as the article's do: of each worker, and the rate of all. Of
    several processes each says its own rate before, which the last one includes.
    """
    qps = re.findall(r"^qps: ([0-9.]{1,20})$", stdout, re.MULTILINE)
    workers = re.findall(r"^workers: (\d+, \d+ to \d+ requests each)$", stdout, re.MULTILINE)
    if not qps:
        return ()
    rate = f"{float(qps[-1]):,.1f}"
    return (f"its own output: qps {rate}, failures included; workers: {'; '.join(workers)}",)


def _latencies(told: Json, ok: int) -> Json:
    microseconds = {_count(us): _count(n) for us, n in (told.get("microseconds") or {}).items()}
    low = told.get("min_ns")
    return {
        "count": ok,
        "min_ns": None if low is None else _count(low),
        "max_ns": _count(told.get("max_ns")) if ok else None,
        "sum_ns": _count(told.get("sum_ns")) if ok else None,
        "microseconds": microseconds,
    }


def _count(value: object) -> int:
    return int(number_in(value, "a count"))


def _printed(name: str, title: str, file: str, packages: str, *caveats: str) -> Tool:
    return _script(_PRINTED + name, f"{title}, as printed", file, packages, *caveats)


def _script(name: str, title: str, file: str, packages: str, *caveats: str) -> Tool:
    return Tool(
        name=name,
        title=title,
        get=f"Prony installs {packages} for it in a separate environment",
        ask_version=(),
        abilities=Abilities(count=False),
        order=lambda job: _order(name, file, job),
        parse=_parse,
        caveats=(
            f"{name} times requests in Python: its latencies include waiting for the interpreter",
            *caveats,
        ),
        speaks=True,
        compares_bodies=True,
    )


_GIL = "the threads share one interpreter: only one of them runs at a time"
_RETRIES = "a request that fails or times out is sent up to three times more, and counts as one"
_UNREAD = "each coroutine has a session of its own, and no body is read: a wrong one counts as valid"
SCRIPTS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        _script(
            "python-processes",
            "multiprocessing + requests: a process for each connection",
            "processes.py",
            "requests",
        ),
        _script(
            "python-threads",
            "threading + requests: a thread for each connection",
            "threads.py",
            "requests",
            _GIL,
        ),
        _script(
            "python-asyncio", "asyncio + aiohttp: a coroutine for each connection", "coroutines.py", "aiohttp"
        ),
        _script(
            "python-asyncio-processes",
            "asyncio + aiohttp in several processes",
            "coroutines_in_processes.py",
            "aiohttp",
        ),
        _printed("processes", "multiprocessing + requests", "processes.py", "requests", _RETRIES),
        _printed("threads", "threading + requests", "threads.py", "requests", _GIL, _RETRIES),
        _printed("asyncio", "asyncio + aiohttp", "coroutines.py", "aiohttp", _UNREAD),
        _printed(
            "asyncio-processes",
            "asyncio + aiohttp in several processes",
            "coroutines_in_processes.py",
            "aiohttp",
            _UNREAD,
        ),
    )
}
