"""Certificate authorities: a study's own, whose servers the generator verifies, and that of a fleet.

An authority's key lives in this process alone: it is made when it is first needed, and never written.

>>> Authority(Path("/nowhere")).file.name
'authority.pem'
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from prony.core.errors import HostError
from prony.model.address import TlsKey

# A trial takes minutes. The clock of a machine may be set a day on or back meanwhile, and a study take weeks.
_OF_TRIAL, _OF_STUDY = timedelta(days=3), timedelta(days=365)
_HOST, _NAME = "127.0.0.1", "localhost"


@dataclass(frozen=True, slots=True)
class Certified:
    """A server's certificate and its private key, as PEM."""

    certificate: str
    key: str = field(repr=False)


class Authority:
    """An authority that only one study believes. ``file``: its certificate, which anybody may read."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "authority.pem"

    def certify(self, kind: TlsKey, host: str = _HOST) -> Certified:
        """Return a new key of this kind with its certificate, for this machine's loopback, and for ``host``.

        *Errors*: HostError when the authority's own certificate cannot be written.
        """
        issuer, issuer_key = self._own
        key = _NEW_KEYS[kind]()
        addresses = (x509.IPAddress(ip_address(one)) for one in dict.fromkeys((_HOST, host)))
        names = x509.SubjectAlternativeName([x509.DNSName(_NAME), *addresses])
        made = (
            _begun(_NAME, key, issuer.subject, _OF_TRIAL)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([x509.OID_SERVER_AUTH]), critical=False)
            .add_extension(names, critical=False)
            .add_extension(_issued_by(issuer_key), critical=False)
        )
        return Certified(_signed(made, issuer_key), _as_pem(key))

    @cached_property
    def _own(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        text, key = _new_authority("Prony: authority of one study", _OF_STUDY)
        try:
            self.file.write_text(text)
            self.file.chmod(0o644)
        except OSError as error:
            raise HostError(f"cannot write `{self.file}`: {error.strerror}") from error
        return x509.load_pem_x509_certificate(text.encode()), key


def certify_fleet(days: int) -> tuple[str, Certified]:
    """Return the certificate of a new authority, and what each member of its fleet has: one key for all.

    Nobody can add another member: the authority's key is forgotten.
    """
    validity = timedelta(days=days)
    text, issuer_key = _new_authority(_FLEET, validity)
    key = _new_ecdsa()
    made = (
        _begun("Prony: member of a fleet", key, _named(_FLEET), validity)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(_issued_by(issuer_key), critical=False)
    )
    return text, Certified(_signed(made, issuer_key), _as_pem(key))


def fleet_fault(authority: str, member: Certified) -> str | None:
    """Return in words why nobody in a fleet would believe this member now; None: nothing is wrong."""
    try:
        issuer, own = (
            x509.load_pem_x509_certificate(one.encode()) for one in (authority, member.certificate)
        )
        key = serialization.load_pem_private_key(member.key.encode(), None)
        # Others in between, as companies have them, are looked at by who connects.
        is_chain = (authority + member.certificate).count("BEGIN CERTIFICATE") > 2
        if own.issuer == issuer.subject:
            own.verify_directly_issued_by(issuer)
        elif not is_chain:
            raise InvalidSignature
    except InvalidSignature:
        return "the certificate is of another authority"
    except (ValueError, TypeError) as error:
        return str(error)
    if key.public_key() != own.public_key():
        return "the key is of another certificate"
    now = datetime.now(UTC)
    first = max(issuer.not_valid_before_utc, own.not_valid_before_utc)
    last = min(issuer.not_valid_after_utc, own.not_valid_after_utc)
    if now > last:
        return f"they have expired, on {last:%Y-%m-%d}"
    if now < first:
        return f"by this machine's clock they are valid from {first:%Y-%m-%d} on"
    return None


_FLEET = "Prony: authority of one fleet"


def _new_authority(name: str, validity: timedelta) -> tuple[str, ec.EllipticCurvePrivateKey]:
    key = _new_ecdsa()
    made = (
        _begun(name, key, _named(name), validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True), critical=True)
    )
    return _signed(made, key), key


def _new_ecdsa() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _new_rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


_NEW_KEYS: Mapping[TlsKey, Callable[[], ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey]] = MappingProxyType(
    {TlsKey.ECDSA: _new_ecdsa, TlsKey.RSA_2048: _new_rsa}
)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.OID_COMMON_NAME, name)])


def _begun(
    name: str, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, issuer: x509.Name, validity: timedelta
) -> x509.CertificateBuilder:
    """Return what all certificates have. *Source*: RFC 5280, sections 4.1 and 4.2.1.2."""
    now, public = datetime.now(UTC), key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - validity)
        .not_valid_after(now + validity)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _issued_by(key: ec.EllipticCurvePrivateKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def _signed(made: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> str:
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def _as_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
