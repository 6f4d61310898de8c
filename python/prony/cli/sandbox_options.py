"""The options of a subject's sandbox, and the sandbox that they choose on this machine.

>>> rules_of("memory=2G,time=1h,host=github.com", trusted=False).hosts
('github.com',)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from prony.cli.flat import option
from prony.cli.options import memory_of, optional, share_cpus_option, trust_build_option
from prony.core.errors import UsageError
from prony.core.sysctl import why_not
from prony.core.units import parse_bytes, parse_count, parse_duration
from prony.core.users import BuildRules
from prony.model.sandbox import Network, SandboxChoice, SandboxKind
from prony.plan.factors import OF_SANDBOX, SYSCTL, Choice, Value
from prony.sandbox.choice import STRONGEST_FIRST, Chosen, Wish, choose, gain_namespaces

if TYPE_CHECKING:
    from prony.sandbox.cgroup.types import LimitName

LEAST_CPUS = 0.01
# As a study's file.
MAX_CPUS = 65_536


class SandboxWish(StrEnum):
    """How subjects are isolated and limited: one of `SandboxKind`, or the strongest available."""

    AUTO = "auto"
    PROCESS = "process"
    CGROUP = "cgroup"
    CONTAINER = "container"


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """The typed options; null: not typed."""

    PANEL: ClassVar[str] = "Sandbox"

    sandbox: SandboxWish = option(
        SandboxWish.AUTO,
        "process: CPUs by affinity; cgroup: control groups; container: Docker or Podman; "
        "auto: the strongest of process and cgroup that works here.",
    )
    net: Network | None = option(None, "Network of the server (a study: isolated; your own app: host).")
    cpu_quota: float | None = option(
        None, "Limit of CPUs for the server, e.g. 0.5 or 2.", "--cpus", min=LEAST_CPUS
    )
    memory: str | None = option(None, "Limit of memory for the server, e.g. 512M.")
    pids: int | None = option(None, "Limit of processes and threads for the server.", min=1)
    run_as: str | None = option(None, "The user that servers run as, when Prony runs as root.")
    share_cpus: bool = share_cpus_option()

    build_limits: str | None = option(
        None,
        "What a build of packages may use, and hosts that it may reach: "
        "memory=4G,processes=1000,disk=8G,time=30m,host=github.com.",
    )
    trust_build: bool = trust_build_option()

    def limits(self) -> "dict[LimitName, str]":
        """Return the limits as typed."""
        given: dict[LimitName, str | None] = {
            "cpu_quota": None if self.cpu_quota is None else f"--cpus {self.cpu_quota:g}",
            "memory": None if self.memory is None else f"--memory {self.memory}",
            "pids": None if self.pids is None else f"--pids {self.pids}",
        }
        return {name: text for name, text in given.items() if text is not None}


def chosen_sandbox(
    options: SandboxOptions,
    swept: "Mapping[str, Choice] | None" = None,
    *,
    own_app: bool,
    named: SandboxKind | None = None,
) -> "Chosen":
    """Return the sandbox to use on this machine. ``swept``: limits and settings of the kernel that were typed
    as settings of `sandbox`; ``named``: the kind that the study names, where none is typed.

    *Errors*: UsageError for an invalid limit, limits with a sandbox that cannot enforce them, or settings of
    the kernel for the host's network; HostError for a sandbox that does not work here.
    """
    from prony.sandbox.groups import look

    # A user's app may need a database on the loopback: keep that network unless asked.
    network = options.net or (Network.HOST if own_app else Network.ISOLATED)
    typed = _swept(swept or {}, network)
    if network is Network.ISOLATED:
        gain_namespaces()
    choice = SandboxChoice(
        network=network,
        share_cpus=options.share_cpus,
        run_as=options.run_as,
        cpu_quota=options.cpu_quota,
        memory_bytes=optional(memory_of, "--memory", options.memory),
        pids=options.pids,
    )
    kind = named if options.sandbox is SandboxWish.AUTO else SandboxKind(options.sandbox.value)
    wish = Wish(kind, choice, {**options.limits(), **typed})
    return choose(wish, look((kind,) if kind else STRONGEST_FIRST))


def _swept(asked: "Mapping[str, Choice]", network: Network) -> "dict[LimitName, str]":
    """Return the limits that are factors, as typed.

    *Errors*: UsageError for a limit of one value, which has an option, and for what a trial cannot have.
    """
    names: dict[str, LimitName] = {"cpus": "cpu_quota", "memory": "memory", "pids": "pids"}
    found: dict[LimitName, str] = {}
    for key, choice in asked.items():
        values = choice if isinstance(choice, tuple) else (choice,)
        typed = f"--set {OF_SANDBOX}.{key}={','.join(map(str, values))}"
        if key.startswith(f"{SYSCTL}."):
            _check_kernel(typed, key.removeprefix(f"{SYSCTL}."), values, network)
        elif key not in names:
            known = ", ".join(f"`{OF_SANDBOX}.{name}`" for name in (*names, f"{SYSCTL}.NAME"))
            raise UsageError(f"`{typed}`: expected one of {known}")
        elif len(values) == 1:
            raise UsageError(f"`{typed}`: one limit has an option of its own; expected `--{key} {values[0]}`")
        else:
            _check_limits(typed, key, values)
            found[names[key]] = typed
    return found


def _check_kernel(typed: str, name: str, values: "Sequence[Value]", network: Network) -> None:
    for value in values:
        expected = why_not(name, value)
        if expected:
            raise UsageError(f"`{typed}`: found `{name}` = `{value}`; expected {expected}")
    if network is not Network.ISOLATED:
        raise UsageError(
            f"`{typed}`: on the host's network it would be set for the whole machine",
            hint="add --net isolated, which gives each trial a network of its own",
        )


def _check_limits(typed: str, key: str, values: "Sequence[Value]") -> None:
    numbers = [_limit_of(typed, key, str(value)) for value in values]
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"`{typed}`: two of the limits are the same; expected each once")


def _limit_of(typed: str, key: str, value: str) -> float:
    if key == "memory":
        return memory_of(f"--set {OF_SANDBOX}.memory", value)
    least, parse = (LEAST_CPUS, float) if key == "cpus" else (1, int)
    try:
        number = parse(value)
    except ValueError:
        number = 0
    if not least <= number <= MAX_CPUS:
        raise UsageError(f"`{typed}`: found `{value}`; expected a number from {least:g} to {MAX_CPUS:,}")
    return number


# --- what the options of builds say -----------------------------------------------------------------------


_NAMES = ("memory", "processes", "disk", "time", "host")
_HINT = "for example --build-limits memory=4G,time=1h,host=github.com"


def rules_of(text: str | None, *, trusted: bool) -> BuildRules:
    """Return the rules that ``--build-limits`` and ``--trust-build`` give.

    *Errors*: UsageError for a limit that is none.
    """
    given: dict[str, list[str]] = {name: [] for name in _NAMES}
    for part in text.split(",") if text is not None else ():
        name, _, value = part.strip().partition("=")
        if name not in given or not value or (given[name] and name != "host"):
            raise UsageError(f"`--build-limits {text}`: `{part}` is none; expected {_expected()}", hint=_HINT)
        given[name].append(value)
    try:
        return _rules(given, trusted=trusted)
    except ValueError as error:
        raise UsageError(f"`--build-limits {text}`: {error}", hint=_HINT) from None


def _rules(given: dict[str, list[str]], *, trusted: bool) -> BuildRules:
    one = {name: values[0] for name, values in given.items() if values}
    return BuildRules(
        memory_bytes=memory_of("--build-limits memory", one["memory"]) if "memory" in one else None,
        processes=parse_count(one["processes"]) if "processes" in one else None,
        disk_bytes=parse_bytes(one["disk"]) if "disk" in one else None,
        time_ns=parse_duration(one["time"]) if "time" in one else None,
        hosts=tuple(given["host"]),
        trusted=trusted,
    )


def _expected() -> str:
    return ", ".join(f"`{name}=...`" for name in _NAMES)
