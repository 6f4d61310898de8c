"""``prony selftest diagnosis --rootless``: root plants, and an ordinary user's Prony observes.

Each cause is planted once, in three blocks, by its first plant: which of them does an ordinary user lose?
"""

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from prony.cli.talk import say
from prony.errors import HostError, UsageError
from prony.itself import own_command

if TYPE_CHECKING:
    from prony.faults import Plant
    from prony.runas import RunAs
    from prony.sandbox.cgroup.base import CgroupTree

__all__ = ["first_of_each", "run_rootless"]


def first_of_each(plants: "Sequence[Plant]") -> "tuple[Plant, ...]":
    """Return the first plant of each cause, in their order; no public case, and no two faults at once."""
    by_cause: dict[str, Plant] = {}
    for plant in plants:
        if plant.cause.of is None and plant.cause.named:
            by_cause.setdefault(plant.cause.name, plant)
    return tuple(by_cause.values())


def run_rootless(plants: "Sequence[Plant]", into: Path, run_as: str | None, *, blocks: int) -> None:
    """Plant the first of each cause that ``into`` does not know, and add what an ordinary user saw.

    *Errors*: HostError where Prony is not root, or where there are no control groups.
    """
    from prony.faults.sessions import is_known, trials_that_count
    from prony.runas import resolve_user
    from prony.sandbox.cgroup.base import NoCgroups
    from prony.sandbox.cgroup.scope import gain_cgroups
    from prony.study.campaign import archive_of, begun_session, kept_trials
    from prony.study.evidence_files import SessionFile, sessions_in

    user = resolve_user(run_as)
    if not user.drop:
        raise HostError(
            "`--rootless` needs root to plant, and another user to observe", hint="sudo prony ..."
        )
    tree = gain_cgroups()
    if isinstance(tree, NoCgroups):
        raise HostError(f"`--rootless` plants limits, and there are no control groups: {tree.reason}")
    there, _ = trials_that_count(sessions_in(into, rootless=True) if into.is_dir() else (), plants)
    left = [one for one in _possible(first_of_each(plants)) if not is_known(one, there, blocks)]
    file = SessionFile(into, begun_session(rootless=True))
    with tree, TemporaryDirectory(prefix="prony-rootless-") as place:
        folder = Path(place)
        os.chown(folder, user.uid, user.gid)
        for number, plant in enumerate(left):
            say(f"{number + 1} of {len(left)}, observed by {user.name}: {plant.name}")
            _observed(plant, folder, user, tree, blocks)
            trials = tuple(kept_trials(folder, plant))
            if trials:
                file.add(trials)
                archive_of(folder, plant).unlink()
    file.close()


def _possible(plants: "Sequence[Plant]") -> "Iterator[Plant]":
    """Yield the plants that an ordinary user can observe, and name the others: only root moves to a network
    that stands in for the machine's.
    """
    for plant in plants:
        if plant.pair.faulty.on_host:
            say(f"left out: {plant.name} needs root")
        else:
            yield plant


def _observed(plant: "Plant", folder: Path, user: "RunAs", tree: "CgroupTree", blocks: int) -> None:
    """Let an ordinary user's Prony measure one plant, and limit its servers meanwhile.

    *Errors*: HostError where that user cannot run it; UsageError when it ends otherwise than it should.
    """
    from prony.study.outside import plant_from_outside

    ours, theirs = socket.socketpair()
    words = own_command("selftest", "diagnosis", "--only", plant.name, "--repeats", str(blocks))
    words += ["--out", str(folder), "--planted-through", str(theirs.fileno())]
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    environment = {**kept, "HOME": str(folder), "PRONY_CACHE": str(folder / "cache")}
    with ours, theirs:
        try:
            observer = subprocess.Popen(
                words,
                user=user.uid,
                group=user.gid,
                extra_groups=list(user.groups()),
                cwd=folder,
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        except OSError as error:
            raise HostError(
                f"`{user.name}` cannot run this Prony: `{words[0]}`: {error.strerror}",
                hint="use a Python that every user may run, such as the system's, with Prony on PYTHONPATH",
            ) from error
        theirs.close()
        try:
            plant_from_outside(ours, plant, observer.pid, tree)
        finally:
            ours.close()
            status = observer.wait()
    # 1: a twin with a certain finding, which the evidence shows.
    if status not in (0, 1, 3):
        raise UsageError(f"the Prony of `{user.name}` ended with {status} on {plant.name}")
