"""Two machines made of one. Nothing else is reached from there, so what servers need is installed before: see
``installed``.
"""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from joined_networks import joined_networks
from sshd import IS_HERE, WHY_NOT

SERVER, GENERATORS = "10.231.7.1", "10.231.7.2"
LACKING = {
    WHY_NOT: not IS_HERE,
    "needs root: networks of its own": os.geteuid() != 0,
    "iproute2 is not installed": shutil.which("ip") is None,
}


# Nothing here is about figures, so other work on the machine does not matter.
BRIEF = ("--duration", "1s", "--warmup", "300ms", "--share-cpus", "--no-calibration", "--no-html", "--force")


def installed(prony, *words):
    """Have what a run needs in Prony's cache."""
    done = prony("run", *words, *BRIEF, "--duration", "500ms", "-c", "1", "--repeats", "1", timeout_s=180)
    assert done.status == 0, done.err


def commands_with(word, folder=None):
    """Return the command lines of processes that have this word, and with ``folder`` that in a variable."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            own = folder is None or os.fsencode(folder) in (place / "environ").read_bytes()
            found += [line] if word in line and own else []
    return found


def unplug(within):
    """Cut the cable, at the end of the network in which `within` runs a command."""
    subprocess.run([*within, "ip", "link", "set", "prony-a", "down"], check=True)


@pytest.fixture
def cable():
    """Two networks with an address each; what runs a command in one of them."""
    for reason, is_lacking in LACKING.items():
        if is_lacking:
            pytest.skip(reason)
    with joined_networks(SERVER, GENERATORS) as within:
        yield within
