"""The sandbox `container`: on a real engine where there is one, and told why not where there is none."""

import io
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import prony
from prony.core.errors import HostError
from prony.core.users import RunAs
from prony.model.sandbox import Network, Placement, SandboxChoice, SandboxKind
from prony.sandbox import Sandbox, container_engine, open_sandbox
from prony.sandbox.cgroup.files import own_mark
from prony.sandbox.cgroup.types import LIMITS, Limits
from prony.sandbox.choice import Absent, Available
from prony.sandbox.container import inner_number
from prony.sandbox.container_engine import (
    IMAGE,
    ContainerEngine,
    containerfile,
    ensure_image,
    image_name,
    limit_options,
    limit_states,
    mounts,
    remove_images,
)
from prony.sandbox.groups import look
from prony.sandbox.journal import RunFolder
from prony.sandbox.remains import clear_containers

from .subjects import SERVER, eventually, launch_script

SOURCE = str(Path(prony.__file__).parent.parent)


# --- without an engine ------------------------------------------------------------------------------------


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ContainerEngine]:
    """Return a function that puts an engine on PATH which does what a script says; it is the only one."""

    def make(script: str) -> ContainerEngine:
        program = tmp_path / "docker"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return ContainerEngine(str(program))

    monkeypatch.setenv("PATH", str(tmp_path))
    return make


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("fake", "as_root")
def test_no_engine_on_the_path_is_the_reason() -> None:
    assert container_engine.find_engine.__wrapped__() == Absent("neither `docker` nor `podman` is on PATH")


@pytest.mark.usefixtures("as_root")
def test_an_engine_that_does_not_work_is_named_with_what_it_said(
    fake: Callable[[str], ContainerEngine],
) -> None:
    fake("echo warning >&2; echo 'Error: Cannot connect to the Docker daemon' >&2; exit 1")
    absent = container_engine.find_engine.__wrapped__()
    assert absent == Absent("`docker images`: Cannot connect to the Docker daemon")


@pytest.mark.usefixtures("as_root")
def test_an_engine_in_which_no_container_runs_is_none(fake: Callable[[str], ContainerEngine]) -> None:
    fake('[ "$1" = run ] && { echo "no such runtime" >&2; exit 125; }; exit 0')
    assert container_engine.find_engine.__wrapped__() == Absent("docker: no such runtime")


def test_containers_are_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    absent = container_engine.find_engine.__wrapped__()
    assert isinstance(absent, Absent)
    assert absent.reason == "only root can put the generator into a container's network"


def test_looking_tells_why_there_are_no_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.sandbox.groups.find_engine", lambda: Absent("planted"))
    assert look(("container",)) == Available({"container": Absent("planted")})


@pytest.mark.usefixtures("as_root")
def test_only_containers_of_pronys_that_are_gone_are_removed(
    fake: Callable[[str], ContainerEngine], tmp_path: Path
) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
    namespace = "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))  # noqa: PTH115
    start = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    labels = {
        "gone": f"prony-{boot}-{os.getpid()}-1-{namespace}",
        "alive": f"prony-{boot}-{os.getpid()}-{start}-{namespace}",
        "elsewhere": f"prony-{boot}-{os.getpid()}-1-1",
        "another": "mine",
        "none": "",
    }
    cases = "\n".join(f'{name}) echo "{label}";;' for name, label in labels.items())
    fake(
        f"""case "$1" in
        ps) echo ended {" ".join(labels)};;
        inspect) case "$4" in ended) exit 1;; {cases} esac;;
        rm) echo "$4" >> {tmp_path}/removed;;
        esac"""
    )
    assert clear_containers() == ["removed a container of docker that a killed Prony had left"]
    assert (tmp_path / "removed").read_text() == "gone\n"


def test_the_image_holds_places_and_no_program() -> None:
    content = containerfile()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        entries = archive.getmembers()
    assert {entry.name for entry in entries} >= {"usr", "etc", "proc", "tmp"}
    assert all(entry.isdir() or entry.issym() for entry in entries)
    assert (containerfile(), image_name(containerfile())) == (content, image_name(content))


def test_images_are_removed_from_every_engine_that_works(
    fake: Callable[[str], ContainerEngine], tmp_path: Path
) -> None:
    fake(f"""case "$1" in images) echo one two one;; rmi) echo "$3" >> {tmp_path}/removed;; esac""")
    broken = tmp_path / "podman"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert remove_images() == 2
    assert (tmp_path / "removed").read_text() == "one\ntwo\n"


def test_an_image_of_another_content_is_another() -> None:
    assert image_name(b"a") != image_name(b"b")


def test_limits_are_options_of_both_engines() -> None:
    assert limit_options(Limits((0, 2), 0.5, 2**26, 40)) == [
        *("--cpuset-cpus", "0,2", "--cpus", "0.5"),
        *("--memory", "67108864", "--memory-swap", "67108864", "--pids-limit", "40"),
    ]
    assert limit_options(Limits()) == ["--pids-limit", "-1"]


def test_what_is_shown_is_read_only_and_the_trials_folder_is_not(tmp_path: Path) -> None:
    inside = tmp_path / "run" / "trial"
    options = mounts([tmp_path, Path("/usr/lib")], [inside])
    assert options[-2:] == ["--mount", f"type=bind,source={inside},target={inside}"]
    assert f"type=bind,source={tmp_path},target={tmp_path},readonly" in options
    assert not any("source=/usr/lib," in option for option in options)


def test_no_name_of_a_folder_is_read_as_part_of_an_option() -> None:
    options = mounts([], [Path('/a:b,c "d"')])
    assert options[-1] == 'type=bind,"source=/a:b,c ""d""","target=/a:b,c ""d"""'


def test_a_process_that_is_in_no_other_namespace_has_its_own_number() -> None:
    assert inner_number("Name:\tx\nNSpid:\t17\n") == 17
    assert inner_number("Name:\tx\n") is None


# --- on an engine -----------------------------------------------------------------------------------------


@pytest.fixture
def container(engine: ContainerEngine, user: RunAs, run: RunFolder) -> Sandbox:
    return open_sandbox(SandboxChoice(SandboxKind.CONTAINER), user, run.trial_folder("trial"))


@pytest.mark.usefixtures("engine")
def test_every_limit_holds_in_a_container() -> None:
    states = limit_states(LIMITS)
    assert {name: state.holding for name, state in states.items()} == dict.fromkeys(LIMITS, "enforced")


def test_the_image_is_made_once(engine: ContainerEngine) -> None:
    name = ensure_image(engine)
    assert engine.ask("images", "--quiet", name) == engine.ask("images", "--quiet", ensure_image(engine))
    assert name.startswith(IMAGE)


def test_the_facts_say_what_a_container_keeps_apart(container: Sandbox, engine: ContainerEngine) -> None:
    facts = container.facts
    assert (facts.kind, facts.network, facts.pid_namespace) == ("container", Network.ISOLATED, True)
    assert facts.cpus == f"by a container of {engine.name}"
    assert facts.limits["cpus"].holding == "enforced"
    assert facts.missing == {}


def test_numbers_count_outside_and_the_bill_is_the_containers(
    container: Sandbox, placement: Placement, engine: ContainerEngine
) -> None:
    with container.start(launch_script(container, SERVER), placement) as subject:
        subject.wait_until_ready()
        pid = subject.pids["server"]
        assert b"script.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] == str(subject.tree_pid)
        assert Path(f"/proc/{pid}").stat().st_uid == container.folder.stat().st_uid
        counters = subject.counters()["server"]
        assert counters.cpu_ns
        assert counters.memory_peak_bytes
        assert list(engine.containers().values()).count(str(own_mark())) == 1
    assert str(own_mark()) not in engine.containers().values()


def test_a_container_cannot_leave_its_cpus(container: Sandbox, placement: Placement) -> None:
    if placement.shared:
        pytest.skip("needs two CPUs")
    script = """
import os, sys, time
try:
    os.sched_setaffinity(0, {int(sys.argv[2])})
except OSError:
    print("held", flush=True)
time.sleep(60)
"""
    launch = launch_script(container, script, str(placement.generator_cpus[0]))
    with container.start(launch, placement) as subject:
        assert subject.strays(placement) == ()


def test_a_container_may_write_its_own_folder_alone(container: Sandbox, placement: Placement) -> None:
    script = """
import os, sys, time
for path in ("mine", "/usr/mine", "/etc/mine"):
    try:
        open(path, "w").close()
        print("wrote", path, flush=True)
    except OSError as error:
        print("not", path, flush=True)
print("end", flush=True)
time.sleep(60)
"""
    with container.start(launch_script(container, script), placement) as subject:
        lines: list[str] = []
        while "end" not in lines:
            lines = subject.log().text.splitlines()
    assert lines == ["wrote mine", "not /usr/mine", "not /etc/mine", "end"]
    assert stat.S_ISREG((container.folder / "mine").stat().st_mode)


@pytest.mark.usefixtures("engine")
def test_a_folder_of_any_name_is_seen_in_a_container(
    user: RunAs, run: RunFolder, placement: Placement
) -> None:
    sandbox = open_sandbox(SandboxChoice(SandboxKind.CONTAINER), user, run.trial_folder('of: one, "two"'))
    with sandbox.start(launch_script(sandbox, SERVER), placement) as subject:
        subject.wait_until_ready()


def test_a_container_with_limits_has_them(
    engine: ContainerEngine, user: RunAs, run: RunFolder, placement: Placement
) -> None:
    choice = SandboxChoice(SandboxKind.CONTAINER, cpu_quota=0.5, memory_bytes=2**26, pids=20)
    sandbox = open_sandbox(choice, user, run.trial_folder("limited"))
    script = """
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except OSError:
    print("made", made, flush=True)
time.sleep(60)
"""
    with sandbox.start(launch_script(sandbox, script), placement) as subject:
        said = ""
        while "made" not in said:
            said = subject.log().text
        # The server itself is the twentieth; the supervisor is not counted against the limit.
        assert said.strip() == "made 19"
        assert subject.counters()["server"].pids_limit_hits


def test_the_hosts_network_can_be_had_in_a_container(
    engine: ContainerEngine, user: RunAs, run: RunFolder, placement: Placement
) -> None:
    sandbox = open_sandbox(
        SandboxChoice(SandboxKind.CONTAINER, network=Network.HOST), user, run.trial_folder("host")
    )
    with sandbox.start(launch_script(sandbox, SERVER), placement) as subject:
        assert subject.seat.network_namespace is None
        subject.wait_until_ready()


def test_what_the_engine_said_is_told_when_no_container_starts(
    container: Sandbox, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prony.sandbox.container.limit_options", lambda _limits: ["--cpuset-cpus", "977"])
    with pytest.raises(HostError, match=r"the supervisor ended: .*\S"):
        container.start(launch_script(container, SERVER), placement)


def test_a_container_that_a_killed_prony_left_is_removed_and_no_other(engine: ContainerEngine) -> None:
    # Its Prony is a process that has ended, and another's container bears no mark.
    script = "from prony.sandbox.cgroup.files import own_mark; print(own_mark())"
    gone = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    usable = engine.usable_engine()
    command = [*usable.command("prony-test-left", []), sys.executable, "-c", "import time; time.sleep(600)"]
    command[command.index("--label") + 1] = f"prony={gone}"
    other = [*command]
    other[other.index("--label") + 1] = "prony=mine"
    other[other.index("--name") + 1] = "prony-test-other"
    started = [subprocess.Popen(one, stdin=subprocess.PIPE) for one in (command, other)]
    try:
        assert eventually(lambda: {gone, "mine"} <= set(engine.containers().values()), timeout_s=30)
        assert clear_containers()
        marks = engine.containers().values()
        assert ("mine" in marks, gone in marks) == (True, False)
    finally:
        for name, process in zip(("prony-test-left", "prony-test-other"), started, strict=True):
            engine.remove(name)
            process.communicate(timeout=30)
