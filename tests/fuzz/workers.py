"""Commands of Prony in forked copies of one warm process, with limits, and what they leave behind.

A fork costs milliseconds where a start costs half a second. ``warm`` comes before the first ``run``.
"""

import gc
import hashlib
import os
import resource
import select
import signal
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import NoReturn

MIB = 1024**2
TIME_LIMIT_S, MEMORY_LIMIT_BYTES = 10.0, 500 * MIB
# What hangs waits: that takes no CPU. On a busy machine all takes longer.
PATIENCE_S = 30.0
LONGEST_LINE, MOST_TALK_BYTES = 600, 20_000
# The resident set is what is judged: these only protect the machine. What draws reserves more addresses than
# any limit of them.
LIMITS = {
    resource.RLIMIT_DATA: 4096 * MIB,
    resource.RLIMIT_CPU: 30,
    resource.RLIMIT_FSIZE: 512 * MIB,
    resource.RLIMIT_NOFILE: 256,
    resource.RLIMIT_CORE: 0,
}


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended. ``status``: negative for a signal; ``time_s``: of CPU; ``rss_bytes``: its highest
    resident set.
    """

    status: int
    out_bytes: int
    err: str
    time_s: float
    rss_bytes: int


def warm(commands: Sequence[Sequence[str]]) -> None:
    """Import what commands use by running each once, and let none of them measure.

    The library that draws has threads, which do not survive a fork: nothing is drawn here.
    """
    import prony.study
    from prony.catalog.schema import loader
    from prony.cli import main
    from prony.machine.fingerprint import fingerprint

    prony.study.run_study = partial(_stop_before_measuring, fingerprint())
    prony.study.ledger.other_plan = partial(_same_plan, prony.study.ledger.other_plan)
    # It depends on no archive, and takes longer than all else.
    loader.load_catalog = cache(loader.load_catalog)
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(nowhere, number)
    sys.modules["vl_convert"] = _nothing_drawn()
    for arguments in commands:
        main._status(list(arguments))
    del sys.modules["vl_convert"]
    for number, one in enumerate(kept, 1):
        os.dup2(one, number)
    gc.collect()
    gc.freeze()


def _nothing_drawn() -> ModuleType:
    drawn = ModuleType("vl_convert")
    drawn.vegalite_to_svg = lambda *_, **__: '<svg viewBox="0 0 1 1"></svg>'
    drawn.vegalite_to_png = lambda *_, **__: b""
    return drawn


def _same_plan(other_plan, path, plan, checks) -> tuple[str, ...]:
    """Read the plan of a mutant, and go on as if it were the typed one."""
    other_plan(path, plan, checks)
    return ()


def _stop_before_measuring(machine, task, listener) -> None:
    """Read what a resumed study reads, and measure nothing."""
    from prony.study.ledger import changes, read_earlier, refuse

    earlier = read_earlier(task.out)
    found = changes(earlier, machine, list(earlier.subjects.values()))
    if found and not task.force:
        raise refuse(task.out, found)
    raise SystemExit(0)


def run(arguments: Sequence[str], folder: Path) -> Done:
    """Run a command in ``folder``, and end it when its time is over."""
    out, err = os.memfd_create("out"), os.memfd_create("err")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _child(arguments, folder, out, err)
    try:
        status, usage = _waited(child)
        said = os.pread(err, 10 * MOST_TALK_BYTES, 0).decode("utf-8", "replace")
        time_s = usage.ru_utime + usage.ru_stime
        return Done(status, os.fstat(out).st_size, said, time_s, usage.ru_maxrss * 1024)
    finally:
        os.close(out)
        os.close(err)


def _child(arguments: Sequence[str], folder: Path, out: int, err: int) -> NoReturn:
    from prony.cli import main

    try:
        os.setsid()
        os.chdir(folder)
        for number, one in ((0, os.open(os.devnull, os.O_RDONLY)), (1, out), (2, err)):
            os.dup2(one, number)
        for limit, value in LIMITS.items():
            resource.setrlimit(limit, (value, value))
        sys.argv = ["prony", *arguments]
        try:
            main.main()
        except SystemExit as ended:
            sys.stdout.flush()
            os._exit(int(ended.code or 0))
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(99)


def _waited(child: int):
    """Return how a child ended, and what it used; one that hangs is killed."""
    watch = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        if not poll.poll(PATIENCE_S * 1000):
            os.killpg(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
    finally:
        os.close(watch)
    return os.waitstatus_to_exitcode(status), usage


def breaches(done: Done) -> list[str]:
    """Return in words what an archive may make no command do."""
    refusals = [line for line in done.err.splitlines() if line.startswith("error: ")]
    found = {
        f"ended with {done.status}": done.status not in (0, 1, 2, 3),
        f"took {done.time_s:.1f} s": done.time_s > TIME_LIMIT_S,
        f"took {done.rss_bytes // MIB} MiB": done.rss_bytes > MEMORY_LIMIT_BYTES,
        "showed a traceback": "Traceback (most recent" in done.err,
        "blamed Prony": "fault in Prony" in done.err,
        "wrote nothing": done.status in (2, 3) and not (refusals or done.out_bytes),
        "refused more than once": len(refusals) > 1,
        "refused in a line without end": any(len(line) > LONGEST_LINE for line in refusals),
        "talked without end": len(done.err) > MOST_TALK_BYTES,
        "refused, and called it done": bool(refusals) and done.status in (0, 1),
    }
    return [words for words, true in found.items() if true]


def everything(*folders: Path) -> dict[str, tuple[object, ...]]:
    """Return all that is in folders: names, kinds, modes, inodes, sizes, times, contents."""
    return {str(one): _state(one) for folder in folders for one in (folder, *folder.rglob("*"))}


def _state(one: Path) -> tuple[object, ...]:
    status = one.lstat()
    content: object = None
    if stat.S_ISLNK(status.st_mode):
        content = one.readlink()
    elif stat.S_ISREG(status.st_mode) and status.st_size < 256 * MIB:
        content = hashlib.blake2b(one.read_bytes()).digest()
    return (status.st_mode, status.st_ino, status.st_nlink, status.st_size, status.st_mtime_ns, content)
