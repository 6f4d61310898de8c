"""What `prony load` asks of a server at an https:// URL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from prony.cli.flat import option
from prony.core.errors import UsageError
from prony.model.address import Address, Tls, TlsCipher, TlsVersion


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Whom to believe, who we are, and what to speak."""

    PANEL: ClassVar[str] = "TLS"

    cacert: Path | None = option(
        None, "PEM file of the authorities to trust (this machine's).", metavar="FILE"
    )
    cert: Path | None = option(
        None, "PEM file of a client certificate, for a server that asks for one.", metavar="FILE"
    )
    key: Path | None = option(None, "PEM file of its key.", metavar="FILE")
    insecure: bool = option(False, "Accept any certificate, and do not verify it.", "--insecure", "-k")
    sni: str | None = option(
        None, "The server's name, for its certificate and SNI (the URL's host).", metavar="NAME"
    )
    tls_min: TlsVersion = option(TlsVersion.TLS_1_2, "The lowest version of TLS to speak.")
    tls_resumption: bool = option(
        True,
        "Resume earlier sessions, or make a full handshake each time.",
        "--tls-resumption/--no-tls-resumption",
    )
    tls_cipher: list[TlsCipher] | None = option(
        None,
        "The only cipher suite to offer, such as TLS_AES_128_GCM_SHA256; may be repeated, "
        "the preferred one first (all that the engine has).",
        metavar="NAME",
    )


def refuse_without_tls(typed: Mapping[str, str], addresses: Sequence[Address]) -> None:
    """Refuse options of TLS where no address has it.

    *Errors*: UsageError for an option without effect.
    """
    wrong = [typed[one.name] for one in fields(TlsOptions) if one.name in typed]
    if wrong and not any(address.tls for address in addresses):
        raise UsageError(
            f"`{wrong[0]}` only works with TLS, and there is no `https://` URL",
            hint=f"load https://HOST[:PORT][/PATH], or leave out {wrong[0]}",
        )


def tls_of(options: TlsOptions) -> Tls:
    """Return what the options ask for.

    *Errors*: UsageError for options that exclude or need each other, and for a file that is none.
    """
    if options.insecure and options.cacert is not None:
        raise UsageError(
            "`--insecure` and `--cacert` exclude each other: one takes any certificate, the other verifies it"
        )
    if (options.cert is None) != (options.key is None):
        typed, missing = ("--cert", "--key") if options.key is None else ("--key", "--cert")
        raise UsageError(f"`{typed}` needs `{missing}`: a certificate and its key, each as a PEM file")
    ciphers = tuple(dict.fromkeys(options.tls_cipher or ()))
    if ciphers and all(one.version < options.tls_min for one in ciphers):
        raise UsageError(
            f"`--tls-cipher {ciphers[0]}` is of TLS {ciphers[0].version}, and the least version is "
            f"{options.tls_min}",
            hint=f"leave out --tls-min, or take a suite of TLS 1.3 such as {TlsCipher.AES_128}",
        )
    return Tls(
        verify=not options.insecure,
        ca_file=_file("--cacert", options.cacert),
        certificate_file=_file("--cert", options.cert),
        key_file=_file("--key", options.key),
        server_name=options.sni,
        least_version=options.tls_min,
        resumption=options.tls_resumption,
        ciphers=ciphers,
    )


def _file(option: str, file: Path | None) -> str | None:
    if file is None:
        return None
    if not file.is_file():
        raise UsageError(f"`{option} {file}` is no file; expected a PEM file")
    return str(file)
