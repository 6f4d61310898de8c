"""The facts of this machine that decide whether two measurements are comparable.

Each item is a value or ``{"missing": reason}``. `prony.figures.drift` says which must agree before archives
are compared without pairs.

>>> sorted(fingerprint().free)[:4]
['activity', 'boot', 'cgroup', 'container']
"""

import os
import platform
from collections.abc import Mapping, Sequence

from prony.machine.facts.activity import Activity, activity, watch_machine
from prony.machine.facts.cgroups import cgroup, memory
from prony.machine.facts.network import interfaces, settings, sockets
from prony.machine.facts.processor import mitigations, processor
from prony.machine.facts.software import (
    boot,
    container,
    container_engines,
    engine,
    kernel,
    limits,
    prony,
    python,
    virtualisation,
    visible_environment,
)
from prony.machine.read import unread
from prony.model.facts import Fingerprint
from prony.model.json_codec import Json


def brief_fingerprint() -> Fingerprint:
    """Return the facts that say which machine this is, without starting or watching anything.

    They are those of `analysis.fingerprints.WHAT_MATTERS`, and a few beside them.
    """
    return Fingerprint({"cpu": processor(), "kernel": kernel(), "memory": memory()})


def generator_fingerprint() -> Fingerprint:
    """Return what is kept of each machine of a fleet: `analysis.fingerprints.WHAT_MATTERS`, and its size."""
    cpu, own_memory = processor(), memory()
    return Fingerprint(
        {
            "machine": platform.machine(),
            "cpu": {name: cpu[name] for name in ("model", "available", "governor")},
            "kernel": {"release": platform.release()},
            "memory": {name: own_memory[name] for name in ("total_bytes", "limit_bytes")},
        }
    )


def fingerprint(
    environment: Mapping[str, str] | None = None,
    *,
    seen: Activity | None = None,
    forced: Sequence[str] = (),
) -> Fingerprint:
    """Return all facts that a measurement may depend on.

    ``environment`` None: this process's. ``seen``: what the machine did just now; None: watch it for a
    quarter of a second. ``forced``: the checks that failed and were overridden, in words.
    """
    cpu = processor()
    facts: Json = {
        "machine": platform.machine(),
        "cpu": cpu,
        "mitigations": mitigations(),
        "kernel": kernel(),
        "boot": boot(),
        "memory": memory(),
        "virtualisation": virtualisation(cpu["flags"]),
        "container": container(),
        "container_engines": container_engines(),
        "cgroup": cgroup(),
        "settings": settings(),
        "interfaces": interfaces(),
        "sockets": sockets(),
        "limits": limits(),
        "activity": activity(seen or watch_machine()),
        "kernel_log": unread("it is stored when the run ends"),
        "python": python(),
        "prony": prony(),
        "engine": engine(),
        "environment": visible_environment(os.environ if environment is None else environment),
    }
    return Fingerprint(facts, tuple(forced))
