"""What npm, Go and Cargo fetch while something is built: from their configured index, through the relay, and
nothing else.

The user's own proxy is a stand-in which plays every index, so that no name is looked up and no network used.
"""

import io
import json
import shutil
import tarfile
import threading
import zipfile
from base64 import b64encode
from dataclasses import replace
from hashlib import sha512
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from commands import passable_folder
from prony.catalog.install.child import Children
from prony.catalog.install.uv import build_environment
from prony.core.users import SUBJECT_PATH, own_folder, resolve_user
from prony.sandbox.building import BuildTask, why_no_builds

pytestmark = pytest.mark.skipif(why_no_builds() is not None, reason=f"no namespaces: {why_no_builds()}")

INDEX = "http://index.test"
# Another index by its name, and this machine by its address.
ELSE = """
import json, os, socket, urllib.request
got = []
try: got.append(urllib.request.urlopen("http://other.test/", timeout=5).status)
except OSError as error: got.append(getattr(error, "code", None))
try: socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 2); got.append("connected")
except OSError: got.append("unreached")
print("else", json.dumps(got))
"""
OTHERS_REFUSED = 'else [403, "unreached"]'


def npm_files():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        text = b'{"name": "small", "version": "1.0.0"}'
        member = tarfile.TarInfo("package/package.json")
        member.size = len(text)
        files.addfile(member, io.BytesIO(text))
    data = packed.getvalue()
    digest = b64encode(sha512(data).digest()).decode()
    dist = {"tarball": f"{INDEX}/small/-/small-1.0.0.tgz", "integrity": f"sha512-{digest}"}
    version = {"name": "small", "version": "1.0.0", "dist": dist}
    whole = {"name": "small", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    return {"/small": json.dumps(whole).encode(), "/small/-/small-1.0.0.tgz": data}


def go_files():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr("index.test/small@v1.0.0/go.mod", "module index.test/small\n")
    found = {"info": b'{"Version": "v1.0.0"}', "mod": b"module index.test/small\n", "zip": packed.getvalue()}
    return {f"/index.test/small/@v/v1.0.0.{kind}": data for kind, data in found.items()}


class Everywhere(BaseHTTPRequestHandler):
    """A proxy before which all hosts seem to be."""

    def do_GET(self):
        data = self.server.files.get(self.path.removeprefix(INDEX))
        self.server.asked.append(self.path)
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def do_CONNECT(self):
        self.server.asked.append(self.path)
        self.send_error(502)

    def log_message(self, *_):
        pass


@pytest.fixture
def fetch(monkeypatch):
    """Return a function that runs a script of a shell as a build, and returns how it ended and what was
    asked for.
    """
    with passable_folder() as folder, ThreadingHTTPServer(("127.0.0.1", 0), Everywhere) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        user = replace(resolve_user(), cache=folder / "cache")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")

        def run(tool, script, files, **settings):
            if shutil.which(tool, path=f"{SUBJECT_PATH}:/usr/local/go/bin") is None:
                pytest.skip(f"`{tool}` is not installed where a build finds it")
            proxy.files, proxy.asked = files, []
            for name, value in settings.items():
                monkeypatch.setenv(name, value)
            children = Children(user)
            place = own_folder(folder / "place", children.builder)
            environment = build_environment(children.builder) | {"PORT": str(proxy.server_port)}
            environment["PATH"] += ":/usr/local/go/bin"
            words = ["/bin/sh", "-c", f'{script}\n/usr/bin/python3 -c "$0"', ELSE]
            return children.build(BuildTask(words, environment, place, (place,))), proxy.asked

        yield run
        proxy.shutdown()


NPM = "npm install small@1.0.0 --no-audit --no-fund && test -f node_modules/small/package.json && echo there"
GO = "printf 'module x\\nrequire index.test/small v1.0.0\\n' > go.mod && go mod download && echo there"
CARGO = """
mkdir src && echo > src/lib.rs
printf '[package]\\nname = "x"\\nversion = "1.0.0"\\n[dependencies]\\nserde = "1"\\n' > Cargo.toml
RUSTC_BOOTSTRAP=1 cargo -Z sparse-registry fetch || echo refused
"""


@pytest.mark.parametrize(
    ("tool", "script", "files", "settings"),
    [
        ("npm", NPM, npm_files(), {"npm_config_registry": f"{INDEX}/"}),
        ("go", GO, go_files(), {"GOPROXY": INDEX, "GOSUMDB": "off", "GOFLAGS": "-mod=mod"}),
    ],
    ids=["npm", "go"],
)
def test_each_tool_reaches_its_configured_index_and_nothing_else(fetch, tool, script, files, settings):
    done, asked = fetch(tool, script, files, **settings)
    assert done.output.splitlines()[-2:] == ["there", OTHERS_REFUSED], done.log
    assert asked
    assert [url for url in asked if not url.startswith(f"{INDEX}/")] == []


def test_cargo_asks_for_its_own_index_alone(fetch):
    done, asked = fetch("cargo", CARGO, {}, CARGO_NET_RETRY="0")
    assert done.output.splitlines()[-2:] == ["refused", OTHERS_REFUSED], done.log
    assert set(asked) == {"index.crates.io:443"}
