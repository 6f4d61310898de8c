"""A small guest for the tests: a kernel in QEMU without KVM, whose root is a memory file system.

Needs `qemu-system-x86_64` and a kernel: that of PRONY_TEST_KERNEL, else the newest in /boot. There is no
disk: programs and modules are packed into the archive that the kernel unpacks. What the guest finds it says
on its serial line: `RESULT`, a name and facts, as JSON.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import prony

SOURCE = Path(prony.__file__).parent.parent


def missing_parts() -> str | None:
    """Return why no guest can be started here."""
    if shutil.which("qemu-system-x86_64") is None or os.uname().machine != "x86_64":
        return "needs qemu-system-x86_64 (Debian: qemu-system-x86) on x86-64"
    if kernel() is None:
        return "needs a kernel: set PRONY_TEST_KERNEL to a vmlinuz"
    return None


def kernel() -> Path | None:
    """Return the kernel to boot."""
    named = os.environ.get("PRONY_TEST_KERNEL")
    found = [Path(named)] if named else sorted(Path("/boot").glob("vmlinuz-*"))
    return found[-1] if found and os.access(found[-1], os.R_OK) else None


def python() -> str:
    return os.path.realpath(sys.executable)


class Archive:
    """A cpio archive in the `newc` format, as a kernel unpacks it into its first root.

    What lies below a link here, as in `/lib` to `/usr/lib`, lies below the same link there.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._entries: set[Path] = set()
        for link in (path for path in Path("/").iterdir() if path.is_symlink()):
            self.add_link(link, str(link.readlink()))

    def add(self, place: Path, content: bytes, mode: int = 0o100755, mtime: int = 0) -> None:
        place = place.parent.resolve() / place.name
        if place in self._entries:
            return
        for folder in reversed(place.parents[:-1]):
            if folder not in self._entries:
                self._entry(folder, b"", 0o040755, 0)
        self._entry(place, content, mode, mtime)

    def add_text(self, place: str, text: str, mode: int = 0o100644) -> None:
        self.add(Path(place), text.encode(), mode)

    def add_link(self, place: Path, target: str) -> None:
        self.add(place, target.encode(), 0o120777)

    def add_file(self, path: Path, place: Path | None = None) -> None:
        # With its time: a compiled module counts only while its source has the time that it knows.
        self.add(place or path, path.read_bytes(), mtime=int(path.stat().st_mtime))

    def add_library(self, path: Path) -> None:
        """Add a library with the links to it: by one of them it is sought."""
        self.add_file(path)
        for link in path.parent.glob(path.name.partition(".so")[0] + ".so*"):
            if link.is_symlink() and link.resolve() == path.resolve():
                self.add_file(path, link)

    def add_programs(self, paths: Iterable[Path]) -> None:
        """Add programs or modules of programs, with the libraries that they load."""
        for path in paths:
            self.add_file(path)
            said = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
            for word in said.split():
                if word.startswith("/"):
                    self.add_file(Path(word))

    def add_python(self, script: Path, place: Path) -> None:
        """Add a script of Python's, the interpreter, and what the script imports."""
        self.add_file(script, place)
        self.add_programs([Path(python())])
        for path in _needed_files(script):
            if ".so" in path.name:
                self.add_library(path)
            else:
                self.add_file(path)

    def bytes(self) -> bytes:
        self._entry(Path("/TRAILER!!!"), b"", 0, 0)
        return b"".join(self._parts)

    def _entry(self, place: Path, content: bytes, mode: int, mtime: int) -> None:
        self._entries.add(place)
        name = str(place)[1:]
        fields = (len(self._parts) + 1, mode, 0, 0, 1, mtime, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self._parts.append(_padded(head) + _padded(content))


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def _needed_files(guest: Path) -> Iterator[Path]:
    """Yield the files that this interpreter has open or loaded once it has imported what the guest does."""
    imports = [
        line for line in guest.read_text().splitlines() if line.startswith(("import ", "from ", "sys.path"))
    ]
    script = "\n".join(
        [
            *("import sys", *imports),
            "print(*(line.split()[-1] for line in open('/proc/self/maps')), sep='\\n')",
            "modules = list(sys.modules.values())",
            "for kind in ('__file__', '__cached__'):",
            "    print(*(getattr(module, kind, None) for module in modules), sep='\\n')",
        ]
    )
    command = [python(), "-S", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONUTF8": "1"})
    for path in map(Path, dict.fromkeys(done.stdout.splitlines())):
        if path.is_absolute() and path.is_file():
            yield path


class Guest:
    """A guest that boots when a test first asks it, says what it finds, and ends.

    ``build`` makes its archive in a folder; ``missing`` says why it cannot be started here, or null.
    """

    def __init__(
        self,
        build: Callable[[Path], Path],
        missing: Callable[[], str | None],
        *,
        memory_mb: int,
        timeout_s: int,
        expected: int,
        options: str = "",
    ) -> None:
        self._build, self._missing = build, missing
        self._memory_mb, self._timeout_s, self._expected = memory_mb, timeout_s, expected
        self._options = options
        self._results: dict[str, dict[str, Any]] | None = None

    def found(self, folder: Path) -> dict[str, dict[str, Any]]:
        """Return what it found, by name; ``folder``: for its archive."""
        reason = self._missing()
        if reason is not None:
            pytest.skip(reason)
        if self._results is None:
            self._results = self._read(self._said(self._build(folder)))
        return self._results

    def _said(self, image: Path) -> str:
        """Return what it says from its start to its end."""
        command = [
            *("nice", "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-smp", "2"),
            *("-m", str(self._memory_mb)),
            *("-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot", "-nic", "none"),
            *("-kernel", str(kernel()), "-initrd", str(image)),
            *("-append", f"console=ttyS0 quiet panic=-1 psi=1 {self._options}"),
        ]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=self._timeout_s,
            check=False,
        )
        return done.stdout.decode(errors="replace")

    def _read(self, said: str) -> dict[str, dict[str, Any]]:
        lines = [line.partition("RESULT ")[2] for line in said.splitlines() if "RESULT " in line]
        found = dict(json.loads(line) for line in lines)
        assert len(found) == self._expected, said[-5000:]
        return found
