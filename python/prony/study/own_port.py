"""The port of a program's own: where it listens, if not on the port that it is given.

>>> own_port([ListeningPort(8080, "127.0.0.1")], ordered={20000})
8080
>>> own_port([ListeningPort(8080, "127.0.0.1"), ListeningPort(9229, "127.0.0.1")], {20000})
'it listens on ports 8080 and 9229 instead'
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from prony.model.exchange import Check, Request
from prony.model.launch import Launch
from prony.sandbox.contract import ListeningPort, listeners_of, probe
from prony.sandbox.exchange import Reply
from prony.sandbox.identity import descendants
from prony.sandbox.subject import RunningSubject


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
