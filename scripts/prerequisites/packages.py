"""Which packages of a distribution meet a need of the set-up: text in, names out.

Pure: must not look at the machine. What apt says of packages comes as its own text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# The `rust-version` of Cargo.toml; a test compares them.
LEAST = (1, 85)
LEAST_TEXT = "1.85"
RUSTUP = "install rustup as https://rustup.rs says, then start again"


@dataclass(frozen=True, slots=True)
class Need:
    """Something that is missing: ``kind`` names it here, ``title`` to the user."""

    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Package:
    """What apt knows of a package: versions, empty where there is none."""

    installed: str
    candidate: str


@dataclass(frozen=True, slots=True)
class Family:
    """The names of a distribution's packages of one Rust, and those that it would replace."""

    compiler: tuple[str, ...]
    linters: tuple[str, ...]
    replaces: tuple[str, ...]


class RefusedError(Exception):
    """What is missing cannot be installed; ``hint`` says what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


PLAIN = Family(("cargo", "rustc"), ("rustfmt", "rust-clippy"), replaces=("rustup",))
# Debian's newer Rust for stable releases, made for browsers. It conflicts with the plain packages.
WEB = Family(
    ("cargo-web", "rustc-web"), ("rustfmt-web", "rust-web-clippy"), replaces=("cargo", "rustc", "rustup")
)
FAMILIES = (PLAIN, WEB)
# For releases whose package lists have not been fetched; the plain Rust of all later ones is new enough.
RELEASES = {("debian", "12"): "web", ("ubuntu", "22.04"): "1.85", ("ubuntu", "24.04"): "1.85"}
APT_NEEDS = {
    "tools": ("findutils", "util-linux"),
    "linker": ("gcc", "libc6-dev"),
    "certificates": ("ca-certificates",),
}
DNF_NEEDS = {
    "tools": ("findutils", "util-linux"),
    "linker": ("gcc", "glibc-devel"),
    "certificates": ("ca-certificates",),
    "venv": ("python3-pip",),
    "rust": ("cargo", "rust"),
    "linters": ("rustfmt", "clippy"),
}


def versioned(minor: int) -> Family:
    """Return Ubuntu's packages of Rust 1.``minor``, which stand beside the plain ones and replace none.

    *Source*: the Linux kernel's documentation, "Rust: Quick Start", Ubuntu.
    """
    number = f"1.{minor}"
    return Family((f"cargo-{number}", f"rustc-{number}"), (f"rustfmt-{number}", f"rust-{number}-clippy"), ())


def release_rust(release: Mapping[str, str]) -> Family:
    """Return the packages of Rust for a release, from its os-release alone."""
    name = RELEASES.get((release.get("ID", ""), release.get("VERSION_ID", "")), "plain")
    return {"plain": PLAIN, "web": WEB}.get(name) or versioned(int(name.partition(".")[2]))


def parse_policy(text: str) -> dict[str, Package]:
    """Return what ``apt-cache policy`` says of each package, in the language C."""
    found = re.findall(r"^(\S+):\n +Installed: (.*)\n +Candidate: (.*)$", text, re.MULTILINE)
    return {
        name: Package(*("" if version == "(none)" else version for version in versions))
        for name, *versions in found
    }


def apt_rust(policy: Mapping[str, Package], release: Mapping[str, str]) -> Family:
    """Return the packages of the first Rust that is new enough and replaces nothing.

    *Errors*: RefusedError where each would replace an installed compiler.
    """
    families = _offered(policy) if _is_fetched(policy) else [release_rust(release)]
    if not families:
        raise RefusedError(f"the system's packages hold no Rust {LEAST_TEXT} or newer", RUSTUP)
    for family in families:
        if not replaced_by(family, policy):
            return family
    new = " and ".join(f"`{name}`" for name in families[0].compiler)
    old = replaced_by(families[0], policy)
    raise RefusedError(
        f"{new} would replace an installed compiler ({', '.join(old)}), which Prony does not do",
        "rustup update stable" if "rustup" in old else f"apt-get remove {' '.join(old)}; or {RUSTUP}",
    )


def replaced_by(family: Family, policy: Mapping[str, Package]) -> list[str]:
    """Return the installed packages that ``family`` would replace: other compilers, or its own if too old."""
    others = [name for name in family.replaces if name in policy and policy[name].installed]
    compiler = family.compiler[1]
    installed = policy[compiler].installed if compiler in policy else ""
    return others + ([compiler] if installed and rust_version(installed) < LEAST else [])


def _is_fetched(policy: Mapping[str, Package]) -> bool:
    """Return whether apt knows more than what is installed: its lists have been fetched."""
    return any(package.candidate not in ("", package.installed) for package in policy.values())


def _offered(policy: Mapping[str, Package]) -> list[Family]:
    """Return the families that apt can install and that are new enough, the oldest of Ubuntu's first."""
    minors = (name.removeprefix("rustc-1.") for name in policy if name.startswith("rustc-1."))
    return [
        family
        for family in (*FAMILIES, *map(versioned, sorted(map(int, minors))))
        if all(name in policy and policy[name].candidate for name in family.compiler)
        and rust_version(policy[family.compiler[1]].candidate) >= LEAST
    ]


def rust_version(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version, (0, 0) where there are none: `rustc 1.85.0 (4d91de4e4)`."""
    found = re.search(r"(?:^|[ :])(\d+)\.(\d+)\.", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def apt_packages(
    needs: Iterable[Need], family: Family | None, python: tuple[int, int]
) -> list[tuple[Need, tuple[str, ...]]]:
    """Return each need with Debian's and Ubuntu's packages that meet it."""
    named = {**APT_NEEDS, "venv": (f"python{python[0]}.{python[1]}-venv",)}
    if family:
        named |= {"rust": family.compiler, "linters": family.linters}
    return [(need, named[need.kind]) for need in needs]


def dnf_packages(needs: Iterable[Need], installed: Sequence[str]) -> list[tuple[Need, tuple[str, ...]]]:
    """Return each need with Fedora's packages that meet it; ``installed`` are those of Rust that are there.

    *Errors*: RefusedError where Rust is installed, and too old.
    """
    needs = list(needs)
    if installed and any(need.kind == "rust" for need in needs):
        raise RefusedError(
            f"the installed {' and '.join(f'`{name}`' for name in installed)} is too old, "
            "and Prony replaces no compiler",
            f"dnf upgrade {' '.join(installed)}",
        )
    return [(need, DNF_NEEDS[need.kind]) for need in needs]


def install_line(manager: str, packages: Iterable[str], *, root: bool) -> str:
    """Return the one line to type that installs ``packages``."""
    names = " ".join(packages)
    sudo = "" if root else "sudo "
    if manager == "apt-get":
        return f"{sudo}apt-get update && {sudo}apt-get install --no-install-recommends --no-remove {names}"
    return f"{sudo}{manager} install {names}"
