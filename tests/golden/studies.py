"""Archives of studies that repeat published experiments, made without measuring.

``grid_study``: six servers from 100 to 10,000 connections, with servers that fail under load, trials that
failed or were repeated, claims of every verdict and published figures. ``count_study``: fixed numbers of
requests to servers of several processes.
"""

import random
from dataclasses import replace

from golden import build
from golden.build import SECOND
from prony.archive import create
from prony.model.observation import ProcessRow
from prony.model.plan import Cell, Claim, ClaimKind, Design, Needs, Original, Plan
from prony.model.sandbox import Network, SandboxFacts
from prony.model.subject import Frontend
from prony.model.trial import Failed, Invalid, RunStatus, SubjectRecord, TrialRole
from prony.model.workload import ClosedLoop, CountStop, DurationStop, OpenLoop, Workload
from prony.plan.factors import name_with

LOADS = (100, 1000, 10_000)
# name: requests a second of one block, scaled down; share that fails under 100, 1,000 and 10,000 connections;
# cores; MiB.
SERVERS = {
    "bjoern+hello": (2000, (0, 0, 0), 0.98, 9),
    "meinheld+hello": (1990, (0, 0, 0.02), 0.97, 11),
    "cheroot+hello": (800, (0, 0, 0), 0.9, 40),
    "gunicorn+hello": (500, (0, 0.01, 0.09), 1.2, 95),
    "uwsgi+hello": (300, (0.05, 0.2, 0.34), 0.5, 30),
}
CLAIMS = (
    Claim("fastest", "bjoern has the highest requests/s", ClaimKind.HIGHEST, "ok_per_s", "bjoern+*"),
    Claim(
        "slowest", "Gunicorn is the slowest", ClaimKind.LOWEST, "ok_per_s", "gunicorn+*",
        load={"connections": 100},
    ),
    Claim("memory", "bjoern needs the least memory", ClaimKind.LOWEST, "pss_end", "bjoern+*"),
    Claim(
        "double", "bjoern serves twice what CherryPy's server does", ClaimKind.RATIO, "ok_per_s", "bjoern+*",
        "cheroot+*", load={"connections": 100}, low=1.8, high=2.6,
    ),
    Claim(
        "ten-cores", "uWSGI uses ten cores", ClaimKind.VALUE, "cpu_percent", "uwsgi+*", low=900, high=1000,
        needs=Needs(server_cpus=10),
    ),
)  # fmt: skip
ORIGINALS = tuple(
    Original(f"{name}+*", metric, value, {"connections": load}, note=note)
    for name, metric, load, value, note in (
        ("bjoern", "ok_per_s", 100, 61_476, "the mean of a dead run and of live ones"),
        ("bjoern", "ok_per_s", 1000, 96_561, ""),
        ("bjoern", "ok_per_s", 10_000, 82_332, ""),
        ("cheroot", "ok_per_s", 100, 4090, ""),
        ("cheroot", "ok_per_s", 10_000, 4004, ""),
        ("gunicorn", "ok_per_s", 100, 1045, ""),
        ("gunicorn", "ok_per_s", 500, 1390, ""),
        ("uwsgi", "error_ratio", 10_000, 0.34, ""),
        ("mod_wsgi", "ok_per_s", 100, 1254, ""),
    )
)


def record(name, **sandbox):
    return SubjectRecord(
        name,
        server_version="2.1",
        interpreter="CPython 3.11.7",
        settings={"workers": 1},
        command_line=build.command_line(name),
        sandbox=SandboxFacts(Network.ISOLATED, **sandbox),
    )


def _speed(name, load, block, rng):
    speed, failing, cores, mib = SERVERS[name]
    share = failing[LOADS.index(load)]
    drift = 1 + 0.01 * rng.gauss(0, 1) + 0.002 * block
    count = int(speed * (1.1 if load == 1000 else 1) * drift * (1 - share))
    return count, int(count * share / (1 - share)), cores, mib * (1 + load // 5000)


def grid_trial(cell, block, position, rng):
    load = cell.workload.loop.connections
    count, failed, cores, mib = _speed(cell.subject.name, load, block, rng)
    # As many in flight as there are connections.
    values = build.latencies(rng, count, 7000 * load / count)
    errors = {"connect_timed_out": failed // 2, "reset": failed - failed // 2} if failed else {}
    workers = 5 if "gunicorn" in cell.subject.name else 1
    return build.trial(
        cell, block, position, values, cores=cores, rss_mib=mib, workers=workers, errors=errors
    )


@build.built_once
def grid_study(path, blocks=6):
    """Five servers, three loads; `uwsgi` fails, `gunicorn` dies twice, one trial was repeated."""
    rng = random.Random(3)
    loads = [Workload(ClosedLoop(count), DurationStop(7 * SECOND)) for count in LOADS]
    pairs = [(name, load) for name in SERVERS for load in loads]
    cells = tuple(Cell(k, build.subject(name), load) for k, (name, load) in enumerate(pairs, 1))
    steady = Workload(OpenLoop(100.0), DurationStop(7 * SECOND))
    calibration = Cell(0, build.subject("reference+hello"), steady)
    plan = Plan(
        name="wsgi-servers",
        title="Six Python WSGI servers",
        text="",
        profile="full",
        cells=cells,
        blocks=blocks,
        seed=11,
        question="Which WSGI server serves most, and which break under many connections?",
        source="WSGI_Benchmarks, 2016: wrk, 4 rounds of 30 s",
        calibration=calibration,
        design=Design(primary={"connections": 1000}, trimmed_mean=True),
        claims=CLAIMS,
        originals=ORIGINALS,
        notes=("Three loads of nineteen.",),
    )
    with create(path, plan, build.FINGERPRINT) as writer:
        for name in SERVERS:
            writer.record_subject(record(name))
        for block in range(blocks):
            order = list(cells)
            rng.shuffle(order)
            writer.append(_calibration(calibration, block, 0, rng))
            for position, cell in enumerate(order, 1):
                for one in _trials(cell, block, position, rng):
                    writer.append(one)
        writer.finish(RunStatus.FINISHED)
    return path


def _trials(cell, block, position, rng):
    name, load = cell.subject.name, cell.workload.loop.connections
    if name.startswith("gunicorn") and load == 10_000 and block in (1, 4):
        reason = "out of memory: the kernel killed 1 of its processes, limit 512 MiB"
        yield build.trial(cell, block, position, [], outcome=Failed("load", reason), log="Killed\n")
        return
    if name.startswith("cheroot") and load == 100 and block == 2:
        yield build.trial(cell, block, position, [], outcome=Invalid("steal was 4 %"), attempt=0)
    yield grid_trial(cell, block, position, rng)


def _calibration(cell, block, position, rng):
    values = build.latencies(rng, 700, 1.0 * (1 + 0.01 * block))
    return replace(build.trial(cell, block, position, values), role=TrialRole.CALIBRATION)


# --- fixed counts -----------------------------------------------------------------------------------------

# name: seconds for 1,000 requests, role to (number, MiB)
COUNTED = {
    "nginx-wsgi+django-postgres": (2.1, {"worker": (2, 15), "postgres": (6, 9)}),
    "flup-prefork@nginx+django-postgres": (
        2.5, {"master": (1, 12), "worker": (40, 11), "frontend": (2, 4), "postgres": (40, 9)}
    ),
    "flup-threaded@nginx+django-postgres": (
        3.9, {"server": (1, 60), "frontend": (2, 4), "postgres": (20, 9)}
    ),
}  # fmt: skip


@build.built_once
def count_study(path, blocks=5):
    """Three ways to run Django, 1,000 requests over 20 connections; the threaded one dies with 500."""
    rng = random.Random(5)
    loads = [
        Workload(ClosedLoop(connections), CountStop(requests))
        for connections, requests in ((20, 1000), (500, 10_000))
    ]
    pairs = [(name, load) for name in COUNTED for load in loads]
    cells = tuple(Cell(k, _counted_subject(name), load) for k, (name, load) in enumerate(pairs, 1))
    originals = tuple(
        Original(name, metric, value, {"connections": 20.0}, note=note)
        for name, metric, value, note in (
            ("nginx-wsgi+*", "duration_ns_per_request", 14.2e6, ""),
            ("nginx-wsgi+*", "duration_ns_per_request", 14.3e6, ""),
            ("flup-prefork@*", "duration_ns_per_request", 12.5e6, "mostly about 12 ms"),
            ("flup-prefork@*", "duration_ns_per_request", 16.5e6, ""),
        )
    )
    plan = Plan(
        *("django-fastcgi", "Django behind nginx: embedded WSGI against FastCGI", "", "quick"),
        cells=cells,
        blocks=blocks,
        seed=4,
        source="nginx: mod_wsgi vs FastCGI, 2007-11-24",
        originals=originals,
    )
    with create(path, plan, build.FINGERPRINT) as writer:
        for name in COUNTED:
            writer.record_subject(record(name))
        for block in range(blocks):
            for position, cell in enumerate(cells):
                writer.append(_counted_trial(cell, block, position, rng))
        writer.finish()
    return path


def _counted_subject(name):
    server, app = name.split("+")
    entry, _, front = server.partition("@")
    plain = build.subject(f"{entry}+{app}")
    return replace(plain, name=name, frontend=Frontend(front) if front else None)


def _counted_trial(cell, block, position, rng):
    seconds, roles = COUNTED[cell.subject.name]
    if "threaded" in cell.subject.name and cell.workload.loop.connections > 100:
        reason = "the main process ended with signal 11 under load"
        return build.trial(
            cell, block, position, [], outcome=Failed("load", reason), log="can't start new thread\n"
        )
    length = int(seconds * (1 + 0.01 * rng.gauss(0, 1)) * cell.workload.stop.requests / 1000 * SECOND)
    timed = replace(cell, workload=replace(cell.workload, stop=DurationStop(length)))
    values = build.latencies(rng, cell.workload.stop.requests, 20 * seconds)
    trial = build.trial(timed, block, position, values, cores=0.9)
    samples = tuple(
        replace(one, processes=tuple(_processes(roles, one.processes[0].pss_bytes is not None, index)))
        for index, one in enumerate(trial.samples)
    )
    return replace(trial, samples=samples)


def _processes(roles, mark, second):
    pid = 100
    for role, (count, mib) in roles.items():
        for _ in range(count):
            pid += 1
            rss = mib * 1024**2
            used = int(0.02 * second * SECOND)
            yield ProcessRow(pid, 1, role, role, used, 0, rss, 2 * rss, 1, rss // 2 if mark else None)


# Requests in a second by workers and threads: threads help one worker, and cost several.
OF_CPUS = {2: "2*{cpus}"}
BY_SETTINGS = {(1, 1): 300, (1, 4): 500, (2, 1): 600, (2, 4): 602, (4, 1): 598, (4, 4): 560}


def with_levels(name, levels, **resolved):
    """A subject with these levels, and its record: settings that need the number of CPUs are ``resolved``."""
    plain = build.subject(name)
    one = replace(plain, name=name_with(name, levels), settings=dict(levels), levels=dict(levels))
    return one, replace(record(name), name=one.name, settings={**levels, **resolved})


@build.built_once
def settings_study(path, blocks=6):
    """Gunicorn with one, two and four workers of one and four threads, and waitress beside it."""
    rng = random.Random(5)
    load = Workload(ClosedLoop(20), DurationStop(2 * SECOND))
    made = [
        with_levels("gunicorn+hello", {"workers": OF_CPUS.get(workers, workers), "threads": threads},
                    workers=workers)
        for workers, threads in BY_SETTINGS
    ]  # fmt: skip
    subjects = [*made, (build.subject("waitress+hello"), record("waitress+hello"))]
    speeds = [*BY_SETTINGS.values(), 450]
    cells = tuple(Cell(k, subject, load) for k, (subject, _) in enumerate(subjects, 1))
    plan = Plan("settings", "How many workers and threads", "", "full", cells, blocks, 3)
    with create(path, plan, build.FINGERPRINT) as writer:
        for _, one in subjects:
            writer.record_subject(one)
        for block in range(blocks):
            for k, (cell, speed) in enumerate(zip(cells, speeds, strict=True)):
                count = int(2 * speed * (1 + 0.004 * rng.gauss(0, 1) + 0.01 * block))
                values = build.latencies(rng, count, 2000 * 20 / count)
                writer.append(build.trial(cell, block, k, values, rss_mib=20 + 5 * k))
        writer.finish(RunStatus.FINISHED)
    return path
