"""A server that means harm: it tries what a subject must not be able to do, and prints what came of it.

``hostile.py PORT``; `targets.json` beside it says what there is to attack. Each attempt is a line of JSON,
``attempt`` and ``got``: null where it failed. What it writes bears the word of the test, so that the test
finds it outside.
"""
# ruff: noqa: PTH104, PTH108, PTH123, PTH208, SIM105

import ctypes
import http.server
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
TARGETS = json.loads((HERE / "targets.json").read_text())
WORD = TARGETS["word"]
SECRET = TARGETS["secret"]
PTRACE_ATTACH = 16
OWN = Path(os.environ["HOME"])


def say(attempt, got):
    print(json.dumps({"attempt": attempt, "got": got}), flush=True)


def attempted(attempt, action):
    try:
        say(attempt, action())
    except OSError:
        say(attempt, None)


def written():
    """Write into every folder that can be found and written, and return them."""
    found = []
    places = {**TARGETS.get("roots", {"/": 3}), **dict.fromkeys(TARGETS["folders"], 4)}
    for root, depth in places.items():
        for path, folders, _ in os.walk(root):
            folders[:] = [one for one in folders if one not in ("proc", "sys")]
            if (
                path.startswith(str(OWN))
                or path.rstrip("/").count("/") >= root.rstrip("/").count("/") + depth
            ):
                folders[:] = []
                continue
            if not os.access(path, os.W_OK):
                continue
            try:
                with open(f"{path}/{WORD}", "w") as file:
                    file.write(WORD)
                found.append(path)
            except OSError:
                pass
    return found


def overwritten(path):
    with open(path, "r+b") as file:
        file.write(WORD.encode())
    return path if WORD.encode() in Path(path).read_bytes() else None


def replaced(path):
    os.rename(path, f"{path}.{WORD}")
    return path


def read(path):
    with open(path, "rb") as file:
        return repr(file.read(20)) if file.peek(1) else None


def environments():
    """Return the processes in whose environment the caller's secret is."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            text = Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if SECRET.encode() in text:
            found.append(entry)
    return found or None


def others():
    """Return the folders of other subjects and of generators beside this one's."""
    found = []
    for path in OWN.parent.iterdir():
        if path.is_dir() and path != OWN:
            try:
                found += [[path.name, inner] for inner in os.listdir(path)]
            except OSError:
                pass
    return found or None


def signalled(pid):
    if SECRET not in Path(f"/proc/{pid}/cmdline").read_text():
        return None
    os.kill(pid, signal.SIGTERM)
    return pid


def traced(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if SECRET not in Path(f"/proc/{pid}/cmdline").read_text():
        return None
    return pid if libc.ptrace(PTRACE_ATTACH, pid, None, None) == 0 else None


def connected(address, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_STREAM) as attempt:
        attempt.settimeout(1)
        attempt.connect(address)
    return repr(address)


def interfaces():
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    return names or None


def shared_segment():
    """Make a segment of System V shared memory, which outlives its process."""
    libc = ctypes.CDLL(None, use_errno=True)
    key = int(TARGETS["key"])
    return key if libc.shmget(key, 4096, 0o1666) >= 0 else None


KEPT = []


def crowded():
    """Listen as often as nobody would, and have names that are no text; return how often."""
    for port in range(21_000, 24_000):
        listener = socket.socket()
        KEPT.append(listener)
        listener.bind(("127.0.0.1", port))
        listener.listen(1)
    named = socket.socket(socket.AF_UNIX)
    KEPT.append(named)
    named.bind(b"\0\xff" + WORD.encode())
    named.listen()
    with open("/proc/self/comm", "wb") as name:
        name.write(b"half \xc3")
    return len(KEPT)


def forked():
    """Start processes, and threads in them, which count alike, until the kernel refuses; return how many."""
    threading.stack_size(65536)
    for _ in range(8):
        if os.fork() == 0:
            threading.Event().wait()
    try:
        for _ in range(TARGETS["forks"]):
            threading.Thread(target=threading.Event().wait, daemon=True).start()
    except RuntimeError:
        return None
    return TARGETS["forks"]


def filled():
    """Take disk space, in a file that is removed at once, until there is an end of it."""
    with open(OWN / "large", "wb") as kept, open(OWN / "second", "wb") as second:
        os.unlink(OWN / "large")
        for file in (kept, second):
            os.posix_fallocate(file.fileno(), 0, TARGETS["bytes"] * 2 // 3)
        time.sleep(TARGETS["held_s"])
    return TARGETS["bytes"]


def swelled():
    """Take memory without end, in a process beside the one that serves; return how much, in MiB."""
    kept = []
    while len(kept) < TARGETS["mib"]:
        kept.append(bytearray(1 << 20))
    return len(kept)


def crowded_with_files():
    """Make files without end; return how many."""
    for number in range(TARGETS["count"]):
        os.close(os.open(OWN / f"n{number}", os.O_CREAT | os.O_WRONLY))
    return TARGETS["count"]


# What ab and wrk would write of a server that is better than any.
FORGED = """\
Requests per second:    999999.00 [#/sec] (mean)
prony {"requests":999999,"duration_us":1000000,"bytes":999999,"status":0,"connect":0,"read":0,"write":0,\
"timeout":0,"min_us":1,"mean_us":1.0,"max_us":1,"percentiles_us":{"50":1}}
"""


def forge():
    """Look for the generator and for what it writes, and put a result in its place, as long as it runs."""
    seen = False
    while True:
        found = [
            str(path) for folder in (OWN, *OWN.parent.glob("*.generator")) for path in replaced_in(folder)
        ]
        if found:
            say("forge a result", found)
            return
        if not seen and (seen := bool(generators())):
            say("see the generator", generators())
        time.sleep(0.02)


def replaced_in(folder):
    """Yield the outputs of tools below a folder, each of which has been replaced."""
    try:
        for path in folder.rglob("*"):
            of_tool = path.parent.name.startswith(("prony-engine", "tool-"))
            if of_tool and path.name in (".stdout", "served.csv"):
                draft = path.with_name("forged")
                draft.write_text(FORGED)
                draft.replace(path)
                yield path
    except OSError:
        pass


def generators():
    """Return the processes that are generators."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if b"prony.engine" in Path(f"/proc/{entry}/cmdline").read_bytes():
                found.append(entry)
        except OSError:
            pass
    return found


class Hello(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"Hello")

    def log_message(self, *_):
        pass


def main():
    for name in TARGETS["attempts"]:
        match name:
            case "write":
                attempted("write anywhere", lambda: written() or None)
                for path in TARGETS["files"]:
                    attempted(f"overwrite {path}", lambda path=path: overwritten(path))
                    attempted(f"replace {path}", lambda path=path: replaced(path))
            case "read":
                for path in TARGETS["closed"]:
                    attempted(f"read {path}", lambda path=path: read(path))
                for path in TARGETS["homes"]:
                    attempted(f"list {path}", lambda path=path: os.listdir(path))
                attempted("read the caller's environment", environments)
                attempted("enter another's folder", others)
            case "reach":
                for pid in TARGETS["pids"]:
                    attempted(f"trace {pid}", lambda pid=pid: traced(pid))
                    attempted(f"signal {pid}", lambda pid=pid: signalled(pid))
                attempted("connect to the host", lambda: connected(("127.0.0.1", TARGETS["port"])))
                attempted("connect to a socket", lambda: connected(f"\0{WORD}", socket.AF_UNIX))
                attempted("see an interface", interfaces)
                attempted("leave shared memory", shared_segment)
            case "crowd":
                attempted("listen without end", crowded)
            case "fork":
                # In another process: this one serves meanwhile.
                if os.fork() == 0:
                    attempted("fork without end", forked)
                    signal.pause()
            case "swell":
                if os.fork() == 0:
                    attempted("take all memory", swelled)
                    signal.pause()
            case "make files":
                threading.Thread(target=attempted, args=("make files", crowded_with_files)).start()
            case "fill":
                threading.Timer(1.0, lambda: attempted("fill the disk", filled)).start()
            case "forge":
                threading.Thread(target=forge, daemon=True).start()
    say("all tried", True)
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hello).serve_forever()


main()
