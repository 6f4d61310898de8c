"""A scheduler and workers by Dask's own commands, as docs/guides/fleet.md has them, on such machines."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from machines import Machine
from machines.drift import VARIABLE
from prony.core.errors import EngineError
from prony.engine.fleet import CERTIFICATE, KEY, ROOT, Fleet, fleet_of
from prony.engine.fleet.certificates import write_certificates
from prony.engine.fleet.cluster import opened

_START_S = 120.0
_SCHEDULER_PORT, _WORKER_PORT, _RELAY_PORT = 8786, 9000, 9001
_HERE = Path(__file__).parent
_VARIABLES = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}


@dataclass(frozen=True)
class Worker:
    """One that is connected: where it runs, and its process as this machine sees it."""

    machine: Machine
    name: str
    address: str
    pid: int


@contextlib.contextmanager
def fleet_on(
    head: Machine, others: Sequence[Machine], folder: Path, drift_ppm: Sequence[int] = (), way_ms: float = 0.0
) -> Iterator[tuple[Fleet, Sequence[Worker]]]:
    """Yield a fleet with its scheduler on ``head`` and a worker on each other machine, then limited.

    ``drift_ppm``: by how much each worker's clock gains, as whoever asks for it reads it; ``way_ms``: what
    comes to a worker, and what it answers, takes up to so much longer. This process must be on ``head``.
    """
    certificates = folder / "certificates"
    write_certificates(certificates, 1)
    url = f"tls://{head.address}:{_SCHEDULER_PORT}"
    with contextlib.ExitStack() as stack:
        own = ("--protocol", "tls", "--host", url, "--dashboard-address", "127.0.0.1:0")
        stack.enter_context(_dask(head, "scheduler", [*own, *_files(certificates)]))
        for number, machine in enumerate(others):
            place = folder / machine.name
            ppm = drift_ppm[number] if drift_ppm else 0
            words = [
                url,
                "--nthreads",
                "1",
                "--no-nanny",
                "--local-directory",
                str(place),
                *_files(certificates),
            ]
            words += ["--name", f"worker-{number + 1}", *_listens(machine, way_ms > 0)]
            words += ["--preload", str(_HERE / "drift.py")]
            stack.enter_context(_dask(machine, "worker", words, {VARIABLE: str(ppm)}))
            if way_ms > 0:
                stack.enter_context(_relay(machine, way_ms))
        fleet = fleet_of(url, certificates)
        yield fleet, _limited(_when_there(fleet, others))


def _files(folder: Path) -> list[str]:
    options = (("--tls-ca-file", ROOT), ("--tls-cert", CERTIFICATE), ("--tls-key", KEY))
    return [word for option, name in options for word in (option, str(folder / name))]


def _listens(machine: Machine, is_relayed: bool) -> list[str]:
    """Return where a worker listens, and where others reach it."""
    own = f"tls://{machine.address}:{_WORKER_PORT}"
    reached = f"tls://{machine.address}:{_RELAY_PORT}"
    return ["--listen-address", own, "--contact-address", reached if is_relayed else own]


@contextlib.contextmanager
def _dask(
    machine: Machine, kind: str, words: Sequence[str], variables: Mapping[str, str] = _VARIABLES
) -> Iterator[None]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *words]
    with _running(machine.command(command), {**_VARIABLES, **variables}):
        yield


@contextlib.contextmanager
def _relay(machine: Machine, way_ms: float) -> Iterator[None]:
    places = (machine.address, str(_RELAY_PORT), str(_WORKER_PORT), str(way_ms))
    with _running(machine.command([sys.executable, _HERE / "relay.py", *places])):
        yield


@contextlib.contextmanager
def _running(command: Sequence[str], variables: Mapping[str, str] = _VARIABLES) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _when_there(fleet: Fleet, others: Sequence[Machine]) -> Sequence[Worker]:
    """Wait until all workers are connected, and return them in the order of their machines."""
    end_s = time.monotonic() + _START_S
    while True:
        with contextlib.suppress(EngineError), opened(fleet) as cluster:
            if len(cluster.names) == len(others):
                found = cluster.ask_facts()
                break
        if time.monotonic() > end_s:
            sys.exit(f"the workers did not connect within {_START_S:g} s")
        time.sleep(0.2)
    by_host = {address.rpartition("/")[2].rpartition(":")[0]: address for address in found}
    reached = [by_host[machine.address] for machine in others]
    names = cluster.names
    return [
        Worker(machine, names[address], address, found[address].pid)
        for machine, address in zip(others, reached, strict=True)
    ]


def _limited(workers: Sequence[Worker]) -> Sequence[Worker]:
    for one in workers:
        one.machine.limit(one.pid)
    return workers
