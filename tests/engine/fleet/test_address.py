"""Where a fleet may be: on this machine, or behind mutual TLS."""

import pytest

from prony.core.errors import UsageError
from prony.engine.fleet import Fleet, fleet_of


@pytest.fixture
def certificates(tmp_path):
    for name in ("ca.pem", "certificate.pem", "key.pem"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_number_of_generators_here():
    assert fleet_of("local:4") == Fleet(None, 4)
    assert fleet_of("local:4@5%") == Fleet(None, 4, quota=0.05)


@pytest.mark.parametrize("url", ["tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:8786"])
def test_a_scheduler_on_the_loopback_needs_no_tls(url):
    assert fleet_of(url).is_here


@pytest.mark.parametrize("url", ["tcp://192.0.2.1:8786", "tcp://scheduler:8786", "tcp://0.0.0.0:8786"])
def test_without_tls_nothing_but_the_loopback_is_taken(url):
    with pytest.raises(UsageError, match="has no TLS, and is not on this machine"):
        fleet_of(url)


def test_tls_needs_certificates(certificates):
    fleet = fleet_of("tls://scheduler:8786", certificates)
    assert (fleet.certificates, fleet.is_here) == (certificates, False)
    assert fleet_of("tls://127.0.0.1:8786", certificates).is_here
    with pytest.raises(UsageError, match="needs certificates"):
        fleet_of("tls://scheduler:8786")
    (certificates / "key.pem").unlink()
    with pytest.raises(UsageError, match=r"lack `key\.pem`"):
        fleet_of("tls://scheduler:8786", certificates)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4",
        "local:",
        "local:0",
        "local:65",
        "local:4@",
        "local:4@0%",
        "local:4@500%",
        "local:٣",
        "http://h:1",
        "tls://h",
        "tls://:1",
        "tcp://[:1",
    ],
)
def test_other_forms_are_refused_with_what_is_expected(text):
    with pytest.raises(UsageError, match="expected"):
        fleet_of(text)
