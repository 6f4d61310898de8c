"""What the monitor says of real servers, against what others than Prony see of them."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from commands import MAIN, OWN_CLAIM
from prony.figures.trial_metrics import role_metrics, trial_metrics
from prony.figures.validity import environment_fault, other_load
from prony.model.observation import Phase
from prony.model.trial import FaultKind, Ok
from servers.world import processes_of

pytestmark = pytest.mark.usefixtures("nothing_left")

ANSWER = """
def app(environ, start_response):
    {work}
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""
# The hundredth request of the load stops the only thread that there is.
STOP = """
import itertools, time

count = itertools.count()
"""
STOPS = "if environ['PATH_INFO'] == '/load' and next(count) == 100: time.sleep(1.5)"
BURN = "import time\n"
BURNS = "end = time.thread_time_ns() + 2_000_000\n    while time.thread_time_ns() < end: pass"


@pytest.fixture
def measure(prony, folder, trials):
    """Return a function that measures an app and returns its trials, and the report as one line.

    There is one trial, and more if the machine did something else meanwhile: the last one counts.
    """

    def run(script, *arguments, **options):
        (folder / "looked_at.py").write_text(script)
        out = folder / "out.prony"
        app = ("run", "--app", "looked_at:app", "--dir", folder, "--repeats", "1", "--out", out)
        done = prony(*app, "--no-calibration", "--full", *arguments, timeout_s=240, **options)
        assert out.exists(), done.err
        return trials(out), " ".join(done.out.split())

    return run


def needs_an_onlooker():
    if os.geteuid() != 0:
        pytest.skip("needs root: a network namespace of its own")
    missing = [program for program in ("nsenter", "ss") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} (Debian: apt install iproute2 util-linux)")


# --- the accept queue -------------------------------------------------------------------------------------


class Beside:
    """Does something again and again in a thread of its own, until it is stopped.

    Ten times a second: to Prony it is another program, which may take little of the CPUs.
    """

    def __init__(self, look):
        self._look, self._over = look, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join(60)

    def _run(self):
        while not self._over.wait(0.1):
            self._look()


class Onlooker:
    """Reads overflows in a server's network as the kernel counts them, and while they grow its queue."""

    def __init__(self, cache):
        self._cache, self._pid, self._own = cache, None, network(os.getpid())
        self.overflows, self.queue, self.limit = 0, 0, 0

    def __call__(self):
        # One server after the other: Prony starts it more than once, and loads it the last time. All
        # processes are looked through only while there is none.
        if network(self._pid) in (None, self._own):
            self._pid = self._server()
        if (overflows := listen_overflows(self._pid)) is None:
            return
        if overflows > self.overflows:
            self._look_at_the_queue(self._pid)
        self.overflows = overflows

    def _server(self):
        found = [pid for pid, command in processes_of(self._cache) if "looked_at" in command]
        return next((pid for pid in found if network(pid) not in (None, self._own)), None)

    def _look_at_the_queue(self, pid):
        """Ask the program that people use: two processes each time, so only while the queue is full."""
        enter = ("nsenter", f"--net=/proc/{pid}/ns/net")
        said = subprocess.run([*enter, "ss", "-Hltn"], check=False, capture_output=True, text=True).stdout
        for line in said.splitlines():
            queue, self.limit = map(int, line.split()[1:3])
            self.queue = max(self.queue, queue)


def network(pid):
    """Return the network that a process is in; null when there is none."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")  # noqa: PTH115
    except OSError:
        return None


def listen_overflows(pid):
    """Return the kernel's count in a process's network; null when there is none."""
    try:
        lines = Path(f"/proc/{pid}/net/netstat").read_text().splitlines()
    except OSError:
        return None
    names, values = (line.split() for line in lines if line.startswith("TcpExt:"))
    return int(values[names.index("ListenOverflows")])


def test_a_short_queue_before_a_server_that_stops_overflows_as_often_as_the_kernel_counts(prony, measure):
    needs_an_onlooker()
    onlooker = Onlooker(prony.cache)
    with Beside(onlooker):
        trials, said = measure(
            STOP + ANSWER.format(work=STOPS),
            *("--servers", "wsgiref", "--net", "isolated", "--path", "/load"),
            *("--rate", "200", "--duration", "6s", "--warmup", "0s", "--timeout", "5s"),
        )
    trial = trials[-1]
    assert trial.outcome == Ok()
    # 200 connects a second for 1.5 s, of which a queue of 5 holds 6.
    assert trial.counters["ListenOverflows"] == onlooker.overflows > 100
    assert trial.counters["TCPSynRetrans"] > 100
    metrics = trial_metrics(trial)
    assert (metrics["accept_queue_longest"], metrics["accept_queue_limit"]) == (6, 5)
    assert (onlooker.queue, onlooker.limit) == (6, 5)
    assert "connections arrived when the listen queue of 5 was full" in said


# Each worker listens itself, and answers each connection once. The first one stops soon after the load began.
SHARING = """
import os, socket, sys, time

ADDRESS, BACKLOG = (sys.argv[1], int(sys.argv[2])), 5
ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nhi"


def listening(number):
    own = socket.create_server(ADDRESS, backlog=BACKLOG, reuse_port=True)
    print(f"worker {number} listens by {os.fstat(own.fileno()).st_ino}", flush=True)
    return own


def work(number, own):
    answered = 0
    while number or answered < 20:
        connection, _ = own.accept()
        connection.recv(4096)
        connection.sendall(ANSWER)
        connection.close()
        answered += 1
    time.sleep(60)


# On the same port, and nobody's business: what people ask for figures, say.
elsewhere = socket.create_server(("127.0.0.3", ADDRESS[1]), backlog=1)
for number in range(4):
    if os.fork() == 0:
        work(number, listening(number))
os.wait()
"""


@pytest.mark.quiet  # the queues of the others stay short
@pytest.mark.parametrize("net", [pytest.param("host", marks=pytest.mark.slow), "isolated"])
def test_of_workers_that_share_an_address_the_one_whose_queue_is_full_is_told(prony, folder, trials, net):
    # The tests' own Python may not be one that an unprivileged user can reach.
    if (python := shutil.which("python3", path="/usr/local/bin:/usr/bin")) is None:
        pytest.skip("needs the system's python3")
    (folder / "sharing.py").write_text(SHARING)
    done = prony(
        *("run", "--command", f"sharing={python} sharing.py {{host}} {{port}}", "--net", net),
        *("--dir", folder, "--path", "/load", "--rate", "200", "--timeout", "500ms", "--no-calibration"),
        *("--duration", "4s", "--warmup", "0s", "--repeats", "1", "--out", folder / "out.prony"),
        *("--full", "--json", folder / "out.json"),
        timeout_s=240,
    )
    (trial,) = trials(folder / "out.prony")
    assert trial.outcome == Ok(), done.err
    inodes = dict(re.findall(r"worker (\d) listens by (\d+)", trial.log.text))
    queues = {one.inode: one for one in trial.facts.listeners if one.process == "server"}
    assert sorted(queues) == sorted(map(int, inodes.values()))
    stopped = queues.pop(int(inodes["0"]))
    assert (stopped.queued_max, stopped.limit) == (6, 5)
    assert len({stopped.address, *(one.address for one in queues.values())}) == 1
    assert all(one.queued_max < one.limit == 5 for one in queues.values())
    # In a network of its own all that listens is the server's; on the host's only what is at its address.
    elsewhere = [(one.address.split(":")[0], one.limit) for one in trial.facts.listeners if not one.process]
    assert elsewhere == ([("127.0.0.3", 1)] if net == "isolated" else [])
    told = "sharing+app: 4 listeners of the server, longest queue 6 of 5, of the others at most"
    assert told in " ".join(done.out.split())
    (cell,) = json.loads((folder / "out.json").read_text())["groups"][0]["cells"]
    assert len(cell["listeners"]["0"]) == 4 + len(elsewhere)


# --- workers ----------------------------------------------------------------------------------------------


def workers(cache):
    """Return the processes of Gunicorn whose parent is one too."""
    pids = {pid for pid, command in processes_of(cache) if "looked_at:app" in command}
    return sorted(pid for pid in pids if parent(pid) in pids)


def parent(pid):
    return int((stat(pid) or "? 0").split()[1])


def cpu_s(pid):
    fields = stat(pid).split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def stat(pid):
    """Return the fields behind a process's name; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return ""


class Killer:
    """Kills one worker of each server, once it has used more CPU than a start takes: it is under load."""

    def __init__(self, cache):
        self._cache = cache
        self._masters, self.killed_ns = set(), []

    def __call__(self):
        for pid in workers(self._cache):
            if cpu_s(pid) > 0.7 and (master := parent(pid)) not in self._masters:
                self._masters.add(master)
                os.kill(pid, signal.SIGKILL)
                self.killed_ns.append(time.monotonic_ns())
                return


@pytest.mark.quiet  # it is killed once it has used more CPU than a start takes
def test_a_worker_that_is_killed_in_the_window_is_a_restart(prony, measure):
    killer = Killer(prony.cache)
    with Beside(killer):
        (*_, trial), said = measure(
            ANSWER.format(work="pass"),
            *("--servers", "gunicorn", "--set", "gunicorn.workers=2"),
            *("-c", "4", "--duration", "6s", "--warmup", "200ms", "--timeout", "2s"),
        )
    opened, closed = (event.monotonic_ns for event in trial.events)
    assert opened < killer.killed_ns[-1] < closed
    assert trial.outcome == Ok()
    assert trial_metrics(trial)["restarts"] == 1
    by_role = {role: found["restarts"] for role, found in role_metrics(trial).items()}
    assert by_role == {"master": 0, "worker": 1}
    assert "a worker was restarted once within the window" in said


@pytest.mark.quiet  # all fifty must have started by the end of the warm-up
def test_fifty_workers_are_told_from_their_master_with_the_memory_of_each_role(measure):
    (*_, trial), _ = measure(
        ANSWER.format(work="pass"),
        *("--servers", "gunicorn", "--set", "gunicorn.workers=50"),
        # Gunicorn takes its time between one worker's start and the next's.
        *("-c", "10", "--duration", "2s", "--warmup", "8s"),
    )
    for sample in (sample for sample in trial.samples if sample.phase is Phase.WINDOW):
        assert Counter(process.role for process in sample.processes) == {"master": 1, "worker": 50}
    roles, whole = role_metrics(trial), trial_metrics(trial)
    for name in ("pss_end", "uss_end", "rss_high_water", "descriptors_end"):
        assert roles["master"][name] + roles["worker"][name] == whole[name] > 0
    assert roles["worker"]["pss_end"] > roles["master"]["pss_end"]
    assert roles["worker"]["voluntary_switches_per_s"] > roles["master"]["voluntary_switches_per_s"] > 0
    assert whole["restarts"] == whole["processes_started"] == 0


# --- threads ----------------------------------------------------------------------------------------------


@pytest.mark.quiet
@pytest.mark.parametrize(
    ("server", "least", "most"),
    [("wsgiref", 0.9, 1.01), pytest.param("waitress", 0.2, 0.6, marks=pytest.mark.slow)],
)
def test_a_server_of_one_thread_is_told_from_one_of_several(measure, server, least, most):
    (*_, trial), _ = measure(
        BURN + ANSWER.format(work=BURNS),
        *("--servers", server, "-c", "4", "--duration", "3s", "--warmup", "200ms"),
    )
    metrics = trial_metrics(trial)
    assert metrics["cpu_percent"] > 20
    assert least < metrics["busiest_thread_percent"] / metrics["cpu_percent"] < most


# --- the machine ------------------------------------------------------------------------------------------


def test_other_programs_on_the_cpus_are_told_and_make_a_trial_invalid(measure, folder):
    burn = "while :; do :; done"
    # A process is called as the file that it was started from.
    named = folder / "someones_film"
    named.symlink_to(Path(shutil.which("sh")).resolve())
    others = [
        subprocess.Popen(["taskset", "-c", str(cpu), named, "-c", burn]) for cpu in os.sched_getaffinity(0)
    ]
    try:
        (*_, trial), said = measure(
            ANSWER.format(work="pass"),
            *("--servers", "waitress", "--rate", "50", "--duration", "2s", "--warmup", "200ms"),
            program=("-c", OWN_CLAIM + MAIN),
        )
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert other_load(trial.counters) > 0.5
    assert environment_fault(trial).kind is FaultKind.OTHER_LOAD
    assert "other programs ran on its CPUs" in said
    # Others may run here, too.
    used = {one.name: one.share for one in trial.facts.others}
    assert used["someones_film"] > 0.1
    assert sum(used.values()) <= other_load(trial.counters) + 0.15
    assert re.search("For figures without other programs close .*someones_film.*, then type: prony run", said)
