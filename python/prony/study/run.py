"""A plan -> trials -> an archive.

Prepares every subject, then runs randomised blocks with a fresh server for each trial, and archives each
trial as it ends.

Looks and budgets apply between blocks only.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path

from prony.archive import ArchiveWriter, check_free, create, open_archive, resume
from prony.core.units import format_duration
from prony.figures.missing import Missing
from prony.figures.statistics.compare import LEAST_BLOCKS, Comparison, Terms, compare_family
from prony.figures.statistics.power import Decision, decide
from prony.machine.checks import kernel_log_kept
from prony.machine.claim import claim_machine
from prony.machine.cpus import available_cpus
from prony.machine.fingerprint import fingerprint
from prony.model.facts import Fingerprint, RunFacts, Stopped
from prony.model.plan import Plan, Precision
from prony.model.sandbox import SandboxChoice, SandboxFacts
from prony.model.trial import RunStatus, TrialRole
from prony.plan.order import block_turns
from prony.reading.groups import Group, terms
from prony.reading.study import StudyResults, read_archive
from prony.sandbox import describe
from prony.sandbox.certificates import Authority
from prony.sandbox.groups import Groups, open_groups
from prony.sandbox.journal import open_run
from prony.sandbox.placement import place_in
from prony.sandbox.remains import clear_and_report
from prony.study.admission import admit, left_out, left_out_words, limits_to_hold, refuse_kernel_of_host
from prony.study.assembly import command_line
from prony.study.bench import Bench, StudyBench, beside_the_generator
from prony.study.blocks import close_looks, confirm, run_block, with_pauses
from prony.study.extent import rounds_seconds
from prony.study.ledger import Earlier, Ledger, changes, read_earlier, refuse
from prony.study.pilot import first_look, piloted, run_pilot
from prony.study.preparing import Prepared, Ready, Seats, prepare_subjects, refuse_without_subjects
from prony.study.rates import find_rates
from prony.study.reference_load import calibrated_sharing
from prony.study.replies import compare_replies, find_own_ports
from prony.study.rounds import asks_unknown, run_rounds, run_rounds_alone, unfit_cells
from prony.study.task import Study, StudyListener, placement_of_subject


def run_study(study: Study, listener: StudyListener) -> None:
    """Run every cell of the plan in every block, and leave the archive at ``study.out``.

    A resumed study runs the trials that its archive lacks, in their original order.

    *Errors*: HostError and UsageError before the first trial, also when another Prony measures on this
    machine, or when the study to resume has changed; SubjectError when no subject is available, or none
    starts. A failure within a trial is that trial's outcome. KeyboardInterrupt is raised after everything is
    stopped; the archive then holds all finished trials.
    """
    with claim_machine() as claim:
        clear_and_report(study.user, listener.notice)
        for reason in (*claim, *study.sandbox.reasons):
            listener.notice(reason)
        with open_groups(*limits_to_hold(study.plan, study.sandbox.required)) as groups:
            _run_study(study, listener, groups)


def _run_study(study: Study, listener: StudyListener, groups: Groups | None) -> None:
    plan, cpus = study.plan, available_cpus()
    placement = place_in(plan.sandbox, cpus, plan.placed_threads)

    def described(sandbox: SandboxChoice) -> SandboxFacts:
        return replace(describe(sandbox, study.user, groups), reasons=study.sandbox.reasons)

    facts = described(plan.sandbox)
    refuse_kernel_of_host(plan, facts)
    forced = admit(study, placement, facts, listener)
    earlier = _earlier(study.out) if study.resumes else None
    seats = Seats(
        placement=lambda name: placement_of_subject(plan, name, cpus),
        facts=lambda name: described(plan.sandbox_of(name)),
    )
    prepared = prepare_subjects(study, listener, seats)
    if earlier is None:
        refuse_without_subjects(study, prepared)
    machine = fingerprint(forced=(*forced, *_changed(study, earlier, prepared, listener)))
    with (
        _writer(study, machine) as writer,
        kernel_log_kept(writer.add_to_fingerprint),
        open_run(study.user) as run,
        beside_the_generator(placement),
    ):
        _record(prepared, earlier, writer, listener)
        ready = _without_latecomers(prepared, earlier)
        absent = _without_generator(study, listener)
        fitness = study.fitness(machine)
        began = RunFacts(
            left_out={str(number): reason for number, reason in absent.items()},
            generator=fitness,
            forced=study.force,
            command=study.command,
        )
        writer.record_facts(began)
        sharing = None if plan.sandbox.listen else calibrated_sharing(placement, listener)
        place = Bench(
            *(study.catalog, study.user, run, prepared.environments, Authority(run.folder), groups),
            hidden=study.out.absolute(),
        )
        bench = StudyBench(study, place, ready, placement, cpus, absent, fitness, sharing=sharing)
        ledger = Ledger(writer, dict(earlier.entries) if earlier else {})
        if ledger.entries:
            find_own_ports(bench, listener)
        else:
            compare_replies(bench, listener)
            _record_ports(bench, prepared, writer)
            first_look(bench, listener)
        writer.record_facts(_measured(bench, ledger, earlier, listener, began))
        if disturbed := bench.patience.in_vain(study.command):
            listener.notice(disturbed)
        writer.finish(RunStatus.FINISHED)


def _earlier(path: Path) -> Earlier:
    """Return what a study to resume holds, if nobody else writes to it now.

    *Errors*: ArchiveError, before anything is prepared.
    """
    check_free(path)
    return read_earlier(path)


def _without_generator(study: Study, listener: StudyListener) -> Mapping[int, str]:
    """Return why cells have no generator on this machine, by cell id, and report it."""
    cells = (*study.plan.cells, *study.cross_checks)
    absent = left_out(cells, study.catalog)
    for words in left_out_words(cells, absent):
        listener.notice(words)
    return absent


def _changed(
    study: Study, earlier: Earlier | None, prepared: Prepared, listener: StudyListener
) -> tuple[str, ...]:
    """Return what has changed since the study began.

    *Errors*: HostError when anything has changed and the user does not force it.
    """
    found = changes(earlier, fingerprint(), prepared.records) if earlier else ()
    if found and not study.force:
        raise refuse(study.out, found)
    for change in found:
        listener.notice(f"changed since the study began: {change}")
    return found


def _writer(study: Study, machine: Fingerprint) -> ArchiveWriter:
    if study.resumes:
        return resume(study.out, machine)
    return create(study.out, study.plan, machine, study.cross_checks)


def _record(
    prepared: Prepared, earlier: Earlier | None, writer: ArchiveWriter, listener: StudyListener
) -> None:
    """Archive the subjects as they were resolved, and report those that are unavailable."""
    known = earlier.subjects if earlier else {}
    for record in prepared.records:
        if record.name not in known:
            writer.record_subject(record)
        if record.unavailable:
            listener.notice(f"{record.name} is unavailable: {record.unavailable}")


def _record_ports(bench: StudyBench, prepared: Prepared, writer: ArchiveWriter) -> None:
    """Archive the commands of subjects with a port of their own again: it is not the usual one."""
    for record in prepared.records:
        if port := bench.own_ports.get(record.name):
            ready = bench.ready[record.name]
            cpus = len(bench.placement_of(ready.subject).server_cpus)
            command = command_line(
                *(bench.study.catalog, ready.subject, cpus, ready.needs),
                found=prepared.environments,
                own_port=port,
            )
            writer.record_subject(replace(record, command_line=command))


def _measured(
    bench: StudyBench, ledger: Ledger, earlier: Earlier | None, listener: StudyListener, facts: RunFacts
) -> RunFacts:
    """Run everything that the archive lacks, and return ``facts`` with what was decided during the run."""
    plan = bench.study.plan
    if plan.design.find_rate:
        found = find_rates(bench, ledger, earlier.rate_cells if earlier else (), listener)
        return replace(facts, found_rates=found)
    listener.planned(_left(bench, ledger))
    if plan.design.rounds:
        cells = {cell.id for cell in plan.cells}
        left = [block for block in range(plan.blocks) if not ledger.has_slices(block, cells)]
        listener.rounds_planned(left, rounds_seconds(plan))
        _leave_out_of_rounds(bench, listener)
    bench = run_pilot(bench, ledger, earlier.pilot_cells if earlier else (), listener)
    each = with_pauses(plan, ledger, listener, partial(_run_block, bench, ledger=ledger, listener=listener))
    stopped = run_until_known(bench.study, ledger, each)
    if stopped is not None:
        listener.notice(f"stopped after {stopped.blocks} blocks: {stopped.words}")
        facts = replace(facts, stopped=stopped)
    confirm(bench, ledger, earlier.close_cells if earlier else (), listener)
    return facts


def _leave_out_of_rounds(bench: StudyBench, listener: StudyListener) -> None:
    """Measure those cells in turns alone that do not fit into rounds, and say so once for each reason."""
    unfit = unfit_cells(bench.study.plan)
    for reason in dict.fromkeys(unfit.values()):
        cells = (cell for cell in bench.study.plan.cells if unfit.get(cell.id) == reason)
        names = ", ".join(dict.fromkeys(cell.subject.name for cell in cells))
        listener.notice(f"no rounds of {names}: {reason}")
    bench.in_turns.update(unfit)


def _run_block(bench: StudyBench, block: int, ledger: Ledger, listener: StudyListener) -> None:
    """Run the trials of a block, then its rounds; or, where they suffice, these alone."""
    plan = bench.study.plan
    if not plan.is_whole(block) and not ledger.has_any(block) and not asks_unknown(bench, ledger):
        with ledger.timed():
            _try_rounds_alone(bench, block, ledger, listener)
    run_block(bench, block, ledger, listener)
    if plan.design.rounds:
        with ledger.timed():
            run_rounds(bench, block, ledger, listener)


def _try_rounds_alone(bench: StudyBench, block: int, ledger: Ledger, listener: StudyListener) -> None:
    """Measure a block by rounds alone, after a disturbance once more; once a server is measured in turns, no
    later one is, and the others have rounds after their trials. A disturbance, which may pass, ends them only
    in the second block after another, and then all rounds.
    """
    if bench.in_turns:
        return
    unsound = run_rounds_alone(bench, block, ledger, listener)
    if unsound is not None and unsound.passes:
        listener.notice(f"block {block + 1} is measured once more: {unsound.reason}")
        unsound = run_rounds_alone(bench, block, ledger, listener)
    if unsound is None:
        return
    if bench.in_turns:
        listener.notice(f"from block {block + 1} on trials have windows: {unsound.reason}")
        return
    if unsound.passes and block - 1 not in bench.disturbed:
        bench.disturbed.add(block)
        listener.notice(f"the trials of block {block + 1} have windows: {unsound.reason}")
        return
    listener.notice(f"from block {block + 1} on trials have windows, and no rounds: {unsound.reason}")
    bench.in_turns.update(cell.id for cell in bench.study.plan.cells)


def _left(bench: StudyBench, ledger: Ledger) -> int:
    """Return how many trials are left, without repeats, the further looks of a pilot, and early stops."""
    study = bench.study
    turns = (
        turn
        for block in range(study.plan.whole_blocks)
        for turn in block_turns(study.plan, block, study.cross_checks)
    )
    cells = {key[0] for key in ledger.entries if key[-1] is TrialRole.PILOT}
    looks = max(0, len(piloted(study.plan)) - len(cells))
    closely = {key[0] for key in ledger.entries if key[-1] is TrialRole.CONFIRMATION}
    looks += max(0, len(close_looks(study.plan)) - len(closely))
    return looks + sum(bench.has(turn) and not ledger.has(turn) for turn in turns)


def _without_latecomers(prepared: Prepared, earlier: Earlier | None) -> Mapping[str, Ready]:
    """Return the subjects to run: one that was unavailable when the study began stays left out."""
    known = earlier.subjects if earlier else {}
    late = {name for name, record in known.items() if record.unavailable is not None}
    return {name: ready for name, ready in prepared.ready.items() if name not in late}


# --- how many blocks a study has --------------------------------------------------------------------------


# A single subject has nothing to compare with: its own figures must become precise, and are never
# "equivalent" to their mean.
_NO_MARGIN = 1e-12


def run_until_known(study: Study, ledger: Ledger, run_block: Callable[[int], None]) -> Stopped | None:
    """Run blocks until a rule stops them, and return it; None when their number was fixed in advance.

    A look judges the figures as a report would at that moment. When a study is resumed, a block
    that is followed by another one is not looked at again: it did not stop the study.
    """
    precision = study.plan.design.precision
    if precision is None and study.plan.design.length_ns is not None:
        return _run_for(study.plan.design.length_ns, ledger, run_block)
    if precision is None and study.most_ns is not None:
        return _run_for(study.most_ns, ledger, run_block, study.plan.blocks)
    if precision is None:
        for block in range(study.plan.blocks):
            run_block(block)
        return None
    for block in range(precision.looks[-1]):
        run_block(block)
        stopped = None if ledger.has_after(block) else _after(study, precision, block + 1, ledger)
        if stopped:
            return stopped
    raise AssertionError("the last look always stops")


def _run_for(
    length_ns: int, ledger: Ledger, run_block: Callable[[int], None], most: int | None = None
) -> Stopped | None:
    """Run blocks, five at least, until one more, as long as the last, would end after this time; or all,
    ``most``.
    """
    began_ns = time.monotonic_ns() - ledger.measured_ns
    for block in count() if most is None else range(most):
        block_ns = time.monotonic_ns()
        run_block(block)
        now_ns = time.monotonic_ns()
        is_over = 2 * now_ns - block_ns - began_ns > length_ns and block + 1 != most
        if is_over and block + 1 >= LEAST_BLOCKS and not ledger.has_after(block):
            return Stopped("length", block + 1, f"the next would end after {format_duration(length_ns)}")
    return None


def _after(study: Study, precision: Precision, blocks: int, ledger: Ledger) -> Stopped | None:
    """Return what stops the study after this many blocks, or None."""
    if blocks in precision.looks:
        with open_archive(study.out) as opened:
            found = _decided(study.plan, precision, blocks, read_archive(opened))
        if found:
            return found
    return _over_budget(precision, blocks, ledger)


def _decided(plan: Plan, precision: Precision, blocks: int, reading: StudyResults) -> Stopped | None:
    shown, agreed = shown_comparisons(reading), terms(plan, blocks)
    if not shown:
        agreed = Terms(margin=_NO_MARGIN, look=agreed.look)
        shown = _alone(reading, agreed)
    found = decide(shown, blocks, precision, agreed)
    if found.decision is Decision.CONTINUE:
        return None
    more = f"; about {found.projected} blocks would be needed" if found.projected else ""
    return Stopped(found.decision.value, blocks, f"{found.rule}{more}")


# The position of the load among the primary ones, and the name of the subject.
Member = tuple[int, str]


def shown_comparisons(reading: StudyResults) -> dict[Member, Comparison]:
    """Return what a report shows as the answer: each qualified subject against the leader, under each primary
    load. What it does not show need not be decided.
    """
    return {
        (number, name): found
        for number, group in enumerate(_primary(reading))
        for name, found in group.answer.comparisons.items()
    }


def _alone(reading: StudyResults, agreed: Terms) -> dict[Member, Comparison]:
    """Return each subject's log figures by block, minus their mean, as a comparison with itself."""
    family = {
        (number, cell.name): _centred([found[metric] for found in cell.by_block.values()])
        for number, group in enumerate(_primary(reading))
        if (metric := group.answer.metric) is not None
        for cell in group.cells
        if cell.unqualified is None
    }
    return compare_family(family, agreed)


def _centred(values: Sequence[float | Missing]) -> list[float]:
    logs = [math.log(value) for value in values if not isinstance(value, Missing) and value > 0]
    return [value - math.fsum(logs) / len(logs) for value in logs]


def _primary(reading: StudyResults) -> list[Group]:
    return [group for group in reading.groups if group.primary]


def _over_budget(precision: Precision, blocks: int, ledger: Ledger) -> Stopped | None:
    """Return a stop when the next look, or a block before it, would end after the budget."""
    if precision.budget_ns is None:
        return None
    bounds = (0, *precision.looks)
    next_look = next(last for first, last in pairwise(bounds) if first <= blocks < last)
    more = next_look - blocks if blocks in precision.looks else 1
    blocks_ns = ledger.measured_ns - ledger.pilot_ns
    if ledger.pilot_ns + blocks_ns * (1 + more / blocks) <= precision.budget_ns:
        return None
    budget = format_duration(precision.budget_ns)
    if blocks < precision.looks[0]:
        words = f"the budget of {budget} was used up before the first look, after {precision.looks[0]} blocks"
    else:
        words = f"the blocks up to the next look, after {next_look}, would exceed the budget of {budget}"
    return Stopped("budget", blocks, words)
