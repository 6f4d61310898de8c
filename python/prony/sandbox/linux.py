"""System calls that Python 3.11 does not offer: namespaces, mounts, process control.

The only module that uses ctypes. Standard library only: the supervisor imports it.

Standard library only.

>>> callable(unshare)
True

>>> join(())
"""

import ctypes
import errno
import fcntl
import os
import signal
import socket
import stat
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TypeVar

from prony.core.sysctl import OF_A_NAMESPACE

Result = TypeVar("Result")

# include/uapi/linux/sched.h
NEW_MOUNTS = 0x00020000
NEW_EXCHANGES = 0x08000000
NEW_USERS = 0x10000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000

# include/uapi/linux/prctl.h
_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_SET_NO_NEW_PRIVILEGES = 38

# include/uapi/linux/mount.h
_NO_SETUID, _NO_DEVICES, _NO_EXEC, _BIND, _RECURSIVE, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_MOUNT_IS_READ_ONLY = 1
# include/uapi/asm-generic/unistd.h: since Linux 5.12, with the same number on every architecture.
_MOUNT_SETATTR = 442
# include/uapi/linux/fcntl.h
_AT_WORKING_FOLDER, _AT_RECURSIVE = -100, 0x8000

# include/uapi/asm/unistd.h, include/uapi/linux/keyctl.h
_KEYCTL: Mapping[str, int] = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING = 1

# include/uapi/linux/sockios.h, if.h
_GET_INTERFACE_FLAGS, _SET_INTERFACE_FLAGS, _INTERFACE_UP = 0x8913, 0x8914, 1

_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - the places of the Filesystem Hierarchy Standard


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move the caller (for pids: its future children) into new namespaces.

    Without CAP_SYS_ADMIN, first into a user namespace of its own (`own_users`), where the kernel allows that.

    *Errors*: OSError.
    """
    if not _may_administer():
        own_users()
    _check(_libc().unshare(flags), "unshare")


def own_users() -> None:
    """Move the caller, a process of one thread, into a user namespace in which it keeps its user.

    It then has all capabilities over the namespaces that it creates, and none over the machine's; a program
    that it executes has none, because its user is not root there either.

    *Errors*: OSError, where ordinary users may not create one; the caller is then unchanged.
    *Source*: user_namespaces(7).
    """
    user, group = os.geteuid(), os.getegid()
    _require_users(user, group)
    _become_own_user(user, group)


def _require_users(user: int, group: int) -> None:
    """Try it in a child: a process whose user is not mapped in the namespace could not create files any
    more.
    """
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        number = 0
        try:
            _become_own_user(user, group)
            _check(_libc().unshare(NEW_NETWORK), "unshare")
        except OSError as error:
            number = error.errno or errno.EPERM
        os.write(there, bytes([number]))
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as answer:
        number = answer.read()[0]
    os.waitpid(pid, 0)
    if number:
        raise OSError(
            number, f"ordinary users may not create namespaces on this machine: {os.strerror(number)}"
        )


def _become_own_user(user: int, group: int) -> None:
    _check(_libc().unshare(NEW_USERS), "unshare")
    # Required: otherwise an ordinary user could drop a group that denies access.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _may_administer() -> bool:
    """Return whether the caller has CAP_SYS_ADMIN, bit 21 of its capabilities, in its user namespace."""
    status = Path("/proc/thread-self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> 21 & 1)


def may_enter_networks() -> bool:
    """Return whether this process may enter the network namespaces that its supervisors create."""
    return _may_administer()


def enter_network(namespace: str) -> None:
    """Move the calling thread into the network namespace that a file such as ``/proc/7/ns/net`` names.

    A process of one thread without the capability first enters the user namespace of the same process: its
    creator has all capabilities in it.

    *Errors*: OSError.
    """
    if not _may_administer():
        _enter(namespace.removesuffix("net") + "user", NEW_USERS)
    _enter(namespace, NEW_NETWORK)


def _enter(namespace: str, kind: int) -> None:
    descriptor = os.open(namespace, os.O_RDONLY)
    try:
        _check(_libc().setns(descriptor, kind), "setns")
    finally:
        os.close(descriptor)


def in_network(namespace: str | None, function: Callable[[], Result]) -> Result:
    """Run ``function`` in a network namespace and return its result; None: in the caller's.

    It runs in a thread of its own, because a thread may lack the privileges to return. Sockets that are
    created there stay in that namespace. Exceptions are raised in the caller.
    """
    if namespace is None:
        return function()
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            enter_network(namespace)
            results.append(function())
        except BaseException as error:  # carried over to the caller's thread
            failures.append(error)

    thread = Thread(target=run, name="prony-in-network")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def die_with_parent(with_signal: int = signal.SIGKILL) -> None:
    """Ask the kernel for a signal when the thread that started this process ends.

    A change of user clears this: call it afterwards.
    """
    _check(_libc().prctl(_SET_PARENT_DEATH_SIGNAL, int(with_signal), 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def become_subreaper() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _check(_libc().prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def forbid_new_privileges() -> None:
    """Disable the effect of set-user-id programs for the caller and its children."""
    _check(_libc().prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def own_keys() -> None:
    """Leave the caller's session keyring: whoever inherits it can read what others keep there.

    Nothing is done on an architecture whose number for the call is not known, and where the kernel offers no
    keys.

    *Errors*: OSError. *Source*: session-keyring(7).
    """
    number = _KEYCTL.get(os.uname().machine)
    if number is None:
        return
    done = _libc().syscall(ctypes.c_long(number), ctypes.c_int(_JOIN_SESSION_KEYRING), None)
    if done < 0 and ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):
        raise OSError(ctypes.get_errno(), f"keyctl: {os.strerror(ctypes.get_errno())}")


def own_mounts() -> None:
    """Move the caller into a mount namespace of its own, which no longer hears of the others' mounts.

    *Errors*: OSError.
    """
    unshare(NEW_MOUNTS)
    _check(_libc().mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "mount --make-rprivate /")


def make_read_only(folders: Sequence[str], but: Sequence[str] = ()) -> None:
    """Make these folders with all below read-only in the caller's own mount namespace; ``but`` some in them.

    A process without privileges cannot undo that, nor in further namespaces: its mounts are locked there.

    *Errors*: OSError, ENOSYS before Linux 5.12. *Source*: mount_setattr(2), mount_namespaces(7).
    """
    for path in (*but, *(folder for folder in folders if folder != "/")):
        bind(path, path)
    for path in folders:
        _set_mount(path, _AT_RECURSIVE, set_=_MOUNT_IS_READ_ONLY)
    for path in but:
        _set_mount(path, 0, clear=_MOUNT_IS_READ_ONLY)


def mount_own_temporary_folders(folder: str, shown: Sequence[str]) -> None:
    """Mount ``folder``, which anybody may write, as /tmp and /var/tmp of the caller's mount namespace.

    ``shown``: what of the old /tmp and /var/tmp stays there, by paths.

    *Errors*: OSError.
    """
    kept = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in shown if Path(path).exists()}
    own = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    for place in _TEMPORARY:
        if Path(place).is_dir():
            bind(f"/proc/self/fd/{own}", place)
    os.close(own)
    for path, descriptor in kept.items():
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            Path(path).mkdir(exist_ok=True)
        else:
            Path(path).touch()
        bind(f"/proc/self/fd/{descriptor}", path)
        os.close(descriptor)


def hide(paths: Sequence[str]) -> None:
    """Let these files and folders be empty in the caller's own mount namespace, whatever is in them.

    *Errors*: OSError.
    """
    for path in paths:
        if Path(path).is_dir():
            flags = _NO_SETUID | _NO_DEVICES | _NO_EXEC | _MOUNT_IS_READ_ONLY
            done = _libc().mount(b"tmpfs", os.fsencode(path), b"tmpfs", flags, b"mode=555,size=4k")
            _check(done, f"mount {path}")
        elif Path(path).exists():
            bind(os.devnull, path)


def mount_overlay(folder: str, upper: str, work: str) -> None:
    """Cover ``folder`` in the caller's own mount namespace: what is written there goes to ``upper``.

    ``work``: an empty folder beside it.

    *Errors*: OSError. *Source*: Documentation/filesystems/overlayfs.rst: `metacopy` needs privileges, and
    without them, since Linux 5.11, `userxattr`.
    """
    named = zip(("lowerdir", "upperdir", "workdir"), (folder, upper, work), strict=True)
    options = ",".join(f"{name}={_escaped_option(path)}" for name, path in named)
    for more in ("metacopy=on", "userxattr"):
        data = os.fsencode(f"{options},{more}")
        done = _libc().mount(b"overlay", os.fsencode(folder), b"overlay", _NO_DEVICES, data)
        if done == 0:
            return
    _check(done, f"mount -t overlay {folder}")


def _escaped_option(path: str) -> str:
    for mark in ("\\", ",", ":"):
        path = path.replace(mark, f"\\{mark}")
    return path


def bind(source: str, target: str) -> None:
    """Mount the folder or file ``source`` at ``target`` too. *Errors*: OSError."""
    done = _libc().mount(os.fsencode(source), os.fsencode(target), None, _BIND | _RECURSIVE, None)
    _check(done, f"mount --rbind {target}")


def _set_mount(path: str, flags: int, *, set_: int = 0, clear: int = 0) -> None:
    attributes = struct.pack("QQQQ", set_, clear, 0, 0)
    syscall = _libc().syscall
    syscall.restype = ctypes.c_long
    done = syscall(
        *(ctypes.c_long(_MOUNT_SETATTR), ctypes.c_int(_AT_WORKING_FOLDER), os.fsencode(path)),
        *(ctypes.c_uint(flags), attributes, ctypes.c_size_t(len(attributes))),
    )
    _check(done, f"mount_setattr {path}")


def mount_own_proc() -> None:
    """Mount the /proc of the caller's PID namespace in its own mount namespace.

    *Errors*: OSError, EPERM without CAP_SYS_ADMIN or where a container's /proc is masked.
    """
    flags = _NO_SETUID | _NO_DEVICES | _NO_EXEC
    _check(_libc().mount(b"proc", b"/proc", b"proc", flags, None), "mount /proc")


def mount_own_shared_memory(size_bytes: int | None = None) -> None:
    """Mount a /dev/shm for the caller's mount namespace alone; it disappears with the last process in it.

    ``size_bytes``: the most that it holds; None: the kernel's default, half of the memory.

    In the host's /dev/shm the semaphores and segments of a killed server would stay (shm_overview(7)).

    *Errors*: OSError, EPERM without CAP_SYS_ADMIN.
    """
    if Path("/dev/shm").is_dir():  # noqa: S108 - the place that the C library uses
        flags = _NO_SETUID | _NO_DEVICES
        options = b"mode=1777" + (b"" if size_bytes is None else f",size={size_bytes}".encode())
        _check(_libc().mount(b"tmpfs", b"/dev/shm", b"tmpfs", flags, options), "mount /dev/shm")


def mount_own_terminals() -> None:
    """Mount a /dev/pts without terminals for the caller's mount namespace alone: in the host's its user reads
    what is typed into that user's other windows.

    *Errors*: OSError, EPERM without CAP_SYS_ADMIN.
    """
    if Path("/dev/pts").is_dir():
        options = b"newinstance,ptmxmode=0666,mode=620"
        done = _libc().mount(b"devpts", b"/dev/pts", b"devpts", _NO_SETUID | _NO_EXEC, options)
        _check(done, "mount /dev/pts")


def raise_loopback() -> None:
    """Bring the interface ``lo`` of the current network namespace up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(control, _GET_INTERFACE_FLAGS, request))[1]
        fcntl.ioctl(control, _SET_INTERFACE_FLAGS, struct.pack("16sH14x", b"lo", flags | _INTERFACE_UP))


def read_network_settings() -> dict[str, str]:
    """Return the settings that decide how a server behaves under load; a new namespace starts without the
    host's values.
    """
    found = {}
    for name in OF_A_NAMESPACE:
        try:
            found[name] = _setting(name).read_text().strip()
        except OSError:
            continue
    return found


def write_network_settings(wanted: Mapping[str, str]) -> list[str]:
    """Apply these settings to the current network namespace; return the names of those that it refused."""
    refused = []
    for name, value in wanted.items():
        path = _setting(name)
        try:
            if path.read_text().strip() != value:
                path.write_text(value)
                # The kernel takes some values without keeping them.
                refused += [name] if path.read_text().strip() != value else []
        except OSError:
            refused.append(name)
    return refused


def _setting(name: str) -> Path:
    return Path("/proc/sys", *name.split("."))


# --- how a process enters a group -------------------------------------------------------------------------


def join(paths: Iterable[str]) -> None:
    """Move the calling process into the group that these files (``Group.join_paths``) stand for.

    Call it before dropping privileges, and before setting the CPU affinity: up to Linux 6.1 entering a CPU
    set resets the affinity.

    *Errors*: OSError; the process may then be in some of the group's hierarchies and should exit.
    """
    for path in paths:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            # 0 means the writing process, in any PID namespace (cgroup v2: "Processes").
            os.write(descriptor, b"0")
        finally:
            os.close(descriptor)
