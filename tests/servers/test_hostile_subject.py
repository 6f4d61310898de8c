"""A subject that means harm: whatever it tries, nothing comes of it outside of its own folder."""

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import prony as package
from commands import UNCLAIMED, Done, passable_folder
from prony.archive import open_archive
from prony.model import Invalid
from prony.sandbox.cgroup.base import NoCgroups
from prony.sandbox.cgroup.tree import open_cgroups
from prony.sandbox.choice import Absent
from prony.sandbox.containers.found import find_engine

APP = Path(__file__).parent / "hostile.py"
NOBODY = 65534
PYTHON = "/usr/bin/python3"
SOURCE = Path(package.__file__).parent.parent

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(PYTHON).exists(), reason="needs root and the system's Python"
)


@dataclass(frozen=True)
class Attacked:
    """What the subject was let loose on: a Prony of root's, or of an ordinary user's."""

    folder: Path
    cache: Path
    word: str
    owner: int
    kind: str

    def run(
        self, *attempts: str, more: tuple[str, ...] = (), **targets: object
    ) -> tuple[Done, dict[str, object]]:
        """Run the hostile server as the subject of a study; return how that ended and what it achieved."""
        with _bait(self) as bait:
            known = {
                "word": self.word,
                "secret": f"secret-{self.word}",
                "attempts": attempts,
                "key": bait.key,
                "folders": [str(self.folder), str(self.cache)],
                "files": bait.files,
                "pids": [bait.pid],
                "closed": [str(self.folder / "closed")],
                "homes": bait.homes,
                "port": bait.port,
            } | targets
            (self.folder / "targets.json").write_text(json.dumps(known))
            shutil.copy(APP, self.folder / "hostile.py")
            done = self._prony(more)
            assert bait.lives()
        assert (self.folder / "out.prony").exists(), f"{done.out}\n{done.err}"
        with open_archive(self.folder / "out.prony") as archive:
            trials = [record.trial for record in archive.trials()]
        assert trials, done.err
        texts = [line for trial in trials for line in trial.log.text.splitlines()]
        lines = [json.loads(line) for line in texts if line.startswith('{"attempt"')]
        got = {one["attempt"]: one["got"] for one in sorted(lines, key=lambda one: bool(one["got"]))}
        assert got.pop("all tried", None), f"{trials[-1].log.text}\n{done.err}"
        return done, got

    def trial(self):
        with open_archive(self.folder / "out.prony") as archive:
            return [record.trial for record in archive.trials()][-1]

    def marks(self) -> list[str]:
        """Return what bears the test's word outside, wherever anybody may write."""
        places = [self.folder, self.cache, Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/run")]
        # At most as deep as the attack went.
        command = [
            "find",
            *map(str, places),
            "-maxdepth",
            "5",
            "-name",
            f"*{self.word}*",
            "-not",
            "-path",
            "*/proc/*",
        ]
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        return [one for one in found if Path(one) not in (self.folder, self.cache)]

    def _prony(self, more: tuple[str, ...]) -> Done:
        arguments = [
            *(
                "run",
                "--no-calibration",
                "--command",
                f"{PYTHON} hostile.py {{port}}",
                "--dir",
                str(self.folder),
            ),
            *("-c", "2", "--duration", "1s", "--warmup", "0s", "--repeats", "1", "--sandbox", self.kind),
            *(
                "--out",
                str(self.folder / "out.prony"),
                *(() if "--net" in more else ("--net", "isolated")),
                *more,
            ),
        ]
        places = [str(SOURCE), sysconfig.get_path("purelib")] if self.owner else [str(SOURCE)]
        own = {"PRONY_CACHE": str(self.cache), "SECRET_OF_THE_CALLER": f"secret-{self.word}", "NO_COLOR": "1"}
        drop = {"user": self.owner, "group": self.owner, "extra_groups": []} if self.owner else {}
        done = subprocess.run(
            [PYTHON if self.owner else sys.executable, "-B", "-c", UNCLAIMED, *arguments],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(places), **own},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **drop,
        )
        if "No module named" in done.stderr:
            pytest.skip(f"an ordinary user cannot read {SOURCE}: {done.stderr.splitlines()[-1]}")
        return Done(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class _Bait:
    pid: int
    port: int
    files: list[str]
    homes: list[str]
    key: int

    def lives(self) -> bool:
        return (
            Path(f"/proc/{self.pid}").exists()
            and "zombie" not in Path(f"/proc/{self.pid}/status").read_text()
        )


@contextlib.contextmanager
def _bait(attacked: Attacked) -> Iterator[_Bait]:
    """Yield a process of the subject's user, sockets of the host, and files that are not the subject's."""
    folder = attacked.folder
    (folder / "closed").write_text("closed")
    (folder / "closed").chmod(0o600)
    for name in ("open", "open/inner"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name).chmod(0o777)
    file = folder / "open" / "file"
    file.write_text("before")
    file.chmod(0o666)
    command = [PYTHON, "-c", "import time; time.sleep(600)", f"secret-{attacked.word}"]
    victim = subprocess.Popen(command, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    listener, abstract = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
    try:
        abstract.bind(f"\0{attacked.word}")
        abstract.listen()
        # A container shows the path to the interpreter, and nothing else.
        homes = ["/root"] if attacked.owner == 0 and attacked.kind != "container" else []
        files = [str(file), str(folder / "out.prony")]
        yield _Bait(victim.pid, listener.getsockname()[1], files, homes, int(attacked.word[-7:], 16))
        assert file.read_text() == "before"
    finally:
        victim.kill()
        victim.wait()
        listener.close()
        abstract.close()


def _attacked(who_and_kind: str) -> Iterator[Attacked]:
    who, kind = who_and_kind.split()
    if kind == "cgroup":
        if isinstance(groups := open_cgroups(), NoCgroups):
            pytest.skip(groups.reason)
        groups.close()
    if kind == "container" and isinstance(engine := find_engine(), Absent):
        pytest.skip(engine.reason)
    owner = 0 if who == "root" else NOBODY
    with passable_folder() as folder, passable_folder() as cache:
        for one in (folder, cache):
            os.chown(one, owner, owner)
        yield Attacked(folder, cache, f"prony-hostile-{secrets.token_hex(4)}", owner, kind)


@dataclass(frozen=True)
class Result:
    """What came of an attack: what each attempt got, and what it left outside."""

    attacked: Attacked
    got: dict[str, object]
    marks: list[str]

    def of(self, *attempts: str) -> dict[str, object]:
        return {name: what for name, what in self.got.items() if what and name.startswith(attempts)}


@pytest.fixture(scope="module", params=["root cgroup", "root process", "root container", "ordinary process"])
def result(request: pytest.FixtureRequest) -> Iterator[Result]:
    """Let it loose once in each kind of sandbox, with all that takes no time."""
    for attacked in _attacked(request.param):
        archive = str(attacked.folder / "out.prony")
        own = ["/root/.profile", "/root/.bashrc", str(attacked.folder / "closed")]
        closed = [archive, *([] if attacked.owner else own)]
        checked = ("--cross-check", "ab") if shutil.which("ab") else ()
        _, got = attacked.run("write", "read", "reach", "forge", more=checked, closed=closed)
        yield Result(attacked, got, attacked.marks())


def test_it_writes_nothing_outside_of_its_folder(result: Result) -> None:
    assert result.marks == []
    assert result.of("overwrite", "replace") == {}


def test_it_reads_neither_closed_files_nor_homes_nor_the_archive(result: Result) -> None:
    assert result.of("read /", "list /") == {}


def test_it_does_not_find_the_callers_environment(result: Result) -> None:
    assert result.of("read the caller's environment") == {}


def test_it_finds_no_folder_of_another_subject_or_of_a_generator(result: Result) -> None:
    assert result.of("enter another's folder") == {}


def test_it_signals_and_traces_nothing_outside(result: Result) -> None:
    assert result.of("signal", "trace") == {}


def test_it_reaches_no_address_outside_of_its_network(result: Result) -> None:
    assert result.of("connect", "see an interface") == {}


def test_its_shared_memory_ends_with_it(result: Result) -> None:
    assert str(int(result.attacked.word[-7:], 16)) not in Path("/proc/sysvipc/shm").read_text().split()


def test_it_cannot_forge_the_result_of_a_generator(result: Result) -> None:
    assert result.of("forge") == {}


@pytest.fixture(params=["root cgroup", "ordinary process"])
def attacked(request: pytest.FixtureRequest) -> Iterator[Attacked]:
    yield from _attacked(request.param)


def test_it_cannot_fill_the_disk(attacked: Attacked) -> None:
    free = os.statvfs(attacked.cache)
    most = min(8 * 1024**3, free.f_bavail * free.f_frsize // 2)
    if most < 1024**3:
        pytest.skip("needs two GiB of free space")
    _, got = attacked.run("fill", more=("--duration", "4s"), bytes=most + most // 4)
    assert got == {}
    outcome = attacked.trial().outcome
    # On a busy machine a trial counts as disturbed, whatever its server did.
    assert isinstance(outcome, Invalid) or "its files took more than" in str(outcome)


@pytest.mark.slow
def test_it_cannot_fork_without_end(attacked: Attacked) -> None:
    _, got = attacked.run("fork", more=("--duration", "10s"), forks=4200)
    assert got == {"fork without end": None}
