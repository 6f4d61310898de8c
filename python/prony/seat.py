"""The generator's seat: what the sandbox gives it. Must not know how either of them works.

>>> EngineSeat(cpus=(1,)).network_namespace
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineSeat:
    """The generator's seat: in the subject's network, on its own CPUs.

    ``network_namespace`` is a file such as ``/proc/7/ns/net``, null for the host's. ``uid``, ``gid``,
    ``groups``: the user to change to after entering the namespace; null: keep the user. ``folder``: where it
    may write files, which are removed with the trial's; null: the folder of temporary files. ``joins``: the
    files by which it enters its control groups.
    """

    cpus: tuple[int, ...]
    network_namespace: str | None = None
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] | None = None
    nice: int = 0
    folder: str | None = None
    joins: tuple[str, ...] = ()
