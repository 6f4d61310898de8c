"""The archives that mutants are made of: whole, small, and with something in every column.

``prepare`` writes them into a folder, each by its name.
"""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from golden import build, generators, studies
from golden.build import SECOND
from golden.faults import FAULTS
from mixes import study_of_mix
from prony.archive import create, resume
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import FailureStage
from prony.core.units import DAY_NS
from prony.figures.validity import in_words
from prony.model.address import AddressKind
from prony.model.exchange import Request
from prony.model.facts import (
    DeclaredFacts,
    Fingerprint,
    FoundRate,
    RateStep,
    RunFacts,
    SearchPart,
    Stopped,
    SubjectFacts,
    TrialEvent,
    TrialFacts,
    TrialStep,
    Unmet,
)
from prony.model.limit import Limit, LimitKind
from prony.model.observation import ListenerUsage, ThreadUsage
from prony.model.plan import Cell, Claim, ClaimKind, Design, Original, Plan, Precision
from prony.model.sandbox import Network, SandboxChoice, SandboxFacts
from prony.model.subject import Interface, Subject
from prony.model.trial import Failed, Invalid, SubjectRecord, TrialRole
from prony.model.workload import ClosedLoop, DurationStop, Workload

SERVERS = {"gunicorn": {"workers": 2}, "waitress": {"threads": 2}}
USAGE = ListenerUsage("server", AddressKind.TCP4, "127.0.0.1:8000", 71, 9, 128, 3)
STEPS = (
    RateStep(100.0, True),
    RateStep(200.0, False, unmet=Unmet("p99 < 50ms", "response_all_p99", 61.2e6)),
    RateStep(150.0, False, "no port", FailureStage.START, limit=Limit(LimitKind.BUSY, share=0.95)),
)


def prepare(folder: Path) -> dict[str, Path]:
    """Write all of them, and return their paths by name."""
    made = {
        "small": build.study_two(folder / "small.prony", blocks=1),
        "grid": studies.grid_study(folder / "grid.prony", blocks=2),
        "settings": studies.settings_study(folder / "settings.prony", blocks=5),
        "generators": generators.generators_study(folder / "generators.prony"),
        "checked": generators.checked_study(folder / "checked.prony"),
        "rich": rich(folder / "rich.prony"),
        "begun": begun(folder / "begun.prony"),
        "mix": folder / "mix.prony",
    }
    study_of_mix(made["mix"])
    return made


def a_day_later(made: dict[str, Path], folder: Path) -> dict[str, Path]:
    """Write each of them as another session of the same plan, and return their paths by name."""
    later = {}
    for name, path in made.items():
        later[name] = Path(shutil.copyfile(path, folder / f"{name}-later.prony"))
        with closing(sqlite3.connect(later[name])) as database, database:
            for table in ("run", "trial"):
                database.execute(f"UPDATE {table} SET started_unix_ns = started_unix_ns + ?", (DAY_NS,))
                database.execute(f"UPDATE {table} SET ended_unix_ns = ended_unix_ns + ?", (DAY_NS,))
    return later


def _cells(names):
    """Cells that this machine's catalogue knows."""
    app = load_catalog(()).apps["hello"]
    load = Workload(
        ClosedLoop(2),
        DurationStop(2 * SECOND),
        request=Request(headers=(("Accept", "*/*"),), body=b"basket"),
        expect_body=b"hello",
    )
    sandbox = SandboxChoice(network=Network.HOST)
    return tuple(
        Cell(
            number,
            Subject(f"{name}+hello", name, app, Interface.WSGI, settings=SERVERS[name]),
            load,
            sandbox=replace(sandbox, network=Network.ISOLATED),
        )
        for number, name in enumerate(names, 1)
    )


def _plan(cells, **others):
    return Plan("own", "An app", "prony run --app hello -c 2", "quick", cells, 5, 7, "Which?", **others)


def _record(cell):
    facts = SubjectFacts(DeclaredFacts(backlog=128, processes=2, slots=2), services={"postgres": "15"})
    return SubjectRecord(
        cell.subject.name,
        server_version="1.2",
        interpreter="CPython 3.11.7",
        packages={"gunicorn": "23.0"},
        lock_digest="a" * 64,
        settings={"workers": 2},
        command_line="gunicorn app:app",
        sandbox=SandboxFacts(Network.HOST, reasons=("no control groups",)),
        facts=replace(facts, remarks={"gunicorn": "a note"}, entry={"name": "gunicorn", "port": 8000}),
        entry_digest="b" * 64,
    )


def _trial(cell, block, position, **others):
    values = [900_000 + 1000 * number for number in range(400)]
    made = build.trial(cell, block, position, values, listeners=build.listeners(3, 1), log="ready\n")
    return replace(
        made,
        events=(TrialEvent("window_open", 5), TrialEvent("window_close", 9)),
        threads=(ThreadUsage(100, 101, "worker", 5_000_000),),
        **others,
    )


def begun(path):
    """A study that was interrupted after its first block."""
    cells = _cells(SERVERS)
    with create(path, _plan(cells), Fingerprint({"kernel": {"release": "6.1"}})) as writer:
        for position, cell in enumerate(cells):
            writer.record_subject(_record(cell))
            writer.append(_trial(cell, 0, position))
    return path


def rich(path):
    """A study with everything that a plan, a run and a trial may have."""
    cells = _cells(SERVERS)
    other = replace(cells[0], id=8, workload=replace(cells[0].workload, loop=ClosedLoop(4)))
    plan = _plan(
        (*cells, other),
        calibration=replace(cells[0], id=0),
        design=Design(
            primary={"connections": 2}, trimmed_mean=True, precision=Precision(0.02, (10, 15), 9 * SECOND)
        ),
        claims=(
            *studies.CLAIMS,
            Claim("up", "it grows", ClaimKind.GROWS, "rss_peak", load={"connections": 4.0}),
            Claim("fails", "it fails", ClaimKind.FAILS, "error_ratio", failure="reset", low=0.1),
            Claim("one", "one core", ClaimKind.SINGLE_CORE, "cpu_percent", role="worker"),
            Claim("against", "more", ClaimKind.RATIO, "ok_per_s", against_load={"connections": 4.0}, low=1.0),
        ),
        originals=(*studies.ORIGINALS, Original("gunicorn+*", "ok_per_s", 1000.0, {"connections": 2.0})),
        notes=("A load of two.",),
        source="a page",
    )
    with create(path, plan, build.FINGERPRINT, (replace(cells[1], id=9),)) as writer:
        for cell in cells:
            writer.record_subject(_record(cell))
        for block in range(2):
            for position, cell in enumerate(plan.cells):
                writer.append(_trial(cell, block, position))
            writer.append(_trial(plan.calibration, block, 9, role=TrialRole.CALIBRATION))
        writer.append(_trial(replace(cells[1], id=9), 1, 10, role=TrialRole.CROSS_CHECK))
        step = TrialFacts(1, (USAGE,), TrialStep(SearchPart.CONFIRMATION, STEPS[0]))
        writer.append(_trial(cells[0], 1, 11, role=TrialRole.FIND_RATE, facts=step))
        failed = Failed("load", "the main process ended with signal 9")
        writer.append(build.trial(cells[1], 2, 0, [], outcome=failed, log="Traceback\nMemoryError: x\n"))
        for number, fault in enumerate(FAULTS):
            lost = _trial(cells[0], 3, 0, attempt=number, outcome=Invalid(in_words(fault)), fault=fault)
            writer.append(replace(lost, recording=None, samples=()))
        found = FoundRate("gunicorn+hello", 100.0, 3, 3, STEPS)
        writer.record_facts(RunFacts(Stopped("budget", 2, "no time is left"), (found,), {"8": "no wrk"}))
        writer.finish()
    with resume(path, build.FINGERPRINT) as writer:
        writer.finish()
    return path
