"""What an archive may store of the environment and of the kernel's command line: all names, few values.

People share archives, and variables hold secrets. Must not know archives.

>>> visible_environment({"LANG": "C", "API_TOKEN": "x"})
{'API_TOKEN': '<redacted>', 'LANG': 'C'}
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

REDACTED = "<redacted>"

# Variables that change what is measured and cannot hold a secret.
_VARIABLES = (
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "LD_BIND_NOW",
    "LD_PRELOAD",
    "MALLOC_*",
    "MIMALLOC_*",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTHONASYNCIODEBUG",
    "PYTHONDEVMODE",
    "PYTHONHASHSEED",
    "PYTHONMALLOC",
    "PYTHONOPTIMIZE",
    "PYTHONUNBUFFERED",
    "PYTHON_GIL",
    "PYTHON_JIT",
    "UV_THREADPOOL_SIZE",
)
_PARAMETERS = (
    "amd_pstate",
    "clocksource",
    "cgroup*",
    "idle",
    "*_idle.*",
    "intel_pstate",
    "irqaffinity",
    "isolcpus",
    "maxcpus",
    "mitigations",
    "nohz*",
    "nosmt",
    "nr_cpus",
    "numa_balancing",
    "preempt",
    "processor.*",
    "psi",
    "quiet",
    "rcu_nocbs",
    "spec_*",
    "spectre_*",
    "systemd.unified_cgroup_hierarchy",
    "transparent_hugepage",
    "tsc",
)


def visible_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return every name, in order, with its value where the name is known to be harmless."""
    return {name: _shown(name, environment[name], _VARIABLES) for name in sorted(environment)}


def visible_parameters(command_line: str) -> str:
    """Return a kernel's command line without the values of unknown parameters and without all after ``--``.

    >>> visible_parameters("mitigations=off token=x quiet")
    'mitigations=off token=<redacted> quiet'
    """
    own, _, _ = f" {command_line} ".partition(" -- ")
    return " ".join(_parameter(word) for word in own.split())


def _parameter(word: str) -> str:
    name, equals, value = word.partition("=")
    # Unknown words without a value belong to the init program: they may hold anything.
    return f"{name}={_shown(name, value, _PARAMETERS)}" if equals else _shown(name, name, _PARAMETERS)


def _shown(name: str, value: str, known: tuple[str, ...]) -> str:
    return value if any(fnmatchcase(name, pattern) for pattern in known) else REDACTED
