"""A study's own authority: whom it certifies is believed, and its key is nowhere but in its process."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prony.core.errors import HostError
from prony.model.address import Address, Tls, TlsKey
from prony.model.exchange import Request
from prony.sandbox.certificates import Authority, Certified
from prony.sandbox.exchange import Reply, exchange

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextmanager
def serving(certified: Certified, folder: Path) -> Iterator[int]:
    """Serve one connection after the other with TLS, and yield the port."""
    (folder / "certificate.pem").write_text(certified.certificate)
    (folder / "key.pem").write_text(certified.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        serving = threading.Thread(target=answer, args=(listener, context), daemon=True)
        serving.start()
        yield listener.getsockname()[1]
        serving.join(10)


def answer(listener: socket.socket, context: ssl.SSLContext) -> None:
    connection, _ = listener.accept()
    try:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(4096)
            secure.sendall(REPLY)
    except OSError:
        connection.close()


def asked(port: int, tls: Tls, host: str = "127.0.0.1") -> Reply:
    return exchange(Address(host, port, tls=tls), Request(), time.monotonic() + 10)


@pytest.mark.parametrize("kind", TlsKey)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_with_its_certificate_is_believed(kind: TlsKey, host: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with serving(authority.certify(kind), tmp_path) as port:
        assert asked(port, Tls(ca_file=str(authority.file)), host).body == b"ok"


def test_a_server_with_a_certificate_of_another_study_is_not(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    authority.certify(TlsKey.ECDSA)
    with (
        serving(other.certify(TlsKey.ECDSA), tmp_path) as port,
        pytest.raises(ssl.SSLCertVerificationError, match="certificate"),
    ):
        asked(port, Tls(ca_file=str(authority.file)))


def test_a_key_is_of_the_kind_that_was_asked_for_and_new_each_time(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    authority = Authority(tmp_path)
    found = [load_pem_private_key(authority.certify(kind).key.encode(), None) for kind in TlsKey]
    assert isinstance(found[0], ec.EllipticCurvePrivateKey)
    assert found[0].curve.name == "secp256r1"
    assert isinstance(found[1], rsa.RSAPrivateKey)
    assert found[1].key_size == 2048
    assert authority.certify(TlsKey.ECDSA).key != authority.certify(TlsKey.ECDSA).key


def test_no_private_key_is_written_or_shown(tmp_path: Path) -> None:
    made = Authority(tmp_path).certify(TlsKey.ECDSA)
    assert [file.name for file in tmp_path.iterdir()] == ["authority.pem"]
    assert "PRIVATE" not in (tmp_path / "authority.pem").read_text()
    assert "PRIVATE" not in repr(made)


def test_nothing_is_made_before_it_is_asked_for(tmp_path: Path) -> None:
    Authority(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_certificate_outlives_a_clock_that_is_set_a_day_on_or_back(tmp_path: Path) -> None:
    from datetime import UTC, datetime, timedelta

    from cryptography.x509 import load_pem_x509_certificate

    made = load_pem_x509_certificate(Authority(tmp_path).certify(TlsKey.ECDSA).certificate.encode())
    now, two_days = datetime.now(UTC), timedelta(days=2)
    assert made.not_valid_before_utc < now - two_days
    assert now + two_days < made.not_valid_after_utc < now + timedelta(days=7)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"cannot write `.*nowhere/authority\.pem`"):
        Authority(tmp_path / "nowhere").certify(TlsKey.ECDSA)
