"""The limits of a process (getrlimit(2)); null: no limit."""

import resource

from prony.model.shapes import Json

_LIMITS = {
    "open_files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "address_space_bytes": resource.RLIMIT_AS,
    "core_bytes": resource.RLIMIT_CORE,
    "locked_memory_bytes": resource.RLIMIT_MEMLOCK,
    "stack_bytes": resource.RLIMIT_STACK,
}


def limits() -> Json:
    """Return the soft and the hard limit of each resource."""
    found = {name: resource.getrlimit(number) for name, number in _LIMITS.items()}
    return {name: {"soft": _limit(soft), "hard": _limit(hard)} for name, (soft, hard) in found.items()}


def _limit(value: int) -> int | None:
    return None if value == resource.RLIM_INFINITY else value
