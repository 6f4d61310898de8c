"""Where the generators of a fleet are: ``local:4``, ``tcp://127.0.0.1:8786``, ``tls://scheduler:8786``, or a
file that names machines.

Pure but for that file, and for looking whether the files of certificates are there.

>>> fleet_of("local:2").workers
2
>>> fleet_of("tcp://192.0.2.1:8786")
Traceback (most recent call last):
prony.errors.UsageError: `--fleet tcp://192.0.2.1:8786` has no TLS, and is not on this machine
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from prony.engine.allowed_hosts import is_loopback
from prony.engine.fleet.hosts import Hosts, read_hosts
from prony.errors import UsageError

__all__ = ["CERTIFICATE", "KEY", "ROOT", "Fleet", "fleet_of"]

ROOT, CERTIFICATE, KEY = "ca.pem", "certificate.pem", "key.pem"
"""The files of a folder of certificates."""

# Each is a process with an engine of its own.
_MOST_LOCAL = 64
_FORMS = "expected local:N, hosts.toml, tls://HOST:PORT, or tcp://127.0.0.1:PORT"


@dataclass(frozen=True, slots=True)
class Fleet:
    """A scheduler at ``url``, with ``certificates`` where it has TLS; without a url, ``workers`` here, or
    ``hosts`` over SSH.
    """

    url: str | None
    workers: int | None = None
    certificates: Path | None = None
    hosts: Hosts | None = None

    @property
    def is_here(self) -> bool:
        """Whether the generators are on this machine."""
        if self.hosts is not None:
            return self.hosts.is_here
        return self.url is None or is_loopback(urlsplit(self.url).hostname or "")


def fleet_of(text: str, certificates: Path | None = None) -> Fleet:
    """Return what ``--fleet`` says.

    *Errors*: UsageError for another form, for no TLS beyond this machine, and for missing certificates.
    """
    if text.startswith("local:"):
        return Fleet(None, _count(text))
    if text.endswith(".toml"):
        return Fleet(None, hosts=_with_certificates(read_hosts(Path(text)), text, certificates))
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


def _count(text: str) -> int:
    number = text.partition(":")[2]
    if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= _MOST_LOCAL:
        raise UsageError(f"`--fleet {text}`: expected a number of generators from 1 to {_MOST_LOCAL}")
    return int(number)


def _parts(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
    except ValueError:
        is_whole = None
    if not is_whole:
        raise UsageError(f"`--fleet {text}`: {_FORMS}")
    return parts


def _with_certificates(hosts: Hosts, text: str, given: Path | None) -> Hosts:
    """Return the machines of a file: its certificates lie beside it, unless others are ``given``."""
    folder = given or Path(text).parent / Path(hosts.certificates).expanduser()
    return hosts.model_copy(update={"certificates": str(_checked(text, folder))})


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
