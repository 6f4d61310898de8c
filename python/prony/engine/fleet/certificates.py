"""Certificates of a fleet: one authority, and one certificate that every machine of it holds.

The key of the authority is forgotten at once: nobody can add another certificate to this fleet.

>>> sorted(certificates_of_days(1))
['ca.pem', 'certificate.pem', 'key.pem']
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from prony.engine.fleet.address import CERTIFICATE, KEY, ROOT
from prony.errors import HostError, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder

__all__ = ["MISSING", "certificates_of_days", "write_certificates"]

MISSING = "pip install 'prony[fleet]'"
"""What installs the packages of this extra."""

_AUTHORITY, _MEMBER = "prony fleet authority", "prony fleet"


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
    """Return the files by their names, PEM: the authority, a certificate by it, and the certificate's key.

    *Errors*: HostError where the extra is not installed.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise HostError("fleets need packages that are not installed", hint=MISSING) from error

    authority, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root = _signed(_certificate(_AUTHORITY, authority, days), authority, is_authority=True)
    certificate = _signed(_certificate(_MEMBER, own, days), authority, is_authority=False)
    return {ROOT: _pem(root), CERTIFICATE: _pem(certificate), KEY: _pem_of_key(own)}


def _certificate(name: str, key: "EllipticCurvePrivateKey", days: int) -> "CertificateBuilder":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    # Clocks of machines differ.
    begin = datetime.now(UTC) - timedelta(hours=1)
    return (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(_AUTHORITY))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=days, hours=1))
    )


def _signed(
    builder: "CertificateBuilder", authority: "EllipticCurvePrivateKey", *, is_authority: bool
) -> "Certificate":
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    of_authority = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    builder = builder.add_extension(
        x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True
    )
    if is_authority:
        builder = builder.add_extension(of_authority, critical=False)
        usage = {"key_cert_sign": True, "digital_signature": False}
    else:
        issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(of_authority)
        builder = builder.add_extension(issuer, critical=False)
        usage = {"key_cert_sign": False, "digital_signature": True}
    none = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign"), False
    )
    both = {"encipher_only": False, "decipher_only": False}
    builder = builder.add_extension(x509.KeyUsage(**usage, **none, **both), critical=True)
    return builder.sign(authority, hashes.SHA256())


def _pem(certificate: "Certificate") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()


def _pem_of_key(key: "EllipticCurvePrivateKey") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
