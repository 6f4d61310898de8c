"""Stacks of a server's Python threads, from the opening of a window to its close, by py-spy.

It is installed with Prony; else the one on PATH is taken.

It stops the process for each sample: this belongs into a trial of its own. Counters,
over at most four processes: ``gil.looks``, and of these ``gil.held``: some thread had the lock.

*Source*: py-spy's manual, `record --gil --format raw`: a line for each stack, with the number of its samples.

>>> PythonStacks(tuple).texts()
{}

>>> samples_in("<module> (app.py:1);work (app.py:9) 41\\nmain (b.py:3) 1\\n\\n")
42
"""

import resource
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from prony.core.temporary import temporary_folder
from prony.core.trees import content
from prony.core.units import GIB, MIB

RATE_HZ = 100
"""Looks at a process a second."""
_PROGRAM = "py-spy"
MOST_PROCESSES = 4
"""Of a server, that are sampled."""
# A hundred times what a server's stacks take; names in them are the server's own choice.
_MOST_BYTES = 16 * MIB
# The sampler keeps each stack that differs until it ends; it needs 40 MiB and the server's programs.
_MOST_MEMORY_BYTES = GIB
_TIMEOUT_S = 20.0
_WHO_MAY = "root may read the server's memory, and its user after `sysctl kernel.yama.ptrace_scope=0`"


@dataclass(slots=True)
class _Recorder:
    """One program that samples one process into a file."""

    process: int
    program: subprocess.Popen[bytes]
    file: Path
    began_s: float


class PythonStacks:
    """Lets ``program`` sample the processes that ``serving`` returns, at most four; found by its name, if it
    is there. ``options``: more of its options.

    ``reason``: why there are none; ``looked_s``: how long the processes were sampled, together.
    """

    def __init__(self, serving: Callable[[], Sequence[int]], *options: str, program: str = _PROGRAM) -> None:
        self._serving, self._options, self._program = serving, options, program
        self._folder = ExitStack()
        self._recorders: list[_Recorder] = []
        self._texts: dict[int, str] = {}
        self.looked_s = 0.0
        self.reason = "no process of the server was sampled in the window"

    def open_window(self) -> None:
        """Begin to sample."""
        found = shutil.which(self._program, path=sysconfig.get_path("scripts")) or shutil.which(self._program)
        if found is None:
            self.reason = f"`{self._program}` is not installed (pip install {self._program})"
            return
        folder = self._folder.enter_context(temporary_folder("stacks"))
        for process in self._serving()[:MOST_PROCESSES]:
            self._recorders.append(self._started(found, process, folder / str(process)))

    def close_window(self) -> None:
        """Stop sampling, and read what was sampled; a second call does nothing."""
        recorders, self._recorders = self._recorders, []
        for one in recorders:
            one.program.send_signal(signal.SIGINT)
        for one in recorders:
            self._read(one)
        self._folder.close()

    def texts(self) -> dict[int, str]:
        """Return, of each process that could be sampled, a line for each stack, with how often it was."""
        return dict(self._texts)

    def _started(self, program: str, process: int, file: Path) -> _Recorder:
        words = [program, "record", "--pid", str(process), "--format", "raw", "--output", str(file)]
        words += ["--rate", str(RATE_HZ), "--duration", "unlimited", *self._options]
        running = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for kind, most in (
            (resource.RLIMIT_FSIZE, 2 * _MOST_BYTES),
            (resource.RLIMIT_AS, _MOST_MEMORY_BYTES),
        ):
            with suppress(ProcessLookupError):
                resource.prlimit(running.pid, kind, (most, most))
        return _Recorder(process, running, file, time.monotonic())

    def _read(self, one: _Recorder) -> None:
        length_s, said = time.monotonic() - one.began_s, b""
        try:
            _, said = one.program.communicate(timeout=_TIMEOUT_S)
            self._texts[one.process] = content(one.file, _MOST_BYTES).decode(errors="replace")
            self.looked_s += length_s
        except subprocess.TimeoutExpired:
            one.program.kill()
            one.program.communicate()
            self.reason = f"`{self._program}` did not end"
        except OSError as error:
            self.reason = f"`{self._program}`: {_said(said or str(error).encode())}"


def _said(errors: bytes) -> str:
    lines = [one for one in errors.decode(errors="replace").splitlines() if one.strip()]
    last = lines[-1].strip() if lines else "it wrote nothing"
    return f"{last}; {_WHO_MAY}" if any("ermission" in one for one in lines) else last


# --- whether CPython's lock is held, from the opening of the window to its close --------------------------


def samples_in(text: str) -> int:
    """Return how many samples stacks have together.

    *Errors*: ValueError for another text.
    """
    return sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if line.strip())


class LockCounters:
    """Counts by ``stacks``, which are of threads that hold the lock (``--gil``)."""

    def __init__(self, stacks: PythonStacks) -> None:
        self._stacks = stacks

    def open_window(self) -> None:
        """Begin to sample."""
        self._stacks.open_window()

    def close_window(self) -> None:
        """Stop sampling."""
        self._stacks.close_window()

    def close(self) -> None:
        """Stop sampling, also in a window that was never closed."""
        self._stacks.close_window()

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the counters, or why the lock could not be sampled."""
        looks = round(self._stacks.looked_s * RATE_HZ)
        if not looks:
            return {}, {"gil.looks": self._stacks.reason}
        try:
            held = sum(map(samples_in, self._stacks.texts().values()))
        except ValueError as error:
            return {}, {"gil.looks": f"py-spy wrote something else than stacks: {error}"}
        return {"gil.looks": looks, "gil.held": min(held, looks)}, {}
