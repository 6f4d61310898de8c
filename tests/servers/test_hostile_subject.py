"""A subject that means harm: whatever it tries, nothing comes of it outside of its own folder."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import prony as package
from commands import BESIDE, Done, passable_folder
from prony.archive import open_archive
from prony.core.units import SECOND_NS
from prony.engine.external import TOOLS
from prony.engine.external.engine import ExternalEngine
from prony.model.address import Address
from prony.model.sandbox import EngineSeat
from prony.model.trial import Invalid
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from prony.sandbox.cgroup.scope import open_cgroups
from prony.sandbox.cgroup.types import NoCgroups
from prony.sandbox.choice import Absent
from prony.sandbox.container_engine import find_engine

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
                "held_s": 4,
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
        # What other tests do meanwhile is no reason to let it loose again: its figures are not read.
        arguments = [
            *(
                "run",
                "--no-calibration",
                "--force",
                "--command",
                f"{PYTHON} hostile.py {{port}}",
                "--dir",
                str(self.folder),
            ),
            *("-c", "2", "--warmup", "0s", "--repeats", "1", "--sandbox", self.kind),
            *(() if "--duration" in more else ("--duration", "1s")),
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
            [PYTHON if self.owner else sys.executable, "-B", "-c", BESIDE, *arguments],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(places), **own},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=240,
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
    """Yield a process of the subject's user, sockets of the host, and files that are not the subject's: those
    beside the app's folder too, for what it writes in there goes to a layer.
    """
    folder = attacked.folder
    (folder / "closed").write_text("closed")
    (folder / "closed").chmod(0o600)
    # What anybody may read: an archive of another day, and a home.
    (folder / "earlier.prony").write_text("earlier")
    home = Path(tempfile.mkdtemp(prefix="prony-home-", dir="/home"))
    home.chmod(0o755)
    (home / "private").touch()
    beside = Path(tempfile.mkdtemp(prefix="prony-open-"))
    files = [folder / "open" / "file", beside / "file"]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.parent.chmod(0o777)
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
        homes.append(str(home))
        named = [str(beside / "file"), str(folder / "out.prony")]
        yield _Bait(victim.pid, listener.getsockname()[1], named, homes, int(attacked.word[-7:], 16))
        assert [file.read_text() for file in files] == ["before"] * 2
    finally:
        shutil.rmtree(beside)
        shutil.rmtree(home)
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


# In each kind of sandbox, and of user: one of each often.
SELDOM = [
    pytest.param(one, marks=pytest.mark.slow)
    for one in ("root process", "root container", "ordinary process")
]


@pytest.fixture(scope="module", params=["root cgroup", *SELDOM])
def result(request: pytest.FixtureRequest) -> Iterator[Result]:
    """Let it loose once in each kind of sandbox, with all that takes no time."""
    for attacked in _attacked(request.param):
        archives = [str(attacked.folder / name) for name in ("out.prony", "earlier.prony")]
        own = ["/root/.profile", "/root/.bashrc", str(attacked.folder / "closed")]
        closed = [*archives, *([] if attacked.owner else own)]
        tools = [name for name in ("ab", "wrk") if shutil.which(name)]
        checked = ("--cross-check", ",".join(tools)) if tools else ()
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
    assert result.of("forge", "see the generator") == {}


# --- on the host's network, as an app of one's own ----------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=[
        "root cgroup",
        pytest.param("root process", marks=pytest.mark.slow),
        pytest.param("ordinary process", marks=pytest.mark.slow),
    ],
)
def hosted(request: pytest.FixtureRequest) -> Iterator[Result]:
    """Let it loose on the host's network, with a folder outside that anybody may write."""
    for attacked in _attacked(request.param):
        with tempfile.TemporaryDirectory(prefix="prony-outside-", dir="/srv") as outside:
            Path(outside).chmod(0o777)
            closed = [str(attacked.folder / name) for name in ("out.prony", "earlier.prony")]
            closed += [] if attacked.owner else [str(attacked.folder / "closed"), "/root/.profile"]
            _, got = attacked.run(
                *("write", "read", "reach", "forge"),
                more=("--net", "host"),
                roots={},
                folders=[str(attacked.folder), str(attacked.cache), outside],
                files=[str(attacked.folder / "out.prony")],
                closed=closed,
            )
            yield Result(attacked, got, [one for one in attacked.marks() if not one.startswith(outside)])
            subprocess.run(["ipcrm", "-M", str(int(attacked.word[-7:], 16))], check=True)


def test_on_the_hosts_network_it_changes_neither_the_cache_nor_archives(hosted: Result) -> None:
    assert hosted.marks == []
    assert hosted.of("overwrite", "replace", "read /") == {}


def test_on_the_hosts_network_it_finds_and_signals_nobody_and_forges_nothing(hosted: Result) -> None:
    apart = (
        "read the caller's environment",
        "enter another's folder",
        "signal",
        "trace",
        "forge",
        "see the g",
    )
    assert hosted.of(*apart) == {}


def test_on_the_hosts_network_it_reaches_what_its_user_may(hosted: Result) -> None:
    attempts = (
        "write anywhere",
        "connect to the host",
        "connect to a socket",
        "leave shared memory",
        "list /home",
    )
    assert {name for name in attempts if hosted.of(name)} == set(attempts)
    (written,) = hosted.of("write anywhere").values()
    assert any("prony-outside-" in one for one in written)


# --- the same without a sandbox -----------------------------------------------------------------------------

UNCONFINED = """
import os, sys
from prony.sandbox import linux
# Everything but the test's own folder is safe from it.
linux.own_mounts()
linux.make_read_only(["/"], but=[sys.argv[1]])
linux.unshare(linux.NEW_EXCHANGES)
os.chdir(os.environ["HOME"])
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Unconfined:
    """A hostile server that nothing holds back but its user, root: its port, and what it prints."""

    own: Path
    process: "subprocess.Popen[str]"
    port: int

    def got(self, *last: str) -> dict[str, object]:
        """Return what its attempts got, when each of ``last`` has come."""
        found: dict[str, object] = {}
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith('{"attempt"'):
                told = json.loads(line)
                found[told["attempt"]] = told["got"]
            if set(last) <= found.keys():
                return found
        raise AssertionError(f"it ended before {last}: {found}")


@pytest.fixture
def unconfined() -> Iterator[Unconfined]:
    """Let it loose as root with nothing around it, in a folder that is thrown away."""
    with passable_folder() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        word = f"prony-hostile-{secrets.token_hex(4)}"
        own, other = folder / "own", folder / "x.generator"
        for one in (own, other):
            one.mkdir(mode=0o700)
        for name in ("closed", "victim", "x.generator/kept"):
            (folder / name).write_text("before")
        bait = subprocess.Popen([PYTHON, "-c", "import time; time.sleep(600)", f"secret-{word}"])
        named = socket.socket(socket.AF_UNIX)
        named.bind(f"\0{word}")
        named.listen()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        targets = {
            **{"word": word, "secret": f"secret-{word}", "key": int(word[-7:], 16), "pids": [bait.pid]},
            **{"folders": [str(folder)], "files": [str(folder / "victim")], "homes": ["/root"]},
            **{"closed": [str(folder / "closed")], "port": listener.getsockname()[1]},
            **{"forks": 200, "bytes": 1024**2, "held_s": 0},
            "attempts": ["write", "read", "reach", "fork", "fill", "forge"],
        }
        (own / "targets.json").write_text(json.dumps(targets))
        shutil.copy(APP, own / "hostile.py")
        process = subprocess.Popen(
            [sys.executable, "-c", UNCONFINED, str(folder), PYTHON, "hostile.py", str(port)],
            env={**os.environ, "HOME": str(own), "SECRET_OF_THE_CALLER": f"secret-{word}"},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield Unconfined(own, process, port)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            bait.kill()
            bait.wait()
            named.close()


def test_each_attempt_succeeds_where_nothing_confines_it(unconfined: Unconfined) -> None:
    got = unconfined.got("all tried", "fork without end", "fill the disk")
    if all(name == "lo" for _, name in socket.if_nameindex()):
        del got["see an interface"]
    assert len(got) >= 15
    assert {name for name, what in got.items() if not what} == set()


def test_a_result_is_forged_where_nothing_confines_the_server(unconfined: Unconfined) -> None:
    if shutil.which("wrk") is None:
        pytest.skip("`wrk` is not installed")
    unconfined.got("all tried")
    load = Workload(ClosedLoop(2), DurationStop(SECOND_NS))
    seat = EngineSeat(tuple(os.sched_getaffinity(0)), folder=str(unconfined.own.parent / "x.generator"))
    wrk = ExternalEngine(EngineChoice("wrk"), TOOLS["wrk"])
    recording = wrk.run(load, Address("127.0.0.1", unconfined.port), seat, lambda _: None)
    assert recording.account.ok == 999_999


# --- what exhausts ------------------------------------------------------------------------------------------


@pytest.fixture(params=["root cgroup", pytest.param("ordinary process", marks=pytest.mark.slow)])
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
    _, got = attacked.run("fork", more=("--duration", "10s"), forks=9000)
    assert got == {"fork without end": None}


@pytest.mark.slow
def test_it_cannot_take_all_memory(attacked: Attacked) -> None:
    """Root's subject meets its ceiling; an ordinary user's takes what there is: here a group of 3 GiB."""
    mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    with _group_of(3 << 30) if attacked.owner else contextlib.nullcontext():
        done, got = attacked.run("swell", more=("--duration", "20s"), mib=mib)
    assert (got, done.status in (0, 3)) == ({}, True)


@contextlib.contextmanager
def _group_of(most_bytes: int) -> Iterator[None]:
    """Let this process, and all it starts, have so much memory (version 1 of control groups)."""
    group = Path(f"/sys/fs/cgroup/memory/prony-test-{os.getpid()}")
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(most_bytes))
    except OSError as error:
        pytest.skip(f"no group for memory: {error}")
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(os.getpid()))
        with contextlib.suppress(OSError):
            group.rmdir()


@pytest.mark.slow
def test_it_cannot_use_up_the_inodes(attacked: Attacked) -> None:
    # It answers meanwhile, and makes some 3,000 a second: the ceiling is reached within a minute or so.
    _, got = attacked.run("make files", more=("--duration", "150s"), count=400_000)
    assert got == {}
    outcome = attacked.trial().outcome
    assert "its files were more than" in str(outcome)


def test_it_cannot_make_its_archive_unreadable(attacked: Attacked) -> None:
    _, got = attacked.run("crowd", more=("--duration", "2s"))
    assert got == {"listen without end": 3001}
    assert attacked.trial().facts.free["listeners_left_out"] > 2000
