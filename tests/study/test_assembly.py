"""What a subject is put together from: services, the server, a frontend, and what a person types for them."""

from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

from prony.catalog.install.environment import Environment, Unavailable
from prony.catalog.schema.loader import load_catalog
from prony.catalog.schema.settings import speaks_tls
from prony.core.errors import UsageError
from prony.core.users import resolve_user
from prony.model.address import TlsCipher, TlsKey, Wire
from prony.model.subject import Frontend, Interface, Subject
from prony.sandbox.certificates import Authority
from prony.study.assembly import Site, assemble, command_line, entrance_wire, needs_of, why_unavailable


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(found=Path("/nowhere"))


def subject_of(catalog, name, app="hello"):
    server, _, front = name.partition("@")
    entry, variant = catalog.find(server)
    frontend = catalog.frontend(front) if front else None
    served = catalog.app(app)
    interface = next((one for one in entry.interfaces if one in served.targets), Interface.NONE)
    return Subject(f"{name}+{app}", entry.name, served, interface, variant, frontend=frontend)


def assembled(catalog, subject):
    needs = needs_of(catalog, subject, resolve_user())
    found = {
        one.key: Environment(
            one.key,
            "1.0",
            python=Path("/env/bin/python"),
            bin=Path("/env/bin"),
            programs={name: Path("/usr/bin") / name for name in one.server.install.programs},
            build=Path("/builds") / one.server.name,
            prony=Path("/parts"),
        )
        for one in needs.all()
    }
    ports = iter(range(9001, 9100))
    folder = Path(mkdtemp(prefix="prony-test-"))
    try:
        authority = Authority(folder)
        site = Site(lambda: next(ports), lambda name: Path("/runs") / name, Path("/apps/x"), 2, authority)
        return assemble(catalog, subject, needs, found, site)
    finally:
        rmtree(folder)


def with_tls(catalog, name, key="ecdsa"):
    """Return a subject whose clients are spoken to with TLS."""
    subject = subject_of(catalog, name)
    if subject.frontend is None:
        return replace(subject, settings={"tls": key})
    return replace(subject, frontend=replace(subject.frontend, settings={"tls": key}))


SPEAK_TLS = [
    name for name, entry in load_catalog(found=Path("/nowhere")).servers.items() if speaks_tls(entry)
]


def test_servers_that_speak_tls_are_the_ones_that_are_known_to():
    assert [
        *("go-net-http", "granian", "gunicorn", "gunicorn-asgi", "gunicorn-embedded", "gunicorn-gevent"),
        *("gunicorn-uvicorn", "hypercorn", "nginx-static", "node-http", "tornado", "twisted", "uvicorn"),
    ] == SPEAK_TLS


@pytest.mark.parametrize("key", TlsKey)
@pytest.mark.parametrize("name", [*SPEAK_TLS, "gunicorn@nginx", "gunicorn@apache"])
def test_with_tls_a_process_has_a_certificate_and_only_its_own_user_the_key(catalog, name, key):
    launch = assembled(catalog, with_tls(catalog, name, key))
    entrance = launch.frontend or launch
    assert entrance.address.tls
    assert entrance.address.tls.verify
    assert str(entrance.address.tls.ca_file).endswith("authority.pem")
    assert not entrance.address.tls.resumption
    assert "BEGIN CERTIFICATE" in entrance.files["certificate.pem"]
    assert "BEGIN PRIVATE KEY" in entrance.secrets["key.pem"]
    said = " ".join([*entrance.command, *entrance.files.values()])
    assert f"/runs/{entrance.name}/certificate.pem" in said
    assert f"/runs/{entrance.name}/key.pem" in said
    assert "PRIVATE" not in said
    assert "PRIVATE" not in repr(launch)


@pytest.mark.parametrize("name", [*SPEAK_TLS, "gunicorn@nginx", "gunicorn@apache"])
def test_without_tls_nothing_speaks_of_it(catalog, name):
    launch = assembled(catalog, subject_of(catalog, name))
    for one in launch.processes:
        assert one.address.tls is None
        assert one.secrets == {}
        # A program is told by its command whether it speaks TLS, and is the same with it.
        settings = [text for name, text in one.files.items() if not name.endswith((".js", "serve.py"))]
        said = " ".join([*one.command, *settings]).lower()
        assert not [word for word in ("ssl", "certificate", "key.pem") if word in said]


def test_behind_a_frontend_with_tls_the_server_is_plain(catalog):
    launch = assembled(catalog, with_tls(catalog, "gunicorn@nginx"))
    assert launch.entrance.tls
    assert launch.address.tls is None
    assert launch.secrets == {}


@pytest.mark.parametrize("name", ["gunicorn@nginx", "gunicorn@apache"])
def test_a_frontend_speaks_http2_to_clients_and_not_to_the_server(catalog, name):
    plain = subject_of(catalog, name)
    subject = replace(plain, frontend=replace(plain.frontend, settings={"http2": "true"}))
    launch = assembled(catalog, subject)
    assert (launch.entrance.wire, launch.address.wire) == (Wire.HTTP2, Wire.HTTP)
    assert (entrance_wire(catalog, subject), entrance_wire(catalog, plain)) == (Wire.HTTP2, Wire.HTTP)


def test_a_frontend_passes_nothing_on_to_a_server_with_tls(catalog):
    subject = replace(subject_of(catalog, "gunicorn@nginx"), settings={"tls": "ecdsa"})
    with pytest.raises(UsageError, match="passes requests on without TLS") as refused:
        assembled(catalog, subject)
    assert refused.value.hint == "TLS between clients and the frontend: --set nginx.tls=ecdsa"


def test_clients_take_up_sessions_where_that_is_asked_for(catalog):
    subject = replace(subject_of(catalog, "uvicorn"), settings={"tls": "ecdsa", "tls_resumption": "true"})
    assert assembled(catalog, subject).address.tls.resumption


def test_clients_offer_the_cipher_that_is_asked_for_and_else_all(catalog):
    assert assembled(catalog, with_tls(catalog, "uvicorn")).address.tls.ciphers == ()
    chosen = {"tls": "rsa2048", "tls_cipher": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}
    subject = replace(subject_of(catalog, "uvicorn"), settings=chosen)
    assert assembled(catalog, subject).address.tls.ciphers == (TlsCipher.RSA_AES_128,)


@pytest.mark.parametrize(
    ("cipher", "expected"),
    [
        ("RC4", "one of `any`, `TLS_AES_256_GCM_SHA384`, "),
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "with `tls=ecdsa` one of `TLS_AES_256_GCM_SHA384`, "),
    ],
)
def test_a_cipher_that_no_server_can_speak_with_its_key_is_refused(catalog, cipher, expected):
    chosen = {"tls": "ecdsa", "tls_cipher": cipher}
    subject = replace(subject_of(catalog, "uvicorn"), settings=chosen)
    with pytest.raises(UsageError) as refused:
        assembled(catalog, subject)
    assert f"uvicorn.tls_cipher={cipher}`: expected {expected}" in str(refused.value)


def test_software_of_another_time_speaks_no_tls(catalog):
    subject = replace(subject_of(catalog, "gunicorn-as-of-2016"), settings={"tls": "ecdsa"})
    with pytest.raises(UsageError, match=r"gunicorn-as-of-2016\.tls=ecdsa"):
        assembled(catalog, subject)


@pytest.mark.parametrize("name", [*SPEAK_TLS, "gunicorn@nginx", "gunicorn@apache"])
def test_a_person_types_a_certificate_and_a_key_of_their_own(catalog, name):
    plain = command_line(catalog, subject_of(catalog, name), 2)
    encrypted = command_line(catalog, with_tls(catalog, name), 2)
    assert "YOUR-" not in plain
    written = "--set nginx.tls=ecdsa" in encrypted or "tls=ecdsa" in encrypted
    assert written or ("YOUR-CERTIFICATE.pem" in encrypted and "YOUR-KEY.pem" in encrypted)


def test_an_apps_service_is_started_first_and_the_app_is_told_where_it_is(catalog):
    launch = assembled(catalog, subject_of(catalog, "waitress@nginx", "django-postgres"))
    assert [one.name for one in launch.processes] == ["postgresql", "server", "frontend"]
    (database,) = launch.services
    assert launch.environment["PGHOST"] == database.address.host
    assert launch.environment["PGPORT"] == str(database.address.port)
    assert not database.readiness.http
    assert str(Path("/builds/postgresql")) in " ".join(database.command)


def test_the_load_goes_to_the_frontend_and_the_frontend_to_the_server(catalog):
    launch = assembled(catalog, subject_of(catalog, "uwsgi-socket@nginx"))
    assert launch.address.wire is Wire.UWSGI
    assert launch.frontend
    assert launch.entrance == launch.frontend.address
    assert launch.entrance.wire is Wire.HTTP
    conf = launch.frontend.files["nginx.conf"]
    assert f"server 127.0.0.1:{launch.address.port};" in conf
    assert "uwsgi_pass server;" in conf
    assert f"listen 127.0.0.1:{launch.entrance.port}" in conf


def with_backends(catalog, many, server="gunicorn@nginx"):
    subject = subject_of(catalog, server)
    return replace(subject, frontend=replace(subject.frontend, settings={"backends": many}))


def test_several_back_ends_are_the_same_server_at_addresses_of_their_own(catalog):
    launch = assembled(catalog, with_backends(catalog, 3))
    assert [one.name for one in launch.processes] == ["server", "server-2", "server-3", "frontend"]
    servers = (launch, *launch.backends)
    assert len({one.address.port for one in servers}) == 3
    assert len({" ".join(one.command).replace(str(one.address.port), "") for one in servers}) == 1
    conf = launch.frontend.files["nginx.conf"]
    assert [f"server 127.0.0.1:{one.address.port};" in conf for one in servers] == [True] * 3
    assert launch.entrance == launch.frontend.address


def test_a_person_starts_each_back_end_and_the_frontend_before_them(catalog):
    first, second, front = command_line(catalog, with_backends(catalog, 2), cpus=2).splitlines()
    assert (":8001" in first, ":8002" in second) == (True, True)
    assert "--set nginx.backends=2" in front


def test_a_frontend_whose_configuration_has_one_back_end_takes_no_number_of_them(catalog):
    with pytest.raises(UsageError, match=r"--set apache\.backends=2"):
        assembled(catalog, with_backends(catalog, 2, "gunicorn@apache"))


def test_every_server_fits_every_frontend_that_speaks_its_wire(catalog):
    for server in catalog.servers.values():
        for frontend in catalog.frontends:
            for variant in ("", *server.variants):
                name = f"{server.name}-{variant}" if variant else server.name
                launch = assembled(catalog, subject_of(catalog, f"{name}@{frontend}"))
                assert launch.frontend
                text = " ".join([*launch.frontend.command, *launch.frontend.files.values()])
                assert str(launch.address.port) in text


def test_a_psgi_app_behind_nginx_is_asked_for_by_its_modifier(catalog):
    launch = assembled(catalog, subject_of(catalog, "uwsgi-psgi-socket@nginx"))
    assert launch.frontend
    assert "uwsgi_modifier1 5;" in launch.frontend.files["nginx.conf"]


def test_one_that_cannot_be_had_makes_the_subject_unavailable(catalog):
    needs = needs_of(catalog, subject_of(catalog, "waitress@nginx", "django-postgres"), resolve_user())
    assert [one.key for one in needs.all()] == [
        "waitress",
        "frontend nginx",
        "postgresql for django-postgres",
    ]
    found = {one.key: Environment(one.key, "1") for one in needs.all()}
    assert why_unavailable(needs, found) is None
    gone = Unavailable("frontend nginx", "there is no nginx", "")
    assert why_unavailable(needs, {**found, "frontend nginx": gone}) == gone


def test_what_a_person_types_starts_the_server_and_then_the_frontend(catalog):
    plain = command_line(catalog, subject_of(catalog, "gunicorn"), 2)
    assert "127.0.0.1:8000" in plain
    server, front = command_line(catalog, subject_of(catalog, "gunicorn@nginx-keepalive"), 2).split(" &\n")
    assert "127.0.0.1:8001" in server
    assert front.startswith("prony servers nginx --file nginx.conf --set nginx.upstream_keep_alive=")
    assert front.endswith("nginx -e stderr -p . -c nginx.conf")
    static = command_line(catalog, subject_of(catalog, "nginx-static@nginx"), 2)
    assert "--set nginx-static.port=8001" in static


def test_a_frontends_setting_that_does_not_fit_is_refused(catalog):
    subject = subject_of(catalog, "gunicorn@nginx")
    wrong = Subject(
        subject.name,
        "gunicorn",
        subject.app,
        subject.interface,
        frontend=Frontend("nginx", "", {"workers": 0}),
    )
    with pytest.raises(UsageError, match=r"--set nginx\.workers=0"):
        assembled(catalog, wrong)
