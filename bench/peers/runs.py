"""One run of one generator: started on its CPU, watched from outside, checked by what the server counted."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from typing import IO

from loads import GENERATOR_CPU, SERVER_CPU

from peers.cells import Cell, Measure
from peers.programs import Order, Program, RunError
from peers.servers import Counts, Server

# After the start: connections are open, and the first of everything is over.
LEAD_S, LEAD_PER_CONNECTION_S = 0.5, 0.00025
# Between the window and the end of the load.
TAIL_S = 0.2
# After the end of a load: replies that are still due, and figures to print.
END_S = 30.0
# A process that loads for 3 s, as a user may.
PROCESS_S = 3
FIRST_S = 20.0
FIRST_CONNECTIONS = 3
# Requests that begin or end at an edge, and what a generator counts at its start.
COUNT_SHARE = 0.01
RATE_SHARE = 0.02


@dataclass(frozen=True)
class Asked:
    """What is asked of all runs: the length of a window in seconds, where programs are.

    ``patience_s``: how much later than usual a window begins, after a run in which it began too soon.
    """

    seconds: float
    path: str
    patience_s: float = 0.0


@dataclass(frozen=True)
class Run:
    """What a run came to.

    ``value``: CPU time for a request in microseconds, or the time until the first request in milliseconds.
    ``rate``: requests a second. ``others``: what else used the CPUs, in CPUs.
    """

    value: float
    rate: float | None
    others: float


def run(program: Program, cell: Cell, server: Server | None, asked: Asked) -> Run:
    """Run a generator once under a cell.

    *Errors*: `RunError`, when what it did is not what the cell says.
    """
    with tempfile.TemporaryDirectory(prefix="prony-bench-") as folder:
        place = Path(folder)
        if server is None:
            return first(program, cell, asked, place)
        if cell.measure is Measure.PROCESS:
            return whole(program, Order(cell, server.port, PROCESS_S, place), server, asked)
        lead_s = LEAD_S + LEAD_PER_CONNECTION_S * cell.connections + program.start_s + asked.patience_s
        order = Order(cell, server.port, ceil(lead_s + asked.seconds + TAIL_S), place)
        return window(program, order, server, asked)


# --- a window within the run ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edge:
    """What had come about at a moment, in seconds."""

    counts: Counts
    cpu_s: float
    at_s: float
    busy_s: float
    server_s: float

    @classmethod
    def now(cls, server: Server, pid: int) -> "Edge":
        # The server's count is as old as its reply, so the others are read after it.
        counts = server.counts()
        at_s = time.monotonic()
        return cls(counts, cpu_s(pid), at_s, busy_s(), cpu_s(server.pid))


def window(program: Program, order: Order, server: Server, asked: Asked) -> Run:
    before = server.counts()
    with started(program, order, asked) as (process, output):
        time.sleep(order.seconds - asked.seconds - TAIL_S)
        begin = Edge.now(server, process.pid)
        time.sleep(asked.seconds)
        end = Edge.now(server, process.pid)
        text = ended(process, output)
    text += reported(program, order, asked)
    check_window(order.cell, before, begin, end)
    check_count(program, order.cell, text, server.counts().requests - before.requests)
    requests, length_s = end.counts.requests - begin.counts.requests, end.at_s - begin.at_s
    used_s = end.cpu_s - begin.cpu_s
    others_s = end.busy_s - begin.busy_s - used_s - (end.server_s - begin.server_s)
    return Run(used_s / requests * 1e6, requests / length_s, max(0.0, others_s / length_s))


def check_window(cell: Cell, before: Counts, begin: Edge, end: Edge) -> None:
    requests = end.counts.requests - begin.counts.requests
    opened = end.counts.accepted - begin.counts.accepted
    if requests <= 0:
        raise RunError("no request reached the server in the window")
    if not cell.keep_alive:
        if abs(opened - requests) > cell.in_flight + COUNT_SHARE * requests:
            raise RunError(f"{requests:,} requests over {opened:,} new connections")
        return
    open_at_once = begin.counts.accepted - before.accepted
    # At a rate one may open a connection when a request has none to wait for.
    if cell.rate is None and open_at_once < cell.connections:
        raise RunError(f"{open_at_once:,} of {cell.connections:,} connections were open in time")
    if opened > COUNT_SHARE * requests:
        raise RunError(f"opens connections anew: {opened:,} for {requests:,} requests")
    rate = requests / (end.at_s - begin.at_s)
    if cell.rate and abs(rate / cell.rate - 1) > RATE_SHARE:
        raise RunError(f"{rate:,.0f} requests a second in place of {cell.rate:,}")


def check_count(program: Program, cell: Cell, text: str, served: int) -> None:
    count = program.count(text)
    # Some count what is in flight at the end, some do not, and some ask once for each connection before.
    slack = 2 * cell.in_flight + COUNT_SHARE * served
    if count is not None and abs(count - served) > slack:
        raise RunError(f"says {count:,} requests where the server counted {served:,}")


# --- the whole process ------------------------------------------------------------------------------------


def whole(program: Program, order: Order, server: Server, asked: Asked) -> Run:
    before, busy, servers, began = server.counts(), busy_s(), cpu_s(server.pid), time.monotonic()
    with started(program, order, asked) as (process, output):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        text = ended(process, output)
    length_s = time.monotonic() - began
    served = server.counts().requests - before.requests
    used_s = usage.ru_utime + usage.ru_stime
    others_s = busy_s() - busy - used_s - (cpu_s(server.pid) - servers)
    check_count(program, order.cell, text + reported(program, order, asked), served)
    return Run(used_s / served * 1e6, served / order.seconds, max(0.0, others_s / length_s))


# --- the first request ------------------------------------------------------------------------------------


def first(program: Program, cell: Cell, asked: Asked, folder: Path) -> Run:
    """Take the time until bytes of a request are there; the generator is killed then."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        order = Order(cell, listener.getsockname()[1], PROCESS_S, folder)
        began_s, busy = time.monotonic(), busy_s()
        with started(program, order, asked) as (process, output):
            until_s = began_s + FIRST_S
            if not any(has_request(listener, until_s) for _ in range(FIRST_CONNECTIONS)):
                output.seek(0)
                raise RunError(f"no request came: {output.read()[-300:]}")
            took_s, used_s = time.monotonic() - began_s, cpu_s(process.pid)
    others_s = busy_s() - busy - used_s
    return Run(took_s * 1e3, None, max(0.0, others_s / took_s))


def has_request(listener: socket.socket, until_s: float) -> bool:
    """Return whether the next connection brings a request: some are only a look whether anybody is there."""
    try:
        listener.settimeout(max(0.001, until_s - time.monotonic()))
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(max(0.001, until_s - time.monotonic()))
            return bool(connection.recv(1))
    except TimeoutError:
        return False


# --- processes --------------------------------------------------------------------------------------------


@contextmanager
def started(
    program: Program, order: Order, asked: Asked
) -> Iterator[tuple["subprocess.Popen[bytes]", IO[str]]]:
    """Start a generator on its CPU; none of it is left at the end of the block."""
    environment = {**os.environ, "PATH": asked.path, **program.environment}
    command = ["taskset", "-c", str(GENERATOR_CPU), *program.command(order)]
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=order.folder,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process, output
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)


def ended(process: "subprocess.Popen[bytes]", output: IO[str]) -> str:
    """Return what a generator printed, once it has ended.

    *Errors*: `RunError`, when it does not end, or not well.
    """
    try:
        status = process.wait(END_S)
    except subprocess.TimeoutExpired:
        raise RunError(f"did not end within {END_S:g} s after its time") from None
    output.seek(0)
    text = output.read()
    if status:
        raise RunError(f"ended with status {status}: {text.strip()[-300:]}")
    return text


def reported(program: Program, order: Order, asked: Asked) -> str:
    """Return what a generator's second command prints; nothing where it has none.

    *Errors*: `RunError`, when that does not end well.
    """
    if program.report is None:
        return ""
    environment = {**os.environ, "PATH": asked.path, **program.environment}
    done = subprocess.run(
        program.report(order), env=environment, cwd=order.folder, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise RunError(f"its report ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process, all its threads together (clock_getcpuclockid(3))."""
    return time.clock_gettime(~pid << 3 | 2)


def packets_s(tick_s: float) -> float:
    """Return the CPU seconds of the kernel's threads for packets: of the load, though of neither side."""
    names = (f"ksoftirqd/{cpu}" for cpu in (SERVER_CPU, GENERATOR_CPU))
    stats = (Path(f"/proc/{pid}/stat") for name in names for pid in pids_of(name))
    fields = (stat.read_text(encoding="ascii").rpartition(")")[2].split() for stat in stats)
    # utime and stime.
    return tick_s * sum(int(one[11]) + int(one[12]) for one in fields)


@cache
def pids_of(name: str) -> tuple[int, ...]:
    """Return the kernel's threads of this name; none in a container that shows no others."""
    return tuple(int(path.parent.name) for path in Path("/proc").glob("[0-9]*/comm") if is_called(path, name))


def is_called(comm: Path, name: str) -> bool:
    try:
        return comm.read_text(encoding="utf-8", errors="replace").strip() == name
    except OSError:
        # It ended meanwhile.
        return False


def busy_s() -> float:
    """Return for how long both CPUs were not idle, or were taken away by the machine below (proc(5)), but for
    the kernel's work on packets.
    """
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    mine = {f"cpu{cpu}" for cpu in (SERVER_CPU, GENERATOR_CPU)}
    fields: Mapping[str, list[int]] = {
        name: [int(value) for value in values]
        for name, *values in (line.split() for line in lines)
        if name in mine
    }
    # user, nice, system, idle, iowait, irq, softirq, steal.
    busy = sum(sum(values[:3]) + sum(values[5:8]) for values in fields.values())
    return tick_s * busy - packets_s(tick_s)
