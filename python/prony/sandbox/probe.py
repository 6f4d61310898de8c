"""Which namespaces and mounts are available on this machine, tested in a copy of the supervisor.

Standard library only: the supervisor imports it. Must not know what runs in them.

>>> sorted(probe_namespaces())
['files', 'network', 'pids']
"""

import json
import os
from collections.abc import Callable
from typing import Any, NoReturn

from prony.sandbox import linux
from prony.sandbox.spawn import report_failure


def probe_namespaces() -> dict[str, Any]:
    """Return, for each kind of namespace, and for read-only files in one, null when it is available, else why
    not.
    """

    def own_network() -> None:
        linux.unshare(linux.NEW_NETWORK)
        linux.raise_loopback()

    return {
        "network": _try_in_child(own_network),
        "pids": _try_in_child(lambda: _try_in_namespace(_own_proc)),
        "files": _try_in_child(lambda: _try_in_namespace(_read_only_files)),
    }


def _try_in_namespace(action: Callable[[], None]) -> None:
    linux.unshare(linux.NEW_PIDS)
    reason = _try_in_child(action)
    if reason is not None:
        raise OSError(reason)


def _own_proc() -> None:
    linux.own_mounts()
    linux.mount_own_proc()


def _read_only_files() -> None:
    linux.unshare(linux.NEW_EXCHANGES)
    linux.own_mounts()
    linux.make_read_only(["/"])


def _try_in_child(action: Callable[[], None]) -> str | None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _run_and_exit(action, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return str(json.loads(said)["reason"]) if said else None


def _run_and_exit(action: Callable[[], None], failures: int) -> NoReturn:
    try:
        action()
    except BaseException as error:  # nothing may escape: this is a copy of the supervisor
        report_failure(failures, "probe", error)
        os._exit(1)
    os._exit(0)
