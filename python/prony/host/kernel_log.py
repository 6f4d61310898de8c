r"""What the kernel wrote into its log during a run: a killed process, a full table, a hot CPU.

Only the kernel's own messages; what programs write there is left out. Must not know what is measured.

*Source*: Linux, Documentation/ABI/testing/dev-kmsg.

>>> parse_message("4,17,5000000,-;nf_conntrack: table full, dropping packet\n")
KernelMessage(level=4, boot_us=5000000, text='nf_conntrack: table full, dropping packet')
>>> parse_message("12,18,5000001,-;written by a program") is None
True
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from prony.host.read import Fact, unread
from prony.model.shapes import Json

_DEVICE = Path("/dev/kmsg")
# One record (PRINTK_MESSAGE_MAX in kernel/printk/internal.h is 2 KiB, with its prefix).
_RECORD_BYTES = 8192
_KEPT = 100
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class KernelMessage:
    """One message. ``level``: 0 emergency to 7 debug (syslog(2)); ``boot_us``: microseconds since boot."""

    level: int
    boot_us: int
    text: str


def parse_message(record: str) -> KernelMessage | None:
    """Return the message of a record; null when a program wrote it.

    *Errors*: ValueError when it is not a record.
    """
    head, _, rest = record.partition(";")
    priority, _, when, *_ = head.split(",")
    facility, level = divmod(int(priority), 8)
    return KernelMessage(level, int(when), rest.partition("\n")[0][:_LONGEST]) if facility == 0 else None


def kept_of(records: Iterable[str | None]) -> Json:
    """Return the first hundred of the kernel's messages, and how many more there were.

    A null record stands for records that the kernel overwrote before they were read: it does not say how
    many.
    """
    found = list(records)
    messages = [one for record in found if record is not None and (one := parse_message(record)) is not None]
    return {
        "messages": [asdict(one) for one in messages[:_KEPT]],
        "left_out": len(messages[_KEPT:]),
        "gaps": found.count(None),
    }


class KernelLog:
    """The kernel's log from the creation of this object on."""

    def __init__(self, device: Path = _DEVICE) -> None:
        self._descriptor = -1
        self._why: str | None = None
        try:
            self._descriptor = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError as error:
            self._why = f"cannot read `{device}`: {error.strerror}"

    def since(self) -> Fact:
        """Return the messages since the creation or the last call, or why they cannot be read."""
        if self._why is not None:
            return unread(self._why)
        return kept_of(self._records())

    def _records(self) -> Iterator[str | None]:
        """Yield each record; null where the kernel has overwritten some."""
        while True:
            try:
                data = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.EPIPE:
                    raise
                yield None
                continue
            if not data:
                return
            yield data.decode(errors="replace")

    def close(self) -> None:
        """Close it; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor, self._why = -1, "it was closed"


@contextlib.contextmanager
def kernel_log_kept(keep: Callable[[Json], None]) -> Iterator[None]:
    """Watch the log within the block; however the block ends, call ``keep`` with ``{"kernel_log": ...}``."""
    log = KernelLog()
    try:
        yield
    finally:
        found = log.since()
        log.close()
        keep({"kernel_log": found})
