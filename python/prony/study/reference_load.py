"""A load on the reference server, outside of a sandbox: what an engine and a machine can do is seen there.

Must not know what is made of the figures.
"""

import contextlib
import os
import re
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from prony.engine.registry import open_engine
from prony.errors import HostError
from prony.itself import own_command
from prony.model.address import Address
from prony.model.recording import Recording
from prony.model.sandbox import Placement
from prony.model.workload import EngineChoice, Loop, Pacing, Stop, Workload
from prony.seat import EngineSeat
from prony.units import SECOND_NS, seconds


@dataclass(frozen=True, slots=True)
class ReferenceServer:
    """A running reference server."""

    port: int
    pid: int


def drive(
    placement: Placement, server: ReferenceServer, loop: Loop, stop: Stop, warmup_ns: int = 0
) -> Recording:
    """Return the Recording of a load on the reference server."""
    pacing = Pacing.usual(shares_cpus=placement.shared)
    engine = open_engine(EngineChoice(pacing=pacing))
    load = Workload(loop, stop, warmup_ns=warmup_ns, timeout_ns=2 * SECOND_NS, grace_ns=SECOND_NS)
    seat = EngineSeat(cpus=placement.generator_cpus)
    return engine.run(load, Address("127.0.0.1", server.port), seat, lambda _event: None)


@contextlib.contextmanager
def reference_server(cpus: Collection[int], *options: str) -> Iterator[ReferenceServer]:
    """Run the reference server on these CPUs within the block; yield it.

    *Errors*: HostError when it does not start.
    """
    command = own_command("reference", "--port", "0", *options)
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        # Long before it starts its threads, which inherit them.
        os.sched_setaffinity(process.pid, cpus)
        assert process.stderr, "it is a pipe"
        try:
            said = process.stderr.readline()
            found = re.search(r":(\d+)$", said.strip())
            if found is None:
                raise HostError(f"the reference server did not start: {said.strip()}")
            yield ReferenceServer(int(found[1]), process.pid)
        finally:
            process.terminate()


def ok_per_s(recording: Recording) -> float:
    """Return the valid replies per second of the window."""
    length_ns = recording.window.length_ns
    return recording.completed.ok / seconds(length_ns) if length_ns else 0.0
