"""A scheduler and workers of a user's own, by Dask's commands as the guide has them, on the loopback."""

import contextlib
import os
import socket
import subprocess
import sys

from prony.core.errors import EngineError
from prony.engine.fleet import fleet_of
from prony.engine.fleet.certificates import write_certificates
from prony.engine.fleet.cluster import opened


@contextlib.contextmanager
def dask(kind, *arguments):
    """Dask's own command."""
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def secure_scheduler(place):
    """Yield the URL of a scheduler with the workers `far-0` and `far-1` and mutual TLS, and the folder of its
    certificates, in ``place``.
    """
    folder = place / "certificates"
    write_certificates(folder, 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"tls://127.0.0.1:{free.getsockname()[1]}"
    files = [
        word
        for option, name in (
            ("--tls-ca-file", "ca.pem"),
            ("--tls-cert", "certificate.pem"),
            ("--tls-key", "key.pem"),
        )
        for word in (option, str(folder / name))
    ]
    with contextlib.ExitStack() as stack:
        own_port = ("--dashboard-address", "127.0.0.1:0")
        stack.enter_context(dask("scheduler", "--protocol", "tls", "--host", url, *own_port, *files))
        for number in range(2):
            own = ("--local-directory", str(place / str(number)), "--name", f"far-{number}")
            one = ("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", *own)
            stack.enter_context(dask("worker", url, *one, *files))
        yield url, folder


def are_there(secure):
    """Return whether both workers are connected."""
    with contextlib.suppress(EngineError), opened(fleet_of(*secure)) as cluster:
        return len(cluster.names) == 2
    return False
