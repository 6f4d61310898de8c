"""What the pages of this app share: faults that need no server, in either kind of interface.

Each page takes one number, `?n=`; what it means stands beside the page. Faults of the process are asked for by the
environment, before the server serves.
"""

import itertools
import os
import random
import resource
import socket
import subprocess
import tempfile
import threading
import time

DONE = b"done\n"
KIB = 1024
LINE = b"x" * 511 + b"\n"

BLOCK = 64 * KIB

_counted = itertools.count(1)
_kept = []
_began = []
_peer = []
_read = []
_reading = threading.Lock()


def number(query, default):
    return int(query[2:]) if query.startswith("n=") and query[2:].isdigit() else default


def work(us):
    """Use the CPU for so many microseconds of this thread's own time."""
    end = time.thread_time_ns() + us * 1000
    while time.thread_time_ns() < end:
        pass


def log(lines):
    """Write lines to a file, each of them to the disk at once; of none, one line to the kernel."""
    with tempfile.TemporaryFile() as file:
        for _ in range(max(lines, 1)):
            file.write(LINE)
            file.flush()
            if lines:
                os.fsync(file.fileno())


def leak(kib):
    """Keep so much memory of each request for ever."""
    _kept.append(b"\1" * (kib * KIB))


def hoard(mib):
    """Keep 4 MiB of each request, until there are so many."""
    if 4 * len(_kept) < mib:
        _kept.append(bytearray(b"\1") * (4 * KIB * KIB))


def reread(mib):
    """Read a megabyte of a file of so many, from sixteen places: without memory for all of it, from the disk."""
    with _reading:
        if not _read:
            _read.append(written(mib))
    for _ in range(16):
        os.pread(_read[0].fileno(), BLOCK, random.randrange(mib * KIB * KIB // BLOCK) * BLOCK)


def written(mib):
    """Return a file of so many megabytes that is on the disk: what lies in memory, nobody can take back."""
    if is_in_memory(tempfile.gettempdir()):
        raise OSError(f"{tempfile.gettempdir()} is in memory, not on a disk: set PRONY_CACHE to a folder on one")
    file = tempfile.TemporaryFile()
    for _ in range(mib):
        file.write(os.urandom(KIB) * KIB)
    file.flush()
    os.fsync(file.fileno())
    return file


def is_in_memory(folder):
    """Say whether the files of a folder are kept in memory; of one that is mounted nowhere, that they are not."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo") as lines:
        mounts = [line.split(" - ", 1) for line in lines]
    return any(left.split()[2] == number and right.split()[0] in ("tmpfs", "ramfs") for left, right in mounts)


def fork(_):
    """Start a program for each request."""
    subprocess.run(["/bin/true"], check=True)


def is_wrong(every):
    """Say of each so many requests that it fails."""
    return next(_counted) % every == 0


def cold(ms):
    """Work for ten milliseconds a request in the first so many milliseconds, and for one later."""
    if not _began:
        _began.append(time.monotonic())
    work(10_000 if time.monotonic() - _began[0] < ms / 1000 else 1_000)


def call(_):
    """Ask another server, over a connection of its own, which this side closes first."""
    with socket.create_connection(peer()) as other:
        other.sendall(b"?")
        other.recv(1)


def kept_call(_):
    """Ask it over a connection that is kept."""
    own = threading.current_thread().__dict__
    if "faulty" not in own:
        own["faulty"] = socket.create_connection(peer())
    own["faulty"].sendall(b"?")
    own["faulty"].recv(1)


def peer():
    """Return the address of a server that answers each byte with one: at the port that the environment names,
    or within this process.
    """
    if os.environ.get("FAULTY_PEER"):
        return "127.0.0.1", int(os.environ["FAULTY_PEER"])
    if not _peer:
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        _peer.append(listener.getsockname())
        threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    return _peer[0]


def _serve(listener):
    while True:
        taken, _ = listener.accept()
        threading.Thread(target=_answer, args=(taken,), daemon=True).start()


def _answer(taken):
    with taken:
        while taken.recv(1):
            taken.sendall(b"!")


def limit():
    """Take the limit of open files that the environment asks for."""
    descriptors = os.environ.get("FAULTY_DESCRIPTORS")
    if descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(descriptors), int(descriptors)))


def be_late():
    """Let every process but the first sleep before it serves, for as many seconds as the environment asks."""
    seconds = os.environ.get("FAULTY_LATE")
    if seconds:
        try:
            os.mkdir(os.path.join(os.environ["HOME"], "first"))
        except FileExistsError:
            time.sleep(float(seconds))


def compute():
    """Start as many threads that compute for ever as the environment asks for: they want CPython's lock."""
    for _ in range(int(os.environ.get("FAULTY_COMPUTING", "0"))):
        threading.Thread(target=_turn, daemon=True).start()


def _turn():
    while True:
        pass


def sized(kib):
    """Return a body of so many kilobytes; of none, the usual one."""
    return b"x" * (kib * KIB) if kib else DONE


EVERYWHERE = {
    "/work": (work, 200),
    "/log": (log, 1),
    "/leak": (leak, 64),
    "/hoard": (hoard, 64),
    "/reread": (reread, 64),
    "/fork": (fork, 0),
    "/cold": (cold, 3000),
    "/call": (call, 0),
    "/kept-call": (kept_call, 0),
}
