"""Removes the containers that killed Pronys have left: by the mark in their labels, and nothing else.

Must not know how containers are created.

>>> clear_containers.__name__
'clear_containers'
"""

import contextlib
import os

from prony.errors import HostError
from prony.sandbox.cgroup.mark import parse_mark
from prony.sandbox.containers.engine import working_engines


def clear_containers() -> list[str]:
    """Remove the containers of Pronys that are gone, and return what was done, in words."""
    told: list[str] = []
    # Only a Prony of root creates containers.
    for engine in working_engines() if os.geteuid() == 0 else ():
        # An engine that is not running has no running containers.
        with contextlib.suppress(HostError):
            for container, label in engine.containers().items():
                mark = parse_mark(label)
                if mark is not None and mark.is_gone():
                    kept = engine.remove(container)
                    told.append(
                        f"the container {container[:12]} is left alone: {kept}"
                        if kept
                        else f"removed a container of {engine.name} that a killed Prony had left"
                    )
    return told
