"""One container engine by its command line: found on PATH, and called.

Must not know what runs in a container.

>>> ContainerEngine("/usr/local/bin/docker").name
'docker'
"""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.errors import HostError

_PROGRAMS = ("docker", "podman")
_TIMEOUT_S = 60.0
# The label of Prony's containers; its value is the mark of the Prony that created them.
LABEL = "prony"


@dataclass(frozen=True, slots=True)
class ContainerEngine:
    """A container engine. ``program``: where its command is."""

    program: str

    @property
    def name(self) -> str:
        """Its name: ``docker`` or ``podman``."""
        return Path(self.program).name

    def ask(self, *arguments: str, given: bytes | None = None) -> str:
        """Return what a command of the engine prints; ``given`` is its input.

        *Errors*: HostError with the last line of its output.
        """
        try:
            done = subprocess.run(
                [self.program, *arguments],
                input=given or b"",
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HostError(f"`{self.name} {arguments[0]}`: {error}") from error
        if done.returncode:
            raise HostError(f"`{self.name} {arguments[0]}`: {_last_line(done.stderr)}")
        return done.stdout.decode().strip()

    def containers(self) -> dict[str, str]:
        """Return the marks of all containers of any Prony, by container id.

        *Errors*: HostError.
        """
        found = self.ask("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL}").split()
        template = f'{{{{index .Config.Labels "{LABEL}"}}}}'
        marks = {}
        for one in found:
            # It may have ended in the meantime.
            with contextlib.suppress(HostError):
                marks[one] = self.ask("inspect", "--format", template, one)
        return marks

    def remove(self, container: str) -> str | None:
        """Kill a container and remove it; return null when it is gone, else why not."""
        try:
            self.ask("rm", "--force", "--volumes", container)
        except HostError as error:
            # No such container: that is the goal.
            return None if "no such container" in error.message.lower() else error.message
        return None


def working_engines() -> Iterator[ContainerEngine]:
    """Yield the engines whose commands are on PATH; they may not work."""
    for name in _PROGRAMS:
        program = shutil.which(name)
        if program is not None:
            yield ContainerEngine(program)


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("Error: ").removeprefix("docker: ") if lines else "it failed silently"
