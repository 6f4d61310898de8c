"""One measurement at a time on one machine: two at once would disturb each other.

The claim is a socket with an abstract name (unix(7)): all users of the machine share it, it needs no file,
and the kernel removes it when the process that holds it ends. Must not know what is measured.
"""

import contextlib
import errno
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from prony.errors import HostError, explained

__all__ = ["claim_machine"]

_NAME = "\0prony-measures-here"
_LONGEST_COMMAND = 120


@contextlib.contextmanager
def claim_machine(name: str | None = None) -> Iterator[None]:
    """Claim the machine within the block; ``name`` is for tests.

    *Errors*: HostError naming the process that holds it already.
    """
    with explained("cannot claim the machine"):
        held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with held:
        try:
            held.bind(name or _NAME)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise HostError(f"cannot claim the machine: {error.strerror}") from error
            raise HostError(
                f"another Prony is measuring on this machine: {_holder(name or _NAME)}",
                hint="two measurements at once disturb each other: wait until it has finished, or stop it",
            ) from None
        held.listen(1)
        yield


def _holder(name: str) -> str:
    """Return which process holds the claim, in words."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(1)
            asked.connect(name)
            credentials = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid = struct.unpack("3i", credentials)[0]
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "it has just ended, or is not visible to this user"
    shown = "".join(letter for letter in command if letter.isprintable()).strip()
    return f"process {pid}, `{shown[:_LONGEST_COMMAND]}`"
