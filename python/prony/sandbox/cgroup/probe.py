"""Which limits hold on this machine: each is set on a test group and then exceeded on purpose.

Takes about half a second for all limits; call it once in a run.

>>> states_without("no cgroups")["cpus"].holding
<LimitHolding.AFFINITY: 'by affinity only'>
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from prony.core.errors import HostError
from prony.core.units import MIB
from prony.model.sandbox import LimitHolding, LimitState
from prony.sandbox.cgroup.scope import CgroupTree
from prony.sandbox.cgroup.types import LIMITS, Counters, LimitName, Limits

# Starting a container takes its time.
_TIMEOUT_S = 20.0
_MEMORY_BYTES = 32 * MIB
_HOG_BYTES = 3 * _MEMORY_BYTES
# Less than a busy machine leaves: a process that gets no more than its quota is never throttled.
_QUOTA = 0.05
_SPIN_S = 0.3
_PIDS = 4
_FORKS = 12

# Each script enters the group by the files in its arguments, tries to exceed the limit, and prints the
# result.
_ENTER = """
import os, sys, time
for path in sys.argv[2:]:
    with open(path, "w") as file:
        file.write("0")
"""
_HOG = _ENTER + "print(len(b'x' * int(sys.argv[1])))"
_SPIN = (
    _ENTER
    + """
end = time.monotonic() + float(sys.argv[1])
before = time.process_time()
while time.monotonic() < end:
    pass
print(time.process_time() - before)
"""
)
_FORK = (
    _ENTER
    + """
made = 0
here, there = os.pipe()
try:
    for _ in range(int(sys.argv[1])):
        if os.fork() == 0:
            os.close(there)
            os.read(here, 1)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
"""
)
_SPREAD = (
    _ENTER
    + """
import json
own = sorted(os.sched_getaffinity(0))
try:
    os.sched_setaffinity(0, json.loads(sys.argv[1]))
except OSError:
    pass
print(json.dumps([own, sorted(os.sched_getaffinity(0))]))
"""
)


Run = Callable[[Limits, "list[str]"], "Done"]


def probe_limits(tree: CgroupTree, limits: Iterable[LimitName] = LIMITS) -> Mapping[LimitName, LimitState]:
    """Return for each of these limits whether it holds, and the evidence, or why it does not hold."""
    return {
        limit: not_held(limit, tree.missing[limit])
        if limit in tree.missing
        else probe_limit(limit, partial(_run_in_group, tree, f"probe-{limit}"))
        for limit in limits
    }


def probe_limit(limit: LimitName, run: Run) -> LimitState:
    """Return whether a limit holds; ``run`` starts a Python script under limits.

    ``run`` raises RefusedError for a limit that cannot be set.
    """
    attempt = _ATTEMPTS[limit]
    try:
        held, seen = attempt.judge(run(attempt.limits(), ["-c", attempt.script, attempt.argument()]))
    except RefusedError as error:
        return not_held(limit, str(error))
    except (HostError, OSError, ValueError, subprocess.TimeoutExpired) as error:
        return not_held(limit, f"the probe failed: {error}")
    return LimitState(LimitHolding.ENFORCED, seen) if held else not_held(limit, seen)


def states_without(reason: str) -> Mapping[LimitName, LimitState]:
    """Return how far limits hold without control groups."""
    return {limit: not_held(limit, reason) for limit in LIMITS}


def not_held(limit: LimitName, reason: str) -> LimitState:
    """Return that a limit does not hold; CPUs are also set by affinity, but a server could undo that."""
    return LimitState(LimitHolding.AFFINITY if limit == "cpus" else LimitHolding.ABSENT, reason)


class RefusedError(Exception):
    """A limit cannot be set here; the text is the reason."""


class Done(NamedTuple):
    """The result of an attempt: exit status (negative: the signal), output, and the kernel's counters."""

    status: int
    said: str
    counters: Counters | None = None


class _Attempt(NamedTuple):
    """How to exceed a limit: the limits, the script and its argument, and the judge of the outcome."""

    limits: Callable[[], Limits]
    script: str
    argument: Callable[[], str]
    judge: Callable[[Done], tuple[bool, str]]


def run_python(command: Sequence[str], paths: Sequence[str] = (), folder: str | None = None) -> Done:
    """Return the result of a command that ends with a Python script, and the counters of its groups.

    *Errors*: ValueError with its last line when it failed.
    """
    done = subprocess.run(
        [*command, *paths],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=_TIMEOUT_S,
        cwd=folder,
    )
    # A container engine reports 128 plus the signal.
    status = 128 - done.returncode if done.returncode > 128 else done.returncode
    if status > 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(words[-1] if words else f"status {status}")
    return Done(status, done.stdout.decode())


def _run_in_group(tree: CgroupTree, name: str, limits: Limits, script: list[str]) -> Done:
    with tree.create(name) as group:
        refused = group.set_limits(limits)
        if refused:
            raise RefusedError(next(iter(refused.values())))
        done = run_python([sys.executable, "-I", "-S", *script], group.join_paths)
        return done._replace(counters=group.counters())


def _judge_memory(done: Done) -> tuple[bool, str]:
    asked = f"a process that used {_HOG_BYTES >> 20} MB in a group limited to {_MEMORY_BYTES >> 20} MB"
    if done.status != -signal.SIGKILL:
        return False, f"{asked} survived"
    return True, f"{asked} was killed" + (
        "" if done.counters is None or done.counters.oom_kills else ", which the kernel does not count"
    )


def _judge_quota(done: Done) -> tuple[bool, str]:
    share = float(done.said) / _SPIN_S
    seen = f"a process that used a whole CPU got {share:.0%} of it with a quota of {_QUOTA:.0%}"
    # The kernel's count decides if there is one: on a busy machine other programs may have used the rest.
    throttled = done.counters.throttled_periods if done.counters else None
    held = bool(throttled) if throttled is not None else share < 0.5
    return held and share < 0.7, seen


def _judge_pids(done: Done) -> tuple[bool, str]:
    made = int(done.said)
    return made < _FORKS, f"a process in a group limited to {_PIDS} could start {made} of {_FORKS} others"


def _judge_cpus(done: Done) -> tuple[bool, str]:
    first, then = json.loads(done.said)
    wanted = [_one_cpu()]
    if len(os.sched_getaffinity(0)) == 1:
        return False, "Prony may use only one CPU, so this cannot be tested"
    if first != wanted:
        return False, f"a process in a group limited to CPU {wanted[0]} could run on {first}"
    if then != wanted:
        return False, f"a process in a group limited to CPU {wanted[0]} could move to {then}"
    return True, f"a process in a group limited to CPU {wanted[0]} could not leave it"


def _one_cpu() -> int:
    return max(os.sched_getaffinity(0))


_ATTEMPTS: Mapping[LimitName, _Attempt] = {
    "cpus": _Attempt(
        lambda: Limits(cpus=(_one_cpu(),)),
        _SPREAD,
        lambda: json.dumps(sorted(os.sched_getaffinity(0))),
        _judge_cpus,
    ),
    "cpu_quota": _Attempt(lambda: Limits(cpu_quota=_QUOTA), _SPIN, lambda: str(_SPIN_S), _judge_quota),
    "memory": _Attempt(
        lambda: Limits(memory_bytes=_MEMORY_BYTES), _HOG, lambda: str(_HOG_BYTES), _judge_memory
    ),
    "pids": _Attempt(lambda: Limits(pids=_PIDS), _FORK, lambda: str(_FORKS), _judge_pids),
}
