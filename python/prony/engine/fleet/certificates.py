"""Certificates of a fleet: one authority, and one certificate that every machine of it holds.

The key of the authority is forgotten at once: nobody can add another certificate to this fleet.

>>> sorted(certificates_of_days(1))
['ca.pem', 'certificate.pem', 'key.pem']
"""

from collections.abc import Mapping
from pathlib import Path

from prony.core.errors import HostError, UsageError
from prony.engine.fleet import CERTIFICATE, KEY, ROOT
from prony.sandbox.certificates import Certified, certify_fleet, fleet_fault


def write_certificates(folder: Path, days: int) -> None:
    """Write the files of a new fleet into a new or empty folder, which only its owner may enter.

    *Errors*: UsageError for a folder that holds something; HostError where it cannot be written.
    """
    files = certificates_of_days(days)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(
                f"`{folder}` is not empty; expected a new folder",
                hint="give the name of a folder that does not exist",
            )
        folder.chmod(0o700)
        for name, text in files.items():
            file = folder / name
            file.touch(mode=0o600)
            file.write_text(text)
    except OSError as error:
        raise HostError(f"cannot write the certificates to `{folder}`: {error.strerror}") from error


def certificates_of_days(days: int) -> Mapping[str, str]:
    """Return the files by their names, PEM: the authority, a certificate by it, and the certificate's key."""
    authority, member = certify_fleet(days)
    return {ROOT: authority, CERTIFICATE: member.certificate, KEY: member.key}


def check_certificates(folder: Path, files: Mapping[str, str]) -> None:
    """Refuse certificates of ``folder`` that no other machine would believe: Dask would try for long, and not
    say why.

    *Errors*: HostError.
    """
    fault = fleet_fault(files[ROOT], Certified(files[CERTIFICATE], files[KEY]))
    if fault is not None:
        raise HostError(
            f"the certificates in `{folder}` cannot be used: {fault}",
            hint="make new ones, and copy them to each machine: prony fleet certificates NEW-FOLDER",
        )
