"""Archives for the golden tests, made without measuring: every figure is a function of a seed.

``study_two`` is like eight embedded servers at 550 requests/s, with one that loses requests, one that is not
available, one that was killed once and one that is slow.
"""

import fcntl
import hashlib
import os
import random
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path

from histograms import distribution
from prony.archive import create, resume  # noqa: F401 - tests reach it here
from prony.model.address import AddressKind
from prony.model.facts import DeclaredFacts, Fingerprint, SubjectFacts, TrialEvent, TrialFacts
from prony.model.json_codec import encode
from prony.model.limit import Limit, LimitKind
from prony.model.observation import ListenerUsage, LogTail, Phase, ProcessRow, Sample
from prony.model.plan import Cell, Plan
from prony.model.recording import decode_recording
from prony.model.sandbox import Network, Placement, SandboxFacts
from prony.model.subject import App, Interface, Subject
from prony.model.trial import Failed, Invalid, Ok, RunStatus, SubjectRecord, Trial, TrialRole
from prony.model.workload import ClosedLoop, DurationStop, OpenLoop, Workload

MS = 1_000_000
SECOND = 1_000_000_000
BUSY = Limit(LimitKind.BUSY, share=0.93)
STARTED = 1_790_000_000 * SECOND
FINGERPRINT = Fingerprint(
    {
        "machine": "x86_64",
        "cpu": {"model": "AMD EPYC 7B13", "available": 2, "governor": {"missing": "no cpufreq"}},
        "memory": {"total_bytes": 8 * 1024**3},
        "kernel": {"release": "6.1.0-18-amd64"},
        "virtualisation": {"guest": True},
    }
)
NO_ERRORS = {
    "bad_status": {},
    "failed_validation": 0,
    "connect_refused": 0,
    "connect_timed_out": 0,
    "connect_unreachable": 0,
    "dns": 0,
    "tls": 0,
    "reset": 0,
    "eof": 0,
    "short_body": 0,
    "parse": 0,
    "timed_out": 0,
    "not_sent_queue": 0,
    "not_sent_end": 0,
    "in_flight_at_end": 0,
    "client_no_address": 0,
    "client_no_descriptor": 0,
    "client_no_buffer": 0,
    "client_other": 0,
}


def app(name):
    return App(
        name,
        name.title(),
        f"apps/{name}",
        {Interface.WSGI: "app:app"},
        (name.split("-")[0],),
        digest="d" * 64,
    )


def subject(name):
    server, application = name.split("+")
    return Subject(name, server, app(application), Interface.WSGI)


def latencies(rng, count, median_ms, tail_ms=0.0, tail_share=0.0):
    values = [int(median_ms * MS * rng.lognormvariate(0, 0.3)) for _ in range(count)]
    for index in range(int(count * tail_share)):
        values[index] += int(tail_ms * MS * rng.random())
    return values


def recording(workload, ok, errors=None, censored=(), limited=None, error_samples=()):
    return decode_recording(wire(workload, ok, errors, censored, limited, error_samples))


def told_limit(limit):
    """What a generator tells that this limits it; null: nothing."""
    return {"limited": limit.level if limit else "no", "evidence": [encode(limit)] if limit else []}


def wire(workload, ok, errors, censored, limited, error_samples):
    """A Recording as a generator tells it; ``limited``: the limit that it had."""
    open_loop = isinstance(workload.loop, OpenLoop)
    duration = workload.stop.duration_ns
    account = {**NO_ERRORS, **(errors or {})}
    failed = sum(sum(value.values()) if isinstance(value, dict) else value for value in account.values())
    service = [max(1, value - 50_000) for value in ok]
    first, last = 1000 * SECOND, 1000 * SECOND + duration
    seconds = duration // SECOND
    each = len(ok) // seconds
    return {
        "format": 1,
        "engine": {
            "name": "prony-engine",
            "version": "0.1.0",
            "driver": "epoll",
            "threads": 1,
            "pacing": "precise",
        },
        "spec": {"target": {"host": "127.0.0.1", "port": 8000}},
        "loop": "open" if open_loop else "closed",
        "window": {
            "open_ns": first,
            "close_ns": last,
            "drained_ns": last + MS,
            "open_unix_ns": STARTED,
            "interrupted": False,
        },
        "account": {"scheduled": len(ok) + failed, "ok": len(ok), **account},
        "completed": {"ok": len(ok), "failed": failed},
        "connections": {
            "opened": 12,
            "reconnects": 1,
            "connect_failures": 0,
            "retried": 0,
            "answered": {"connections": 12, "without_reply": 0, "min": 10, "max": 900},
        },
        "bytes": {"sent": 90 * len(ok), "received": 170 * len(ok), "body_received": 9 * len(ok)},
        "queue": {"waited": 0, "max_length": 0},
        "distributions": {
            "ok_response": distribution(ok) if open_loop else None,
            "ok_service": distribution(service),
            "censored_response": distribution(censored) if open_loop else None,
            "censored_service": distribution(censored),
            "send_lag": distribution([20_000 + 10 * k for k in range(2000)]) if open_loop else None,
            "connect": distribution([90_000] * 12),
        },
        "series": [
            {
                "second": k,
                "scheduled": each,
                "due_ok": each if open_loop else None,
                "ok": each,
                "failed": 0,
                "body_bytes": 9 * each,
                "latency": distribution(ok[k * each : (k + 1) * each]),
            }
            for k in range(seconds)
        ],
        "generator": {
            **told_limit(limited),
            "cpu_work_ns": 9000 * len(ok),
            "cpu_spin_ns": duration // 10,
            "run_queue_ns": 5 * MS,
            "cpu_ns_per_request": 9000,
            "spin_share": 0.1,
            "threads": [{"cpu": 1, "user_ns": 1, "system_ns": 2, "spin_ns": 3, "run_queue_ns": 4}],
        },
        "little": {"in_flight_integral_ns": 10, "sojourn_sum_ns": 10, "residual": 0.0},
        "error_samples": list(error_samples),
    }


def samples(duration, cores, rss_mib, workers):
    def at(second, phase, pss):
        used = int(cores * second * SECOND)
        share = rss_mib * 1024**2 // (workers + 1)
        rows = [
            ProcessRow(100, 7, "master", "server", 5 * MS, MS, share, 4 * share, 1, pss and share * 6 // 10)
        ]
        for worker in range(workers):
            own = used // workers
            rows.append(
                ProcessRow(
                    101 + worker, 8, "worker", "server", own * 3 // 4, own // 4, share, 4 * share, 2,
                    pss and share * 6 // 10,
                )
            )  # fmt: skip
        return Sample(
            (1000 + second) * SECOND,
            phase,
            tuple(rows),
            used + 9 * MS * second,
            (2 - int(cores)) * second * SECOND,
            0,
        )

    seconds = duration // SECOND
    window = [at(second, Phase.WINDOW, False or None) for second in range(seconds + 1)]
    return (*window, at(seconds, Phase.DRAIN, True))


def listeners(*queues, limit=128):
    """Return what is kept of listeners at one address, each with so many who waited: facts, and gauges."""
    usage = tuple(
        ListenerUsage("server", AddressKind.TCP4, "127.0.0.1:8000", 70 + at, queued, limit, 3)
        for at, queued in enumerate(queues)
    )
    most = {"queued": max(queues), "limit": limit, "sockets": len(queues)}
    return TrialFacts(listeners=usage), {f"listen.server.{name}": value for name, value in most.items()}


NO_LISTENERS = TrialFacts(), {}


def trial(cell, block, position, ok_values, *, cores=0.4, rss_mib=50, workers=1, outcome=None, **kwargs):
    started = STARTED + (block * 10 + position) * 15 * SECOND
    ran = outcome is None
    log = kwargs.pop("log", "")
    counters = kwargs.pop("counters", {"ListenOverflows": 0})
    missing = kwargs.pop("missing", {"nr_throttled": "no cpu controller"})
    attempt = kwargs.pop("attempt", 1)
    facts, gauges = kwargs.pop("listeners", NO_LISTENERS)
    taken = samples(cell.workload.stop.duration_ns, cores, rss_mib, workers) if ran else ()
    return Trial(
        cell_id=cell.id,
        block=block,
        position=position,
        attempt=attempt,
        role=TrialRole.SUBJECT,
        outcome=outcome or Ok(),
        started_unix_ns=started,
        ended_unix_ns=started + 14 * SECOND,
        command=("python", "serve.py"),
        placement=Placement((0,), (1,)),
        nuisances={"PYTHONHASHSEED": str(block), "padding_bytes": "128"},
        recording=recording(cell.workload, ok_values, **kwargs) if ran else None,
        samples=tuple(replace(sample, gauges=gauges) for sample in taken),
        counters=counters,
        missing=missing,
        log=LogTail(log),
        events=(TrialEvent("started"),),
        facts=facts,
    )


# name: (median ms, tail ms, share of tail, cores, MiB, workers)
EIGHT = {
    "gunicorn+falcon-hello": (0.91, 12, 0.01, 0.31, 52, 2),
    "tornado+falcon-hello": (0.81, 9, 0.012, 0.42, 38, 1),
    "twisted+falcon-hello": (1.20, 28, 0.02, 0.55, 47, 1),
    "wsgiref+falcon-hello": (2.92, 3600, 0.06, 0.62, 24, 1),
    "gunicorn+flask-hello": (1.16, 8, 0.02, 0.48, 61, 2),
    "tornado+flask-hello": (1.04, 40, 0.03, 0.66, 47, 1),
    "twisted+flask-hello": (1.99, 11_000, 0.15, 0.97, 58, 1),
    "wsgiref+flask-hello": (0, 0, 0, 0, 0, 0),
}


def declared(**facts):
    return SubjectFacts(DeclaredFacts(**facts))


def command_line(name):
    server, application = name.split("+")
    return f"python -m {server} --bind 127.0.0.1:8000 --app {application.replace('-', '_')}.app:app"


def _wsgiref(cell, block, position, rng):
    errors = {"reset": 60 + block, "connect_timed_out": 31, "timed_out": 9, "bad_status": {"503": 4}}
    return trial(
        cell,
        block,
        position,
        latencies(rng, 4400, 2.92, 3600, 0.06),
        cores=0.62,
        rss_mib=24,
        errors=errors,
        censored=[10 * SECOND] * 40,
        counters={"ListenOverflows": 412 + block},
        error_samples=[{"class": "reset", "detail": "Connection reset by peer (os error 104)", "at_ns": 5}],
    )


def built_once(build):
    """Let ``build``, which makes an archive at a path, make each only once: the next is a copy of it."""
    kept = {}

    @wraps(build)
    def copied(path, *arguments, **named):
        given = (arguments, *named.items())
        if given not in kept:
            kept[given] = once_in_a_run(
                f"{build.__name__}-{given!r}", partial(build, path, *arguments, **named)
            )
        path.write_bytes(kept[given])
        return path

    return copied


def once_in_a_run(name, build):
    """Return the archive that ``build`` makes, or that another process of this run has made."""
    cache, run = os.environ.get("PRONY_TEST_CACHE"), os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if not (cache and run):
        return build().read_bytes()
    folder = Path(cache, f"golden-{run}")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / hashlib.sha256(name.encode()).hexdigest()
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_bytes(build().read_bytes())
    return file.read_bytes()


@built_once
def study_two(path: Path, blocks=3):
    """Eight servers, open loop at 550/s for 8 s."""
    # Each app has its own reply: a group is by load, not by what the app is expected to answer.
    loads = {
        application: Workload(OpenLoop(550.0), DurationStop(8 * SECOND), expect_body=application.encode())
        for application in ("falcon-hello", "flask-hello")
    }
    cells = tuple(
        Cell(index + 1, subject(name), loads[name.partition("+")[2]]) for index, name in enumerate(EIGHT)
    )
    plan = Plan(
        name="embedded-servers",
        title="Servers embedded in a Python program",
        text='name = "embedded-servers"\n',
        profile="quick",
        cells=cells,
        blocks=blocks,
        seed=20260901,
        question="Which server answers 550 requests/s most evenly?",
    )
    rng = random.Random(7)
    with create(path, plan, FINGERPRINT) as writer:
        for name in EIGHT:
            if name == "wsgiref+flask-hello":
                writer.record_subject(
                    SubjectRecord(name, unavailable="flask 3.1 needs Python 3.9, found 3.8")
                )
                continue
            writer.record_subject(
                SubjectRecord(
                    name,
                    server_version="1.2.3",
                    interpreter="CPython 3.11.7",
                    packages={"flask": "3.1.0"},
                    lock_digest="a" * 64,
                    settings={"workers": 1},
                    command_line=command_line(name),
                    sandbox=SandboxFacts(Network.ISOLATED),
                    facts=declared(backlog=5) if "wsgiref" in name else SubjectFacts(),
                )
            )
        for block in range(blocks):
            for position, cell in enumerate(cells):
                name = cell.subject.name
                median, tail, share, cores, rss, workers = EIGHT[name]
                if name == "wsgiref+flask-hello":
                    continue
                if name == "wsgiref+falcon-hello":
                    writer.append(_wsgiref(cell, block, position, rng))
                elif name == "twisted+falcon-hello" and block == 1:
                    reason = "the main process ended with signal 9"
                    log = "Traceback\n\x1b[31mMemoryError\x1b[0m: out of memory\n"
                    writer.append(trial(cell, block, position, [], outcome=Failed("load", reason), log=log))
                else:
                    if name == "tornado+flask-hello" and block == 2:
                        writer.append(
                            trial(cell, block, position, [], outcome=Invalid("steal was 4 %"), attempt=1)
                        )
                    values = latencies(rng, 4400, median * (1 + 0.02 * rng.gauss(0, 1)), tail, share)
                    usage = {
                        "cores": cores * (1 + 0.01 * rng.gauss(0, 1)),
                        "rss_mib": rss,
                        "workers": workers,
                    }
                    writer.append(trial(cell, block, position, values, attempt=2, **usage))
        writer.finish(RunStatus.FINISHED)
    return path


@built_once
def closed_study(path: Path, blocks=6):
    """Two servers that are alike and a slower one of two listeners, of which one has the longer queue."""
    workload = Workload(ClosedLoop(10), DurationStop(2 * SECOND))
    speeds = {"bjoern+hello": 5000, "meinheld+hello": 4990, "gunicorn+hello": 2500}
    cells = tuple(Cell(index + 1, subject(name), workload) for index, name in enumerate(speeds))
    plan = Plan("wsgi-servers", "WSGI servers", "", "full", cells, blocks, 5, "Which is fastest?")
    rng = random.Random(11)
    with create(path, plan, FINGERPRINT) as writer:
        for name in speeds:
            record = SubjectRecord(
                name, server_version="3", command_line=command_line(name), sandbox=SandboxFacts(Network.HOST)
            )
            writer.record_subject(record)
        for block in range(blocks):
            drift = 1 + 0.01 * rng.gauss(0, 1)
            for position, cell in enumerate(cells):
                count = int(speeds[cell.subject.name] * drift * (1 + 0.004 * rng.gauss(0, 1)))
                values = latencies(rng, count, 20000 / count)
                limited = BUSY if position == 0 and block == 0 else None
                seen = (
                    listeners(8 + block % 2, 1) if cell.subject.name.startswith("gunicorn") else NO_LISTENERS
                )
                writer.append(
                    trial(cell, block, position, values, cores=0.95, limited=limited, listeners=seen)
                )
        writer.finish()
    return path
