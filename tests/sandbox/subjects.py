"""What the tests of the sandbox start, and how they look for what is left."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from prony.model.address import Address
from prony.model.launch import Launch
from prony.sandbox import Sandbox

# A program that any user can reach: the tests' own interpreter may lie in root's home.
PYTHON = "/usr/bin/python3" if os.geteuid() == 0 else sys.executable

SERVER = """
import http.server, sys, time
time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0)
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"Hello")
    def log_message(self, *args):
        print("got", self.path, flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Hello).serve_forever()
"""


def eventually(condition: Callable[[], bool], timeout_s: float = 5.0) -> bool:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True


def marked_processes(mark: str) -> list[int]:
    """Return the processes whose command line holds ``mark``, a word that only this test uses."""
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                command = Path(f"/proc/{entry}/cmdline").read_bytes()
                state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in command and state not in "ZX" and b"-S\0-c" not in command:
                found.append(int(entry))
    return found


def launch_script(sandbox: Sandbox, script: str, *arguments: str) -> Launch:
    port = sandbox.free_port()
    return Launch(
        (PYTHON, "script.py", str(port), *arguments),
        Address("127.0.0.1", port),
        files={"script.py": script},
    )
