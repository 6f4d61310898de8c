"""`prony load --re-resolve`: new connections go where the name leads now, as far as that is allowed."""

import pytest

from counting_server import answering, connections, listening, requests
from prony.engine import allowed_hosts
from prony.engine.ways import changes_of

WAYS = ("--re-resolve", "50ms", "--requests-per-connection", "5", "-c", "2", "-d", "1.2s", "--json", "-")


@pytest.fixture
def names(monkeypatch):
    """Sets the addresses of the name: the second ones once a server has been asked; null: it has none."""

    def set_to(first, second, seen):
        def resolved(_host, _port):
            found = second if requests(seen) else first
            if found is None:
                raise OSError(-2, "Name or service not known")
            return found

        monkeypatch.setattr(allowed_hosts, "_resolved", resolved)

    return set_to


def load(said, port, *more):
    return said("load", f"http://app.test:{port}/", "--allow-host", *more, *WAYS)


def test_new_connections_go_to_the_addresses_of_now(said, names):
    with listening(answering, "127.0.0.2") as (port, first), listening(answering, "127.0.0.3", port) as other:
        names(("127.0.0.2",), ("127.0.0.3",), first)
        done = load(said, port, "app.test")
    opened = done.json["connections"]["by_address"]
    assert opened == {"127.0.0.2": connections(first), "127.0.0.3": connections(other[1])}
    assert all(opened.values())
    assert done.json["account"]["ok"] == done.json["account"]["scheduled"] > 0
    words = "`app.test` has changed: new connections go to 127.0.0.3, none go to 127.0.0.2 any more"
    assert done.err.count(words) == 1


def test_one_more_address_is_used_in_turn(said, names):
    with listening(answering, "127.0.0.2") as (port, seen), listening(answering, "127.0.0.3", port):
        names(("127.0.0.2",), ("127.0.0.3", "127.0.0.2"), seen)
        done = load(said, port, "app.test")
    assert set(done.json["connections"]["by_address"]) == {"127.0.0.2", "127.0.0.3"}
    assert "`app.test` has changed: new connections also go to 127.0.0.3\n" in done.err


def test_a_name_that_is_gone_keeps_its_addresses_and_says_so_once(said, names):
    with listening(answering, "127.0.0.2") as (port, seen):
        names(("127.0.0.2",), None, seen)
        done = load(said, port, "app.test")
    assert done.json["account"]["ok"] == done.json["account"]["scheduled"] > 0
    assert connections(seen) > 10
    words = "no address for `app.test`: Name or service not known; new connections go on to 127.0.0.2"
    assert done.err.count(words) == 1


def test_an_address_that_is_not_allowed_is_not_loaded(said, names):
    with listening(answering, "127.0.0.2") as (port, seen):
        names(("127.0.0.2",), ("192.0.2.1",), seen)
        done = load(said, port, "127.0.0.9")
    assert done.json["account"]["ok"] == done.json["account"]["scheduled"] > 0
    assert done.json["connections"]["by_address"] == {}
    assert "`app.test` has the address `192.0.2.1`, which is not this machine" in done.err
    assert "new connections go on to 127.0.0.2" in done.err


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("http://127.0.0.1:1/",), "has no name to look up: connections go to `127.0.0.1`"),
        (("unix:/run/x.sock",), "has no name to look up: connections go to `unix:/run/x.sock`"),
        (
            ("http://a.test/", "--resolve", "a.test:80:127.0.0.1"),
            "has no name to look up: connections go to `127.0.0.1`",
        ),
        (("http://localhost/", "-x", "http://127.0.0.1:1"), "`--proxy` excludes"),
        (("http://localhost:1/", "--fleet", "local:2"), "does not work with `--fleet`"),
        (("http://localhost:1/", "--compare", "http://localhost:2/"), "does not work with `--compare`"),
        (("http://localhost:1/", "--re-resolve", "0s"), "`--re-resolve 0s`: expected more than zero"),
    ],
)
def test_what_has_no_name_is_refused(said, typed, message):
    done = said("load", *(("--re-resolve", "30s") if "--re-resolve" not in typed else ()), *typed)
    assert done.status == 2
    assert message in " ".join(done.err.split())


def test_another_order_is_no_change():
    assert list(changes_of("a", ("192.0.2.1", "192.0.2.2"), ("192.0.2.2", "192.0.2.1"))) == []
