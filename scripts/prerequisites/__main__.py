"""Finds what the set-up needs from the system, and installs with its package manager what is missing.

  python3 scripts/prerequisites FOLDER        what the product needs; FOLDER is where the set-up keeps its uv
  python3 scripts/prerequisites FOLDER --dev  and what its tests and linters need
  python3 scripts/prerequisites --rust        print, as shell assignments, where Rust is

As root on Debian, Ubuntu and Fedora it installs, a line for each thing. As an ordinary user, and with
``PRONY_INSTALL=no``, it prints the one line to type. A compiler that is installed is never replaced.

Runs before Prony is set up: with Python's standard library alone.
"""

import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from packages import (
    FAMILIES,
    LEAST,
    LEAST_TEXT,
    PLAIN,
    RUSTUP,
    WEB,
    Family,
    Need,
    Package,
    RefusedError,
    apt_packages,
    apt_rust,
    dnf_packages,
    install_line,
    parse_policy,
    versioned,
)
from rust import Rust, find_rust, has_linters, rust_folders

HOST_ERROR = 3
# The bundles of certificates that Debian's and Fedora's OpenSSL read.
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
PROGRAM = '#include <stdio.h>\nint main(void) { return printf(""); }\n'
REFUSALS = frozenset({"no", "0", "false", "off"})
# Long enough for another package manager to end.
LOCK_TIMEOUT_S = 600


def main(arguments: Sequence[str]) -> int:
    """Install what is missing, or print where Rust is, and return the exit status."""
    try:
        if arguments[:1] == ["--rust"]:
            sys.stdout.write(_assignments(_needed_rust()))
            return 0
        needs = missing(Path(arguments[0]), dev="--dev" in arguments[1:])
        if needs:
            provide(needs)
            _still_missing(missing(Path(arguments[0]), dev="--dev" in arguments[1:]))
    except RefusedError as refused:
        sys.stderr.write(f"error: {refused}\n\nhint: {refused.hint}\n")
        return HOST_ERROR
    return 0


def missing(state: Path, *, dev: bool) -> list[Need]:
    """Return what the set-up needs and does not find."""
    rust = find_rust()
    tests = {
        Need("tools", "`find` and `flock`"): all(map(shutil.which, ("find", "flock"))),
        Need("certificates", "certificates of the package registries"): _has_certificates(),
        Need("venv", "Python's `venv`, or pip"): _has_installer(state),
        Need("linker", "a C linker, to build the engine"): _links(),
        Need("rust", f"Rust {LEAST_TEXT} or newer, to build the engine"): rust is not None,
        Need("linters", "rustfmt and Clippy, for the tests"): not dev or has_linters(rust),
    }
    return [need for need, there in tests.items() if not there]


def provide(needs: Sequence[Need]) -> None:
    """Install what ``needs`` name.

    *Errors*: RefusedError, with the one line to type, where nothing may be installed or it failed.
    """
    _refuse_an_own_rust(needs)
    manager = next((name for name in ("apt-get", "dnf") if shutil.which(name)), "")
    told = f"missing: {'; '.join(need.title for need in needs)}"
    if not manager:
        raise RefusedError(told, f"install it with the system's package manager; for Rust, {RUSTUP}")
    root = os.geteuid() == 0
    may = root and os.environ.get("PRONY_INSTALL", "").lower() not in REFUSALS
    if may and manager == "apt-get":
        _run(["apt-get", "update", "-qq"], told, "mend what it says, then start again")
    chosen = _chosen(manager, needs)
    line = install_line(manager, [name for _, names in chosen for name in names], root=root)
    if not may:
        raise RefusedError(told, line)
    for need, names in chosen:
        sys.stderr.write(f"prony: installing {' '.join(names)} ({need.title})\n")
        _run(_command(manager, names), told, line)


def _chosen(manager: str, needs: Sequence[Need]) -> list[tuple[Need, tuple[str, ...]]]:
    if manager == "dnf":
        return dnf_packages(needs, [name for name in ("rust", "cargo") if _says(["rpm", "-q", name])])
    kinds = {need.kind for need in needs}
    rust = find_rust()
    family = None
    if "rust" in kinds:
        family = apt_rust(_policy(), platform.freedesktop_os_release())
    elif "linters" in kinds and rust:
        family = _family_of(rust)
    return apt_packages(needs, family, sys.version_info[:2])


def _family_of(rust: Rust) -> Family:
    """Return the packages that ``rust`` came from."""
    own = re.fullmatch(r"/usr/lib/rust-1\.(\d+)/bin", str(rust.folder))
    if own:
        return versioned(int(own[1]))
    return WEB if _policy().get("rustc-web", Package("", "")).installed else PLAIN


def _policy() -> dict[str, Package]:
    """Return what apt knows of all packages of Rust."""
    versions = [name.split("-1.")[1] for name in _says(["apt-cache", "pkgnames", "rustc-1."]).split()]
    families = (
        *FAMILIES,
        *(versioned(int(minor)) for minor in versions if minor.isdigit() and int(minor) >= LEAST[1]),
    )
    names = {name for family in families for name in family.compiler} | {"rustup"}
    return parse_policy(_says(["apt-cache", "policy", *sorted(names)]))


def _refuse_an_own_rust(needs: Sequence[Need]) -> None:
    """Refuse where rustup has to be told: a Rust of the system would stand beside it or replace it."""
    rustup = next((folder / "rustup" for folder in rust_folders() if (folder / "rustup").is_file()), None)
    kinds = {need.kind for need in needs}
    if rustup and "rust" in kinds:
        raise RefusedError(
            f"Rust {LEAST_TEXT} or newer is needed; what rustup has is older, or nothing",
            f"{rustup} update stable && {rustup} default stable",
        )
    if rustup and "linters" in kinds:
        raise RefusedError(
            "rustfmt and Clippy are needed for the tests", f"{rustup} component add rustfmt clippy"
        )


def _still_missing(needs: Sequence[Need]) -> None:
    if needs:
        raise RefusedError(
            f"still missing after the installation: {'; '.join(need.title for need in needs)}",
            f"install it yourself; for Rust, {RUSTUP}",
        )


def _command(manager: str, names: Iterable[str]) -> list[str]:
    if manager == "apt-get":
        # Rather fail than take away what is installed.
        wait = f"DPkg::Lock::Timeout={LOCK_TIMEOUT_S}"
        options = ["-y", "-qq", "--no-install-recommends", "--no-remove", "-o", wait]
        return ["apt-get", "install", *options, *names]
    return [manager, "install", "-y", "-q", *names]


def _run(command: Sequence[str], told: str, line: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        sys.stderr.write("\n".join((done.stdout + done.stderr).splitlines()[-10:]) + "\n")
        raise RefusedError(f"{told}; `{shlex.join(command)}` failed", line)


def _says(command: Sequence[str]) -> str:
    """Return what a command prints in the language C, nothing where it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )
    except OSError:
        return ""
    return "" if done.returncode else done.stdout


def _has_certificates() -> bool:
    own = os.environ.get("SSL_CERT_FILE")
    return any(os.access(file, os.R_OK) for file in ([own] if own else BUNDLES))


def _has_installer(state: Path) -> bool:
    there = shutil.which("uv") or (state / "uv" / "bin" / "uv").is_file()
    modules = all(map(importlib.util.find_spec, ("venv", "ensurepip"))) or importlib.util.find_spec("pip")
    return bool(there or modules)


def _links() -> bool:
    command = ["cc", "-x", "c", "-", "-o", "/dev/null"]
    try:
        done = subprocess.run(command, input=PROGRAM, text=True, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _needed_rust() -> Rust:
    rust = find_rust()
    if not rust:
        raise RefusedError(f"Rust {LEAST_TEXT} or newer is needed; found none", RUSTUP)
    return rust


def _assignments(rust: Rust) -> str:
    lines = [f"export PATH={shlex.quote(str(rust.folder))}:$PATH\n"]
    lines += [f"export RUSTUP_HOME={shlex.quote(str(rust.rustup_home))}\n"] if rust.rustup_home else []
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
