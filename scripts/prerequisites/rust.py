"""Where Rust is: the folders that may hold it, and whether what they hold works.

Must not install anything.
"""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packages import LEAST, rust_version


@dataclass(frozen=True, slots=True)
class Rust:
    """A Rust that works: the folder of cargo and rustc, rustup's home where it must be told, its version."""

    folder: Path
    rustup_home: Path | None
    version: tuple[int, int]


def find_rust() -> Rust | None:
    """Return the first Rust that works and is new enough."""
    found = (rust for folder in rust_folders() if (rust := _rust_in(folder)))
    return next((rust for rust in found if rust.version >= LEAST), None)


def rust_folders() -> list[Path]:
    """Return the folders that hold a cargo: of PATH, rustup's, and Ubuntu's by version, newest first."""
    path = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    own = [Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "bin"]
    minors = [
        found
        for file in Path("/usr/lib").glob("rust-1.*")
        if (found := file.name.partition("rust-1.")[2]).isdigit()
    ]
    by_version = [Path(f"/usr/lib/rust-1.{minor}/bin") for minor in sorted(map(int, minors), reverse=True)]
    # Folders of PATH may be closed to who asks, as root's are after `su`.
    every = dict.fromkeys((*path, *own, *by_version))
    return [folder for folder in every if os.access(folder / "cargo", os.X_OK)]


def _rust_in(folder: Path) -> Rust | None:
    """Return the Rust of a folder, if it works.

    A rustup in another home folder looks for its toolchains beside itself, not in $HOME.
    """
    beside = folder.parent.parent / ".rustup"
    for home in (None, beside if os.access(beside, os.R_OK | os.X_OK) else None):
        environment = _with(folder, home)
        versions = [_version(folder / program, environment) for program in ("cargo", "rustc")]
        if all(version > (0, 0) for version in versions):
            return Rust(folder, home, versions[1])
    return None


def _version(program: Path, environment: Mapping[str, str]) -> tuple[int, int]:
    try:
        done = subprocess.run(
            [program, "--version"], env=environment, capture_output=True, text=True, check=False
        )
    except OSError:
        return (0, 0)
    return (0, 0) if done.returncode else rust_version(done.stdout)


def _with(folder: Path, rustup_home: Path | None) -> dict[str, str]:
    own = {"RUSTUP_HOME": str(rustup_home)} if rustup_home else {}
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}", **own}


def environment_of(rust: Rust) -> dict[str, str]:
    """Return the environment in which ``cargo`` and ``rustc`` are those of ``rust``."""
    return _with(rust.folder, rust.rustup_home)


def has_linters(rust: Rust | None) -> bool:
    """Return whether cargo has its `fmt` and its `clippy`."""
    if not rust:
        return False
    environment = environment_of(rust)
    commands = ([rust.folder / "cargo", name, "--version"] for name in ("fmt", "clippy"))
    return all(
        not subprocess.run(c, env=environment, capture_output=True, check=False).returncode for c in commands
    )
