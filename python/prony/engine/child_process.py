"""A generator as a child process: in the subject's network, watched, with a hard deadline.

>>> Child("prony.engine.child").command()[1:3]
['-I', '-S']

>>> usage_of((), 1 << 30).cpu_percent is None
True
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

import prony
from prony.core.errors import EngineError
from prony.core.lines import Lines, json_object
from prony.core.units import SECOND_NS, format_duration, seconds
from prony.engine.generator import OnEvent
from prony.figures.missing import Missing
from prony.figures.resources import cpu_share, window_samples
from prony.model.json_codec import Json
from prony.model.launch import RoleRule
from prony.model.observation import Phase, Sample
from prony.model.recording import GeneratorProcesses
from prony.model.sandbox import Placement
from prony.sandbox.watch.native import CompiledSource
from prony.sandbox.watch.processes import ProcessMonitor

_BOOT = (
    "import sys; sys.path[:0] = sys.argv.pop(1).split('\\n'); from importlib import import_module; "
    "sys.exit(import_module(sys.argv.pop(1)).main())"
)
_NOTHING: Mapping[str, str] = MappingProxyType({})
SPARE_NS = 15 * SECOND_NS
"""Extra time for a generator on a busy machine: to start, to import, to merge histograms."""
_CANCEL_S = 5.0
_SHOWN_BYTES = 200


@dataclass(frozen=True, slots=True)
class ChildResult:
    """What a child ended with: what it said as its recording, and what the generator itself used."""

    said: Json
    processes: GeneratorProcesses


def boot_command(module: str, packages: Sequence[str] = ()) -> list[str]:
    """Return the command that runs ``module``'s ``main``, wherever Prony is installed.

    ``packages``: the folders of what it imports besides Prony.
    """
    places = "\n".join(dict.fromkeys((str(Path(prony.__file__).parent.parent), *packages)))
    return [sys.executable, "-I", "-S", "-c", _BOOT, places, module]


class Child:
    """Runs ``module``'s ``main`` in a process of its own. One run at a time.

    ``is_generator``: whether the process itself sends the load, or another one that it starts; ``packages``:
    the folders of what it imports besides Prony; ``variables``: of its environment;
    ``descriptors``: open files that it has too, by the same numbers.
    """

    def __init__(
        self,
        module: str,
        is_generator: bool = True,
        packages: Sequence[str] = (),
        variables: Mapping[str, str] = _NOTHING,
        descriptors: Sequence[int] = (),
    ) -> None:
        self._module = module
        self._is_generator = is_generator
        self._packages = packages
        self._variables = variables
        self._descriptors = tuple(descriptors)
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: subprocess.Popen[bytes] | None = None
        self._staying: subprocess.Popen[bytes] | None = None
        self._cancelled_s: float | None = None

    def command(self) -> list[str]:
        """Return the command that starts the child."""
        return boot_command(self._module, self._packages)

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Start the child of the next run already: within the block this process may give up its rights."""
        with _started(self.command(), self._variables, self._descriptors) as process:
            self._waiting = process
            yield

    @contextlib.contextmanager
    def staying(self) -> Iterator[None]:
        """Within the block all runs are one process's."""
        with _started(self.command(), self._variables, self._descriptors) as process:
            self._staying = process
            try:
                yield
            finally:
                self._staying = None

    def run(self, order: Json, limit_ns: int, on_event: OnEvent) -> ChildResult:
        """Send ``order``, follow the events, and return its result, with the generator's own usage.

        *Errors*: EngineError when it could not run, died, or missed the deadline; errors of ``on_event``.
        """
        with self._ordered(order) as process:
            return self._watched(process, order, limit_ns, on_event)

    def run_unwatched(self, order: Json, limit_ns: int, on_event: OnEvent) -> Json:
        """As ``run``, without looking at the generator: for a run that is too short for it."""
        with self._ordered(order) as process:
            return self._follow(process, limit_ns, on_event)

    @contextlib.contextmanager
    def _ordered(self, order: Json) -> "Iterator[subprocess.Popen[bytes]]":
        """Yield the process that has the order, and is cancelled within the block."""
        self._cancelled_s = None
        with self._next() as process:
            self._process = process
            try:
                _send(process, order)
                yield process
            finally:
                self._process = None

    def _next(self) -> "contextlib.AbstractContextManager[subprocess.Popen[bytes]]":
        waiting, self._waiting = self._staying or self._waiting, None
        if waiting is not None:
            return contextlib.nullcontext(waiting)
        return _started(self.command(), self._variables, self._descriptors)

    def _watched(
        self, process: "subprocess.Popen[bytes]", order: Json, limit_ns: int, on_event: OnEvent
    ) -> ChildResult:
        with GeneratorWatch(process.pid, order["seat"]["cpus"], self._is_generator) as watch:

            def on_any_event(event: Json) -> None:
                watch.note(event)
                on_event(event)

            said = self._follow(process, limit_ns, on_any_event)
        return ChildResult(said, watch.summary())

    def cancel(self) -> None:
        """Stop the running load, from any thread."""
        process = self._process
        if process is not None and self._cancelled_s is None:
            self._cancelled_s = time.monotonic()
            process.terminate()

    def _follow(self, process: "subprocess.Popen[bytes]", limit_ns: int, on_event: OnEvent) -> Json:
        """Forward the child's events until the result comes."""
        for event in self._events(process, time.monotonic() + seconds(limit_ns)):
            match event["event"]:
                case "recording":
                    return dict(event["recording"])
                case "error":
                    raise EngineError(str(event["message"]))
                case _:
                    on_event(event)
        if process.poll() is None and self._cancelled_s is None:
            _kill(process)
            raise EngineError(
                f"the generator did not finish within {format_duration(limit_ns)} and was killed"
            )
        raise EngineError(f"the generator ended without a recording{_last_words(process)}")

    def _events(self, process: "subprocess.Popen[bytes]", deadline_s: float) -> Iterator[Json]:
        """Yield the child's lines until it ends, until the deadline, or for a while after a cancellation."""
        stdout = process.stdout
        if stdout is None:
            return
        lines = Lines(stdout.fileno())
        while (left_s := self._left_s(deadline_s)) > 0:
            yield from map(_event, lines.take(min(left_s, 0.5)))
            if lines.ended:
                process.wait(_CANCEL_S)
                return

    def _left_s(self, deadline_s: float) -> float:
        cancelled_s = self._cancelled_s
        end_s = deadline_s if cancelled_s is None else min(deadline_s, cancelled_s + _CANCEL_S)
        return end_s - time.monotonic()


def _event(line: bytes) -> Json:
    try:
        return json_object(line)
    except ValueError as error:
        raise EngineError(f"the generator said what is no event: {line[:_SHOWN_BYTES]!r}") from error


@contextlib.contextmanager
def _started(
    command: list[str], variables: Mapping[str, str], descriptors: Sequence[int]
) -> "Iterator[subprocess.Popen[bytes]]":
    """Yield a child; afterwards it is gone, whatever happened."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"LANG": "C.UTF-8", **variables},
            cwd="/",
            # Only Prony handles Ctrl-C in the terminal.
            start_new_session=True,
            pass_fds=descriptors,
        )
    except OSError as error:
        raise EngineError(f"cannot start the generator `{command[0]}`: {error.strerror}") from error
    try:
        yield process
    finally:
        if process.poll() is None:
            _kill(process)
        # Closes all three pipes.
        process.communicate()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    # One that has not taken its seat yet may be another user's: it ends with its input.
    with contextlib.suppress(PermissionError):
        process.kill()


def _send(process: "subprocess.Popen[bytes]", order: Json) -> None:
    with contextlib.suppress(BrokenPipeError):
        if process.stdin is not None:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            # Stays open: when it closes, the child knows that Prony is gone.
            process.stdin.flush()


def _last_words(process: "subprocess.Popen[bytes]") -> str:
    stderr = process.stderr
    if stderr is None or process.poll() is None:
        return ""
    said = stderr.read().decode(errors="replace").strip()
    status = process.returncode
    ending = f"killed by signal {-status}" if status < 0 else f"status {status}"
    return f" ({ending}): {said.splitlines()[-1]}" if said else f" ({ending})"


# --- what a generator itself uses -------------------------------------------------------------------------


_ROLE = "generator"


class GeneratorWatch:
    """Samples the processes of a generator twice a second: ``pid`` and its descendants. A context manager.

    ``with_root``: whether the process ``pid`` itself is the generator, or only starts it.
    """

    def __init__(self, pid: int, cpus: Sequence[int], with_root: bool) -> None:
        source = CompiledSource(pid, with_root)
        rules = (RoleRule(_ROLE), RoleRule(_ROLE, "child"))
        self._monitor = ProcessMonitor(source, {pid: rules}, _on(cpus))

    def note(self, event: Json) -> None:
        """Follow the phases of a run by its events."""
        match event["event"]:
            case "started":
                self._monitor.enter(Phase.WARMUP)
            case "window_open":
                self._monitor.open_window()
            case "window_close":
                self._monitor.close_window()

    def summary(self) -> GeneratorProcesses:
        """Return the figures of the window."""
        return usage_of(self._monitor.samples(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))

    def __enter__(self) -> Self:
        """Start."""
        self._monitor.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._monitor.stop()


def usage_of(samples: Sequence[Sample], memory_bytes: int) -> GeneratorProcesses:
    """Return CPU and memory of all processes in ``samples`` over the window; None: too few samples.

    *Definition*: ``cpu_percent``: as of a subject, 100 = one core. ``rss_mean_bytes``: the mean over the
    samples of the sum over the processes; ``memory_ratio``: that / ``memory_bytes``, the machine's.
    *Assumptions*: pages that processes share count in each of them; ``pss_end_bytes`` divides them.
    """
    window = window_samples(samples)
    cores = cpu_share(window)
    sums = [sum(process.rss_bytes for process in sample.processes) for sample in window]
    mean = sum(sums) / len(sums) if sums else None
    return GeneratorProcesses(
        samples=len(window),
        cpu_percent=None if isinstance(cores, Missing) else 100 * cores,
        rss_mean_bytes=mean,
        rss_peak_bytes=max(sums, default=None),
        pss_end_bytes=_pss(window),
        memory_ratio=None if mean is None else mean / memory_bytes,
        processes_max=max((len(sample.processes) for sample in window), default=None),
        threads_max=max((sum(row.threads for row in sample.processes) for sample in window), default=None),
    )


def _pss(window: Sequence[Sample]) -> int | None:
    known = [row.pss_bytes for row in window[-1].processes] if window else []
    return sum(value or 0 for value in known) if known and None not in known else None


def _on(cpus: Sequence[int]) -> Placement:
    return Placement(server_cpus=(), generator_cpus=tuple(cpus))
