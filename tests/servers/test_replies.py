"""What `prony load` makes of replies of servers that people run: node, nginx, Go, uvicorn, http.server."""

import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import count
from urllib.parse import urlsplit

import pytest

from commands import ended
from prony.catalog.install.environment import Environment, EnvironmentRequest
from prony.catalog.install.prepare import prepare
from prony.catalog.schema.loader import load_catalog
from prony.core.users import resolve_user
from servers.nginx import free_ports

# Each answers /early before it has read the body, /echo with the path and the body, /wall with a redirect to
# /login, /mixed with one every second time; over HTTP/2 those of /slow are answered later, three at once.
NODE = """
let served = 0
const wanted = q => q.url.split('?')[0]
const answer = (q, r) => {
  served += 1
  q.on('error', () => {})
  if (wanted(q) == '/echo') {
    let body = ''
    q.on('data', more => { body += more }).on('end', () => r.end(q.url + ' ' + body))
    return
  }
  q.resume()
  if (wanted(q) == '/wall' || (wanted(q) == '/mixed' && served % 2)) r.writeHead(302, {location: '/login'})
  setTimeout(() => r.end('ok ' + q.url), wanted(q) == '/slow' ? 10 : 0)
}
const early = (q, r) => { if (wanted(q) == '/early') { r.end('ok'); q.resume() } else answer(q, r) }
MAKE.listen(PORT, 'HOST', () => console.log('listening at http://HOST:PORT/'))
"""
NODE_HTTP1 = NODE.replace("MAKE", "require('http').createServer(early)")
NODE_HTTP2 = NODE.replace(
    "MAKE", "require('http2').createServer({settings: {maxConcurrentStreams: 3}}, early)"
)
NGINX = """
daemon off; error_log stderr; pid FOLDER/pid; worker_processes 1; events {}
http { access_log off; client_body_temp_path FOLDER; client_max_body_size 0; keepalive_requests 100000;
  gzip on; gzip_min_length 1; gzip_types text/plain; default_type text/plain;
  server { listen HOST:PORT MORE; location / { return 200 'ok $request_uri'; }
    location /wall { return 302 /login; } } }
"""
UVICORN = """
async def app(scope, receive, send):
    path, body = scope['raw_path'].decode(), b''
    if scope['query_string'] or path == '/caf%C3%A9':
        path += '?' + scope['query_string'].decode()
    while path == '/echo' and (more := await receive())['type'] == 'http.request':
        body += more['body']
        if not more.get('more_body'):
            break
    reply, wall = f'{path} {body.decode()}'.encode(), path == '/wall'
    headers = [(b'content-length', str(len(reply)).encode())] + [(b'location', b'/login')] * wall
    await send({'type': 'http.response.start', 'status': 302 if wall else 200, 'headers': headers})
    await send({'type': 'http.response.body', 'body': reply})
import uvicorn
uvicorn.run(app, host='HOST', port=PORT, access_log=False)
"""
GO = """
package main
import ("fmt"; "io"; "net/http"; "time")
func answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/echo":
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.RequestURI, " ", string(body))
	case "/wall":
		http.Redirect(w, r, "/login", 302)
	case "/slow":
		time.Sleep(10 * time.Millisecond)
	default:
		fmt.Fprint(w, "ok ", r.RequestURI)
	}
}
func main() {
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	server := &http.Server{Addr: "HOST:PORT", Handler: http.HandlerFunc(answer), Protocols: both,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 3}}
	fmt.Println("listening at http://HOST:PORT/")
	server.ListenAndServe()
}
"""
# `Connection: close` of a request ends its connection without a word.
HTTP_SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        reply = f'{self.path} {body.decode()}'.encode()
        self.send_response(302 if self.path == '/wall' else 200)
        self.send_header('Location', '/login')
        self.send_header('Content-Length', str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
    do_GET = do_POST
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(('HOST', PORT), Handler)
print('Serving HTTP on HOST port PORT (http://HOST:PORT/) ...', flush=True)
server.serve_forever()
"""
TEXTS = {
    **{
        "node": NODE_HTTP1,
        "node-http2": NODE_HTTP2,
        "nginx": NGINX,
        "nginx-http2": NGINX,
        "uvicorn": UVICORN,
    },
    **{"go": GO, "go-http2": GO, "http.server": HTTP_SERVER},
}
# More than the kernel keeps for both sides.
BODY_BYTES = 12 << 20
numbers = count()


def servers(*names):
    """Cases of a test; a program in Go is compiled for a minute at first."""
    slow = pytest.mark.slow
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=slow) if name.startswith("go") else name for name in names]
    )


def wire_of(name):
    return ["--http2"] if name.endswith("http2") else []


@pytest.fixture
def server(prony, tmp_path, monkeypatch):
    """Run a server by its name within a block, and return its URL."""
    monkeypatch.setenv("PRONY_CACHE", str(prony.cache))

    @contextmanager
    def running(name, host="127.0.0.1"):
        (port,) = free_ports(1)
        program, _, protocol = name.partition("-")
        file = tmp_path / f"{next(numbers)}-{ {'go': 'main.go'}.get(program, 'server') }"
        words = {"HOST": host, "PORT": str(port), "FOLDER": str(tmp_path), "MORE": protocol}
        file.write_text(re.sub("|".join(words), lambda word: words[word[0]], TEXTS[name]))
        process = subprocess.Popen(
            command_of(program, file), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        with ended(process):
            wait_for(port, process)
            yield f"http://{host}:{port}"

    return running


def command_of(program, file):
    match program:
        case "http.server":
            return [sys.executable, file]
        case "uvicorn":
            return [uvicorn_python(), file]
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    if program == "go":
        built = file.with_suffix("")
        subprocess.run([found, "build", "-o", built, file], check=True, cwd=file.parent)
        return [built]
    return [found, "-e", "stderr", "-c", file] if program == "nginx" else [found, file]


def uvicorn_python():
    request = EnvironmentRequest("uvicorn", load_catalog().server("uvicorn"))
    found = prepare([request], resolve_user(), lambda _: None)["uvicorn"]
    assert isinstance(found, Environment), found
    return found.python


def wait_for(port, process):
    deadline_s = time.monotonic() + 30
    while True:
        assert process.poll() is None, process.stdout.read()
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert time.monotonic() < deadline_s
            time.sleep(0.02)


@servers("node", "node-http2", "nginx", "nginx-http2", "uvicorn", "go", "go-http2")
def test_uploads_that_are_answered_early_are_answered(prony, server, tmp_path, name):
    body = tmp_path / "body"
    body.write_bytes(b"x" * BODY_BYTES)
    more = [*wire_of(name), "--streams", "2"] if wire_of(name) else []
    with server(name) as url:
        upload = ("-n", "8", "-c", "2", "-m", "POST", "--body", f"@{body}", "--json", "-")
        done = prony("load", f"{url}/early", *more, *upload)
    account = done.json["account"]
    assert (account["ok"], account["ok_status"]) == (8, {"200": 8}), done.json["errors"]
    assert account["answered_early"] > 0


@servers("http.server", "node", "nginx", "uvicorn", "go")
def test_a_typed_close_ends_each_connection(prony, server, name):
    with server(name) as url:
        typed = ("-n", "200", "-c", "4", "-m", "POST", "-H", "connection: x, Close", "--json", "-")
        found = prony("load", url, *typed).json
    assert (found["account"]["ok"], found["connections"]["opened"]) == (200, 200), found["errors"]


@servers("node", "uvicorn", "go")
def test_a_body_in_chunks_is_read(prony, server, name):
    with server(name) as url:
        chunks = ("-m", "POST", "--body", "hello", "-H", "Transfer-Encoding: chunked")
        expected = ("--expect-body-contains", "/echo hello", "-n", "20", "-c", "2")
        done = prony("load", f"{url}/echo", *chunks, *expected)
    assert done.status == 0, done.out
    assert "answered as expected  20" in re.sub(" {2,}", "  ", done.out)


@servers("node-http2", "go-http2")
def test_streams_beyond_a_servers_number_are_sent_again(prony, server, name):
    with server(name) as url:
        load = ("--http2", "--streams", "10", "-c", "2", "-n", "100", "--json", "-")
        found = prony("load", f"{url}/slow", *load).json
    assert found["account"]["ok"] == 100, found["errors"]
    assert found["streams"]["refused"] == found["connections"]["retried"] > 0


@servers("node", "nginx", "uvicorn", "go", "http.server")
def test_what_is_not_ascii_is_sent_as_browsers_do(prony, server, name):
    with server(name) as url:
        expected = ("--expect-body-contains", "/caf%C3%A9?", "-n", "20", "-c", "2", "--json", "-")
        found = prony("load", f"{url}/caf\u00e9?", *expected).json
    assert found["account"]["ok"] == 20, found["errors"]


@servers("node", "nginx", "uvicorn", "go", "http.server")
def test_redirects_are_shown_wherever_a_load_is(prony, server, name):
    with server(name) as url:
        done = prony("load", f"{url}/wall", "-n", "20", "-c", "2")
        found = prony("load", f"{url}/wall", "-n", "20", "-c", "2", "--json", "-").json
        followed = prony("load", f"{url}/wall", "-n", "20", "-c", "2", "--follow", "1", "--json", "-").json
        strict = prony("load", f"{url}/wall", "-n", "20", "--expect-status", "200", "--json", "-").json
    # nginx makes a whole URL of it.
    assert re.search(r"statuses: 302 20\nmost replies are redirects to `\S*/login`", done.out), done.out
    assert found["account"]["ok_status"] == {"302": 20}
    assert followed["account"]["ok_status"] == {"200": 20}
    assert strict["account"]["bad_status"] == {"302": 20}


def test_a_mix_of_pages_and_redirects_is_no_page(prony, server):
    with server("node") as url:
        done = prony("load", f"{url}/mixed", "-n", "20", "-c", "1")
    assert re.search(r"statuses: (200 10; 302 10|302 10; 200 10)", done.out), done.out


def test_each_address_of_a_name_is_loaded(server, unlucky, tmp_path):
    """As Docker's names of services have them: the load goes to all, and the report says to which."""
    hosts = tmp_path / "hosts"
    with server("http.server", "0.0.0.0") as url:
        port = urlsplit(url).port
        hosts.write_text(
            "127.0.0.1 localhost\n" + "".join(f"127.0.0.{last} app.test\n" for last in (2, 3, 4))
        )
        load = ("load", f"http://app.test:{port}/", "--allow-host", "app.test", "-n", "300", "-c", "9")
        done = unlucky(f"mount --bind {hosts} /etc/hosts", *load, "--json", "-")
    assert done.json["account"]["ok"] == 300
    assert done.json["connections"]["by_address"] == {f"127.0.0.{last}": 3 for last in (2, 3, 4)}


@pytest.mark.parametrize("name", ["uvicorn", "http.server"])
def test_the_url_that_a_server_prints_is_taken_as_meant(prony, server, name):
    with server(name, "0.0.0.0") as url:
        for typed in (url, url.replace("0.0.0.0", "shop.localhost")):
            found = prony("load", typed, "-n", "20", "-c", "2", "--json", "-").json
            assert found["account"]["ok"] == 20


def test_a_body_that_a_server_compresses_is_named_where_a_text_is_missing(prony, server):
    with server("nginx") as url:
        typed = ("-H", "Accept-Encoding: gzip", "--expect-body-contains", "cart", "-n", "2", "--json", "-")
        found = prony("load", url, *typed).json
    (error,) = found["errors"]
    assert error["detail"] == "a body without `cart`: the body has the Content-Encoding gzip"


ZONED = """
ip link set lo up; ip addr add fe80::7/64 dev lo nodad
"$0" -m http.server -b fe80::7%lo -d "$1" 8000 >/dev/null 2>&1 & trap 'kill $!' EXIT; shift
until ss -ltn | grep -q :8000; do sleep 0.1; done
"$@"
"""


def test_an_address_with_a_zone_is_loaded(prony, tmp_path):
    """In a network of its own, for few machines have a link that answers."""
    if not shutil.which("ip") or subprocess.run(["unshare", "--net", "true"], check=False).returncode:
        pytest.skip("needs root and iproute2: a network of its own")
    load = ("load", "http://[fe80::7%25lo]:8000/", "--allow-host", "fe80::7%lo", "-n", "20", "-c", "2")
    prefix = ["unshare", "--net", "sh", "-ec", ZONED, sys.executable, tmp_path]
    done = subprocess.run(
        [*prefix, sys.executable, *prony.program, *load], env=prony.environment(), cwd=prony.folder,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "statuses: 200 20" in done.stdout
