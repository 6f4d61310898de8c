"""Asks every subject of a user's app before the first block; stops a study that would measure failures.

The port of a program's own: where it listens, if not on the port that it is given.

>>> own_port([ListeningPort(8080, "127.0.0.1")], ordered={20000})
8080
>>> own_port([ListeningPort(8080, "127.0.0.1"), ListeningPort(9229, "127.0.0.1")], {20000})
'it listens on ports 8080 and 9229 instead'
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from prony.catalog.discover.hints import Refusal, hint_for
from prony.catalog.discover.masks import is_alike, template
from prony.catalog.schema.apps import is_built_in
from prony.catalog.schema.command import may_have_own_port
from prony.core.errors import SubjectError
from prony.core.safe_text import escaped
from prony.figures.last_error import last_error, plain_lines
from prony.model.exchange import Check, Request
from prony.model.launch import Launch
from prony.model.plan import Cell
from prony.plan.order import Position, Turn, nuisances
from prony.sandbox import Sandbox
from prony.sandbox.contract import ListeningPort, difference, listeners_of, probe
from prony.sandbox.exchange import Reply
from prony.sandbox.identity import descendants
from prony.sandbox.subject import RunningSubject
from prony.study.bench import StudyBench
from prony.study.beside import at_once, held_by
from prony.study.task import StudyListener

# Of a log without an error, and of a body.
_LOG_LINES_SHOWN = 6
_BODY_BYTES_SHOWN = 160
# A framework's page of an error begins with its style.
_BODY_BYTES_READ = 1 << 16


@dataclass(frozen=True, slots=True)
class _Answer:
    """The replies to one request that was asked twice, or why there is none.

    ``wrong``: why the reply is no success, null if it is one.
    """

    request: Request
    replies: tuple[Reply, ...]
    wrong: str | None = None

    @property
    def kind(self) -> str:
        """Status and media type: servers that differ in them do different work."""
        return _kind(self.replies[0]) if self.replies else self.wrong or ""


@dataclass(frozen=True, slots=True)
class _Probed:
    """A subject that was asked for each path of its load, and what it wrote.

    ``silence``: why it did not even start, null if it did. ``own_port``: where it listens instead, in a
    network that is its own or the machine's. ``holds``: what it has of this machine, for servers
    that are to live side by side.
    """

    cell: Cell
    log: str
    answers: tuple[_Answer, ...] = ()
    silence: str | None = None
    own_port: int | None = None
    is_alone: bool = False
    holds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.cell.subject.name

    @property
    def is_silent(self) -> bool:
        return self.silence is not None

    @property
    def wrong(self) -> str | None:
        """Why the first reply that is no success is none; None if all are."""
        return self.silence or next((one.wrong for one in self.answers if one.wrong is not None), None)

    @property
    def shown(self) -> _Answer | None:
        """The first answer that is no success, else the first; None where there is none."""
        return next((one for one in self.answers if one.wrong is not None), next(iter(self.answers), None))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those of all its answers."""
        return tuple(one.kind for one in self.answers)

    @property
    def log_lines(self) -> Sequence[str]:
        """The lines of the log that show the error, and where it happened."""
        error = last_error(self.log)
        return error.lines if error else plain_lines(self.log)[-_LOG_LINES_SHOWN:]

    @property
    def error_line(self) -> str:
        """The line of the log that names the error; empty when nothing was written."""
        error = last_error(self.log)
        return error.line if error else "".join(plain_lines(self.log)[-1:])


def compare_replies(bench: StudyBench, listener: StudyListener) -> None:
    """Ask every subject of a user's app twice for each path of its load, before any load.

    *Errors*: SubjectError when none answers with a success, or when they differ in status or media type: two
    servers that answer differently do different work, and comparing their speed would mean nothing.
    """
    cells, found = list(first_cells(bench)), list[_Probed]()
    kinds = {cell.subject.interface for cell in cells}
    while len(found) < len(cells) and not (len(kinds) == 1 and _fail_alike(found)):
        found.append(_probed(bench, cells[len(found)], listener))
    _take_turns(bench, found, listener)
    if not found:
        return
    if all(one.wrong is not None for one in found):
        raise _all_fail(bench, found, [cell.subject.name for cell in cells[len(found) :]])
    answering = [one for one in found if not one.is_silent]
    if len({one.kinds for one in answering}) > 1:
        raise _they_differ(bench, answering)
    for one in found:
        if one.is_silent:
            listener.notice(f"{one.name} does not start: {one.wrong}")
            if one.error_line:
                listener.notice(f"  {one.error_line}")
        elif one.wrong is not None:
            listener.notice(f"{one.name} is no success: {one.wrong}")
    _compare_bodies(answering, listener)


def find_own_ports(bench: StudyBench, listener: StudyListener) -> None:
    """Find where programs listen in a study that goes on, and what only one server can have.

    Neither may come from an archive.
    """
    is_asked = bench.study.plan.design.rounds
    cells = [cell for cell in first_cells(bench) if is_asked or _may_have_own_port(bench, cell)]
    _take_turns(bench, [_probed(bench, cell, listener) for cell in cells], listener)


def _take_turns(bench: StudyBench, found: Sequence[_Probed], listener: StudyListener) -> None:
    """Leave those out of rounds that would need one port, or one file, of the machine at the same time."""
    things = {one.name: _held(one) for one in found}
    for thing, names in at_once(things) if bench.study.plan.design.rounds else ():
        listener.notice(f"{' and '.join(names)} {thing}: they are measured in turns")
        bench.in_turns.update(cell.id for cell in bench.study.plan.cells if cell.subject.name in names)


def _held(one: _Probed) -> tuple[str, ...]:
    is_everybodys = one.own_port is not None and not one.is_alone
    return (*((f"listen on port {one.own_port}",) if is_everybodys else ()), *one.holds)


def _fail_alike(found: Sequence[_Probed]) -> bool:
    """Return whether two servers failed by one error: it is the app's, and others of the same interface would
    only take time.
    """
    errors = {one.error_line for one in found if one.wrong is not None}
    return len(found) >= 2 and len(errors) == 1 and "" not in errors and all(one.wrong for one in found)


def first_cells(bench: StudyBench) -> Iterator[Cell]:
    """Yield one cell of each subject with a user's app that can be started."""
    seen: set[str] = set()
    for cell in bench.study.plan.cells:
        subject = cell.subject
        if subject.name in bench.ready and subject.name not in seen and not is_built_in(subject.app):
            seen.add(subject.name)
            yield cell


def _compare_bodies(found: Sequence[_Probed], listener: StudyListener) -> None:
    """Report the first subjects whose bodies differ in more than what varies between two replies of one."""
    for one, other in pairwise(found):
        for own, its in zip(one.answers, other.answers, strict=False):
            if own.replies and its.replies and not (_is_like(own, its) or _is_like(its, own)):
                of_path = f" to {_words(own.request)}" if one.cell.workload.mix else ""
                listener.notice(
                    f"{one.name} and {other.name} answer{of_path} with different bodies "
                    f"({len(own.replies[0].body)} and {len(its.replies[0].body)} bytes); "
                    "--expect-body sets the right one"
                )
                return


def _words(request: Request) -> str:
    return f"{request.method} {escaped(request.path)}"


def _is_like(one: _Answer, other: _Answer) -> bool:
    varies = template(one.replies[0].body, one.replies[-1].body)
    return any(is_alike(varies, reply.body) for reply in other.replies)


# --- one subject ------------------------------------------------------------------------------------------


def _probed(bench: StudyBench, cell: Cell, listener: StudyListener) -> _Probed:
    """Return what a subject says; one with a port of its own is started again, to be asked there."""
    found = _probed_once(bench, cell)
    if found.own_port is None:
        return found
    where = f"port {found.own_port} of its own, not on the one in PORT"
    listener.notice(f"{found.name} listens on {where}: measured there")
    bench.own_ports[found.name] = found.own_port
    again = _probed_once(bench, cell)
    return replace(again, own_port=found.own_port, is_alone=found.is_alone)


def _probed_once(bench: StudyBench, cell: Cell) -> _Probed:
    # The next subject must not find its folder.
    with bench.bench.sandbox(f"probe-{cell.id}", cell.sandbox) as sandbox:
        return _probed_in(bench, cell, sandbox)


def _probed_in(bench: StudyBench, cell: Cell, sandbox: Sandbox) -> _Probed:
    try:
        turn = Turn(cell, Position(block=-1, position=0))
        launch = bench.launch(cell.subject, sandbox, nuisances(bench.study.plan, turn))
        with sandbox.start(launch, bench.placement_of(cell.subject)) as subject:
            try:
                subject.wait_until_ready(cell.workload.request)
            except SubjectError as error:
                found = look_for_port(subject, launch, cell.workload.request)
                is_alone = subject.seat.network_namespace is not None
                if isinstance(found, int) and _may_have_own_port(bench, cell):
                    return _Probed(cell, error.log, (), error.message, found, is_alone)
                words = f"it listens on port {found} instead" if isinstance(found, int) else found
                return _Probed(cell, error.log, silence="; ".join(filter(None, (error.message, words))))
            answers = tuple(_asked(cell, request, subject) for request in cell.workload.requests)
            holds = held_by(subject, launch) if bench.study.plan.design.rounds else ()
            return _Probed(cell, subject.log().text, answers, holds=holds)
    except SubjectError as error:
        return _Probed(cell, error.log, silence=error.message)


def _may_have_own_port(bench: StudyBench, cell: Cell) -> bool:
    """Return whether a subject may be measured at another port than it is given: it has no frontend, which
    would have to know that port, and its command is none of the catalogue's, which all keep to theirs.
    """
    entry = bench.study.catalog.server(cell.subject.server)
    return cell.subject.frontend is None and may_have_own_port(entry)


def _asked(cell: Cell, request: Request, subject: RunningSubject) -> _Answer:
    ask = partial(probe, Check(request), subject.address)
    answers = [ask(subject.seat.network_namespace) for _ in range(2)]
    replies = tuple(one for one in answers if isinstance(one, Reply))
    reason = next((one for one in answers if isinstance(one, str)), None)
    wrong = reason or next((said for one in replies if (said := _wrong(cell, request, one))), None)
    return _Answer(request, replies, wrong)


def _wrong(cell: Cell, asked: Request, reply: Reply) -> str | None:
    """Return why a reply is no success; by the contract, if there is one."""
    for check in cell.subject.app.contract.checks:
        if check.request == asked:
            return difference(check, reply)
    if reply.header("location").startswith("https://"):
        return f"{asked.method} {asked.path}: it redirects to {reply.header('location')}"
    return difference(Check(asked), reply)


# --- messages ---------------------------------------------------------------------------------------------


def _all_fail(bench: StudyBench, found: Sequence[_Probed], unasked: Sequence[str]) -> SubjectError:
    silent = all(one.is_silent for one in found)
    head = "no server starts" if silent else "no server answers with a success, so nothing is measured"
    left = [f"  not asked, as these fail alike: {', '.join(unasked)}"] if unasked else []
    return SubjectError("\n".join([head, *_shown(found), *left]), hint=_hint(bench, found))


def _they_differ(bench: StudyBench, found: Sequence[_Probed]) -> SubjectError:
    wrong = [one for one in found if one.wrong is not None]
    head = "servers answer the same request differently, so their speed cannot be compared"
    expect = "name the right reply with --expect-status or --expect-body, or leave servers out of --servers"
    hint = _hint(bench, wrong) if wrong else expect
    return SubjectError("\n".join([head, *_shown(found)]), hint=hint)


def _shown(found: Sequence[_Probed]) -> Iterator[str]:
    for one in found:
        yield from _described(one)
        if one.wrong is not None:
            yield from (f"    {line}" for line in one.log_lines)


def _described(one: _Probed) -> Iterator[str]:
    """Yield what a subject answered; of a mix the reply to each path."""
    if one.silence is not None:
        yield f"  {one.name}: {one.silence}"
    elif one.cell.workload.mix is None:
        yield from (f"  {one.name}: {_said(answer)}" for answer in one.answers)
    else:
        yield f"  {one.name}:"
        yield from (f"    {_words(answer.request)}: {_said(answer)}" for answer in one.answers)


def _said(one: _Answer) -> str:
    if not one.replies:
        return one.wrong or ""
    reply = one.replies[0]
    begin = escaped(reply.body[:_BODY_BYTES_SHOWN].decode(errors="replace").strip())
    more = "..." if len(reply.body) > _BODY_BYTES_SHOWN else ""
    location = reply.header("location")
    where = f" to {location}" if location else ""
    return f"{_kind(reply)}{where}, {len(reply.body)} bytes: `{begin}{more}`"


def _kind(reply: Reply) -> str:
    media = reply.header("content-type").partition(";")[0].strip().lower()
    return f"status {reply.status}{f', {media}' if media else ''}"


def _hint(bench: StudyBench, found: Sequence[_Probed]) -> str:
    """Return what to try next, for the first subject of which that is known."""
    hints = [hint_for(_symptom(bench, one)) for one in found]
    return next((one for one in hints if one.name != "unknown"), hints[0]).text


def _symptom(bench: StudyBench, one: _Probed) -> Refusal:
    shown = one.shown
    reply = shown.replies[0] if shown and shown.replies else None
    body = reply.body[:_BODY_BYTES_READ].decode(errors="replace") if reply else ""
    own = bench.study.packages.get(one.cell.subject.app.name)
    declared = own.declared.file if own and own.declared else None
    return Refusal(
        text="\n".join([one.wrong or "", body, *one.log_lines]),
        status=reply.status if reply else None,
        path=(shown.request if shown else one.cell.workload.request).path,
        location=reply.header("location") if reply else "",
        user=bench.study.user.name,
        folder=one.cell.subject.app.folder,
        requirements=f"`{declared.name}`" if declared else "",
    )


def own_port(found: Sequence[ListeningPort], ordered: Collection[int]) -> int | str:
    """Return the only port, not ``ordered``, on which a subject listens, else why it has none; empty where it
    listens nowhere, or on an ordered port.
    """
    others = sorted({one.port for one in found} - set(ordered))
    if not others or len(others) < len({one.port for one in found}):
        return ""
    if len(others) > 1:
        return f"it listens on ports {', '.join(map(str, others[:-1]))} and {others[-1]} instead"
    return others[0]


def look_for_port(subject: RunningSubject, launch: Launch, request: Request) -> int | str:
    """Return the port on which a subject answers that does not listen where it should, else why there is
    none; empty where it listens nowhere.
    """
    network = subject.seat.network_namespace
    ordered = {one.address.port for one in launch.processes}
    found = own_port(listeners_of(descendants(subject.tree_pid)), ordered)
    if isinstance(found, str):
        return found
    reply = probe(Check(request), replace(launch.address, port=found), network)
    return found if isinstance(reply, Reply) else f"it listens on port {found} instead: {reply}"
