"""The generators of one trial, and what leads them, as processes of their own.

`prony.engine.child_process` starts it. One line of JSON on stdin: ``spec``, ``seat``, ``seats`` of the
generators on this machine, ``fleet``, ``threads`` of each generator, ``limit_ns``; on stdout what
`prony.engine.child` writes. Generators of this machine take their seats; this process and Dask's workers take
the seat's user and CPUs, and stay out of the subject's network, where nothing but the subject listens.

>>> main.__name__
'main'
"""

import json
import sys

from prony.core.version import prony_version
from prony.engine.child import cancel_at_end_of_stdin, run_cancellable, say_event, take_seat
from prony.engine.fleet.address import decode_fleet
from prony.engine.fleet.cluster import summoned
from prony.engine.fleet.engine import FleetEngine
from prony.engine.generator import OnLoss
from prony.model.json_codec import encode
from prony.model.workload import EngineChoice


def main() -> int:
    """Start the generators, take the seat, lead them, and write the result."""
    return run_cancellable(_lead)


def _lead(parent: int) -> None:
    order = json.loads(sys.stdin.buffer.readline())
    _import_all()
    fleet = decode_fleet(order["fleet"])
    with summoned(fleet, order["seats"]) as connected:
        take_seat({**order["seat"], "network_namespace": None}, parent)
        cancel_at_end_of_stdin()
        engine = FleetEngine(fleet, EngineChoice(), OnLoss.INVALID, order["threads"])
        with connected() as cluster:
            recording = engine.share(cluster, order["spec"], order["limit_ns"], say_event)
    say_event({"event": "recording", "recording": encode(recording)})


def _import_all() -> None:
    """Import before the user changes: the new one may not be able to read Prony's files."""
    import prony._engine  # noqa: F401

    prony_version()
