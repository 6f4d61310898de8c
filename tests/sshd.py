"""An SSH server of a test's own, with keys and settings for whoever asks it."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import prony
from commands import eventually

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
IS_HERE = SSHD is not None and shutil.which("ssh") is not None
WHY_NOT = "openssh-server and openssh-client are not installed"


def key(file):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
    return file


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def ssh_server(folder, host="127.0.0.1", within=(), **variables):
    """Run it at ``host`` behind the words ``within``; ``folder/config`` is what its clients need."""
    # The other side has this Prony, wherever these tests run.
    variables["PYTHONPATH"] = Path(prony.__file__).parents[1]
    theirs = " ".join(f"{name}={value}" for name, value in variables.items())
    port, own = free_port(), key(folder / "key")
    (folder / "authorized").write_text(own.with_suffix(".pub").read_text())
    (folder / "config").write_text(
        f"Port {port}\nIdentityFile {own}\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        f"StrictHostKeyChecking yes\nUser {getpass.getuser()}\n"
    )
    public = (known := key(folder / "host")).with_suffix(".pub").read_text().split()[:2]
    (folder / "known").write_text(f"[{host}]:{port} {' '.join(public)}\n")
    (folder / "sshd").write_text(
        f"Port {port}\nListenAddress {host}\nHostKey {known}\nAuthorizedKeysFile {folder}/authorized\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\n"
        "PidFile none\nPermitRootLogin prohibit-password\n"
        f"SetEnv {theirs}\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    server = subprocess.Popen(
        [*within, SSHD, "-D", "-e", "-f", folder / "sshd"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert eventually(lambda: "Server listening" in server.stderr.readline(), timeout_s=10)
        yield port
    finally:
        # A session whose connection was cut would wait for a quarter of an hour.
        sessions = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        server.terminate()
        for one in sessions:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(one), signal.SIGKILL)
        server.communicate(timeout=10)
