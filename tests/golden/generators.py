"""An archive of generators against one server: scripts, the built-in one, and tools that tell less."""

import random
from dataclasses import replace

from golden import build
from golden.build import SECOND
from golden.studies import record
from prony.archive import create
from prony.core.errors import FailureStage
from prony.model.facts import FoundRate, RateStep, RunFacts, Unmet
from prony.model.json_codec import encode
from prony.model.plan import Cell, Claim, ClaimKind, Original, Plan
from prony.model.trial import Invalid, TrialRole
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from recordings import with_parts

# name, threads, connections: requests a second, CPU %, share of the machine's memory
GENERATORS = {
    ("prony", 1, 80): (2600, 12, 0.004),
    ("wrk", 1, 80): (2610, 9, 0.001),
    ("python-asyncio", 1, 80): (1500, 99, 0.006),
    ("python-processes", 1, 80): (700, 130, 0.15),
    ("python-threads", 1, 80): (400, 101, 0.008),
    ("hey", 1, 80): (2500, 40, 0.003),
}
CAVEATS = {
    "wrk": ("wrk opens no new connection for one that could not be opened",),
    "hey": (
        "hey does not compare bodies: a reply with a wrong body counts as valid",
        "hey has no warm-up: Prony ran it once before, on other connections",
    ),
}
CLAIMS = (
    Claim(
        "coroutines", "with 80 connections, coroutines send more requests than threads",
        ClaimKind.HIGHEST, "ok_per_s",
        engine="python-asyncio", against_engine="python-*", load={"connections": 80},
    ),
)  # fmt: skip


def external(recording, name, count, cpu, memory):
    """The Recording of a tool that gives no histograms, with what was sampled of its processes."""
    reported = {
        "population": "answered",
        "count": count,
        "min": 30_000_000,
        "mean": 31_000_000.0,
        "max": 60_000_000,
        "percentiles": {"50": 30_900_000, "90": 33_000_000, "99": 41_000_000},
    }
    processes = {"cpu_percent": cpu, "rss_mean_bytes": memory * 8 * 1024**3, "memory_ratio": memory}
    return with_parts(
        recording,
        engine={
            "name": name,
            "version": "1.0",
            "threads": 1,
            "driver": None,
            "pacing": None,
            "caveats": list(CAVEATS.get(name, ())),
            "missing": {"distributions": f"{name} gives no histogram of its latencies"},
        },
        distributions=dict.fromkeys(encode(recording.distributions)),
        reported_latency_ns=None if name == "python-threads" else reported,
        series=[],
        generator={"cpu_work_ns": None, "cpu_ns_per_request": None, "threads": [], "processes": processes},
    )


def generator_trial(cell, block, position, rng):
    name = cell.engine.name
    speed, cpu, memory = GENERATORS[name, cell.engine.threads, cell.workload.loop.connections]
    count = int(speed * (1 + 0.005 * rng.gauss(0, 1)))
    values = build.latencies(rng, count, 30)
    trial = build.trial(cell, block, position, values, cores=0.2)
    if name == "prony":
        processes = {"rss_mean_bytes": memory * 8 * 1024**3, "memory_ratio": memory}
        return replace(trial, recording=with_parts(trial.recording, generator={"processes": processes}))
    return replace(trial, recording=external(trial.recording, name, count, cpu, memory))


@build.built_once
def generators_study(path, blocks=5):
    """Six generators against the reference server; one could not run in one block."""
    rng = random.Random(9)
    subject = build.subject("reference-30ms+hello")
    cells = tuple(
        Cell(
            number,
            subject,
            Workload(ClosedLoop(connections), DurationStop(SECOND)),
            EngineChoice(name, threads),
        )
        for number, (name, threads, connections) in enumerate(GENERATORS, 1)
    )
    originals = (
        Original(subject.name, "ok_per_s", 813, {"connections": 80}, "python-processes", "CPU 93 %"),
        Original(subject.name, "ok_per_s", 1170, {"connections": 80}, "python-asyncio"),
    )
    plan = Plan(
        *("load-scripts", "Four ways to write a load generator", "", "quick"),
        cells=cells,
        blocks=blocks,
        seed=2,
        source="an article on load scripts",
        claims=CLAIMS,
        originals=originals,
    )
    with create(path, plan, build.FINGERPRINT) as writer:
        writer.record_subject(replace(record(subject.name), settings={"delay_ms": 30}))
        for block in range(blocks):
            for position, cell in enumerate(cells):
                if cell.engine.name == "hey" and block == 3:
                    lost = Invalid("the generator: hey ended with status 1")
                    writer.append(build.trial(cell, block, position, [], outcome=lost))
                else:
                    writer.append(generator_trial(cell, block, position, rng))
        writer.finish()
    return path


@build.built_once
def checked_study(path, blocks=6):
    """Two servers, each also under wrk, and a search for the highest rate of each."""
    rng = random.Random(6)
    load = Workload(ClosedLoop(10), DurationStop(2 * SECOND))
    cells = tuple(
        Cell(k, build.subject(name), load) for k, name in enumerate(("bjoern+hello", "waitress+hello"), 1)
    )
    checks = tuple(replace(cell, id=cell.id + 10, engine=EngineChoice("wrk")) for cell in cells)
    plan = Plan("two", "Two servers", "", "quick", cells, blocks, 1)
    found = [
        FoundRate(
            *("bjoern+hello", 4100.0, 6, 6),
            steps=(
                *((RateStep(100.0, True),) * 8),
                RateStep(4180.0, False, unmet=Unmet("p99 < 50ms", "response_all_p99", 61.2e6)),
            ),
        ),
        FoundRate(
            *("waitress+hello", None, 0, 0),
            steps=(RateStep(0.1, False, "no port", FailureStage.START),) * 10,
        ),
    ]
    with create(path, plan, build.FINGERPRINT) as writer:
        for cell in checks:
            writer.record_cell(cell, TrialRole.CROSS_CHECK)
        for cell in cells:
            writer.record_subject(record(cell.subject.name))
        for block in range(blocks):
            for position, cell in enumerate((*cells, *checks)):
                speed = 4000 if cell.subject.name.startswith("bjoern") else 2000
                count = int(speed * (1 + 0.004 * rng.gauss(0, 1)))
                trial = build.trial(cell, block, position, build.latencies(rng, count, 20_000 / speed))
                if cell in checks:
                    told = external(trial.recording, "wrk", count, 20.0, 0.001)
                    trial = replace(trial, role=TrialRole.CROSS_CHECK, recording=told)
                writer.append(trial)
        writer.record_facts(RunFacts(found_rates=tuple(found)))
        writer.finish()
    return path
