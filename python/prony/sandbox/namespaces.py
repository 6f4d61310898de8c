"""What an ordinary user's Prony does to have namespaces for its subjects.

Must not know subjects.

>>> gain_namespaces.__name__
'gain_namespaces'
"""

import contextlib

from prony.sandbox.linux import may_enter_networks, own_users

__all__ = ["gain_namespaces"]


def gain_namespaces() -> None:
    """Move this process, unless it is root's, into a user namespace of its own, where the kernel allows that.

    Only there may its threads enter the networks of its subjects. To be called before any thread is started;
    where it cannot be, nothing changes, and the sandbox's facts have the reason.
    """
    if not may_enter_networks():
        with contextlib.suppress(OSError):
            own_users()
