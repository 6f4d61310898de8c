"""What runs on this machine, seen from outside of Prony."""

import os
from pathlib import Path


def processes_of(cache: Path) -> list[tuple[int, str]]:
    """Return the processes whose program, folder or command line lies in ``cache``: all servers."""
    own = os.fsencode(str(cache.resolve()))
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                command = Path(f"/proc/{entry}/cmdline").read_bytes()
                places = [os.fsencode(os.readlink(f"/proc/{entry}/{link}")) for link in ("cwd", "exe")]  # noqa: PTH115
            except OSError:
                continue
            if any(own in text for text in (command, *places)):
                found.append((int(entry), command.replace(b"\0", b" ").decode(errors="replace")))
    return found
