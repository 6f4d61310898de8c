import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from prony.core.errors import HostError, SubjectError
from prony.core.users import RunAs, own_folder
from prony.model.address import Address, AddressKind
from prony.model.exchange import Request
from prony.model.launch import Launch, Readiness, StopRule
from prony.model.sandbox import Network, Placement, SandboxChoice
from prony.sandbox import Sandbox, describe, open_sandbox
from prony.sandbox.exchange import Reply, exchange
from prony.sandbox.journal import RunFolder
from prony.sandbox.linux import in_network
from prony.sandbox.order import write_files

from .subjects import PYTHON, SERVER, eventually, launch_script, marked_processes

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it changes users and namespaces")

IGNORES_SIGTERM = (
    """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
"""
    + SERVER
)

# Leaves twice, as a daemon does, into a session of its own, and stays there deaf.
DAEMONISES = """
import os, signal, sys, time
mark = sys.argv[2]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        program = "import time; print('away', flush=True); time.sleep(600)"
        os.execv(sys.executable, [sys.executable, "-c", program, mark])
    os._exit(0)
time.sleep(600)
"""


def fetch(address: Address) -> Reply:
    return exchange(address, Request(), time.monotonic() + 5)


def test_a_server_becomes_ready_and_nothing_is_left(
    any_sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    launch = launch_script(any_sandbox, SERVER, "0", mark)
    with any_sandbox.start(launch, placement) as subject:
        assert subject.wait_until_ready() > 0
        assert marked_processes(mark) == [subject.pids["server"]]
        assert subject.exit_reason() is None
        assert "got /" in subject.log().text
        report = subject.stop()
    assert report.how == "ended"
    assert marked_processes(mark) == []
    assert list(any_sandbox.folder.parent.glob("*.journal")) == []


def test_a_slow_starter_is_waited_for(sandbox: Sandbox, placement: Placement) -> None:
    launch = launch_script(sandbox, SERVER, "0.5")
    with sandbox.start(launch, placement) as subject:
        assert subject.wait_until_ready(Request(path="/first")) >= 400_000_000
        assert subject.log().text == "got /first\n"


def test_a_command_before_the_server_ends_first_in_its_place_as_its_user(
    any_sandbox: Sandbox, placement: Placement
) -> None:
    program = "import os; open('filled', 'w').write(str(os.getuid())); print('filling', flush=True)"
    launch = replace(launch_script(any_sandbox, SERVER, "0"), before=(PYTHON, "-c", program))
    with any_sandbox.start(launch, placement) as subject:
        subject.wait_until_ready()
        assert subject.log().text.startswith("filling\n")
        owner = Path(f"/proc/{subject.pids['server']}").stat().st_uid
        assert (any_sandbox.folder / "filled").read_text() == str(owner)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ((PYTHON, "-c", "print('no such table'); raise SystemExit(3)"), "failed: no such table"),
        (("/nowhere/fill",), "No such file or directory"),
    ],
)
def test_a_command_before_the_server_that_fails_is_no_fault_of_the_server(
    sandbox: Sandbox, placement: Placement, before: tuple[str, ...], said: str
) -> None:
    launch = replace(launch_script(sandbox, SERVER, "0"), before=before)
    with (
        sandbox.start(launch, placement) as subject,
        pytest.raises(HostError, match="which runs before each trial") as failed,
    ):
        subject.wait_until_ready()
    assert said in failed.value.message


def test_a_server_that_is_never_ready_is_named_with_what_was_missing(
    sandbox: Sandbox, placement: Placement
) -> None:
    launch = replace(launch_script(sandbox, SERVER, "600"), readiness=Readiness(timeout_ns=300_000_000))
    with sandbox.start(launch, placement) as subject, pytest.raises(SubjectError) as caught:
        subject.wait_until_ready()
    assert caught.value.stage == "start"
    assert caught.value.message == (
        f"the server was not ready within 300 ms: nothing listens on 127.0.0.1:{launch.address.port}"
    )


def test_a_port_of_its_own_that_another_program_has_gets_no_load(
    user: RunAs, run: RunFolder, placement: Placement
) -> None:
    here = SandboxChoice(network=Network.HOST)
    one, other = (open_sandbox(here, user, run.trial_folder(name)) for name in ("one", "other"))
    holds = launch_script(one, SERVER)
    late = replace(launch_script(other, "import time; time.sleep(60)"), address=holds.address)
    with one.start(replace(holds, is_own_port=True), placement) as subject:
        assert subject.wait_until_ready() > 0
        with other.start(late, placement) as neighbour:
            assert neighbour.wait_until_ready() > 0
        with (
            other.start(replace(late, is_own_port=True), placement) as neighbour,
            pytest.raises(SubjectError, match=f"another program listens on port {holds.address.port}"),
        ):
            neighbour.wait_until_ready()


def test_death_at_the_start_gives_the_reason_and_the_last_lines(
    any_sandbox: Sandbox, placement: Placement
) -> None:
    launch = launch_script(any_sandbox, "import sys; sys.exit('no such worker class')")
    with any_sandbox.start(launch, placement) as subject, pytest.raises(SubjectError) as caught:
        subject.wait_until_ready()
    assert caught.value.message == "the server exited with status 1 before it was ready"
    assert caught.value.log == "no such worker class"


def test_a_command_that_does_not_exist_is_named(any_sandbox: Sandbox, placement: Placement) -> None:
    launch = Launch(("/no/such/server",), Address("127.0.0.1", 8000))
    with pytest.raises(SubjectError, match="cannot execute `/no/such/server`: No such file or directory"):
        any_sandbox.start(launch, placement)
    assert list(any_sandbox.folder.parent.glob("*.journal")) == []


def test_a_server_that_ignores_sigterm_is_killed_after_its_time(
    any_sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    launch = replace(
        launch_script(any_sandbox, IGNORES_SIGTERM, "0", mark), stop=StopRule(timeout_ns=200_000_000)
    )
    with any_sandbox.start(launch, placement) as subject:
        subject.wait_until_ready()
        report = subject.stop()
    assert report.how == "killed"
    assert 0.2 <= report.seconds < 2.0
    assert marked_processes(mark) == []


def test_an_interruption_while_a_deaf_server_is_ended_ends_it_at_once(
    any_sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    launch = replace(
        launch_script(any_sandbox, IGNORES_SIGTERM, "0", mark), stop=StopRule(timeout_ns=60_000_000_000)
    )
    subject = any_sandbox.start(launch, placement)
    subject.wait_until_ready()
    started_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.3):
        subject.stop()
    assert time.monotonic() - started_s < 20
    assert marked_processes(mark) == []
    assert list(any_sandbox.folder.parent.glob("*.journal")) == []


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in the block, as a second Ctrl-C does."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_daemon_in_a_session_of_its_own_is_ended_too(
    any_sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    launch = replace(launch_script(any_sandbox, DAEMONISES, mark), stop=StopRule(timeout_ns=2_000_000_000))
    with any_sandbox.start(launch, placement) as subject:
        assert eventually(lambda: "away" in subject.log().text)
        assert len(marked_processes(mark)) == 2
        report = subject.stop()
    assert report.leftovers == 1
    assert marked_processes(mark) == []


def test_an_exception_inside_the_block_leaves_nothing(
    any_sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    launch = launch_script(any_sandbox, SERVER, "0", mark)
    with pytest.raises(KeyboardInterrupt), any_sandbox.start(launch, placement):
        raise KeyboardInterrupt
    assert marked_processes(mark) == []


def test_death_under_load_is_seen(any_sandbox: Sandbox, placement: Placement) -> None:
    launch = launch_script(any_sandbox, SERVER)
    with any_sandbox.start(launch, placement) as subject:
        subject.wait_until_ready()
        os.kill(subject.pids["server"], 9)
        assert eventually(lambda: subject.exit_reason() is not None)
        assert subject.exit_reason() == "the server was killed by SIGKILL"


def test_a_chatty_server_is_neither_stopped_nor_kept_whole(sandbox: Sandbox, placement: Placement) -> None:
    script = (
        "import time\nfor n in range(200000): print(f'line {n}')\nprint('end', flush=True); time.sleep(600)"
    )
    with sandbox.start(launch_script(sandbox, script), placement) as subject:
        assert eventually(lambda: subject.log().text.endswith("end\n"), timeout_s=20)
        log = subject.log()
    assert log.truncated
    assert log.text.startswith("line 0\n")
    assert len(log.text) < 400_000


@pytest.fixture
def in_the_background() -> Iterator[None]:
    """As a shell starts a command with `&`: deaf to the keyboard's signals."""
    numbers = (signal.SIGINT, signal.SIGQUIT)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def priority() -> int:
    """What a subject has: what these tests were started with only root can take back."""
    return 0 if os.geteuid() == 0 else os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.usefixtures("in_the_background")
def test_the_subject_starts_clean(any_sandbox: Sandbox, placement: Placement) -> None:
    script = """
import os, resource, signal
print(sorted(os.sched_getaffinity(0)), os.getpriority(0, 0), os.getsid(0) == os.getpid(), os.umask(0))
print(resource.getrlimit(resource.RLIMIT_CORE), len(set(resource.getrlimit(resource.RLIMIT_NOFILE))))
print([s for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN and s not in (13, 25)])
descriptors = sorted(os.listdir("/proc/self/fd"))
print(descriptors[:3], len(descriptors), os.environ["HOME"] == os.getcwd())
open("/dev/stderr", "a").write("by name\\n")
"""
    with any_sandbox.start(launch_script(any_sandbox, script), placement) as subject:
        assert eventually(lambda: subject.exit_reason() is not None)
        assert subject.exit_reason() == "the server exited with status 0"
        text = subject.log().text
    assert sorted(text.splitlines()) == sorted(
        [
            f"{sorted(placement.server_cpus)} {priority()} True {0o022}",
            "(0, 0) 1",
            "[]",
            "['0', '1', '2'] 4 True",
            "by name",
        ]
    )


def test_a_unix_socket_is_an_address(sandbox: Sandbox, placement: Placement) -> None:
    path = sandbox.folder / "socket"
    script = """
import socket
server = socket.socket(socket.AF_UNIX)
server.bind("socket")
server.listen()
while True:
    connection, _ = server.accept()
    connection.recv(65536)
    connection.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n")
    connection.close()
"""
    launch = Launch(
        (PYTHON, "script.py"), Address(str(path), 0, AddressKind.UNIX), files={"script.py": script}
    )
    with sandbox.start(launch, placement) as subject:
        assert subject.wait_until_ready() > 0


def test_a_file_outside_the_folder_is_refused(sandbox: Sandbox, placement: Placement) -> None:
    launch = Launch(("/bin/true",), Address("127.0.0.1", 1), files={"../outside": ""})
    with pytest.raises(SubjectError, match=r"`../outside` lies outside"):
        sandbox.start(launch, placement)


def test_a_server_that_leaves_its_cpus_is_seen(any_sandbox: Sandbox, placement: Placement) -> None:
    if placement.shared:
        pytest.skip("needs two CPUs")
    if any_sandbox.facts.kind == "container":
        pytest.skip("a container holds its processes on their CPUs")
    script = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[2])})
print("moved", flush=True)
time.sleep(60)
"""
    launch = launch_script(any_sandbox, script, str(placement.generator_cpus[0]))
    with any_sandbox.start(launch, placement) as subject:
        assert eventually(lambda: "moved" in subject.log().text)
        assert subject.strays(placement) == (subject.pids["server"],)
        assert subject.strays(Placement(placement.generator_cpus, ())) == ()


def test_shared_memory_of_a_server_that_is_killed_goes_with_it(
    sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    if sandbox.facts.network != "own namespace":
        pytest.skip("needs the rights to make namespaces: on the host's network memory is the host's, too")
    script = f"""
import time
open("/dev/shm/{mark}", "w").write("left")
print("made", flush=True)
time.sleep(60)
"""
    with sandbox.start(launch_script(sandbox, script), placement) as subject:
        assert eventually(lambda: "made" in subject.log().text)
        assert not Path(f"/dev/shm/{mark}").exists()


def test_a_planted_link_is_not_followed(sandbox: Sandbox, placement: Placement) -> None:
    sandbox.folder.mkdir(exist_ok=True)

    (sandbox.folder / "inside").mkdir()
    (sandbox.folder / "script.py").symlink_to(sandbox.folder / "inside" / "target")
    (sandbox.folder / "inside" / "target").symlink_to(sandbox.folder / "other")
    with sandbox.start(launch_script(sandbox, "pass"), placement):
        assert not (sandbox.folder / "other").exists()
        assert not (sandbox.folder / "script.py").is_symlink()


@needs_root
def test_folders_are_given_away_when_all_is_in_them(
    run: RunFolder, user: RunAs, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, given = run.folder / "trial", []

    def give(path: Path, to: RunAs) -> Path:
        assert all((folder / name).is_file() for name in ("script.py", "conf/sites/one"))
        assert path.parent.stat().st_uid == 0
        given.append(path.relative_to(folder.parent))
        return own_folder(path, to)

    monkeypatch.setattr("prony.sandbox.order.own_folder", give)
    before = os.umask(0o077)
    try:
        write_files(folder, {"script.py": "", "conf/sites/one": ""}, user)
    finally:
        os.umask(before)
    assert list(map(str, given)) == ["trial/conf/sites", "trial/conf", "trial"]
    for path in (folder, folder / "conf", folder / "conf" / "sites"):
        assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (user.uid, 0o755)
    assert (folder / "script.py").stat().st_uid == 0


def test_a_secret_is_its_users_alone_and_goes_with_the_trial(
    any_sandbox: Sandbox, placement: Placement, run: RunFolder, user: RunAs
) -> None:
    launch = replace(launch_script(any_sandbox, SERVER), secrets={"key.pem": "secret"})
    key = any_sandbox.folder / "key.pem"
    with any_sandbox.start(launch, placement) as subject:
        found = key.stat()
        assert (found.st_uid, found.st_mode & 0o777) == (user.uid, 0o400)
        assert subject.seat.uid != found.st_uid or not user.drop
        assert key.read_text() == "secret"
    run.remove_trial_folder(any_sandbox.folder.name)
    assert not key.exists()


@needs_root
def test_a_secret_is_closed_to_others_from_its_first_byte_on(
    run: RunFolder, user: RunAs, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    opened = os.open

    def watched(path: object, flags: int, mode: int = 0o777, **more: int) -> int:
        modes.append((Path(str(path)).name, mode))
        return opened(str(path), flags, mode, **more)

    monkeypatch.setattr("prony.sandbox.order.os.open", watched)
    write_files(run.folder / "trial", {"script.py": ""}, user, {"key.pem": "secret"})
    assert modes == [("script.py", 0o644), ("key.pem", 0o400)]


def test_what_a_generator_keeps_lies_where_only_its_user_can_enter_and_goes_with_the_trial(
    any_sandbox: Sandbox, placement: Placement, run: RunFolder, user: RunAs
) -> None:
    with any_sandbox.start(launch_script(any_sandbox, SERVER), placement) as subject:
        kept = Path(str(subject.seat.folder))
        assert not kept.is_relative_to(any_sandbox.folder)
        assert kept.stat().st_mode & 0o777 == 0o700
        if user.drop:
            assert subject.seat.uid == kept.stat().st_uid
            assert subject.seat.uid not in (0, user.uid)
    run.remove_trial_folder(any_sandbox.folder.name)
    assert not kept.exists()


@needs_root
def test_a_folder_out_of_the_users_reach_is_named(
    sandbox: Sandbox, placement: Placement, run: RunFolder
) -> None:
    run.folder.chmod(0o700)
    with pytest.raises(SubjectError, match=r"cannot enter the folder .*: Permission denied") as caught:
        sandbox.start(launch_script(sandbox, "pass"), placement)
    assert "PRONY_CACHE" in str(caught.value.hint)


@needs_root
def test_the_subject_does_not_run_as_root(any_sandbox: Sandbox, placement: Placement, user: RunAs) -> None:
    script = "import os; print(os.getresuid(), os.getresgid(), os.getgroups()); open('writable', 'w')"
    with any_sandbox.start(launch_script(any_sandbox, script), placement) as subject:
        assert eventually(lambda: subject.exit_reason() is not None)
        groups = list(user.groups())
        assert subject.log().text == f"{(user.uid,) * 3} {(user.gid,) * 3} {groups}\n"
    assert user.uid != 0


@needs_root
def test_the_network_is_the_subjects_own(sandbox: Sandbox, placement: Placement) -> None:
    if sandbox.facts.network == Network.HOST:
        pytest.skip(sandbox.facts.missing["network namespace"])
    launch = launch_script(sandbox, SERVER)
    with sandbox.start(launch, placement) as subject:
        subject.wait_until_ready()
        with pytest.raises(ConnectionRefusedError):
            fetch(subject.address)
        reply = in_network(subject.seat.network_namespace, lambda: fetch(subject.address))
    assert reply.body == b"Hello"


@needs_root
def test_the_networks_settings_are_the_hosts(sandbox: Sandbox, placement: Placement) -> None:
    script = "print(open('/proc/sys/net/ipv4/ip_local_port_range').read().strip())"
    with sandbox.start(launch_script(sandbox, script), placement) as subject:
        assert eventually(lambda: subject.exit_reason() is not None)
        assert (
            subject.log().text.strip() == Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().strip()
        )


def test_the_hosts_network_can_be_asked_for(user: RunAs, run: RunFolder, placement: Placement) -> None:
    sandbox = open_sandbox(SandboxChoice(network=Network.HOST), user, run.trial_folder("host"))
    assert sandbox.facts.network == Network.HOST
    launch = launch_script(sandbox, SERVER)
    with sandbox.start(launch, placement) as subject:
        subject.wait_until_ready()
        assert subject.seat.network_namespace is None
        assert fetch(subject.address).body == b"Hello"


def test_facts_name_a_reason_for_what_is_absent(user: RunAs, monkeypatch: pytest.MonkeyPatch) -> None:
    denied = {"network": "Operation not permitted", "pids": None, "files": None}
    monkeypatch.setattr("prony.sandbox.process.possible_namespaces", lambda: denied)
    facts = describe(SandboxChoice(), user)
    assert (facts.network, facts.pid_namespace) == (Network.HOST, True)
    nice = {"priority": "Prony was started with `nice`, and only root can take that back"}
    assert facts.missing == {"network namespace": "Operation not permitted", **(nice if priority() else {})}


def test_where_memory_ends_the_kernel_ends_the_subject_first(
    any_sandbox: Sandbox, placement: Placement
) -> None:
    script = "print(open('/proc/self/oom_score_adj').read().strip())"
    with any_sandbox.start(launch_script(any_sandbox, script), placement) as subject:
        assert eventually(lambda: subject.exit_reason() is not None)
        assert subject.log().text.strip() == "1000"
