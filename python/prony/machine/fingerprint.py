"""The facts of this machine that decide whether two measurements are comparable.

Each item is a value or ``{"missing": reason}``. `prony.figures.drift` says which must agree before archives
are compared without pairs.

>>> sorted(fingerprint().free)[:4]
['activity', 'boot', 'cgroup', 'container']

The kernel, the limits of a process (getrlimit(2); null: no limit), the interpreter that Prony runs on,
Prony itself, its load engine and the packages it uses.

The interpreters, packages and lock files of subjects are stored with each subject.

People share archives, and variables hold secrets.

>>> guest_by_name("QEMU", "KVM Virtual Machine")
True

>>> visible_environment({"LANG": "C", "API_TOKEN": "x"})
{'API_TOKEN': '<redacted>', 'LANG': 'C'}
"""

import hashlib
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from prony.machine import Fact, read_fact, unread
from prony.machine.activity import Activity, activity, watch_machine
from prony.machine.cgroups import cgroup, chosen, memory
from prony.machine.cpus import mitigations, processor
from prony.machine.network import interfaces, settings, sockets
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


# --- the kernel, limits, interpreter and surroundings of this Prony ---------------------------------------


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


def kernel() -> Json:
    """Return all facts of the kernel."""
    return {
        "release": platform.release(),
        "version": platform.version(),
        "command_line": read_fact(Path("/proc/cmdline"), visible_parameters),
        "preemption": _preemption(),
    }


def _preemption() -> Fact:
    found = read_fact(Path("/sys/kernel/debug/sched/preempt"), _switched)
    return found if isinstance(found, str) else preemption_of(platform.version())


def _switched(text: str) -> str:
    """Return the word in brackets of ``none (voluntary) full``."""
    return text.partition("(")[2].partition(")")[0] or chosen(text)


def preemption_of(version: str) -> Fact:
    """Return the preemption model that the kernel's version names.

    >>> preemption_of("#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1"), preemption_of("#7 SMP Mon")["missing"]
    ('PREEMPT_DYNAMIC', 'the version does not name it, and only root may read the other source')
    """
    named = next((word for word in version.split() if word.startswith("PREEMPT")), None)
    return named or unread("the version does not name it, and only root may read the other source")


def boot() -> Json:
    """Return the id of this boot, and when it began."""
    return {
        "id": read_fact(Path("/proc/sys/kernel/random/boot_id")),
        "unix_s": round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)),
    }


def python() -> Json:
    """Return how this interpreter was built, and in which mode it runs."""
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "build": " ".join(platform.python_build()),
        "compiler": platform.python_compiler(),
        "flags": build_flags(str(sysconfig.get_config_var("CONFIG_ARGS") or "")),
        "gil": _gil(),
        "jit": _jit(),
        "optimise": sys.flags.optimize,
    }


def build_flags(arguments: str) -> list[str]:
    """Return what was switched on, without paths of the machine that built it.

    >>> build_flags("'--enable-optimizations' '--prefix=/opt' '--with-lto'")
    ['--enable-optimizations', '--with-lto']
    """
    words = arguments.replace("'", "").split()
    return sorted(word for word in words if word.startswith(("--enable-", "--with-")) and "/" not in word)


def _gil() -> bool:
    # Python 3.13 and later: it can be switched on even in a build without it.
    asked = getattr(sys, "_is_gil_enabled", None)
    return bool(asked()) if asked else True


def _jit() -> Fact:
    if platform.python_implementation() == "PyPy":
        return True
    switch = getattr(sys, "_jit", None)  # Python 3.14 and later
    if switch is not None:
        return bool(switch.is_enabled())
    built = "--enable-experimental-jit" in str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    return unread("built in, but this Python does not say whether it is on") if built else False


def prony() -> Json:
    """Return the versions of Prony and of the packages that it requires."""
    try:
        needs = package_names(requires("prony") or [])
        return {"version": version("prony"), "packages": {name: _version(name) for name in needs}}
    except PackageNotFoundError:
        reason = unread("Prony is not installed as a package")
        return {"version": reason, "packages": reason}


def package_names(requirements: Sequence[str]) -> list[str]:
    """Return the names of requirements (PEP 508), in order, without those of extras.

    >>> package_names(["rich>=13.9", "numpy >=2.0 ; python_version > '3'", "pytest ; extra == 'test'"])
    ['numpy', 'rich']
    """
    wanted = (one for one in requirements if "extra" not in one.partition(";")[2])
    return sorted(found.group() for one in wanted if (found := re.match(r"[A-Za-z0-9._-]+", one.strip())))


def _version(package: str) -> Fact:
    try:
        return version(package)
    except PackageNotFoundError:
        return unread("it is not installed as a package")


def engine() -> Json:
    """Return version and digest of the compiled engine: two builds of one version may differ."""
    from prony import _engine

    try:
        digest: Fact = hashlib.sha256(Path(str(_engine.__file__)).read_bytes()).hexdigest()
    except OSError as error:
        digest = unread(f"cannot read the compiled engine: {error.strerror}")
    return {"version": _engine.__version__, "sha256": digest}


# --- what the machine runs in (a hypervisor, a container), and which container engines are inst -----------


_NAMES = Path("/sys/class/dmi/id")
_MARKS = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/run/systemd/container": "systemd-nspawn"}
_GROUPS = {
    "kubepods": "kubernetes",
    "docker": "docker",
    "libpod": "podman",
    "lxc": "lxc",
    "containerd": "containerd",
}
# For machines whose processor does not report a hypervisor, such as ARM.
_GUESTS = (
    "qemu",
    "kvm",
    "vmware",
    "virtualbox",
    "xen",
    "amazon ec2",
    "google compute",
    "hvm",
    "virtual machine",
)
_METAL = (".metal",)
_ENGINES = ("docker", "podman", "nerdctl")
_TIMEOUT_S = 2.0


def virtualisation(flags: Fact) -> Json:
    """Return whether this is a guest, and of which hypervisor. ``flags``: the processor's."""
    vendor, product = read_fact(_NAMES / "sys_vendor"), read_fact(_NAMES / "product_name")
    return {
        "guest": guest(flags, vendor, product),
        "hypervisor": read_fact(Path("/sys/hypervisor/type")),
        "vendor": vendor,
        "product": product,
    }


def guest(flags: Fact, vendor: Fact, product: Fact) -> Fact:
    """Return whether this is a virtual machine, by the processor's flag, else by the vendor's names."""
    words = flags.split() if isinstance(flags, str) else []
    if "hypervisor" in words:
        return True
    if "fpu" in words:  # x86 would report a hypervisor
        return False
    if isinstance(vendor, str) or isinstance(product, str):
        return guest_by_name(str(vendor), str(product))
    return unread("neither the processor nor the machine's vendor says")


def guest_by_name(vendor: str, product: str) -> bool:
    """Return whether the vendor's names are those of a virtual machine."""
    text = f"{vendor} {product}".lower()
    return any(name in text for name in _GUESTS) and not text.endswith(_METAL)


def container() -> Fact:
    """Return the kind of container that Prony runs in; None: none found."""
    marks = [mark for mark in _MARKS if Path(mark).exists()]
    group = read_fact(Path("/proc/1/cgroup"))
    return container_kind(marks, group if isinstance(group, str) else "", os.environ)


def container_kind(marks: Collection[str], group: str, environment: Mapping[str, str]) -> str | None:
    """Return the kind, from what container engines leave: files, names of groups, a variable.

    >>> container_kind([], "0::/kubepods/burstable/pod1", {})
    'kubernetes'
    """
    by_group = next((kind for name, kind in _GROUPS.items() if name in group), None)
    by_mark = next((_MARKS[mark] for mark in marks), None)
    if by_group == "kubernetes" or "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    return by_mark or by_group or environment.get("container") or None


def container_engines() -> Json:
    """Return the version of each engine that is installed."""
    found = {name: shutil.which(name) for name in _ENGINES}
    return {name: _version_in(path) for name, path in found.items() if path}


def _version_in(program: str) -> Fact:
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            check=True,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return unread(f"`{program} --version` failed: {type(error).__name__}")
    said = done.stdout.decode(errors="replace").strip().splitlines()
    return said[0][:120] if said else unread(f"`{program} --version` prints nothing")


# --- what an archive may store of the environment and of the kernel's command line ------------------------


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
