"""Certificates of a fleet: who holds them is let in, and nobody else."""

import socket
import ssl
import threading
from datetime import datetime, timedelta

import pytest

from prony.core.errors import HostError, UsageError
from prony.engine.fleet import fleet_of
from prony.engine.fleet.certificates import write_certificates
from prony.engine.fleet.cluster import opened
from prony.sandbox import certificates


def shake(server, client):
    """Return what ended a handshake between the two; null when both agreed."""
    ours, theirs = socket.socketpair()
    errors = []

    def serve():
        try:
            with server.wrap_socket(theirs, server_side=True) as connection:
                connection.recv(1)
        except ssl.SSLError as error:
            errors.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(ours) as connection:
            connection.send(b"x")
    except OSError as error:
        errors.append(error)
    thread.join()
    return errors[0] if errors else None


def context(side, trusted, own):
    """A side as Dask has it: both must show a certificate of the one authority."""
    found = ssl.SSLContext(side)
    found.check_hostname = False
    found.verify_mode = ssl.CERT_REQUIRED
    found.load_verify_locations(trusted / "ca.pem")
    if own is not None:
        found.load_cert_chain(own / "certificate.pem", own / "key.pem")
    return found


@pytest.fixture
def fleets(tmp_path):
    folders = tmp_path / "one", tmp_path / "other"
    for folder in folders:
        write_certificates(folder, 30)
    return folders


def test_members_of_a_fleet_know_each_other_and_nobody_else(fleets):
    one, other = fleets
    server = context(ssl.PROTOCOL_TLS_SERVER, one, one)
    assert shake(server, context(ssl.PROTOCOL_TLS_CLIENT, one, one)) is None
    assert shake(server, context(ssl.PROTOCOL_TLS_CLIENT, one, other)) is not None
    assert shake(server, context(ssl.PROTOCOL_TLS_CLIENT, one, None)) is not None
    assert shake(context(ssl.PROTOCOL_TLS_SERVER, one, other), context(ssl.PROTOCOL_TLS_CLIENT, one, one))


def test_a_certificate_is_no_authority(fleets):
    one, _ = fleets
    described = ssl._ssl._test_decode_cert(one / "certificate.pem")
    assert described["subject"] != described["issuer"]
    assert sorted(file.name for file in one.iterdir()) == ["ca.pem", "certificate.pem", "key.pem"]
    # The key of the authority is nowhere.
    assert "PRIVATE KEY" not in (one / "ca.pem").read_text()


def test_only_the_owner_reads_them(fleets):
    one, _ = fleets
    assert oct(one.stat().st_mode & 0o777) == "0o700"
    assert {oct(file.stat().st_mode & 0o777) for file in one.iterdir()} == {"0o600"}


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(UsageError, match="is not empty"):
        write_certificates(tmp_path, 1)
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


def refusal(folder):
    """Return what a load says of the certificates, before it asks for a scheduler."""
    with pytest.raises(HostError) as refused, opened(fleet_of("tls://127.0.0.1:9", folder)):
        pass
    assert refused.value.hint
    return refused.value.message


@pytest.mark.parametrize(
    ("days", "said"),
    [(-3, "they have expired, on "), (3, "by this machine's clock they are valid from ")],
)
def test_certificates_that_are_not_valid_today_are_named(tmp_path, monkeypatch, days, said):
    class OtherDay(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=days)

    with monkeypatch.context() as made:
        made.setattr("prony.sandbox.certificates.datetime", OtherDay)
        write_certificates(tmp_path / "certificates", 1)
    found = refusal(tmp_path / "certificates")
    assert found.startswith(f"the certificates in `{tmp_path}/certificates` cannot be used: {said}2")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ca.pem", "the certificate is of another authority"),
        ("certificate.pem", "the certificate is of another authority"),
        ("key.pem", "the key is of another certificate"),
    ],
)
def test_a_file_of_another_fleet_is_named(fleets, name, said):
    one, other = fleets
    (one / name).write_text((other / name).read_text())
    assert refusal(one) == f"the certificates in `{one}` cannot be used: {said}"


def test_what_is_no_certificate_is_said(fleets):
    (fleets[0] / "ca.pem").write_text("nothing")
    assert refusal(fleets[0]).startswith(f"the certificates in `{fleets[0]}` cannot be used: ")


def test_an_authority_that_has_expired_is_named(tmp_path, monkeypatch):
    class Earlier(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(days=3)

    folder, begun = tmp_path / "certificates", certificates._new_authority
    with monkeypatch.context() as made:

        def short(name, _validity):
            made.setattr("prony.sandbox.certificates.datetime", Earlier)
            try:
                return begun(name, timedelta(days=1))
            finally:
                made.setattr("prony.sandbox.certificates.datetime", datetime)

        made.setattr(certificates, "_new_authority", short)
        write_certificates(folder, 30)
    assert "they have expired, on " in refusal(folder)


def test_certificates_of_an_authority_of_another_name_are_refused_before_anybody_is_asked(fleets):
    one, _ = fleets
    own, _ = certificates._new_authority("Somebody else", timedelta(days=1))
    (one / "ca.pem").write_text(own)
    assert refusal(one).endswith("the certificate is of another authority")
