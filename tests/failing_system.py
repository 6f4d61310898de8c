"""Runs a command of Prony again and again, and each time lets another call of the system fail.

``python failing_system.py < ORDER``: a line of JSON with ``arguments`` and ``failures``, pairs of a
place, whose first call fails, and the errno. With a null place none fails, and the answer has all ``places``.
Prints a line of JSON for each failure. What a command writes to, ``made`` in the working folder, is removed
before the next one.

A call is one that Python's audit events tell of, made by Prony's own code or by a library for it. Imports
read files too, and are left out. What C code calls (SQLite, the engine) is not seen.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import FrameType

CALLS = frozenset(
    [
        *("open", "os.mkdir", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.rmdir", "os.chmod"),
        *("os.chown", "os.truncate", "os.link", "os.symlink", "os.utime", "os.fork", "os.posix_spawn"),
        *("tempfile.mkstemp", "tempfile.mkdtemp"),
        *(
            "subprocess.Popen",
            "socket.__new__",
            "socket.bind",
            "socket.connect",
            "fcntl.flock",
            "fcntl.ioctl",
        ),
    ]
)
PRONY = f"{os.sep}prony{os.sep}"
IMPORTS = ("importlib", "zipimport", "linecache", "traceback", "encodings", "runpy", "pkgutil")


class Failing:
    """An audit hook that lets the first call of a place fail; ``place`` null: it only lists them."""

    def __init__(self, place: str | None, errno: int) -> None:
        self.place, self.errno, self.failed = place, errno, False
        self.places: dict[str, None] = {}

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event not in CALLS:
            return
        found = of_prony(sys._getframe(1))
        if found is None:
            return
        place = f"{event} in {found}"
        self.places.setdefault(place)
        if place == self.place and not self.failed:
            self.failed = True
            raise OSError(self.errno, os.strerror(self.errno), arguments[0] if event == "open" else None)


def of_prony(frame: FrameType | None) -> str | None:
    """Return the place in Prony that makes the call; null: it is an import, or not Prony's."""
    while frame is not None:
        name = frame.f_code.co_filename
        if any(part in name for part in IMPORTS):
            return None
        if PRONY in name and "site-packages" not in name:
            return f"{name.rpartition(PRONY)[2]}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def attempt(arguments: list[str], place: str | None, errno: int) -> dict[str, object]:
    """Run a command in a child and return what came of it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as told:
        child = os.fork()
        if child == 0:
            os.setsid()
            shutil.rmtree("made", ignore_errors=True)
            Path("made").mkdir()
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            run(arguments, Failing(place, errno), told.fileno())
        _, status = os.waitpid(child, 0)
        for file in (out, err, told):
            file.seek(0)
        said = json.loads(told.read() or "{}")
        return {
            "place": place,
            "status": os.waitstatus_to_exitcode(status),
            "out": out.read().decode(errors="replace"),
            "err": err.read().decode(errors="replace"),
            **said,
        }


def run(arguments: list[str], failing: Failing, told: int) -> None:
    from prony.cli.main import main

    status = 99
    sys.argv = ["prony", *arguments]
    try:
        sys.addaudithook(failing)
        main()
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        failing.place = None
        os.write(told, json.dumps({"places": list(failing.places), "failed": failing.failed}).encode())
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Answer the order."""
    order = json.loads(sys.stdin.readline())
    from prony.cli.main import app_with

    # Imported once, for all children.
    app_with()

    for place, errno in order["failures"]:
        print(json.dumps(attempt(order["arguments"], place, errno)), flush=True)


if __name__ == "__main__":
    main()
