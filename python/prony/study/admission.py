"""Whether a study may begin on this machine: what it needs, compared with what the machine has.

>>> expected_bytes(trials=10, load_s=10.0, processes=4)
860160

Which cells of a study can be measured on this machine, before anything is started: whether their generator
is here, and their subject takes their load.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from math import ceil

from prony.catalog.launch import declared_facts
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import (
    HTTP2,
    TLS,
    TLS_CIPHER,
    TLS_OFF,
    TLS_RESUMPTION,
    asked_ciphers,
    asked_value,
    backends_of,
    is_true,
    needs_tls,
)
from prony.core.errors import HostError
from prony.core.units import KIB, seconds
from prony.engine.registry import cannot_make, not_here, not_installed
from prony.machine.preflight import Demand, preflight, unfit
from prony.model.address import KEEPING, Address, Tls, Wire
from prony.model.plan import Cell, Plan
from prony.model.sandbox import Network, Placement, SandboxChoice, SandboxFacts, SandboxKind
from prony.model.subject import Subject
from prony.model.workload import ClosedLoop, CountStop, DurationStop, EngineChoice, OpenLoop, Workload
from prony.plan.factors import OF_SANDBOX
from prony.sandbox.cgroup.types import LimitName
from prony.study.task import Study, StudyListener

# Bytes in an archive: histograms, counters and the log of a trial; a second of its series; a process in a
# second, sampled twice.
_BYTES_PER_TRIAL = 64 * KIB
_BYTES_PER_SECOND = KIB
_BYTES_PER_PROCESS = 256
# The length of a load with a fixed number of requests is not known: assume a usual one.
_COUNTED_S = 60.0
# What a load by rate has open unless a server stalls.
_USUALLY_OPEN = 1024


def admit(
    study: Study, placement: Placement, facts: SandboxFacts, listener: StudyListener
) -> tuple[str, ...]:
    """Report what may disturb the study, and return the reasons why it is invalid and only runs by force.

    *Errors*: HostError when it cannot be valid and is not forced.
    """
    asked = demand_of(study.plan, study.catalog, placement)
    size = expected_bytes(len(study.plan.cells) * study.plan.whole_blocks, asked.load_s, asked.processes)
    own_network = facts.network is Network.ISOLATED
    found = preflight(replace(asked, own_network=own_network, archive=(study.out.parent, size)))
    reasons = unfit(found)
    if reasons and not study.force:
        raise HostError(
            "\n".join(["this study cannot be valid on this machine:", *(f"  {one}" for one in reasons)]),
            hint="fix this with the commands above, or measure anyway with --force; the archive records that",
        )
    for check in found:
        if check.level != "ok":
            listener.notice(check.in_words())
    return reasons


def demand_of(plan: Plan, catalog: Catalog, placement: Placement) -> Demand:
    """Return the most that any trial of the plan needs."""
    sandbox, subjects, cpus = plan.sandbox, plan.subjects(), len(placement.server_cpus)
    return Demand(
        connections=max(_connections(cell.workload) for cell in plan.cells),
        engine_threads=plan.engine_threads,
        # Studies load over loopback only; other generators come from one address.
        several_sources=all(cell.engine.is_built_in for cell in plan.cells),
        share_cpus=sandbox.share_cpus,
        connections_per_process=_held(plan, catalog, cpus),
        new_per_s=_new_per_s(plan),
        load_s=max(_load_s(cell.workload) for cell in plan.cells),
        backlogs=dict(_backlogs(catalog, subjects, cpus)),
        processes=max(sum(_processes(catalog, subject, cpus).values()) for subject in subjects),
        memory_bytes=sandbox.memory_bytes,
        own_network=sandbox.network is Network.ISOLATED,
    )


def expected_bytes(trials: int, load_s: float, processes: int) -> int:
    """Return the approximate size of the archive."""
    each_s = _BYTES_PER_SECOND + _BYTES_PER_PROCESS * processes
    return trials * (_BYTES_PER_TRIAL + round(load_s * each_s))


def _connections(workload: Workload) -> int:
    """Return how many connections a load opens; of an open loop without a number: while the server keeps up.

    That it may need more when the server stalls is no reason to refuse it.
    """
    match workload.loop:
        case OpenLoop(rate_per_s, connections=None):
            return min(ceil(rate_per_s * seconds(workload.longest_ns)), _USUALLY_OPEN)
        case ClosedLoop(connections) | OpenLoop(connections=int(connections)):
            return connections
        case OpenLoop():
            return _USUALLY_OPEN


def _load_s(workload: Workload) -> float:
    match workload.stop:
        case DurationStop(duration_ns):
            return seconds(workload.warmup_ns + duration_ns)
        case CountStop():
            return _COUNTED_S


def _new_per_s(plan: Plan) -> float | None:
    """Return the largest number of connections that a cell opens per second; None: the server sets the
    pace.
    """
    rates: list[float] = []
    for cell in plan.cells:
        if cell.workload.request.keep_alive:
            continue
        match cell.workload.loop:
            case ClosedLoop():
                return None
            case OpenLoop(rate_per_s):
                rates.append(rate_per_s)
    return max(rates, default=0.0)


def _processes(catalog: Catalog, subject: Subject, cpus: int) -> dict[str, int]:
    """Return how many processes server and frontend have under their settings, by part."""
    found = {"server": declared_facts(catalog.server(subject.server), subject, cpus).processes or 1}
    if subject.frontend is not None:
        entry = catalog.frontends[subject.frontend.entry]
        found["server"] *= backends_of(entry, subject.frontend, cpus)
        found["frontend"] = declared_facts(entry, subject.frontend, cpus).processes or 1
    return found


def _held(plan: Plan, catalog: Catalog, cpus: int) -> dict[str, int]:
    """Return the connections that one process of each subject holds if they spread evenly."""
    found: dict[str, int] = {}
    for cell in plan.cells:
        name = cell.subject.name
        held = _held_by_one(_connections(cell.workload), _processes(catalog, cell.subject, cpus))
        found[name] = max(held, found.get(name, 0))
    return found


def _held_by_one(connections: int, processes: Mapping[str, int]) -> int:
    # For each client's connection a frontend opens one to the server.
    if "frontend" in processes:
        return ceil(2 * connections / processes["frontend"])
    return ceil(connections / processes["server"])


def _backlogs(catalog: Catalog, subjects: tuple[Subject, ...], cpus: int) -> Iterator[tuple[str, int]]:
    for subject in subjects:
        asked = declared_facts(catalog.server(subject.server), subject, cpus).backlog
        if asked is not None:
            yield subject.name, asked


# --- limits and settings of the kernel that differ between a plan's subjects ------------------------------


_NAMES: Mapping[str, LimitName] = {"cpus": "cpu_quota", "memory": "memory", "pids": "pids"}


def limits_to_hold(plan: Plan, required: Collection[LimitName]) -> tuple[SandboxChoice, frozenset[LimitName]]:
    """Return the sandbox with each limit that any cell asks for, and those that must hold: the ``required``
    ones, and those in which subjects differ.

    *Errors*: HostError where such a limit cannot hold because there are no control groups.
    """
    keys = {key for subject in plan.subjects() for key in subject.levels}
    swept = frozenset(_NAMES[name] for name in _NAMES if f"{OF_SANDBOX}.{name}" in keys)
    asked = plan.sandbox
    for cell in plan.cells:
        asked = replace(
            asked,
            cpu_quota=cell.sandbox.cpu_quota if asked.cpu_quota is None else asked.cpu_quota,
            memory_bytes=cell.sandbox.memory_bytes if asked.memory_bytes is None else asked.memory_bytes,
            pids=cell.sandbox.pids if asked.pids is None else asked.pids,
        )
    if swept and asked.kind is SandboxKind.PROCESS:
        names = ", ".join(f"`{name}`" for name in sorted(swept))
        raise HostError(
            f"the subjects differ in the limit {names}, which does not hold without control groups",
            hint="`prony host` shows what is missing; --sandbox container needs Docker or Podman",
        )
    return asked, frozenset(required) | swept


def refuse_kernel_of_host(plan: Plan, facts: SandboxFacts) -> None:
    """Refuse settings of the kernel where subjects have no network of their own.

    *Errors*: HostError.
    """
    if plan.sandbox.sysctl and facts.network is not Network.ISOLATED:
        name = plan.sandbox.sysctl[0][0]
        reason = facts.missing.get("network namespace", "it was not asked for")
        raise HostError(
            f"`{name}` cannot be set for a trial alone: it has no network of its own ({reason})",
            hint="leave the setting out, or give subjects a network of their own: `prony host`",
        )


ONE_AT_A_TIME = "several streams on a connection need HTTP/2, and it has one request at a time"
"""Why a subject of another wire does not get a load with streams: with as many connections it would be
another load.
"""
ALWAYS_KEPT = "a connection for each request needs HTTP/1, and those of HTTP/2 are kept"
NO_REDIRECTS = "redirects are followed over HTTP/1 alone"
NO_LIMIT = "only connections of HTTP/1 and FastCGI end at a limit"
ONLY_WITH_TLS = "it does not speak that wire without TLS"

# Which server it is does not matter here, only what it speaks.
_ANY = Address("127.0.0.1", 0)
_AUTHORITY = "authority.pem"


def left_out(cells: Iterable[Cell], catalog: Catalog) -> dict[int, str]:
    """Return, by cell id, why its generator is not on this machine, or cannot send its load, or why its
    subject does not take it.

    *Errors*: as `prony.engine.registry.not_here`, which may build an environment; UsageError for a server
    that is not in the catalogue.
    """
    return _left_out(cells, catalog, not_here)


def to_leave_out(cells: Iterable[Cell], catalog: Catalog) -> dict[int, str]:
    """Return what `left_out` would, as far as it is known without building anything."""
    return _left_out(cells, catalog, not_installed)


def _left_out(
    cells: Iterable[Cell], catalog: Catalog, lacking: Callable[[EngineChoice], str | None]
) -> dict[int, str]:
    missing: dict[str, str | None] = {}
    found: dict[int, str] = {}
    for cell in cells:
        name = cell.engine.name
        if name not in missing:
            missing[name] = lacking(cell.engine)
        address = _address(cell, catalog)
        reason = (
            missing[name]
            or _unspoken(cell, address, catalog)
            or _not_taken(cell, address.wire)
            or cannot_make(cell.engine, cell.workload, address)
            or _unlimited(cell)
        )
        if reason:
            found[cell.id] = reason
    return found


def _unlimited(cell: Cell) -> str | None:
    """Return why generators cannot be limited each; None: they can, or need not be."""
    if "@" not in cell.engine.name or cell.sandbox.kind is SandboxKind.CGROUP:
        return None
    return f"a limit for each of its generators needs control groups; the sandbox is `{cell.sandbox.kind}`"


def _unspoken(cell: Cell, address: Address, catalog: Catalog) -> str | None:
    """Return why nobody can be answered at such an address; None: they can."""
    alone = cell.subject.frontend is None and address.tls is None
    return ONLY_WITH_TLS if alone and needs_tls(catalog.server(cell.subject.server), address.wire) else None


def _not_taken(cell: Cell, wire: Wire) -> str | None:
    """Return why nobody can send the cell's load over its subject's wire; None: it can be sent."""
    load = cell.workload
    if load.streams > 1 and wire is not Wire.HTTP2:
        return ONE_AT_A_TIME
    if load.follow and wire is not Wire.HTTP:
        return NO_REDIRECTS
    if (load.connection_requests or load.connection_age_ns) and wire not in KEEPING:
        return NO_LIMIT
    return ALWAYS_KEPT if wire is Wire.HTTP2 and not load.request.keep_alive else None


def _address(cell: Cell, catalog: Catalog) -> Address:
    """Return an address with the wire and the TLS that the subject's clients speak."""
    subject, front = cell.subject, cell.subject.frontend
    if front is None:
        entry = catalog.server(subject.server)
        spoken = replace(_ANY, wire=Wire(str(asked_value(entry, subject, "wire") or entry.wires[0])))
    else:
        asked = asked_value(catalog.frontends[front.entry], front, HTTP2) or False
        spoken = replace(_ANY, wire=Wire.HTTP2 if is_true(asked) else Wire.HTTP)
    return replace(spoken, tls=_asked_tls(cell, catalog))


def _asked_tls(cell: Cell, catalog: Catalog) -> Tls | None:
    subject, front = cell.subject, cell.subject.frontend
    entry = catalog.server(subject.server) if front is None else catalog.frontends[front.entry]
    if (asked_value(entry, front or subject, TLS) or TLS_OFF) == TLS_OFF:
        return None
    resumption = asked_value(entry, front or subject, TLS_RESUMPTION) or False
    ciphers = asked_ciphers(asked_value(entry, front or subject, TLS_CIPHER))
    return Tls(ca_file=_AUTHORITY, resumption=is_true(resumption), ciphers=ciphers)


def left_out_words(cells: Iterable[Cell], reasons: Mapping[int, str]) -> tuple[str, ...]:
    """Return one sentence for each generator or subject and reason, in the order of the cells."""
    said = [
        f"{_who(cell, reasons[cell.id])} is left out: {reasons[cell.id]}"
        for cell in cells
        if cell.id in reasons
    ]
    return tuple(dict.fromkeys(said))


def _who(cell: Cell, reason: str) -> str:
    of_subject = (ONE_AT_A_TIME, ALWAYS_KEPT, NO_REDIRECTS, NO_LIMIT, ONLY_WITH_TLS)
    return cell.subject.name if reason in of_subject else cell.engine.name
