"""A service of the machine that nobody here started: it descends from init."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

# A child answers, as PostgreSQL's do: each byte costs some CPU.
SERVICE = """
import os, socket, sys, time
where = sys.argv[1]
listener = socket.socket(socket.AF_INET if where.isdigit() else socket.AF_UNIX)
listener.bind(("127.0.0.1", int(where)) if where.isdigit() else where)
if not where.isdigit():
    os.chmod(where, int(sys.argv[2], 8))
listener.listen()
print(os.getpid(), flush=True)
while True:
    connection, _ = listener.accept()
    if os.fork():
        connection.close()
        continue
    while connection.recv(1):
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        connection.send(b"x")
    os._exit(0)
"""


@contextlib.contextmanager
def service(where, mode=0o600):
    """Run the service, a Unix socket with this mode, as a process of init; yield its number."""
    command = [sys.executable, "-c", SERVICE, where, oct(mode)]
    # The shell ends, so that its child becomes init's.
    line = " ".join(["exec", '"$@"', "&"])
    with subprocess.Popen(["sh", "-c", line, "sh", *command], stdout=subprocess.PIPE, text=True) as shell:
        pid = int(shell.stdout.readline())
        shell.wait()
        try:
            yield pid
        finally:
            subprocess.run(["pkill", "-KILL", "-P", str(pid)], check=False)
            os.kill(pid, signal.SIGKILL)
            shell.stdout.close()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def connected(where):
    for _ in range(100):
        one = socket.socket(socket.AF_INET if where.isdigit() else socket.AF_UNIX)
        if not one.connect_ex(("127.0.0.1", int(where)) if where.isdigit() else where):
            return one
        one.close()
        time.sleep(0.05)
    raise AssertionError(where)


@contextlib.contextmanager
def of_init(command, uid, end=signal.SIGKILL):
    """Run a program as a user's process of init, yield its number, and send it a signal at the end of the
    block.
    """
    as_user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    line = '"$@" >/dev/null 2>&1 & echo $!'
    shell = ["sh", "-c", line, "sh", *as_user, *command]
    pid = int(subprocess.run(shell, stdout=subprocess.PIPE, text=True, check=True).stdout)
    try:
        yield pid
    finally:
        os.kill(pid, end)
