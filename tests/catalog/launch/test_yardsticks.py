"""Servers that host no app but answer like one: what their sources and their entries say agrees."""

import re
import tomllib

import pytest

from prony.catalog.launch import Seat, make_launch
from prony.catalog.schema.loader import BUILT_IN_SERVERS, load_catalog
from prony.model.address import Address
from prony.model.subject import Interface, Subject

YARDSTICKS = (
    *("nginx-static", "node-http", "go-net-http", "rust-hyper", "java-httpserver", "reference"),
    "robyn",
)


class Installed:
    def __init__(self, entry):
        programs = {name: f"/usr/bin/{name}" for name in entry.install.programs}
        self.places = {"python": "/p", "build": "/build", "prony": "/parts", **programs}


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


def launch_of(catalog, name, **settings):
    entry, variant = catalog.find(name)
    subject = Subject(name, entry.name, catalog.app("hello"), Interface.NONE, variant, settings)
    return make_launch(entry, subject, Installed(entry), Seat(Address("127.0.0.1", 8123), "/a", "/r", 2))


@pytest.mark.parametrize("name", YARDSTICKS)
def test_it_serves_hello_without_an_interface(catalog, name):
    entry = catalog.server(name)
    assert entry.interfaces == (Interface.NONE,)
    assert entry.serves == ("hello",)
    assert any("runs no application" in caveat.text for caveat in entry.facts.caveats)


@pytest.mark.parametrize("name", YARDSTICKS)
def test_its_sources_hold_the_apps_text(catalog, name):
    entry = catalog.server(name)
    folder = sorted(path for path in entry.folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    texts = [*entry.files.values(), *entry.templates.values(), *(path.read_text() for path in folder)]
    assert any("Hello, world!" in text for text in texts)


def test_hypers_version_is_the_locked_one(catalog):
    lock = tomllib.loads((BUILT_IN_SERVERS / "rust-hyper" / "Cargo.lock").read_text())
    (locked,) = (package["version"] for package in lock["package"] if package["name"] == "hyper")
    assert f"echo hyper {locked}" in " ".join(catalog.server("rust-hyper").install.version)


def test_hypers_lock_holds_what_debians_compiler_can_compile():
    manifest = tomllib.loads((BUILT_IN_SERVERS / "rust-hyper" / "Cargo.toml").read_text())
    lock = tomllib.loads((BUILT_IN_SERVERS / "rust-hyper" / "Cargo.lock").read_text())
    assert manifest["package"]["rust-version"] == "1.63"
    # Newer forms of the file are unknown to it, and tokio needs a newer compiler from 1.39 on.
    assert lock["version"] == 3
    (tokio,) = (package["version"] for package in lock["package"] if package["name"] == "tokio")
    assert tuple(map(int, tokio.split(".")))[:2] <= (1, 38)


def test_go_needs_nothing_but_its_standard_library():
    folder = BUILT_IN_SERVERS / "go-net-http"
    assert "require" not in (folder / "go.mod").read_text()
    imports = re.search(r"import \((.*?)\)", (folder / "main.go").read_text(), re.DOTALL)
    assert imports
    assert "." not in imports[1]


def test_go_speaks_tls_without_http2_unless_that_is_asked_for(catalog):
    assert launch_of(catalog, "go-net-http").command[-1] == "0s"
    assert launch_of(catalog, "go-net-http", tls="ecdsa").command[-4:] == (
        *("--certificate", "/r/certificate.pem"),
        *("--key", "/r/key.pem"),
    )
    assert launch_of(catalog, "go-net-http", tls="ecdsa", wire="http2").command[-1] == "--http2"
    assert "server.TLSNextProto = map" in (BUILT_IN_SERVERS / "go-net-http" / "main.go").read_text()


def test_node_takes_the_module_of_the_wire_and_a_certificate_with_tls(catalog):
    assert launch_of(catalog, "node-http").command[-1] == "http"
    spoken = launch_of(catalog, "node-http", wire="http2", tls="ecdsa").command
    assert spoken[-3:] == ("http2", "/r/certificate.pem", "/r/key.pem")


def test_node_leads_processes_only_when_there_is_more_than_one(catalog):
    assert launch_of(catalog, "node-http").command[4] == "1"
    assert launch_of(catalog, "node-http-tuned").command[4] == "2"


def test_nginx_answers_from_its_configuration_or_from_a_file(catalog):
    text = launch_of(catalog, "nginx-static").files["nginx.conf"]
    assert r'return 200 "Hello, world!\n";' in text
    assert "try_files" not in text
    text = launch_of(catalog, "nginx-static-file").files["nginx.conf"]
    assert "root /build;" in text
    assert "return 200" not in text
    assert (BUILT_IN_SERVERS / "nginx-static" / "hello.txt").read_text() == "Hello, world!\n"


def test_java_sends_at_once_only_when_tuned(catalog):
    assert "-Dsun.net.httpserver.nodelay=false" in launch_of(catalog, "java-httpserver").command
    assert "-Dsun.net.httpserver.nodelay=true" in launch_of(catalog, "java-httpserver-tuned").command
    assert "-Xmx64m" in launch_of(catalog, "java-httpserver", heap_mb=64).command


def test_the_reference_server_is_at_the_distance_of_a_remote_api_where_its_name_says_so(catalog):
    assert launch_of(catalog, "reference").command[-1] == "0"
    assert launch_of(catalog, "reference-100ms").command[-1] == "100"
