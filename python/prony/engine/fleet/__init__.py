"""A load from several generators, on Dask distributed.

``engine`` has the order of events, ``cluster`` alone knows Dask, ``member`` is what runs on each machine; the
others are pure.

>>> from prony.engine.fleet import fleet_of
>>> fleet_of("local:4").workers
4

Where the generators of a fleet are: ``local:4``, ``tcp://127.0.0.1:8786``, ``tls://scheduler:8786``, or a
file that names machines.

Pure but for that file, and for looking whether the files of certificates, and the packages, are there.

>>> fleet_of("local:2").workers
2
>>> fleet_of("tcp://192.0.2.1:8786")
Traceback (most recent call last):
prony.core.errors.UsageError: `--fleet tcp://192.0.2.1:8786` has no TLS, and is not on this machine
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from prony.core.errors import EngineError, UsageError
from prony.engine.allowed_hosts import is_loopback
from prony.engine.fleet.hosts import Host, Hosts, read_hosts
from prony.engine.pipe import Pipe
from prony.model.json_codec import Json
from prony.model.workload import LOCAL, is_fleet

ROOT, CERTIFICATE, KEY = "ca.pem", "certificate.pem", "key.pem"
"""The files of a folder of certificates."""

NEEDS = ("fleets need packages that are not installed", "pip install 'prony[fleet]'")
"""What is wrong without the extra, and what to do."""

PIPE = "pipe:"
"""Before the descriptors by which `prony run --target` reaches the machine from which the user asked."""

_FORMS = "expected local:N, hosts.toml, tls://HOST:PORT, or tcp://127.0.0.1:PORT"


@dataclass(frozen=True, slots=True)
class Fleet:
    """A scheduler at ``url``, with ``certificates`` where it has TLS; without a url, ``workers`` here, or
    ``hosts`` over SSH. ``quota``: the share of a CPU that each engine here has at most; null: no limit.
    ``pipe``: leads to the one generator of `prony run --target`.
    """

    url: str | None
    workers: int | None = None
    certificates: Path | None = None
    hosts: Hosts | None = None
    quota: float | None = None
    pipe: Pipe | None = None

    @property
    def count(self) -> int | None:
        """How many generators are started; None: those of a scheduler."""
        return len(self.hosts.names) if self.hosts is not None else self.workers

    @property
    def is_here(self) -> bool:
        """Whether the generators are on this machine."""
        if self.pipe is not None:
            return False
        if self.hosts is not None:
            return self.hosts.is_here
        return self.url is None or is_loopback(urlsplit(self.url).hostname or "")


def encode_fleet(fleet: Fleet) -> Json:
    """Return a fleet as JSON, with paths that hold in any folder."""
    return {
        "url": fleet.url,
        "workers": fleet.workers,
        "certificates": str(fleet.certificates.absolute()) if fleet.certificates else None,
        "hosts": fleet.hosts.model_dump() if fleet.hosts else None,
    }


def decode_fleet(value: Json) -> Fleet:
    """Return the fleet that ``encode_fleet`` wrote."""
    folder, hosts = value["certificates"], value["hosts"]
    found = Hosts.model_validate(hosts) if hosts else None
    return Fleet(value["url"], value["workers"], Path(folder) if folder else None, found)


def find_fleet() -> None:
    """Return if the packages that a fleet needs are installed.

    *Errors*: EngineError.
    """
    if find_spec("distributed") is None:
        raise EngineError(NEEDS[0], hint=NEEDS[1])


def fleet_of(text: str, certificates: Path | None = None) -> Fleet:
    """Return what ``--fleet`` says.

    *Errors*: UsageError for another form, for no TLS beyond this machine, and for missing certificates.
    """
    if text.startswith(LOCAL):
        return _local(text)
    if text.startswith(PIPE):
        return Fleet(None, pipe=_pipe(text))
    if text.endswith(".toml"):
        return Fleet(None, hosts=_with_places(read_hosts(Path(text)), text, certificates))
    parts = _parts(text)
    host = parts.hostname or ""
    if parts.scheme == "tcp":
        if not is_loopback(host):
            raise UsageError(
                f"`--fleet {text}` has no TLS, and is not on this machine",
                hint="whoever reaches a scheduler can run code on its workers: use tls://, with the "
                "certificates that `prony fleet certificates DIR` makes",
            )
        return Fleet(text)
    return Fleet(text, certificates=_checked(text, certificates))


def _pipe(text: str) -> Pipe:
    """Return the pipe that whoever started Prony has opened for it, by its descriptors.

    *Errors*: UsageError.
    """
    numbers = text.removeprefix(PIPE).split(":")
    if len(numbers) != 2 or not all(one.isascii() and one.isdigit() for one in numbers):
        raise UsageError(f"`--fleet {text}`: {_FORMS}")
    return Pipe(int(numbers[0]), int(numbers[1]))


def _local(text: str) -> Fleet:
    """Return so many generators on this machine, each with so much of a CPU.

    *Errors*: UsageError.
    """
    if not is_fleet(text):
        raise UsageError(
            f"the fleet `{text}`: expected local:N with 1 to 64 generators, "
            "or local:N@P%, each with at most P % of a CPU, 1 to 99"
        )
    count, _, share = text.removeprefix(LOCAL).partition("@")
    return Fleet(None, int(count), quota=int(share.removesuffix("%")) / 100 if share else None)


def _parts(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
    except ValueError:
        is_whole = None
    if not is_whole:
        raise UsageError(f"`--fleet {text}`: {_FORMS}")
    return parts


def _with_places(hosts: Hosts, text: str, given: Path | None) -> Hosts:
    """Return the machines of a file: what it names of this machine lies beside it, unless certificates are
    ``given``.
    """

    def beside(place: str) -> str:
        return str((Path(text).parent / Path(place).expanduser()).absolute())

    def located(host: Host) -> Host:
        return host if host.identity is None else host.model_copy(update={"identity": beside(host.identity)})

    folder = given.absolute() if given else Path(beside(hosts.certificates))
    return hosts.model_copy(
        update={
            "certificates": str(_checked(text, folder)),
            "ssh_config": hosts.ssh_config and beside(hosts.ssh_config),
            "hosts": [located(one) for one in hosts.hosts],
        }
    )


def _checked(text: str, folder: Path | None) -> Path:
    if folder is None:
        raise UsageError(
            f"`--fleet {text}` needs certificates", hint="add --fleet-certificates DIR, with its certificates"
        )
    missing = [name for name in (ROOT, CERTIFICATE, KEY) if not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"the fleet's certificates in `{folder}` lack `{missing[0]}`",
            hint=f"prony fleet certificates {folder}",
        )
    return folder
