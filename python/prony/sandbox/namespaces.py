"""How a Prony of an ordinary user gets namespaces for its subjects.

Must not know subjects.

>>> gain_namespaces.__name__
'gain_namespaces'
"""

import contextlib

from prony.errors import explained
from prony.sandbox import linux


def gain_namespaces() -> None:
    """Move this process, unless root runs it, into a user namespace of its own, if the kernel allows that.

    Only there may its threads enter the networks of its subjects. Call it before any thread is started; if it
    fails, nothing changes, and the sandbox's facts have the reason.

    *Errors*: HostError as `can_isolate_networks`.
    """
    if not can_isolate_networks():
        with contextlib.suppress(OSError):
            linux.own_users()


@explained("cannot read the privileges of this process", "Prony measures only where /proc is mounted")
def can_isolate_networks() -> bool:
    """Return whether this process may enter the network namespaces that its supervisors create.

    *Errors*: HostError where the kernel shows no privileges.
    """
    return linux.may_enter_networks()
