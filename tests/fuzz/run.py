"""Lets the commands that read archives read mutants of archives: `bench/fuzz` explains how.

Each mutant lies in a folder of its own. Neither there nor in the user's folders may a command change a thing.
"""

import argparse
import json
import os
import random
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz import goldens, mutants, workers

HELP = """\
Lets the commands that read archives read archives with faults, and prints how they ended.

    bench/fuzz --count 5000 --commands 3 --keep /tmp/breaches

A seed makes a mutant of a whole archive: of its schema, its JSON, its values, blobs, rows and pages, and of
what lies beside it. Each command runs in a process of its own, with limits. It must end by itself within 10 s
of CPU time and 500 MiB, with 0 to 3; a refusal is one line; nothing in the archive's folder or in the user's
home may change, and nothing is written but the output that the command was asked for. Prints each breach with
its seed, which makes the mutant again, and the tally; exits with 1 after a breach.
"""
# `GOLDEN`: an archive that is whole; `LATER`: what the mutant was made of, measured a day later; `NEW`: a
# file or a folder that is not there.
FILE, GOLDEN, LATER, NEW = "out.prony", "GOLDEN", "LATER", "NEW"
AGAIN = ("run", "--app", "hello", "--servers", "gunicorn", "--out", FILE)
PLAIN: tuple[tuple[str, ...], ...] = (
    ("report", FILE),
    ("report", FILE, "--full"),
    ("report", FILE, "--json"),
    ("report", FILE, "--markdown", "-"),
    ("report", FILE, "--full", "--markdown", NEW),
    ("report", FILE, "--csv", NEW),
    ("report", FILE, LATER),
    ("report", LATER, FILE, "--csv", NEW),
    ("report", GOLDEN, FILE, "--json"),
    ("report", FILE, GOLDEN, "--markdown", NEW),
    ("why", FILE),
    ("why", FILE, "--json"),
    ("servers", "gunicorn", "--unit", "--from", FILE),
    ("compare", FILE, FILE),
    ("compare", FILE, GOLDEN, "--force", "--json"),
    ("compare", FILE, "gunicorn+*", "*a*i*+*", "--fail-if", "rps < -5%"),
    # With a page it would be `report --html` once more.
    (*AGAIN, "--no-html"),
    (*AGAIN, "--dry-run", "--force"),
)
# What draws starts the library for it in each process: its threads do not survive a fork.
DRAWN: tuple[tuple[str, ...], ...] = (
    ("report", FILE, "--html", NEW),
    ("report", FILE, "--html", NEW, "--redact"),
    ("report", FILE, "--figures", NEW),
    ("report", ".", "--site", NEW),
    ("report", FILE, LATER, "--html", NEW),
)
COMMANDS = (*PLAIN, *DRAWN)


@dataclass(slots=True)
class Tally:
    """What came of all mutants; what a command did that none may do is printed as it comes."""

    mutants: int = 0
    breaches: int = 0
    time_s: float = 0
    rss_bytes: int = 0
    ends: Counter[int] = field(default_factory=Counter)

    def add(self, read: dict) -> None:
        """Add one mutant."""
        self.mutants += 1
        for done in read["commands"]:
            self.ends[done["status"]] += 1
            self.time_s = max(self.time_s, done["time_s"])
            self.rss_bytes = max(self.rss_bytes, done["rss_bytes"])
            for words in done["breaches"]:
                self.breaches += 1
                print(
                    f"seed {read['seed']}: `{done['command']}` {words}\n  {read['mutant']}\n{done['err']}",
                    flush=True,
                )

    def __str__(self) -> str:
        ends = ", ".join(f"{count} with {status}" for status, count in sorted(self.ends.items()))
        return (
            f"{self.mutants} mutants, {sum(self.ends.values())} commands: {ends}; the slowest took"
            f" {self.time_s:.1f} s, the largest {self.rss_bytes / 1024**2:.0f} MiB; {self.breaches} breaches"
        )


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a worker's mutants are made and read. ``later``: the same archives, of another day; ``watched``:
    folders in which nothing may change.
    """

    goldens: Mapping[str, Path]
    later: Mapping[str, Path]
    place: Path
    outputs: Path
    watched: tuple[Path, ...]


def main() -> int:
    """Print the tally and return the exit status: 1 after a breach."""
    options = _options()
    with TemporaryDirectory(prefix="prony-fuzz-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        home = _settled(folder)
        (folder / "goldens").mkdir()
        made = goldens.prepare(folder / "goldens")
        later = goldens.a_day_later(made, folder / "goldens")
        whole = Files(made["rich"], made["begun"], later["rich"])
        workers.warm([whole.words(one, folder / f"warm-{k}") for k, one in enumerate(COMMANDS)])
        jobs = [
            _started(_ground(folder, job, made, later, home), options, job) for job in range(options.jobs)
        ]
        tally = Tally()
        # In turns: a job whose lines nobody reads stands still.
        for line in filter(None, chain.from_iterable(zip_longest(*jobs))):
            tally.add(json.loads(line))
    print(tally)
    return 1 if tally.breaches or not tally.mutants else 0


def _options() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="bench/fuzz", description=HELP, formatter_class=layout)
    parser.add_argument("--count", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the first one; the next has the next number")
    parser.add_argument("--commands", type=int, default=4, help="how many of them read each mutant")
    parser.add_argument(
        "--pages", type=float, default=0.2, help="the share of mutants of which pages are drawn too"
    )
    parser.add_argument("--seconds", type=float, default=inf, help="draw no more mutants after this time")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--keep", type=Path, help="a folder for the files of breaches, each named by its seed"
    )
    parser.add_argument("--list", action="store_true", help="say of each mutant what is wrong with it")
    return parser.parse_args()


def _settled(folder: Path) -> Path:
    """Give this process a home of its own; return it."""
    home = folder / "home"
    for name in ("cache", "temporary"):
        (home / name).mkdir(parents=True)
    os.environ.update(
        {
            "HOME": str(home),
            "PRONY_CACHE": str(home / "cache"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "TMPDIR": str(home / "temporary"),
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "PYTHONWARNINGS": "error",
            "OPENBLAS_NUM_THREADS": "1",
        }
    )
    return home


def _ground(
    folder: Path, job: int, made: Mapping[str, Path], later: Mapping[str, Path], home: Path
) -> Ground:
    place, outputs = folder / f"place-{job}", folder / f"outputs-{job}"
    outputs.mkdir()
    return Ground(made, later, place, outputs, (place, home, folder / "goldens"))


@dataclass(frozen=True, slots=True)
class Files:
    """The archives that commands name."""

    file: Path
    golden: Path
    later: Path

    def words(self, command: Sequence[str], new: Path) -> list[str]:
        """Return a command of `COMMANDS` with paths in it."""
        named = {FILE: str(self.file), GOLDEN: str(self.golden), LATER: str(self.later), NEW: str(new)}
        return [named.get(word, word) for word in command]


def _started(ground: Ground, options: argparse.Namespace, job: int) -> Iterator[str]:
    """Let a forked process read its share of the mutants; yield its lines as they come."""
    there, here = os.pipe()
    parent, until_s = os.getpid(), time.monotonic() + options.seconds
    child = os.fork()
    if child == 0:
        os.close(there)
        status = 1
        try:
            with os.fdopen(here, "w") as out:
                for seed in range(options.seed + job, options.seed + options.count, options.jobs):
                    if os.getppid() != parent or time.monotonic() > until_s:
                        break
                    out.write(json.dumps(_read_mutant(seed, ground, options)) + "\n")
                    out.flush()
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    os.close(here)
    return _lines(child, there)


def _lines(child: int, there: int) -> Iterator[str]:
    with os.fdopen(there) as lines:
        yield from lines
    if os.waitpid(child, 0)[1]:
        raise SystemExit("a worker of the fuzzer itself failed: see above")


def _read_mutant(seed: int, ground: Ground, options: argparse.Namespace) -> dict:
    """Make a mutant, and let commands read it, one after another."""
    shutil.rmtree(ground.place, ignore_errors=True)
    ground.place.mkdir()
    name, said = mutants.mutate(seed, dict(ground.goldens), ground.place / FILE)
    files = Files(Path(FILE), ground.goldens["begun"], ground.later[name])
    if options.list:
        print(seed, said, file=sys.stderr, flush=True)
    before = workers.everything(*ground.watched)
    found = []
    for command in _chosen(seed, options):
        new = ground.outputs / str(seed)
        done = workers.run(files.words(command, new), ground.place)
        after = workers.everything(*ground.watched)
        words = [*workers.breaches(done), *(f"changed {name}" for name in _changed(before, after))]
        words += _wrong_outputs(ground.outputs, new if NEW in command and done.status in (0, 1) else None)
        if words and options.keep:
            _keep(options.keep / str(seed), ground.place, said)
        before = after
        found.append(
            {
                "command": " ".join(command),
                "status": done.status,
                "time_s": done.time_s,
                "rss_bytes": done.rss_bytes,
                "breaches": words,
                "err": done.err[-3000:] if words else "",
            }
        )
    return {"seed": seed, "mutant": said, "commands": found}


def _chosen(seed: int, options: argparse.Namespace) -> list[tuple[str, ...]]:
    """Return the first command and others, so that all have their turn over the seeds."""
    draw = random.Random(seed)
    plain = [PLAIN[0], *draw.sample(PLAIN[1:], min(options.commands, len(PLAIN)) - 1)]
    return [*plain, draw.choice(DRAWN)] if draw.random() < options.pages else plain


def _wrong_outputs(folder: Path, asked: Path | None) -> list[str]:
    """Return in words what a command left besides the output that it was asked for, and remove all."""
    found = set(folder.iterdir())
    wanted = set() if asked is None else {asked}
    for one in found:
        shutil.rmtree(one) if one.is_dir() and not one.is_symlink() else one.unlink()
    return [
        *(f"left {one.name} behind" for one in sorted(found - wanted)),
        *(f"did not write {one.name}" for one in wanted - found),
    ]


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _keep(folder: Path, place: Path, said: str) -> None:
    """Keep the files of a mutant; what is no plain file is made again by its seed."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in place.iterdir():
        if one.is_file() and not one.is_symlink() and one.stat().st_size < 256 * workers.MIB:
            shutil.copyfile(one, folder / one.name)
    (folder / "what.txt").write_text(said + "\n")


if __name__ == "__main__":
    sys.exit(main())
