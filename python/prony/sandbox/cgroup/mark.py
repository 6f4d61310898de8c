"""The name of Prony's subtree, which identifies the Prony that owns it.

``prony-<boot>-<pid>-<start>-<namespace>``: PIDs are reused, but not together with a start time within one
boot; both are valid only in their PID namespace. Must not know cgroups.

>>> mark = Mark(Identity(7, 123, "0e6f1d4c-5a3b-4c2d-9e8f-7a6b5c4d3e2f"), 4026531836)
>>> str(mark)
'prony-0e6f1d4c5a3b4c2d9e8f7a6b5c4d3e2f-7-123-4026531836'
>>> parse_mark(str(mark)) == mark, parse_mark("prony-7")
(True, None)
"""

import os
import re
import uuid
from pathlib import Path
from typing import NamedTuple

from prony.sandbox.identity import Identity, boot_id, identify, pid_namespace

_NAME = re.compile(r"prony-([0-9a-f]{32})-([1-9][0-9]{0,9})-([0-9]{1,20})-([0-9]{1,20})")


class Mark(NamedTuple):
    """A Prony process, and the PID namespace of its PID. As text: the name of its subtree."""

    owner: Identity
    namespace: int

    def is_gone(self) -> bool:
        """Return whether its Prony has certainly ended; for another boot or PID namespace that is unknown."""
        here = self.owner.boot_id == boot_id() and self.namespace == _namespace()
        return here and not self.owner.is_alive()

    def __str__(self) -> str:
        """Return the name of the subtree."""
        pid, start, boot = self.owner
        return f"prony-{uuid.UUID(boot).hex}-{pid}-{start}-{self.namespace}"


def own_mark() -> Mark:
    """Return the mark of this process."""
    return Mark(identify(os.getpid()), _namespace())


def parse_mark(name: str) -> Mark | None:
    """Return the owner of the subtree of this name; null: it is not a subtree of Prony's."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return Mark(Identity(int(found[2]), int(found[3]), str(uuid.UUID(found[1]))), int(found[4]))


def is_inside_a_subtree(path: Path) -> bool:
    """Return whether a group is a Prony's subtree or below one: nothing else is ever changed or killed."""
    return ".." not in path.parts and any(parse_mark(part) is not None for part in path.parts)


def _namespace() -> int:
    return int("".join(filter(str.isdigit, pid_namespace())))
