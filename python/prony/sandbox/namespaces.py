"""How a Prony of an ordinary user gets namespaces for its subjects.

Must not know subjects.

>>> gain_namespaces.__name__
'gain_namespaces'
"""

import contextlib

from prony.sandbox.linux import may_enter_networks, own_users

__all__ = ["gain_namespaces"]


def gain_namespaces() -> None:
    """Move this process, unless root runs it, into a user namespace of its own, if the kernel allows that.

    Only there may its threads enter the networks of its subjects. Call it before any thread is started; if it
    fails, nothing changes, and the sandbox's facts have the reason.
    """
    if not may_enter_networks():
        with contextlib.suppress(OSError):
            own_users()
