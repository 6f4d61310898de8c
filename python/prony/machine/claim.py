"""One measurement at a time on one machine: two at once would disturb each other.

The claim is a socket with an abstract name (unix(7)): all users of the machine share it, it needs no file,
and the kernel removes it when the process that holds it ends. Anybody can hold such a name, so root does not
rely on it alone: it also locks a file in a folder that only root can enter, and a name that another user
holds does not stop it.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import socket
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.core.errors import HostError, explained
from prony.core.trees import beginning
from prony.core.users import user_name

_NAME = "\0prony-measures-here"
_FOLDER = Path("/run/prony")
_LONGEST_COMMAND = 120
_HINT = "two measurements at once disturb each other: wait until it has finished, or stop it"


@contextlib.contextmanager
def claim_machine(name: str | None = None) -> Iterator[tuple[str, ...]]:
    """Claim the machine within the block, and yield what the user must know; ``name`` is for tests.

    *Errors*: HostError naming the process that holds it already.
    """
    with contextlib.ExitStack() as held:
        if os.geteuid() == 0:
            held.enter_context(_locked(name or _NAME))
        yield held.enter_context(_bound(name or _NAME))


@dataclass(frozen=True, slots=True)
class _Holder:
    """The process that holds a claim. Null: it has just ended, or this user cannot see it."""

    pid: int | None
    uid: int | None = None

    def __str__(self) -> str:
        if self.pid is None:
            return "a process that has just ended, or is not visible to this user"
        try:
            command = beginning(f"/proc/{self.pid}/cmdline", _LONGEST_COMMAND * 4).replace(b"\0", b" ")
        except OSError:
            command = b""
        shown = "".join(one for one in command.decode(errors="replace") if one.isprintable()).strip()
        of = "" if self.uid is None else f" of the user `{user_name(self.uid)}`"
        return f"process {self.pid}{of}" + (f", `{shown[:_LONGEST_COMMAND]}`" if shown else "")


@contextlib.contextmanager
def _bound(name: str) -> Iterator[tuple[str, ...]]:
    with explained("cannot claim the machine"):
        own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with own:
        try:
            own.bind(name)
            own.listen(1)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise HostError(f"cannot claim the machine: {error.strerror}") from error
            holder = _holder_of(name)
            # Nobody can be named: then root's own lock alone says whether another root measures.
            if os.geteuid() != 0 or holder.uid == 0:
                raise HostError(f"another Prony is measuring on this machine: {holder}", hint=_HINT) from None
            yield (
                f"{holder} also claims to measure here; root does not wait for other users, but if it does "
                "measure, both are disturbed",
            )
            return
        yield ()


def _holder_of(name: str) -> _Holder:
    """Return who called listen() on a name, as the kernel noted it (unix(7), SO_PEERCRED)."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(1)
            asked.connect(name)
            credentials = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except ConnectionRefusedError:
        # It is bound, and nobody listens: no Prony does that for longer than a moment.
        return _Holder(*_binder_of(name))
    except OSError:
        return _Holder(None)
    pid, uid, _ = struct.unpack("3i", credentials)
    return _Holder(pid, uid)


def _binder_of(name: str) -> tuple[int | None, int | None]:
    """Return process and user that have bound a name without listening, where root can see that. It is nobody
    of root's: a line of the list may be what somebody called a socket.
    """
    shown = "@" + name[1:]
    lines = Path("/proc/net/unix").read_text(errors="replace").splitlines()
    fields = (line.split() for line in lines if line.endswith(f" {shown}"))
    inodes = {f"socket:[{found[6]}]" for found in fields if len(found) > 7}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):
            uid = folder.parent.stat().st_uid
            if uid and any(str(one.readlink()) in inodes for one in folder.iterdir()):
                return int(folder.parent.name), uid
    return None, None


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    """Hold root's own lock within the block; without one where there is no place for it."""
    file = _FOLDER / hashlib.sha256(name.encode()).hexdigest()[:16]
    try:
        _make_own_folder()
        descriptor = _opened(file)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.ENOENT, errno.EACCES, errno.EPERM):
            raise HostError(f"cannot claim the machine: `{file}`: {error.strerror}") from error
        yield
        return
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)


def _make_own_folder() -> None:
    with contextlib.suppress(FileExistsError):
        _FOLDER.mkdir(mode=0o700)
    found = _FOLDER.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o077:
        raise HostError(
            f"`{_FOLDER}` holds root's claim of the machine, and others can enter it",
            hint=f"rm -r {_FOLDER}; Prony makes it again",
        )


def _opened(file: Path) -> int:
    """Return the file, locked, as it stands in its folder: whoever held it before has removed it."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if file.exists() and os.path.samestat(os.fstat(descriptor), file.stat()):
                return descriptor
        except BlockingIOError:
            said = os.read(descriptor, 20)
            os.close(descriptor)
            holder = _Holder(int(said) if said.isdigit() else None, 0)
            raise HostError(f"another Prony is measuring on this machine: {holder}", hint=_HINT) from None
        os.close(descriptor)
