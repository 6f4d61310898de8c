"""The configuration that frontends get: how they pass requests on, by each wire and setting."""

import re

import pytest

from prony.catalog.launch import Seat, make_frontend
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import UsageError
from prony.model.address import Address, Wire
from prony.model.subject import Frontend, Interface, Subject

WIRES = (Wire.HTTP, Wire.UWSGI, Wire.FASTCGI, Wire.SCGI)
FRONTENDS = ("nginx", "nginx-keepalive", "nginx-tuned", "apache", "apache-close", "apache-keepalive")


class Installed:
    def __init__(self, entry):
        self.places = {name: f"/usr/sbin/{name}" for name in entry.install.programs}


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


@pytest.fixture
def configuration(catalog):
    """Return what gives the configuration of a frontend before a server that speaks a wire."""

    def configure(name, wire=Wire.HTTP, interface=Interface.WSGI, **settings):
        found = catalog.frontend(name)
        entry = catalog.frontends[found.entry]
        subject = Subject("s", "gunicorn", catalog.app("hello"), interface)
        launch = make_frontend(
            entry,
            subject,
            Frontend(found.entry, found.variant, settings),
            Installed(entry),
            Seat(Address("127.0.0.1", 8123), "/apps/hello", "/runs/1/frontend", 2),
            (Address("127.0.0.1", 9456, wire=wire),),
        )
        (text,) = launch.files.values()
        return text

    return configure


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", FRONTENDS)
def test_it_listens_where_it_is_told_and_reaches_only_the_server(configuration, name, wire):
    text = configuration(name, wire)
    assert "127.0.0.1:8123" in text
    assert "127.0.0.1:9456" in text
    assert "0.0.0.0" not in text


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", FRONTENDS)
def test_every_path_lies_in_its_own_folder_or_is_the_distributions(configuration, name, wire):
    paths = [word.strip('";>') for word in configuration(name, wire).split() if word.startswith("/")]
    own = [path for path in paths if path.startswith("/runs/1/frontend")]
    rest = [path for path in paths if path not in own]
    assert own
    assert all(path in ("/", "/dev/stderr") or "/modules" in path or "apache2" in path for path in rest)


@pytest.mark.parametrize(
    ("wire", "directive"),
    [(Wire.HTTP, "proxy"), (Wire.UWSGI, "uwsgi"), (Wire.FASTCGI, "fastcgi"), (Wire.SCGI, "scgi")],
)
def test_nginx_speaks_the_servers_wire(configuration, wire, directive):
    text = configuration("nginx", wire)
    assert f"{directive}_pass " in text
    assert f"{directive}_buffering on;" in text
    assert "_pass " in text
    assert text.count("_pass ") == 1


@pytest.mark.parametrize("wire", WIRES[1:])
def test_nginx_gives_the_whole_path_to_the_application(configuration, wire):
    text = configuration("nginx", wire)
    assert f'{wire}_param SCRIPT_NAME "";' in text
    assert f"{wire}_param PATH_INFO $document_uri;" in text


def test_nginx_asks_for_the_length_of_a_request_once(configuration):
    assert "CONTENT_LENGTH" not in configuration("nginx", Wire.SCGI)
    for wire in (Wire.UWSGI, Wire.FASTCGI):
        assert configuration("nginx", wire).count("_param CONTENT_LENGTH") == 1


def test_nginx_closes_connections_to_the_server_unless_told_otherwise(configuration):
    text = configuration("nginx")
    assert "proxy_http_version 1.0;" in text
    assert "proxy_set_header Connection close;" in text
    assert "keepalive 32;" not in text


def test_nginx_keeps_connections_to_the_server_when_told_to(configuration):
    text = configuration("nginx-keepalive")
    assert "proxy_http_version 1.1;" in text
    assert 'proxy_set_header Connection "";' in text
    assert "keepalive 32;" in text


def test_nginx_keeps_a_fastcgi_servers_connections_only_when_told_so_of_fastcgi(configuration):
    kept = configuration("nginx-keepalive", Wire.FASTCGI)
    assert "fastcgi_keep_conn on;" in kept
    assert "keepalive 32;" in kept
    closed = configuration("nginx-tuned", Wire.FASTCGI)
    assert "fastcgi_keep_conn off;" in closed
    assert "keepalive 32;" not in closed


def test_nginx_asks_uwsgi_for_perl_when_the_app_is_one(configuration):
    assert "uwsgi_modifier1 5;" in configuration("nginx", Wire.UWSGI, Interface.PSGI)
    assert "uwsgi_modifier1" not in configuration("nginx", Wire.UWSGI)
    assert "uwsgi_modifier1" not in configuration("nginx", Wire.HTTP, Interface.PSGI)


@pytest.mark.parametrize(
    ("name", "parameter"), [("nginx", "fastcgi_param"), ("apache", 'ProxyFCGISetEnvIf "true"')]
)
def test_php_is_asked_for_its_one_page_whatever_the_path(configuration, name, parameter):
    text = " ".join(configuration(name, Wire.FASTCGI, Interface.PHP).split())
    assert f'{parameter} SCRIPT_FILENAME "/apps/hello/hello.php"' in text
    assert f'{parameter} PATH_INFO ""' in text
    assert re.search(rf'{parameter} SCRIPT_NAME "?/hello\.php\b', text)
    assert "/apps/hello" not in configuration(name, Wire.FASTCGI)
    assert "hello.php" not in configuration(name, Wire.UWSGI, Interface.PHP)


def test_apache_leaves_reuse_of_connections_to_its_own_default(configuration):
    assert "reuse" not in configuration("apache")
    assert "reuse" not in configuration("apache", Wire.FASTCGI)
    assert configuration("apache-close").endswith(" disablereuse=on\n")
    assert configuration("apache-keepalive", Wire.FASTCGI).endswith(" enablereuse=on\n")


@pytest.mark.parametrize(
    ("workers", "threads", "limits"),
    [(400, 25, (16, 64)), (1000, 10, (100, 64)), (1024, 100, (16, 100)), (401, 1, (401, 64))],
)
def test_apaches_limits_leave_room_for_what_is_asked_for(configuration, workers, threads, limits):
    text = configuration("apache", max_request_workers=workers, threads_per_child=threads)
    assert f"ServerLimit {limits[0]}\n" in text
    assert f"ThreadLimit {limits[1]}\n" in text


def test_an_access_log_lies_in_the_trials_folder(configuration):
    assert "access_log /runs/1/frontend/access.log;" in configuration("nginx")
    assert "access_log off;" in configuration("nginx-tuned")
    assert "CustomLog" not in configuration("apache")
    assert "CustomLog /runs/1/frontend/access.log" in configuration("apache", access_log=True)


def test_http2_is_spoken_to_clients_where_that_is_asked_for(configuration):
    assert "listen 127.0.0.1:8123 backlog" in configuration("nginx")
    assert "listen 127.0.0.1:8123 http2 backlog" in configuration("nginx", http2="true")
    assert "listen 127.0.0.1:8123 ssl http2 backlog" in configuration("nginx", http2="true", tls="ecdsa")
    assert "http2" not in configuration("apache")
    assert "Protocols h2c\n" in configuration("apache", http2="true")
    encrypted = configuration("apache", http2="true", tls="ecdsa")
    assert "Protocols h2\n" in encrypted
    assert "LoadModule http2_module" in encrypted


def test_a_wire_that_it_does_not_pass_on_is_refused(catalog):
    entry = catalog.frontends["nginx"].model_copy(update={"forwards": (Wire.HTTP,)})
    subject = Subject("flup@nginx", "flup", catalog.app("hello"), Interface.WSGI)
    seat = Seat(Address("127.0.0.1", 8123), "/a", "/r", 2)
    with pytest.raises(UsageError, match="passes on http, the server speaks fastcgi"):
        make_frontend(
            entry,
            subject,
            Frontend("nginx"),
            Installed(entry),
            seat,
            (Address("127.0.0.1", 9, wire=Wire.FASTCGI),),
        )
