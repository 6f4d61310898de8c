"""Prony's side of a supervisor: starts it, sends it lines, remembers its answers.

>>> Supervisor.command()[1:3]
['-I', '-S']
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import prony
from prony.core.errors import HostError
from prony.core.lines import Lines, json_object
from prony.core.units import seconds
from prony.model.json_codec import Json
from prony.model.launch import StopRule

# Isolated (-I) and without site (-S): neither the caller's environment nor installed packages change the
# supervisor, and it starts quickly.
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from prony.sandbox.supervisor import main; sys.exit(main())"
)
# In addition to the subject's own time to stop: time to kill what is left, on a busy machine.
_SPARE_S = 20.0


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a subject ended.

    ``ended``: its main process exited by itself; ``leftovers``: the number of processes that had to be
    killed; ``left``: the number that could not be killed.
    """

    how: Literal["ended", "killed"]
    seconds: float
    leftovers: int = 0
    left: int = 0


class SupervisorGoneError(HostError):
    """A supervisor ended without a word: somebody, or the kernel, has killed it."""


class Supervisor:
    """A running supervisor. It ends when its stdin closes, and so with this process."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._lines = None if process.stdout is None else Lines(process.stdout.fileno())
        self._events: dict[str, Json] = {}
        self._ended = False
        # One thread may wait for the subject's end while another one stops it.
        self._lock = threading.RLock()

    @staticmethod
    def command() -> list[str]:
        """Return the command that starts a supervisor, wherever Prony is installed."""
        return [sys.executable, "-I", "-S", "-c", _BOOT, str(Path(prony.__file__).parent.parent)]

    @classmethod
    def start(cls, order: Json, descriptors: Sequence[int] = ()) -> "Supervisor":
        """Start a supervisor, which inherits the ``descriptors`` that its order names, and give it the order.

        *Errors*: HostError when it cannot be started.
        """
        supervisor = cls.spawn(cls.command(), {"LANG": "C.UTF-8"}, descriptors=descriptors)
        supervisor.give(order)
        return supervisor

    @classmethod
    def spawn(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str | Path = "/",
        descriptors: Sequence[int] = (),
    ) -> "Supervisor":
        """Start a supervisor, which waits for its order, by a command that forwards its input and output.

        *Errors*: HostError when it cannot be started.
        """
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=folder,
                pass_fds=descriptors,
                # Only Prony handles Ctrl-C in the terminal.
                start_new_session=True,
            )
        except OSError as error:
            raise HostError(f"cannot start the supervisor `{command[0]}`: {error.strerror}") from error
        return cls(process)

    def give(self, order: Json) -> None:
        """Give it its order."""
        self._send(order)

    @property
    def pid(self) -> int:
        """The supervisor's process."""
        return self._process.pid

    def is_gone(self) -> bool:
        """Return whether it has ended, and with it all its descendants."""
        with self._lock:
            self._receive(0)
            return self._ended

    def seen(self, *names: str) -> Json | None:
        """Return the first of these events that it has sent so far; None when none."""
        with self._lock:
            self._receive(0)
            return next((self._events[name] for name in names if name in self._events), None)

    def wait_for(self, *names: str, timeout_s: float) -> Json:
        """Wait for the first of these events and return it.

        *Errors*: HostError when the supervisor ends or the time is over; SupervisorGoneError.
        """
        deadline_s = time.monotonic() + timeout_s
        while True:
            with self._lock:
                found = next((self._events[name] for name in names if name in self._events), None)
                if found is not None:
                    return found
                left_s = deadline_s - time.monotonic()
                if self._ended:
                    raise self._ending()
                if left_s <= 0:
                    raise HostError(f"the supervisor did not answer within {timeout_s:g} s")
                self._receive(min(left_s, 0.2))

    def ask_for_log(self) -> Json | None:
        """Return the current log; None when the supervisor has ended without sending one."""
        with self._lock:
            if not self._ended and "ended" not in self._events:
                self._events.pop("log", None)
                self._send({"log": True})
            try:
                return self.wait_for("log", timeout_s=_SPARE_S)
            except HostError:
                return None

    def stop(self, rules: Sequence[StopRule]) -> StopReport:
        """Stop the subject, then the supervisor; if the supervisor does not obey, kill it with the subject.

        ``rules``: one for each process of the order.
        """
        started_s = time.monotonic()
        self._send(
            {"stop": [{"signal": rule.signal, "timeout_s": seconds(rule.timeout_ns)} for rule in rules]}
        )
        timeout_s = seconds(sum(rule.timeout_ns for rule in rules))
        try:
            ended = self.wait_for("ended", timeout_s=timeout_s + _SPARE_S)
        except HostError:
            self.kill()
            return StopReport("killed", time.monotonic() - started_s)
        self._close()
        how: Literal["ended", "killed"] = "ended" if ended["how"] == "ended" else "killed"
        return StopReport(how, float(ended["seconds"]), int(ended["killed"]), int(ended["left"]))

    def kill(self) -> None:
        """Stop the supervisor and all its descendants, by force if necessary."""
        if self._process.stdin is not None:
            # Closing its stdin is the order to kill everything.
            self._close_stdin()
        try:
            self._process.wait(_SPARE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._close()

    def _close(self) -> None:
        self._close_stdin()
        try:
            self._process.wait(_SPARE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with self._lock:
            self._receive(0)
            self._ended = True
            for stream in (self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()

    def _close_stdin(self) -> None:
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
        except BrokenPipeError:
            pass

    def _send(self, command: Json) -> None:
        try:
            if self._process.stdin is not None and not self._process.stdin.closed:
                self._process.stdin.write(json.dumps(command).encode() + b"\n")
                self._process.stdin.flush()
        except BrokenPipeError:
            # It is gone: the code that waits for its answer will notice.
            pass

    def _receive(self, timeout_s: float) -> None:
        """Read what it has sent, waiting at most this long."""
        if self._ended or self._lines is None:
            return
        while lines := self._lines.take(timeout_s):
            for event in map(json_object, lines):
                self._events[event["event"]] = event
            timeout_s = 0
        self._ended = self._lines.ended

    def _ending(self) -> HostError:
        stderr = self._process.stderr
        said = (
            stderr.read().decode(errors="replace").strip() if stderr is not None and not stderr.closed else ""
        )
        if not said:
            return SupervisorGoneError("a supervisor of Prony's was killed")
        return HostError(f"the supervisor ended: {said.splitlines()[-1]}")
