"""Rewrites the committed locks: ``python -m prony.catalog.install.relock [name ...]``.

For maintainers. Each lock holds a server's pins and, unless the server needs a Python of its own, the
requirements of all built-in apps, for every platform, with hashes and without the name of any package index.
Only what a pin leaves open is resolved again.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from tempfile import NamedTemporaryFile

from prony.catalog.install.interpreter import LEAST_OF_UV, OLDEST
from prony.catalog.install.pip_settings import configuration_files, home_folder, uv_settings
from prony.catalog.install.resolve import LOCKS, shared_requirements
from prony.catalog.schema.entry import ProcessEntry, PythonInstall
from prony.catalog.schema.loader import BUILT_IN_GENERATORS, BUILT_IN_SERVERS, load_catalog, load_generator
from prony.drafts import write_whole
from prony.errors import HostError, PronyError, UsageError
from prony.runas import find_uv


def main(names: Sequence[str]) -> int:
    """Rewrite the locks of the servers ``names``, or of all; return the exit status."""
    try:
        # Without entries from the working folder: only entries that come with Prony have committed locks.
        catalog = load_catalog(found=BUILT_IN_SERVERS / "none")
        generators = {file.stem: load_generator(file.stem) for file in BUILT_IN_GENERATORS.glob("*.toml")}
        known = {**catalog.servers, **generators}
        for entry in [known.get(name) or catalog.server(name) for name in names] or known.values():
            relock(entry)
            sys.stderr.write(f"{entry.name}: locked\n")
    except PronyError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return int(error.exit_code)
    return 0


def relock(entry: ProcessEntry) -> bool:
    """Write a new lock for an entry that comes with Prony, and return whether it has changed.

    A server that the system installs has no lock.

    *Errors*: UsageError when no set of packages satisfies it; HostError when it cannot be written.
    """
    if not isinstance(entry.install, PythonInstall):
        return False
    file = LOCKS / f"{entry.name}.txt"
    text = _resolved(entry, entry.install)
    if file.is_file() and file.read_text() == text:
        return False
    try:
        write_whole(file, text)
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror}") from error
    return True


def _resolved(entry: ProcessEntry, install: PythonInstall) -> str:
    wanted = [*install.requirements, *shared_requirements(entry)]
    options = ["--generate-hashes", *_resolution(install.python)]
    quiet = ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    known = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environment = known | uv_settings(os.environ, configuration_files(os.environ, home_folder()))
    with NamedTemporaryFile("w", prefix="overrides-", suffix=".txt") as overrides:
        overrides.writelines(f"{line}\n" for line in install.overrides)
        overrides.flush()
        done = subprocess.run(
            [find_uv(), "pip", "compile", *options, *quiet, "--override", overrides.name, "-"],
            input="\n".join(one for one in wanted if one not in install.hashes),
            env=environment | {"UV_PYTHON_DOWNLOADS": "never"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise UsageError(f"`{entry.name}` cannot be locked:\n{done.stderr}")
    return done.stdout + "".join(_locked(one, digest) for one, digest in install.hashes.items())


def _locked(requirement: str, digest: str) -> str:
    return f"{requirement} \\\n    --hash={digest}\n"


def _resolution(python: str | None) -> tuple[str, ...]:
    """Return for what is resolved. uv knows no Python before 3.8; there an entry names all that it needs."""
    oldest = ".".join(map(str, OLDEST))
    if python and tuple(map(int, python.split("."))) < LEAST_OF_UV:
        return ("--no-deps", "--python-version", oldest)
    return ("--universal", "--python-version", python or oldest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
