"""Which hosts may be loaded: each address of a name is checked, and the one that was checked is loaded."""

import socket

import pytest

from prony.core.errors import HostError, UsageError
from prony.engine.allowed_hosts import address_of
from prony.model.address import AddressKind


def resolving(*addresses):
    """Return a resolver, and what it was asked."""
    asked = []

    def resolve(host, port):
        asked.append((host, port))
        return addresses

    return resolve, asked


def test_a_name_is_resolved_once_and_the_address_is_loaded():
    resolve, asked = resolving("192.0.2.7")
    found = address_of("shop.example", 8000, ["shop.example"], resolve)
    assert (found.host, found.port, found.kind) == ("192.0.2.7", 8000, AddressKind.TCP4)
    assert asked == [("shop.example", 8000)]


def test_a_name_is_allowed_by_its_addresses_if_all_of_them_are():
    addresses = ("192.0.2.7", "2001:db8::7")
    resolve, _ = resolving(*addresses)
    assert address_of("shop.example", 1, addresses, resolve).host == "192.0.2.7"
    with pytest.raises(UsageError) as caught:
        address_of("shop.example", 1, ["192.0.2.7"], resolve)
    assert caught.value.message.startswith("`shop.example` has the address `2001:db8::7`, which is not this")


def test_the_second_address_is_checked_too_where_the_first_is_this_machine():
    resolve, _ = resolving("127.0.0.1", "192.0.2.7")
    with pytest.raises(UsageError, match=r"has the address `192\.0\.2\.7`"):
        address_of("localhost", 1, [], resolve)


def test_the_name_of_this_machine_that_leads_elsewhere_is_refused():
    resolve, _ = resolving("192.0.2.7")
    with pytest.raises(UsageError):
        address_of("localhost", 1, [], resolve)


def test_an_address_written_in_another_way_is_the_same():
    resolve, _ = resolving("2001:db8::7")
    assert address_of("shop.example", 1, ["2001:0db8:0:0:0:0:0:7"], resolve).kind is AddressKind.TCP6


def test_no_name_is_looked_up_for_nothing():
    resolve, asked = resolving("127.0.0.1")
    with pytest.raises(UsageError):
        address_of("shop.example", 1, ["other.example"], resolve)
    assert asked == []


def test_of_several_addresses_the_first_that_listens_is_loaded():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        resolve, _ = resolving("::1", "127.0.0.2", "127.0.0.1")
        assert address_of("localhost", port, [], resolve).host == "127.0.0.1"


def test_a_name_without_an_address_is_told():
    resolve, _ = resolving()
    with pytest.raises(HostError, match="no address for `localhost`"):
        address_of("localhost", 1, [], resolve)


def test_of_a_name_with_several_addresses_all_that_listen_are_loaded_and_named():
    told = []
    with socket.create_server(("127.0.0.2", 0)) as first:
        port = first.getsockname()[1]
        with socket.create_server(("127.0.0.4", port)):
            resolve, _ = resolving("127.0.0.2", "127.0.0.3", "127.0.0.4")
            found = address_of("shop.test", port, ["shop.test"], resolve, told.append)
    assert (found.host, found.others) == ("127.0.0.2", ("127.0.0.4",))
    assert "has 3 addresses; connections go in turn to 127.0.0.2, 127.0.0.4; not to 127.0.0.3" in told[0]


def test_a_zone_is_of_this_machine_and_allows_nothing():
    resolve, _ = resolving("fe80::1%eth0")
    for allowed in (["fe80::1"], ["fe80::1%eth0"]):
        assert address_of("fe80::1%eth0", 1, allowed, resolve).host == "fe80::1%eth0"
    with pytest.raises(UsageError):
        address_of("fe80::1%eth0", 1, ["fe80::2"], resolve)
