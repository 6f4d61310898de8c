"""Which namespaces are available on this machine, tested in a copy of the supervisor.

Standard library only: the supervisor imports it. Must not know what runs in them.

>>> sorted(probe_namespaces())
['network', 'pids']
"""

import json
import os
from collections.abc import Callable
from typing import Any, NoReturn

from prony.sandbox import linux
from prony.sandbox.spawn import report_failure

__all__ = ["probe_namespaces"]


def probe_namespaces() -> dict[str, Any]:
    """Return, for each kind of namespace, null when it is available, else the reason."""

    def own_network() -> None:
        linux.unshare(linux.NEW_NETWORK)
        linux.raise_loopback()

    return {"network": _try_in_child(own_network), "pids": _try_in_child(_try_pids)}


def _try_pids() -> None:
    linux.unshare(linux.NEW_PIDS)
    reason = _try_in_child(linux.mount_own_proc)
    if reason is not None:
        raise OSError(reason)


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
