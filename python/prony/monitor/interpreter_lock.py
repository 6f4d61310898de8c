"""Whether CPython's lock is held, from the opening of the window to its close: by py-spy, if that is there.

It stops the process for each sample: this belongs into a trial of its own. Must not know figures. Counters,
over at most four processes: ``gil.looks``, and of these ``gil.held``: some thread had the lock.

*Source*: py-spy's manual, `record --gil --format raw`: a line for each stack, with the number of its samples.

>>> samples_in("<module> (app.py:1);work (app.py:9) 41\\nmain (b.py:3) 1\\n\\n")
42
"""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = "py-spy"
_RATE_HZ = 100
_MOST_PROCESSES = 4
_TIMEOUT_S = 20.0


def samples_in(text: str) -> int:
    """Return how many samples stacks have together.

    *Errors*: ValueError for another text.
    """
    return sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if line.strip())


@dataclass(slots=True)
class _Recorder:
    """One program that samples one process into a file."""

    program: subprocess.Popen[bytes]
    file: Path
    began_s: float


class LockCounters:
    """Lets ``program`` sample the processes that ``serving`` returns; found by its name, if it is there."""

    def __init__(self, serving: Callable[[], Sequence[int]], program: str = _PROGRAM) -> None:
        self._serving, self._program = serving, program
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._recorders: list[_Recorder] = []
        self._looks = self._held = 0
        self._reason = "no process of the server was sampled in the window"

    def open_window(self) -> None:
        """Begin to sample."""
        found = shutil.which(self._program)
        if found is None:
            self._reason = f"`{self._program}` is not installed (pip install {self._program})"
            return
        self._folder = tempfile.TemporaryDirectory(prefix="prony-gil-")
        for process in self._serving()[:_MOST_PROCESSES]:
            self._recorders.append(_started(found, process, Path(self._folder.name) / str(process)))

    def close_window(self) -> None:
        """Stop sampling, and count."""
        recorders, self._recorders = self._recorders, []
        for one in recorders:
            one.program.send_signal(signal.SIGINT)
        for one in recorders:
            self._count(one)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def close(self) -> None:
        """Stop sampling, also in a window that was never closed."""
        self.close_window()

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the counters, or why the lock could not be sampled."""
        if not self._looks:
            return {}, {"gil.looks": self._reason}
        return {"gil.looks": self._looks, "gil.held": min(self._held, self._looks)}, {}

    def _count(self, one: _Recorder) -> None:
        length_s, said = time.monotonic() - one.began_s, b""
        try:
            _, said = one.program.communicate(timeout=_TIMEOUT_S)
            held = samples_in(one.file.read_text())
        except subprocess.TimeoutExpired:
            one.program.kill()
            one.program.communicate()
            self._reason = f"`{self._program}` did not end"
        except (OSError, ValueError):
            lines = said.decode(errors="replace").strip().splitlines()
            self._reason = f"`{self._program}`: {lines[-1] if lines else 'it wrote nothing'}"
        else:
            self._looks += round(length_s * _RATE_HZ)
            self._held += held


def _started(program: str, process: int, file: Path) -> _Recorder:
    words = [program, "record", "--pid", str(process), "--gil", "--format", "raw", "--output", str(file)]
    words += ["--rate", str(_RATE_HZ), "--duration", "unlimited"]
    running = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    return _Recorder(running, file, time.monotonic())
