"""The loads of a study's document, as a profile changes them, on a server with one app.

Pure.

>>> from prony.plan.document import WorkloadDocument
>>> [engine.name for engine in engines_of(WorkloadDocument(loop="open", rate=5), EngineChoice("wrk"))]
['wrk']
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from prony.model.exchange import Check, Request, status_alone
from prony.model.subject import App
from prony.model.workload import (
    ClosedLoop,
    CountStop,
    DurationStop,
    EngineChoice,
    Loop,
    MixPath,
    OpenLoop,
    UserGroup,
    Workload,
)
from prony.plan.document import ProfileDocument, UsersDocument, WorkloadChange, WorkloadDocument


def is_skipped(part: WorkloadDocument, profile: ProfileDocument) -> bool:
    """Return whether the profile leaves this load out."""
    return part.name is not None and profile.workloads.get(part.name, WorkloadChange()).skip


def in_profile(part: WorkloadDocument, profile: ProfileDocument) -> WorkloadDocument:
    """Return the load as the profile changes it: its changes of this load first, then those of all loads."""
    change = profile.workloads.get(part.name or "", WorkloadChange())
    # A profile's connections are the grid of closed loops; in an open loop they are only a limit.
    grid = profile.connections if part.loop == "closed" else None
    return part.model_copy(
        update={
            "connections": change.connections or grid or part.connections,
            "rate": change.rate or (profile.rate if part.loop == "open" else None) or part.rate,
            "streams": change.streams or part.streams,
            "requests": change.requests or part.requests,
            "engines": part.engines if change.engines is None else change.engines,
            **{
                name: _first(name, change, part, profile)
                for name in ("duration", "warmup", "timeout", "connect_timeout", "grace")
            },
        }
    )


def _first(name: str, *parts: WorkloadChange | WorkloadDocument | ProfileDocument) -> int | None:
    return next((value for part in parts if (value := getattr(part, name)) is not None), None)


def engines_of(part: WorkloadDocument, chosen: EngineChoice) -> Iterator[EngineChoice]:
    """Yield the generators that send this load: those that it names, else the ``chosen`` one."""
    for name in part.engines or (chosen.name,):
        own = chosen if name == chosen.name else chosen.named(name)
        yield replace(own, threads=part.threads or chosen.threads)


def workloads_of(part: WorkloadDocument, app: App, request: Request | None) -> Iterator[Workload]:
    """Yield the loads on a server with ``app``; ``part`` is a load as returned by `in_profile`."""
    assert part.duration is not None and part.timeout is not None, "a profile sets both"
    for loop, streams in product(_loops(part), part.streams):
        load = Workload(
            loop=loop,
            stop=CountStop(part.requests) if part.requests else DurationStop(part.duration),
            request=Request(keep_alive=part.keep_alive, headers=tuple(part.headers.items())),
            warmup_ns=part.warmup or 0,
            timeout_ns=part.timeout,
            connect_timeout_ns=part.connect_timeout,
            streams=streams,
            connection_requests=part.connection_requests,
            connection_age_ns=part.connection_age,
            groups=users_of(part.groups or ()),
        )
        load = replace(load, grace_ns=part.grace or load.longest_ns)
        asked = request
        if part.method is not None:
            checks = app.contract.checks
            asked = replace(request or (checks[0].request if checks else Request()), method=part.method)
        yield expecting(asking(load, app, asked, part.mix), part)


def users_of(users: Sequence[UsersDocument]) -> tuple[UserGroup, ...]:
    """Return groups of users as a document describes them."""
    return tuple(
        UserGroup(one.name, one.share, tuple(one.headers.items()), one.source, one.delay) for one in users
    )


def expecting(load: Workload, part: WorkloadDocument) -> Workload:
    """Return the load with the statuses that are a success by ``part``, and the redirects it follows."""
    if part.expect_status is not None:
        alone = status_alone(part.expect_status)
        load = replace(load, expect_status=alone, expect_statuses=part.expect_status if alone is None else ())
    return load.following(part.follow)


def _loops(part: WorkloadDocument) -> Iterable[Loop]:
    if part.loop == "closed":
        return (ClosedLoop(count) for count in part.connections or ())
    most = part.connections[0] if part.connections else None
    return (OpenLoop(rate, part.arrivals, connections=most) for rate in part.rate or ())


def asking(load: Workload, app: App, request: Request | None, paths: Sequence[MixPath] = ()) -> Workload:
    """Return the load with the request to this app: the given one, else the first of its contract.

    Headers and keep-alive of the load are added; ``paths`` of the load replace the request's.
    """
    checks = app.contract.checks
    asked = request or (checks[0].request if checks else Request())
    plain = replace(load, request=asked).asking_for(paths or (MixPath(asked.path),))
    check, asked, own = _expected(checks, plain.requests), plain.request, load.request
    asked = replace(
        asked, headers=(*asked.headers, *own.headers), keep_alive=asked.keep_alive and own.keep_alive
    )
    found = replace(plain, request=asked)
    return found if check is None else found.expecting(check)


def _expected(checks: Sequence[Check], requests: Sequence[Request]) -> Check | None:
    """Return the reply that all requests must get; None where the contract does not say the same of each.

    A reply is checked against the contract only when the request is one of the contract's.
    """
    found = [next((one for one in checks if one.request == asked), None) for asked in requests]
    first = found[0]
    if first is None:
        return None
    alike = (one is not None and replace(one, request=first.request) == first for one in found)
    return first if all(alike) else None
