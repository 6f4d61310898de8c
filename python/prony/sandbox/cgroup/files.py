"""The operations on a cgroup file system, so that a test can replace the kernel.

Must not know what the files mean.

>>> KernelFiles().folders(Path("/proc/self/fdinfo"))
[]
"""

import os
from pathlib import Path
from typing import Protocol


class CgroupFiles(Protocol):
    """The operations on the files and folders of a cgroup file system. All may raise OSError."""

    def read(self, path: Path) -> str:
        """Return the text of a file."""
        ...

    def write(self, path: Path, text: str) -> None:
        """Write a file that the kernel has made."""
        ...

    def make(self, path: Path) -> None:
        """Create one group."""
        ...

    def remove(self, path: Path) -> None:
        """Remove one group, which must be empty."""
        ...

    def folders(self, path: Path) -> list[str]:
        """Return the names of the groups directly below; links do not count."""
        ...

    def owner(self, path: Path) -> int:
        """Return the uid of a group's owner."""
        ...


class KernelFiles:
    """See ``CgroupFiles``: the kernel's."""

    def read(self, path: Path) -> str:
        """Return the text of a file."""
        return path.read_text()

    def write(self, path: Path, text: str) -> None:
        """Write a file that the kernel has made, in one call, as the kernel expects."""
        # Never O_CREAT: where the kernel has no such file, that is the answer.
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def make(self, path: Path) -> None:
        """Create one group."""
        path.mkdir(mode=0o755)

    def remove(self, path: Path) -> None:
        """Remove one group, which must be empty."""
        path.rmdir()

    def folders(self, path: Path) -> list[str]:
        """Return the names of the groups directly below; links do not count."""
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    def owner(self, path: Path) -> int:
        """Return the uid of a group's owner."""
        return path.lstat().st_uid
