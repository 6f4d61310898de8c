"""The interpreter that Prony runs on, Prony itself, its load engine and the packages it uses.

The interpreters, packages and lock files of subjects are stored with each subject.
"""

import hashlib
import platform
import re
import sys
import sysconfig
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from prony.host.read import Fact, unread
from prony.model.shapes import Json


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
