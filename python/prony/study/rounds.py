"""Rounds: short windows on servers that stay, one after the other, so that the machine's slow noise cancels.

All of a block's servers are started together, each in its own sandbox on the same CPUs. One has the load at a
time, over connections of its own; the others idle, and what they use is watched.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from random import Random

from prony.catalog.schema.settings import TLS, TLS_OFF
from prony.core.errors import EngineError, PronyError, SubjectError
from prony.core.units import MILLISECOND_NS, SECOND_NS
from prony.engine.generator import OnEvent
from prony.engine.process import ProcessEngine
from prony.figures.account import QUALIFIED_ERROR_RATIO, RequestClass, tally
from prony.figures.rounds import LEAST_SLICES, has_busy_neighbours, is_disturbed, slice_metrics
from prony.model.json_codec import Json
from prony.model.observation import Slice
from prony.model.plan import Cell, Plan
from prony.model.recording import Recording
from prony.model.trial import Ok, Trial, TrialRole
from prony.model.workload import ClosedLoop, DurationStop, Loop, Workload
from prony.plan.order import Turn, balanced_orders, block_turns, with_arrivals
from prony.sandbox.placement import equivalent
from prony.sandbox.subject import RunningSubject
from prony.sandbox.watch.processes import ClockReader, Clocks, PidTimes, clocks_of, used_ns
from prony.study.bench import StudyBench, beside_the_generator, task_of
from prony.study.beside import leave_crowds
from prony.study.ledger import Ledger
from prony.study.task import StudyListener
from prony.study.trial import Task

WINDOW_NS = SECOND_NS // 2
LEAD_NS = 200 * MILLISECOND_NS
"""Load before each window, on the same connections: what is under way is then as in a longer window."""
_DRAIN_NS = SECOND_NS // 2
SLICE_S = 0.8
"""About how long a turn takes: the lead, the window, and what is under way."""
_LEAST_WARMUP_NS = SECOND_NS // 2
# So many are open within half of the lead: a handshake takes some 2 ms of CPU time, both sides together.
_MOST_CONNECTIONS, _MOST_WITH_TLS = 1000, 50
_MOST_ALIVE = 16
# Rounds that a disturbance takes are made up for, so many for each that was planned.
_MOST_MORE = 0.5
_MOST_FAILED, _MOST_LATE = 0.01, 0.01
_LEAST_SERVERS = 2
_LONG_WINDOW_NS, _ORIGINAL = 10 * SECOND_NS, "original"
_NEIGHBOURS = "the block's other servers are not idle between their turns"
_NOT_ALL = "not all servers can take turns side by side"


def why_in_turns(plan: Plan) -> str | None:
    """Return why the servers of a plan cannot stay side by side for rounds; None: they can."""
    if plan.design.find_rate:
        return "a search for rates has no block"
    if plan.source and (plan.profile == _ORIGINAL or any(_is_long(cell.workload) for cell in plan.cells)):
        return "it repeats an experiment, whose windows are long"
    if max(Counter(map(_load_of, plan.cells)).values()) < _LEAST_SERVERS:
        return "a server alone has nobody to take turns with"
    unfit = unfit_cells(plan)
    fit = Counter(_load_of(cell) for cell in plan.cells if cell.id not in unfit)
    return None if max(fit.values(), default=0) >= _LEAST_SERVERS else next(iter(unfit.values()))


def unfit_cells(plan: Plan) -> dict[int, str]:
    """Return why cells are measured in turns though others have rounds, by their id."""
    return {cell.id: reason for cell in plan.cells if (reason := _why_not(cell))}


def _is_long(load: Workload) -> bool:
    return isinstance(load.stop, DurationStop) and load.stop.duration_ns > _LONG_WINDOW_NS


def rounds_decide(plan: Plan) -> bool:
    """Return whether rounds alone give each cell the figure that decides, throughput, and one to compare."""
    of_load = Counter(map(_load_of, plan.cells))
    return min(of_load.values()) > 1 and are_closed(plan) and not unfit_cells(plan)


def are_closed(plan: Plan) -> bool:
    """Return whether throughput decides under each load: in open loops latencies do, which rounds lack."""
    return all(isinstance(one.workload.loop, ClosedLoop) for one in plan.cells)


def _load_of(cell: Cell) -> tuple[tuple[str, float], ...]:
    """Return what the cells have in common that are compared with each other."""
    return tuple(sorted(cell.load.items()))


def _why_not(cell: Cell) -> str | None:
    if cell.engine.name != "prony":
        return f"the generator {cell.engine.name} is started again for each load"
    front = cell.subject.frontend or cell.subject
    return why_long(cell.workload, with_tls=front.settings.get(TLS, TLS_OFF) != TLS_OFF)


def why_long(load: Workload, *, with_tls: bool) -> str | None:
    """Return why windows of half a second do not show what long ones do; None: they do."""
    connections, file = load.loop.connections or 0, load.mix and load.mix.file
    of, most = (" with TLS", _MOST_WITH_TLS) if with_tls else ("", _MOST_CONNECTIONS)
    reasons = {
        "a load with a number of requests has no short windows": not isinstance(load.stop, DurationStop),
        "a load with stages has no short windows": load.loop.stages,
        f"to open {connections} connections{of} takes longer than a short window": connections > most,
        "a handshake for each request resumes none of before a short window": with_tls
        and not load.request.keep_alive,
        "connections do not reach their limit in a short window": load.connection_requests
        or load.connection_age_ns,
        f"each short window asks for the first requests of {file and file.name} alone": file,
    }
    return next((words for words, applies in reasons.items() if applies), None)


@dataclass(slots=True)
class _Seat:
    """A server that stays: its task, its generator, and what its turns showed. ``late``: turns after which
    requests were still under way; ``fewer``: turns before which processes had ended; ``processes``: after the
    last one. ``idle_ns``: CPU time that it used in turns of others; ``set_up_ns``: its part of the time
    before the first round. ``ended``: why it has no more of them.
    """

    task: Task
    engine: ProcessEngine
    subject: RunningSubject
    slices: list[Slice] = field(default_factory=list)
    late: int = 0
    fewer: int = 0
    processes: int = 0
    idle_ns: int = 0
    ended: str | None = None
    started_unix_ns: int = field(default_factory=time.time_ns)
    set_up_ns: int = 0

    @property
    def cell_id(self) -> int:
        return self.task.cell.id

    def load(self, seed: int) -> Workload:
        """Return the load of a slice with its arrivals drawn from a seed."""
        load = with_arrivals(self.task.cell.workload, seed)
        return replace(
            load, stop=DurationStop(WINDOW_NS), warmup_ns=LEAD_NS, grace_ns=min(load.grace_ns, _DRAIN_NS)
        )

    def run(self, load: Workload, on_event: OnEvent) -> Recording | None:
        """Return what came of a load; None where the server, or its generator, is gone."""
        try:
            recording = self.engine.run_short(load, self.subject.address, self.subject.seat, on_event)
        except EngineError as error:
            self.ended = error.message
            return None
        self.ended = self.subject.exit_reason()
        return recording


def asks_unknown(bench: StudyBench, ledger: Ledger) -> bool:
    """Return whether servers ask programs that only an earlier run has found: what these use would look like
    a disturbance until a trial has found them again.
    """
    return not bench.known.idle and any(entry.facts.asked for entry in ledger.entries.values())


def run_rounds(bench: StudyBench, block: int, ledger: Ledger, listener: StudyListener) -> None:
    """Run the rounds of a block, and archive what they showed with its trials.

    A server that does not start beside the others, or ends, is reported, and measured in turns from then on.
    Interrupted, the rounds that are whole are kept.

    *Errors*: KeyboardInterrupt, after everything is stopped.
    """
    for number, turns in enumerate(_groups(bench, block)):
        leave_crowds(bench, turns, ledger, listener)
        fit = [turn for turn in turns if turn.cell.id not in bench.in_turns]
        if len(fit) >= _LEAST_SERVERS and not ledger.has_slices(block, {turn.cell.id for turn in turns}):
            if asks_unknown(bench, ledger):
                listener.notice(f"block {block + 1} gets no rounds: what its servers ask is not known yet")
                return
            keep = partial(_keep, ledger, block, _first_round(bench, number))
            seats = _run_group(bench, fit, listener, keep)
            unsound = _unsound(seats, _LEAST_SERVERS, _to_keep(seats, 0))
            if unsound and unsound.reason != _NOT_ALL:
                instead = "its figures are of the trials' own windows"
                listener.notice(f"no round of block {block + 1} counts: {unsound.reason}; {instead}")


@dataclass(frozen=True, slots=True)
class Unsound:
    """Why rounds may not stand for the trials of a block. ``passes``: it may be otherwise in the next one."""

    reason: str
    passes: bool = False


def run_rounds_alone(
    bench: StudyBench, block: int, ledger: Ledger, listener: StudyListener
) -> Unsound | None:
    """Run the rounds of a block that has nothing else, and archive them as its trials, together. Return why
    nothing is kept, and the block must be measured whole; None: it is done.

    *Errors*: KeyboardInterrupt, after everything is stopped; nothing is kept then.
    """
    groups = _groups(bench, block)
    if bench.in_turns or min(map(len, groups), default=0) < 2:
        return Unsound(_NOT_ALL)
    found: list[Trial] = []
    for number, turns in enumerate(groups):
        seats = _run_group(bench, turns, listener)
        kept = _to_keep(seats, _first_round(bench, number))
        if unsound := _unsound(seats, len(turns), kept):
            return unsound
        found += [_in_rounds(turn, seat, kept[seat.cell_id]) for turn, seat in zip(turns, seats, strict=True)]
    ledger.append(*found)
    return None


def _groups(bench: StudyBench, block: int) -> list[list[Turn]]:
    return side_by_side([turn for turn in block_turns(bench.study.plan, block) if bench.has(turn)])


def _first_round(bench: StudyBench, group: int) -> int:
    """Return the number of a group's first round: no two groups of a block have one in common."""
    return 2 * group * bench.study.plan.design.rounds


def _keep(ledger: Ledger, block: int, first: int, seats: Sequence[_Seat]) -> None:
    kept = _to_keep(seats, first)
    if len(kept) >= _LEAST_SERVERS:
        ledger.append_slices(block, alike(kept))


def alike(kept: Mapping[int, Sequence[Slice]]) -> Mapping[int, Sequence[Slice]]:
    """Return the slices of a block without a figure that one of its servers has not: that one has it of its
    own window, and one of a window is not beside one of rounds.
    """
    found = [slice_metrics(each) for each in kept.values()]
    are_sound, have_cpu = all(found), all("cpu_ns_per_request" in one for one in found)
    return {
        cell_id: [
            replace(one, counts=one.counts and are_sound, cpu_ns=one.cpu_ns if have_cpu else None)
            for one in each
        ]
        for cell_id, each in kept.items()
    }


def side_by_side(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Return which subjects of a block are alive together: those of one load, at most 16, in the random order
    of the block.
    """
    of_load: dict[object, list[Turn]] = {}
    for turn in turns:
        if turn.position.role is TrialRole.SUBJECT:
            of_load.setdefault(_load_of(turn.cell), []).append(turn)
    sizes = [ceil(len(each) / ceil(len(each) / _MOST_ALIVE)) for each in of_load.values()]
    return [
        each[first : first + size]
        for each, size in zip(of_load.values(), sizes, strict=True)
        for first in range(0, len(each), size)
    ]


def _keep_nothing(_seats: Sequence[_Seat]) -> None:
    """A block without trials is archived once all of it is known to be sound."""


def _run_group(
    bench: StudyBench,
    turns: Sequence[Turn],
    listener: StudyListener,
    keep: Callable[[Sequence[_Seat]], None] = _keep_nothing,
) -> Sequence[_Seat]:
    """Run the rounds of those that are side by side, and return what they showed. ``keep`` archives that
    before their servers are stopped.
    """
    block, began_ns = turns[0].position.block, time.time_ns()
    with ExitStack() as alive, beside_the_generator(bench.placement):
        seats = _seats(bench, turns, alive, listener)
        try:
            _warm(seats, bench.study.plan.seed)
            _share_set_up(seats, time.time_ns() - began_ns)
            _measure(seats, bench, block, listener)
        except KeyboardInterrupt:
            # Fewer rounds have no figure; the block is done once it has some.
            if len(_whole_rounds(seats)) >= LEAST_SLICES:
                keep(seats)
            raise
        _end_unfit(seats, bench.study.plan.design.allow_errors)
        keep(seats)
    for seat in seats:
        if seat.ended:
            _leave(bench, seat.task, seat.ended, listener)
    return seats


def _share_set_up(seats: Sequence[_Seat], length_ns: int) -> None:
    """Note that to start and warm them up together took so long: it is a part of their trials' time."""
    for seat in seats:
        seat.set_up_ns = length_ns // len(seats)


def _end_unfit(seats: Sequence[_Seat], allowed: float | None) -> None:
    """After the rounds, end who cannot stand beside the others: who fails more requests than is allowed, and
    where too few rounds count, for most had busy neighbours, the busiest of them.
    """
    most = QUALIFIED_ERROR_RATIO if allowed is None else min(_MOST_FAILED, allowed)
    for seat in _living(seats):
        counted = [one for one in seat.slices if one.counts]
        failed, answered = (sum(getattr(one, name) for one in counted) for name in ("failed", "answered"))
        if failed > max(1, most * answered):  # once may be chance
            seat.ended = f"{failed} of {answered} requests failed"
    living = _living(seats)
    slices = [one for seat in living for one in seat.slices]
    rounds, busy = {one.round for one in slices}, {one.round for one in slices if has_busy_neighbours(one)}
    has_too_few = len(living) >= _LEAST_SERVERS and len(_whole_rounds(seats)) < LEAST_SLICES
    if has_too_few and 2 * len(busy) > len(rounds):
        max(living, key=lambda seat: seat.idle_ns).ended = "it is not idle between its turns"


def _leave(bench: StudyBench, task: Task, reason: str, listener: StudyListener) -> None:
    """Measure a server in turns alone from now on, and say so."""
    bench.in_turns.add(task.cell.id)
    block = task.position.block + 1
    listener.notice(f"{task.cell.subject.name} has no rounds from block {block} on: {reason}")


def _seats(
    bench: StudyBench, turns: Sequence[Turn], alive: ExitStack, listener: StudyListener
) -> list[_Seat]:
    """Start all servers, and wait until each is ready and keeps its contract."""
    seats = []
    for task in [_task(bench, turn, len(turns), alive) for turn in turns]:
        engine = ProcessEngine(task.cell.engine)
        try:
            subject = alive.enter_context(task.sandbox.start(task.launch, task.placement))
            alive.enter_context(engine.staying())
        except PronyError as error:
            _leave(bench, task, error.message, listener)
        else:
            seats.append(_Seat(task, engine, subject))
    for seat in seats:
        try:
            seat.subject.wait_until_ready(seat.task.cell.workload.request)
            seat.ended = seat.subject.verify(seat.task.contract)
        except SubjectError as error:
            seat.ended = error.message
    return seats


def _task(bench: StudyBench, turn: Turn, turns: int, alive: ExitStack) -> Task:
    """Return what a server is started by; its ports and nuisances are not those of its trial. Its ceiling of
    memory is: a server that sizes its heap by that would be another one.
    """
    position = replace(turn.position, position=turns + turn.position.position)
    name = f"rounds-{turn.cell.id}-{position.block}"
    sandbox = alive.enter_context(bench.bench.sandbox(name, turn.cell.sandbox))
    task = task_of(bench, Turn(turn.cell, position), sandbox)
    # One draw for all servers of a block: on other cores they would not be side by side.
    draw = Random(f"{bench.study.plan.seed}:rounds:cpus:{position.block}")  # noqa: S311
    return replace(task, placement=equivalent(bench.placement_of(turn.cell.subject), bench.cpus, draw))


def _warm(seats: Sequence[_Seat], seed: int) -> None:
    """Send each server its load before the first round; one that is too slow for short windows, or fails
    beside the others, has none.
    """
    for seat in _living(seats):
        length_ns = lead_in_ns(seat.task.cell)
        load = replace(seat.load(seed), warmup_ns=0, stop=DurationStop(length_ns))
        recording = seat.run(load, lambda _event: None)
        if recording is not None and seat.ended is None:
            seat.ended = _why_unfit(load, recording, length_ns)


def _why_unfit(load: Workload, recording: Recording, length_ns: int) -> str | None:
    """Return why a server has no rounds by its first load beside the others; None: it has."""
    if mean_reply_ns(load.loop, recording, length_ns) > LEAD_NS:
        return "its replies take longer than the lead before a short window"
    found = tally(recording.account)
    if found.lost - recording.account.count("in_flight_at_end") > _MOST_FAILED * found.requests:
        return f"{found.lost} of {found.requests} requests failed beside the block's other servers"
    return None


def lead_in_ns(cell: Cell) -> int:
    """Return for how long a server has its load before the first round: as its trials warm up."""
    return max(_LEAST_WARMUP_NS, cell.workload.warmup_ns)


def mean_reply_ns(loop: Loop, recording: Recording, length_ns: int) -> float:
    """Return how long a reply of a closed loop takes by Little's law; 0 in an open one, whose pace is
    given.
    """
    if not isinstance(loop, ClosedLoop):
        return 0.0
    return loop.connections * length_ns / max(1, recording.completed.all)


def _living(seats: Sequence[_Seat]) -> list[_Seat]:
    return [seat for seat in seats if seat.ended is None]


def _measure(seats: Sequence[_Seat], bench: StudyBench, block: int, listener: StudyListener) -> None:
    """Run the rounds, and one more for each that was disturbed, up to half as many."""
    rounds = bench.study.plan.design.rounds
    orders = balanced_orders(len(seats), Random(f"{bench.study.plan.seed}:rounds:{block}"))  # noqa: S311
    watch = _Watch(seats, [pid for pid, _ in bench.known.idle])
    for number in range(rounds + round(_MOST_MORE * rounds)):
        # A server alone has nobody to be compared with.
        if len(_whole_rounds(seats)) == rounds or len(_living(seats)) < _LEAST_SERVERS:
            return
        listener.round_started(block, number, rounds)
        seed = arrival_seed(bench.study.plan.seed, block, number)
        for place, seat in enumerate(seats[index] for index in orders[number % len(orders)]):
            if seat.ended is None:
                _turn(seat, (number, place), seed, watch)


def arrival_seed(plan_seed: int, block: int, number: int) -> int:
    """Return the seed of a round's arrivals and of the order of its mix: the same for all its servers. With
    one for all rounds each would ask for the same first requests of the order.
    """
    return Random(f"{plan_seed}:rounds:arrivals:{block}:{number}").randrange(2**32)  # noqa: S311


class _Watch:
    """What all have used of the trial's CPUs since the last look. ``asked``: programs that servers ask, such
    as a database: what they use is no disturbance.
    """

    def __init__(self, seats: Sequence[_Seat], asked: Collection[int]) -> None:
        placed = [seat.task.placement for seat in seats]
        self.cpus = {cpu for one in placed for cpu in (*one.server_cpus, *one.generator_cpus)}
        trees = {seat.cell_id: seat.subject.tree_pid for seat in seats}
        self.seats = seats
        self._reader = ClockReader(trees, self.cpus, asked)
        self.seen = self._reader.read()

    def look(self) -> tuple[Clocks, Clocks]:
        """Return what was seen last, and what is seen now."""
        before, self.seen = self.seen, self._reader.read()
        return before, self.seen


class _Window:
    """Reads the clocks of a server's processes as the window opens and closes."""

    def __init__(self, pids: Collection[int]) -> None:
        self._pids = pids
        self._read: list[tuple[int, PidTimes]] = []

    def note(self, event: Json) -> None:
        """Follow the phases of a run by its events."""
        if event["event"] in ("window_open", "window_close"):
            self._read.append((time.monotonic_ns(), clocks_of(self._pids)))

    def cpu_ns(self, length_ns: int) -> int | None:
        """Return the CPU time of a window of this length: events come a little later than they happen."""
        if len(self._read) != 2:
            return None
        (opened_ns, before), (closed_ns, after) = self._read
        if before.keys() != after.keys():
            return None
        return round(used_ns(before, after) * length_ns / max(1, closed_ns - opened_ns))


def _turn(seat: _Seat, at: tuple[int, int], seed: int, watch: _Watch) -> None:
    """Run one slice, ``at`` its round and place, with arrivals from a seed; a server that dies, or cannot be
    loaded, has no more of them, nor one that is often not done at the end of its turn, or whose processes end
    between its turns.
    """
    began_ns = time.monotonic_ns()
    seat.fewer += len(watch.seen.subjects[seat.cell_id]) < seat.processes
    window = _Window(watch.seen.subjects[seat.cell_id].keys())
    recording = seat.run(seat.load(seed), window.note)
    before, after = watch.look()
    length_ns = recording.window.length_ns if recording else None
    if recording is None or length_ns is None:
        return
    each = {name: used_ns(before.subjects[name], times) for name, times in after.subjects.items()}
    for other in watch.seats:
        other.idle_ns += each[other.cell_id] if other is not seat else 0
    known_ns = used_ns(before.prony, after.prony) + used_ns(before.asked, after.asked)
    others_ns = after.busy_ns - before.busy_ns - sum(each.values()) - known_ns
    found = Slice(
        round=at[0],
        place=at[1],
        began_ns=began_ns,
        open_ns=recording.window.open_ns or 0,
        close_ns=(recording.window.open_ns or 0) + length_ns,
        ended_ns=time.monotonic_ns(),
        ok=recording.completed.ok,
        answered=recording.completed.all,
        failed=tally(recording.account).lost,
        cpu_ns=window.cpu_ns(length_ns) if keeps_its_processes(before, after, seat.cell_id) else None,
        neighbours_ns=sum(each.values()) - each[seat.cell_id],
        others_ns=max(0, others_ns),
        steal_ns=after.steal_ns - before.steal_ns,
    )
    is_late = is_still_open(recording)
    seat.slices.append(replace(found, counts=not is_late and not is_disturbed(found, len(watch.cpus))))
    seat.late += is_late
    seat.processes = len(after.subjects[seat.cell_id])
    seat.ended = seat.ended or _why_no_more(seat.late, seat.fewer, len(seat.slices))


def keeps_its_processes(before: Clocks, after: Clocks, cell_id: int) -> bool:
    """Return whether no process of a server began or ended: what such a one used is on no clock at the end,
    whether it was there at one of two looks or only waited for between them.
    """
    are_same = before.subjects[cell_id].keys() == after.subjects[cell_id].keys()
    return are_same and before.waited[cell_id] == after.waited[cell_id]


def is_still_open(recording: Recording) -> bool:
    """Return whether requests were still under way after the drain: of the window, or since before it."""
    return RequestClass("in_flight_at_end") in tally(recording.account).failed


def _why_no_more(late: int, fewer: int, turns: int) -> str | None:
    """Return why a server has no more turns; None: it has. Once may be chance."""
    if late > max(1, _MOST_LATE * turns):
        return "requests were still under way half a second after its turns"
    if fewer > 1:
        return "processes of it end while it is idle between its turns"
    return None


def _whole_rounds(seats: Sequence[_Seat]) -> set[int]:
    """Return the rounds in which each server that is still there had a slice that nothing disturbed."""
    each = [{one.round for one in seat.slices if one.counts} for seat in _living(seats)]
    return set.intersection(*each) if each else set()


def _unsound(seats: Sequence[_Seat], servers: int, kept: Mapping[int, Sequence[Slice]]) -> Unsound | None:
    """Return why rounds may not stand for the trials of a block: each of so many servers must have a figure;
    None: they may.
    """
    if len(kept) < servers:
        return Unsound(_NOT_ALL)
    if not all(map(slice_metrics, kept.values())):
        who = _most_taken(seats)
        return Unsound(f"too few rounds count: {who}", passes=who != _NEIGHBOURS)
    return None


def _in_rounds(turn: Turn, seat: _Seat, slices: Sequence[Slice]) -> Trial:
    """Return what stands for the trial of a turn in a block that has rounds alone."""
    task, at = seat.task, turn.position
    return Trial(
        cell_id=seat.cell_id,
        block=at.block,
        position=at.position,
        attempt=at.attempt,
        role=at.role,
        outcome=Ok(),
        started_unix_ns=seat.started_unix_ns,
        ended_unix_ns=seat.started_unix_ns + seat.set_up_ns,
        command=task.launch.command,
        placement=task.placement,
        nuisances=task.nuisances,
        slices=tuple(slices),
    )


def _most_taken(seats: Sequence[_Seat]) -> str:
    """Return who took CPU time from the turns, in words, whoever took most."""
    slices = [one for seat in seats for one in seat.slices]
    taken_ns = {
        _NEIGHBOURS: sum(one.neighbours_ns for one in slices),
        "other programs took the CPUs": sum(one.others_ns for one in slices),
        "the hypervisor took the CPUs": sum(one.steal_ns for one in slices),
    }
    return max(taken_ns, key=lambda words: taken_ns[words])


def _to_keep(seats: Sequence[_Seat], first: int) -> Mapping[int, Sequence[Slice]]:
    """Return the slices by cell, their rounds from ``first`` on; only those of whole rounds count."""
    whole = _whole_rounds(seats)
    return {
        seat.cell_id: [
            replace(one, round=first + one.round, counts=one.round in whole) for one in seat.slices
        ]
        for seat in _living(seats)
    }
