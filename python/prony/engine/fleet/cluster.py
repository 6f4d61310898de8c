"""The only place that knows Dask distributed: workers found or started, asked, and left.

What crosses it is bytes, numbers and names.

``python -m prony.engine.fleet.cluster`` is one worker: an order on stdin, as a line of JSON. On this machine
one with its ``seat`` comes before. It ends with whoever started it.

>>> main.__name__
'main'
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.core.errors import EngineError, HostError, PronyError
from prony.core.temporary import temporary_folder
from prony.engine.answers import MachineFacts, read_facts
from prony.engine.child import cancel_at_end_of_stdin, take_seat
from prony.engine.fleet import CERTIFICATE, KEY, NEEDS, ROOT, Fleet
from prony.engine.fleet.certificates import certificates_of_days, check_certificates
from prony.engine.fleet.clocks import Probe
from prony.engine.fleet.hosts import (
    Hosts,
    StartedWorker,
    here_command,
    kill,
    reached_address,
    ssh_command,
    started,
    wait_for,
)
from prony.engine.fleet.member import FleetMember, Generator, HereGenerator, SeatedGenerator, facts
from prony.model.json_codec import Json
from prony.sandbox import linux

if TYPE_CHECKING:
    from collections.abc import Coroutine

OnBeat = Callable[[str, Json], None]
Connected = Callable[[], "contextlib.AbstractContextManager[Cluster]"]
"""Connects workers that were started or found, for one load."""

CLOCK = "prony-clock"
"""Under this name a worker may have another clock among its extensions: `bench/fleet_clocks` plants drift."""

_LOOPBACK = ("127.0.0.1", 0)

_CONNECT_S = 10.0
# Many that start at once on few CPUs wait for each other.
_REACH_S = 30.0
# One that is silent must not keep the others from being asked: they end when nobody does (`member`).
_ANSWER_S = 1.0
_CLOSE_S = 3.0
# What a cluster has for a load is kept on each worker, under this name.
_EXTENSION = "prony"
_GENERATOR = "prony-generator"
# Of certificates that live as long as the load.
_DAYS = 2

# Dask gives the second a level of its own. What goes wrong is said once, by Prony.
_TALKERS = ("distributed", "distributed.client")
# What Dask calls a connection on which one side does not believe the other's certificate.
_NOT_BELIEVED = "FatalCommClosedError"
# Why Dask gives up all that was submitted.
_SCHEDULER_LOST = "scheduler-connection-lost"

_SETTINGS = {
    # Nothing is shown, moved or measured by Dask while a load runs.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.comm.timeouts.connect": f"{_CONNECT_S:g}s",
}


def _distributed() -> Any:
    """Return the library, quiet and without what would disturb a load.

    *Errors*: HostError where the extra is not installed.
    """
    try:
        import dask
        import distributed
    except ImportError as error:
        raise HostError(NEEDS[0], hint=NEEDS[1]) from error
    dask.config.set(_SETTINGS)
    for name in _TALKERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed


@dataclass(frozen=True, slots=True)
class Submission:
    """A share of the load on its way."""

    _future: Any

    def is_done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return bool(self._future.done())

    def result(self) -> bytes:
        """Return what the generator sent.

        *Errors*: EngineError when it ended otherwise, or its result does not arrive.
        """
        try:
            return bytes(self._future.result(timeout=_CONNECT_S))
        except Exception as error:  # the border of a library: whatever a worker raised arrives here
            if _SCHEDULER_LOST in str(error):
                raise EngineError("the connection to the fleet's scheduler was lost") from error
            raise EngineError(f"it ended without a result: {_words(error)}") from error


class Cluster:
    """Workers that are connected. ``names``: by the address of each, in a fixed order."""

    def __init__(self, client: Any, run: str, names: Mapping[str, str]) -> None:
        self._client, self._run = client, run
        self._topic = f"prony-{run}"
        self.names = names

    def at_most(self, count: int) -> "Cluster":
        """Return the first so many of these workers."""
        return Cluster(self._client, self._run, dict(islice(self.names.items(), count)))

    def ask_facts(self) -> Mapping[str, MachineFacts]:
        """Return the facts of each worker.

        *Errors*: EngineError naming one that cannot run Prony, or says what are no facts.
        """
        found: dict[str, object] = self._on_each(facts)
        return {address: read_facts(self.names[address], said) for address, said in found.items()}

    def prepare(self, on_beat: OnBeat) -> None:
        """Make each worker a member; ``on_beat`` receives address and beat, in another thread."""

        def handle(event: tuple[float, object]) -> None:
            match event[1]:
                case {"worker": str(address), **beat} if address in self.names:
                    on_beat(address, {str(name): value for name, value in beat.items()})

        self._client.subscribe_topic(self._topic, handle)
        self._on_each(_become_member, topic=self._topic)

    def submit(self, address: str, order: bytes) -> Submission:
        """Start a load on one worker."""
        future = self._client.submit(
            _generate, order, workers=[address], allow_other_workers=False, retries=0, pure=False
        )
        return Submission(future)

    def cancel(self, addresses: Sequence[str]) -> None:
        """End the loads of these workers, as far as they answer."""
        self._later(_all(self._call(one, "prony_cancel") for one in addresses))

    def probe(self, addresses: Sequence[str], times: int) -> list[tuple[str, Probe]]:
        """Return so many probes of each worker's clock, one after the other; none of one that is silent."""
        pending = self._later(_all(self._probes(one, times) for one in addresses))
        return [found for own in pending.result() for found in own]

    def probe_later(self, addresses: Sequence[str]) -> "Future[list[list[tuple[str, Probe]]]]":
        """Begin one probe of each worker's clock."""
        return self._later(_all(self._probes(one, 1) for one in addresses))

    async def _probes(self, address: str, times: int) -> list[tuple[str, Probe]]:
        found = []
        for _ in range(times):
            sent_ns = time.monotonic_ns()
            remote_ns = await self._call(address, "prony_clock")
            received_ns = time.monotonic_ns()
            if remote_ns is None:
                break
            found.append((address, Probe(sent_ns, received_ns, remote_ns)))
        return found

    async def _call(self, address: str, operation: str) -> int | None:
        """Return what a worker answers; None when it does not."""
        try:
            answer = await asyncio.wait_for(getattr(self._client.rpc(address), operation)(), _ANSWER_S)
        except Exception:  # the border of a library; who does not answer is noticed by the silence
            return None
        return answer if isinstance(answer, int) else None

    def _silent(self) -> list[str]:
        """Return the names of workers that do not say who they are."""
        answers = self._later(_all(self._answers(one) for one in self.names)).result()
        return [name for name, is_there in zip(self.names.values(), answers, strict=True) if not is_there]

    async def _answers(self, address: str) -> bool:
        try:
            await asyncio.wait_for(self._client.rpc(address).identity(), _ANSWER_S)
        except Exception:  # the border of a library: refused, closed, or silent
            return False
        return True

    def _later(self, coroutine: "Coroutine[Any, Any, Any]") -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)

    def _on_each(self, function: Callable[..., Any], **arguments: Any) -> Any:
        try:
            return self._client.run(
                function, workers=list(self.names), callback_timeout=_CONNECT_S, **arguments
            )
        except Exception as error:  # the border of a library: whatever a worker raised arrives here
            silent = self._silent() if isinstance(error, OSError) else []
            if silent or isinstance(error, TimeoutError):
                raise EngineError(
                    f"these workers of the fleet do not answer: {', '.join(silent) or 'all'}",
                    hint="end them, or start them again",
                ) from None
            raise EngineError(
                f"a worker of the fleet cannot run Prony: {_words(error)}",
                hint="install this version of Prony, with its extra `fleet`, where the workers run",
            ) from error


async def _all(calls: "Iterator[Coroutine[Any, Any, Any]]") -> list[Any]:
    return list(await asyncio.gather(*calls))


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


@contextlib.contextmanager
def opened(fleet: Fleet) -> Iterator[Cluster]:
    """Yield the workers of a fleet, connected; those that were started for it are gone afterwards.

    *Errors*: HostError without the extra; EngineError when there is no scheduler or no worker.
    """
    with summoned(fleet, [None] * (fleet.workers or 0)) as connected, connected() as cluster:
        yield cluster


@contextlib.contextmanager
def summoned(fleet: Fleet, seats: Sequence[Json | None]) -> Iterator[Connected]:
    """Do what needs this process's rights: start workers, read certificates. What is yielded connects them.

    ``seats``: one for the engine of each worker on this machine; None: it runs as this process does. All that
    is needed later is imported now: with a seat comes another user, who may not be able to read it.

    *Errors*: as ``opened``.
    """
    _distributed()
    if fleet.hosts is not None:
        with _there(fleet.hosts) as connected:
            yield connected
    elif fleet.url is not None:
        yield partial(_joined, fleet.url, _read(fleet.certificates) if fleet.certificates else None)
    else:
        with _here(seats) as connected:
            yield connected


@contextlib.contextmanager
def _joined(url: str, files: Mapping[str, str] | None) -> Iterator[Cluster]:
    """Yield the workers of a scheduler of the user's own."""
    distributed = _distributed()
    security = _security(distributed, files) if files else None
    with _connected(distributed, url, security) as client:
        yield Cluster(client, _run_name(), _names(client, url))


def _run_name() -> str:
    return os.urandom(8).hex()


def _read(folder: Path) -> Mapping[str, str]:
    """Return the certificates of a folder.

    *Errors*: HostError where they cannot be read, or are of no use.
    """
    try:
        files = {name: (folder / name).read_text() for name in (ROOT, CERTIFICATE, KEY)}
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"cannot read the certificates in `{folder}`: {error}") from error
    check_certificates(folder, files)
    return files


def _security(distributed: Any, files: Mapping[str, str]) -> Any:
    """Return mutual TLS for every role. The texts stay in memory."""
    roles = ("client", "scheduler", "worker")
    certificates = {f"tls_{role}_cert": files[CERTIFICATE] for role in roles}
    keys = {f"tls_{role}_key": files[KEY] for role in roles}
    return distributed.Security(require_encryption=True, tls_ca_file=files[ROOT], **certificates, **keys)


@contextlib.contextmanager
def _connected(distributed: Any, where: Any, security: Any) -> Iterator[Any]:
    try:
        client = distributed.Client(where, security=security, timeout=_CONNECT_S, set_as_default=False)
    except Exception as error:  # the border of a library: refused, unreachable, or not of this authority
        if type(error).__name__ == _NOT_BELIEVED:
            raise EngineError(
                f"the scheduler `{where}` does not believe these certificates, or has others",
                hint="all machines need the files of one `prony fleet certificates`: copy the folder again",
            ) from error
        raise EngineError(
            f"cannot connect to the scheduler `{where}`: {_words(error)}",
            hint="start one with: dask scheduler (see docs/guides/fleet.md)",
        ) from error
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):
            client.close(timeout=_CLOSE_S)


def _names(client: Any, url: str) -> Mapping[str, str]:
    """Return the workers by their addresses, in the order of these, with what people call them."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        raise EngineError(
            f"the scheduler `{url}` has no workers", hint=f"start some with: dask worker {url} --nthreads 1"
        )
    names = {address: str(workers[address]["name"]) for address in sorted(workers)}
    return {address: name.partition("://")[2] or name for address, name in names.items()}


# --- on this machine --------------------------------------------------------------------------------------


@contextlib.contextmanager
def _here(seats: Sequence[Json | None]) -> Iterator[Connected]:
    """Start workers on the loopback, with the engines that will take the seats.

    They have certificates of their own: other users of the machine reach the loopback too.
    """
    files = certificates_of_days(_DAYS)
    names = [f"generator-{k + 1}" for k in range(len(seats))]
    with _all_started(dict.fromkeys(names, here_command())) as workers:
        orders = {}
        for one, seat in zip(workers, seats, strict=True):
            one.give({"seat": seat, "parent": os.getpid()})
            orders[one.name] = {"files": dict(files), "folder": seat and seat["folder"]}
        yield partial(_led, _LOOPBACK, files, workers, orders)


@contextlib.contextmanager
def _there(hosts: Hosts) -> Iterator[Connected]:
    """Start workers over SSH. Each reads the certificates that lie there."""
    commands = {name: ssh_command(host, hosts.ssh_config) for host in hosts.hosts for name in host.names}
    orders = {name: {"certificates": host.certificates} for host in hosts.hosts for name in host.names}
    files = _read(Path(hosts.certificates))
    with _all_started(commands) as workers:
        yield partial(_led, (hosts.listen, hosts.port or 0), files, workers, orders)


@contextlib.contextmanager
def _all_started(commands: Mapping[str, Sequence[str]]) -> Iterator[Sequence[StartedWorker]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(started(name, command)) for name, command in commands.items()]


@contextlib.contextmanager
def _led(
    listen: tuple[str, int],
    files: Mapping[str, str],
    workers: Sequence[StartedWorker],
    orders: Mapping[str, Json],
) -> Iterator[Cluster]:
    """Yield workers, by name, with a scheduler in this process."""
    distributed = _distributed()
    security = _security(distributed, files)
    names = [one.name for one in workers]
    with contextlib.ExitStack() as stack:
        local = _scheduler(distributed, listen, security)
        stack.callback(_close, local)
        for one in workers:
            one.give({**orders[one.name], "url": local.scheduler_address})
        with _undisturbed():
            client = stack.enter_context(_connected(distributed, local, security))
        wait_for(workers, lambda: tuple(_ours(client, names).values()))
        # Closed in the reverse order: first of all the workers end.
        stack.callback(kill, workers)
        yield Cluster(client, _run_name(), _ours(client, names))


def _ours(client: Any, names: Iterable[str]) -> Mapping[str, str]:
    """Return the workers that were started, by address in the order of their names; no other takes part."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    addresses = {str(worker["name"]): address for address, worker in workers.items()}
    return {addresses[name]: name for name in names if name in addresses}


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Have Ctrl-C wait for the block's end: a half made client of Dask keeps this process for 20 s."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: signals.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if signals:
            signal.raise_signal(signal.SIGINT)


def _scheduler(distributed: Any, listen: tuple[str, int], security: Any) -> Any:
    host, port = listen
    _check_address(host, port)
    return distributed.LocalCluster(
        n_workers=0,
        host=host,
        scheduler_port=port,
        protocol="tls://",
        security=security,
        # One that serves nothing; Dask has no way without.
        scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )


def _check_address(host: str, port: int) -> None:
    """Refuse an address that cannot be listened at: Dask would try it for long, and leave a socket.

    *Errors*: EngineError.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, port))
    except OSError as error:
        raise EngineError(
            f"cannot listen at `{host}` for the generators: {error.strerror}",
            hint="`listen` is an address of this machine that the others reach",
        ) from error


def _close(local: Any) -> None:
    with contextlib.suppress(Exception):
        local.close(timeout=_CLOSE_S)


# --- in a worker ------------------------------------------------------------------------------------------


def _become_member(topic: str, dask_worker: Any = None) -> None:
    """Give a worker what the other side calls. It takes the place of what an earlier load left."""

    def say(beat: Json) -> None:
        dask_worker.log_event(topic, {**beat, "worker": dask_worker.address})

    def cancel() -> int:
        member.cancel()
        return 1

    generator = dask_worker.extensions.get(_GENERATOR) or HereGenerator()
    member = FleetMember(say, generator, dask_worker.extensions.get(CLOCK, time.monotonic_ns))
    dask_worker.extensions[_EXTENSION] = member
    dask_worker.handlers["prony_clock"] = member.clock
    dask_worker.handlers["prony_cancel"] = cancel


def _generate(order: bytes) -> bytes:
    member: FleetMember = _distributed().get_worker().extensions[_EXTENSION]
    return member.generate(order)


def main() -> int:
    """Serve as one worker, until whoever started it is gone."""
    try:
        with contextlib.suppress(KeyboardInterrupt):
            _serve_orders()
    except PronyError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    return 0


def _serve_orders() -> None:
    order = _next_order()
    with contextlib.ExitStack() as stack:
        generator: Generator = HereGenerator()
        if "seat" in order:
            generator = stack.enter_context(_generator(order["seat"], order["parent"]))
            order = _next_order()
        files = order.get("files") or _read(Path(order["certificates"]).expanduser())
        asyncio.run(_serve({**order, "files": files, "host": reached_address()}, generator))


def _next_order() -> Json:
    found: Json = json.loads(sys.stdin.buffer.readline())
    return found


@contextlib.contextmanager
def _generator(seat: Json | None, parent: int) -> Iterator[Generator]:
    """Yield what sends the load: the engine in this process, or one in a seat, which this process takes but
    for the network. From here on this process ends with its parent.

    *Errors*: KeyboardInterrupt when the parent is gone.
    """
    if seat is None:
        linux.die_with_parent()
        if os.getppid() != parent:
            raise KeyboardInterrupt
        yield HereGenerator()
        return
    # Before the user changes: another one may not be able to read what it is made of.
    _distributed()
    facts()
    generator = SeatedGenerator(seat)
    with generator.started():
        take_seat({**seat, "network_namespace": None, "joins": ()}, parent)
        yield generator


async def _reach(distributed: Any, url: str, security: Any) -> None:
    """Connect to the scheduler once: Dask's worker would try for ever, and not say why.

    *Errors*: EngineError.
    """
    try:
        connection = await distributed.core.connect(
            url, timeout=_REACH_S, **security.get_connection_args("worker")
        )
    except Exception as error:  # the border of a library: refused, unreachable, or not of this authority
        if type(error).__name__ == _NOT_BELIEVED:
            raise EngineError("the certificates there are not those that are here") from error
        raise EngineError(f"it does not reach `{url}`, where this machine listens") from error
    await connection.close()


async def _serve(order: Json, generator: Generator) -> None:
    distributed = _distributed()
    security = _security(distributed, order["files"])
    # Dask makes folders there, and nothing is spilled to them: they go before anything is waited for.
    below = order.get("folder")
    with temporary_folder("fleet", below and Path(below)) as folder:
        worker = distributed.Worker(
            order["url"],
            name=order["name"],
            nthreads=1,
            memory_limit=0,
            host=order["host"],
            security=security,
            local_directory=str(folder),
        )
    # From here on this process ends at once when nobody waits for it any more.
    cancel_at_end_of_stdin()
    worker.extensions[_GENERATOR] = generator
    await _reach(distributed, order["url"], security)
    await worker
    await worker.finished()


if __name__ == "__main__":
    sys.exit(main())
