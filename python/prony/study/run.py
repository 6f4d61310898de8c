"""A plan -> trials -> an archive.

Prepares every subject, then runs randomised blocks with a fresh server for each trial, and archives each
trial as it ends. Must not know the command line or reports.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from prony.archive import RunStatus, create
from prony.host import available_cpus, claim_machine, fingerprint, preflight
from prony.model import Placement, Plan
from prony.sandbox import describe
from prony.sandbox.groups import Groups, open_groups
from prony.sandbox.journal import open_run
from prony.sandbox.placement import place_in
from prony.sandbox.remains import clear_and_tell
from prony.study.base import Study, StudyListener
from prony.study.bench import Bench
from prony.study.blocks import run_block
from prony.study.preparing import prepare_subjects
from prony.study.replies import compare_replies

__all__ = ["run_study"]


def run_study(study: Study, listener: StudyListener) -> None:
    """Run every cell of the plan in every block, and leave the archive at ``study.out``.

    *Errors*: HostError and UsageError before the first trial, also when another Prony measures here; what
    goes wrong in a trial is its outcome. KeyboardInterrupt passes through when everything is stopped; the
    archive then holds all trials that were finished.
    """
    with claim_machine():
        clear_and_tell(study.user, listener.notice)
        for reason in study.sandbox.reasons:
            listener.notice(reason)
        with open_groups(study.plan.cells[0].sandbox, study.sandbox.required) as groups:
            _run_study(study, listener, groups)


def _run_study(study: Study, listener: StudyListener, groups: Groups | None) -> None:
    engine = study.plan.cells[0].engine
    sandbox = study.plan.cells[0].sandbox
    placement = place_in(sandbox, available_cpus(), engine.threads)
    facts = replace(describe(sandbox, study.user, groups), reasons=study.sandbox.reasons)
    prepared = prepare_subjects(study, listener, placement, facts)
    _tell_what_will_not_fit(study.plan, listener)
    with (
        create(study.out, study.plan, fingerprint()) as writer,
        open_run(study.user) as run,
        _beside_the_generator(placement),
    ):
        for record in prepared.records:
            writer.record_subject(record)
            if record.unavailable:
                listener.notice(f"{record.name} is unavailable: {record.unavailable}")
        bench = Bench(study, run, prepared.ready, prepared.environments, placement, groups)
        listener.planned(
            study.plan.blocks * sum(cell.subject.name in prepared.ready for cell in study.plan.cells)
        )
        compare_replies(bench, listener)
        for block in range(study.plan.blocks):
            run_block(bench, block, writer, listener)
        writer.finish(RunStatus.FINISHED)


@contextmanager
def _beside_the_generator(placement: Placement) -> Iterator[None]:
    """Within the block, Prony's own work stays off the server's CPUs.

    Its nice value stays: a subject would inherit it, and without root could not take it back.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, placement.generator_cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _tell_what_will_not_fit(plan: Plan, listener: StudyListener) -> None:
    """Look at the machine as it is now; what disturbs is told before it is measured, with what mends it."""
    connections = max(cell.workload.loop.connections for cell in plan.cells)
    for check in preflight(connections, plan.cells[0].sandbox.share_cpus):
        if check.level != "ok":
            mend = f"  ({check.command})" if check.command else ""
            listener.notice(f"{check.name}: {check.found}; wanted: {check.wanted}{mend}")
