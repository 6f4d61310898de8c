"""`prony load --requests-from` and `--data`: each request exactly as asked, in its order, and counted."""

import base64
import json
import os
import re
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cli.test_load import account_adds_up


@pytest.fixture
def shop():
    """A server that keeps what it was asked, and has nothing below /gone."""
    with serving() as found:
        yield found


@contextmanager
def serving():
    seen = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append((self.command, self.path, self.headers, body))
            self.send_response(404 if self.path.startswith("/gone") else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else b"ok")

        do_GET = do_POST = do_PUT = do_HEAD = answer  # noqa: N815

        def log_message(self, *arguments):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        server.seen, server.url = seen, f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def load(said, shop, folder):
    def run(text, *options, name="--requests-from", file="list"):
        (folder / file).write_bytes(text.encode())
        return said("load", shop.url, name, file, *options, "--json", "-")

    return run


def asked(server):
    return [f"{method} {path}" for method, path, *_ in server.seen]


def adds_up(result):
    paths = result["paths"]
    for name in ("scheduled", "ok"):
        assert sum(one["account"][name] for one in paths) == result["account"][name]
    for name in ("sent", "received", "body_received"):
        assert sum(one["bytes"][name] for one in paths) == result["bytes"][name]
    assert account_adds_up(result)


LIST = """\
{"path": "/a"}
{"method": "POST", "path": "/b?x=1", "headers": {"X-User": "7", "x-own": "mine"}, "body": {"n": "\u00e9"}}
{"method": "HEAD", "path": "/h"}
{"path": "/gone/1", "expect_status": 404, "name": "gone"}
{"path": "/gone/2", "expect_status": "404,410", "name": "gone"}
{"method": "PUT", "path": "/caf\u00e9", "body": "text"}
"""


def test_each_line_of_json_is_sent_as_it_says(load, shop):
    done = load(LIST, "--order", "once", "-c", "1", "-H", "X-Own: all", "-H", "X-All: 1")
    result = done.json
    assert done.status == 0, done
    assert asked(shop) == ["GET /a", "POST /b?x=1", "HEAD /h", "GET /gone/1", "GET /gone/2", "PUT /caf%C3%A9"]
    _, _, headers, body = shop.seen[1]
    assert (headers["X-User"], headers["X-Own"], headers["X-All"]) == ("7", "mine", "1")
    assert (headers["Content-Type"], json.loads(body)) == ("application/json", {"n": "\u00e9"})
    assert (shop.seen[0][2]["X-Own"], shop.seen[5][3]) == ("all", b"text")
    assert result["account"]["ok"] == 6
    assert [(one["name"], one["requests"]) for one in result["paths"]] == [
        *[("/a", 1), ("/b?x=1", 1), ("/h", 1), ("gone", 2), ("/caf%C3%A9", 1)]
    ]
    adds_up(result)


def test_replies_to_head_and_to_get_are_told_apart_on_one_connection(load, shop):
    lines = '{"method": "HEAD", "path": "/"}\n{"path": "/"}\n'
    result = load(lines, "-n", "50", "-c", "1").json
    assert result["account"]["ok"] == 50
    assert Counter(asked(shop)) == {"HEAD /": 25, "GET /": 25}


@pytest.mark.parametrize("options", [("-c", "1"), ("-c", "4", "--threads", "3"), ("--rate", "500")])
def test_once_sends_each_line_once(load, shop, options):
    lines = "".join(f"/{number}\n" for number in range(100))
    result = load(lines, "--order", "once", *options).json
    assert Counter(asked(shop)) == Counter(f"GET /{number}" for number in range(100))
    assert result["account"]["ok"] == result["account"]["scheduled"] == 100
    adds_up(result)


def test_shuffled_is_each_once_by_the_seed_and_again(load, shop):
    lines = "".join(f"/{number}\n" for number in range(20))
    orders = []
    for seed in ("1", "1", "2"):
        load(lines, "--order", "shuffled", "-n", "40", "-c", "1", "--seed", seed)
        orders.append(asked(shop))
        shop.seen.clear()
    assert orders[0] == orders[1] != orders[2]
    assert orders[0][:20] == orders[0][20:]
    assert sorted(orders[0][:20]) == sorted(f"GET /{number}" for number in range(20))


def test_a_list_with_weights_is_sent_by_them(load, shop):
    result = load("path,weight\n/often,9\n/seldom,1\n", "-n", "512", "-c", "2").json
    found = Counter(asked(shop))
    assert found["GET /seldom"] == pytest.approx(51, abs=8)
    assert {one["name"]: one["requests"] for one in result["paths"]} == {
        name.removeprefix("GET "): count for name, count in found.items()
    }
    assert [one["asked"] for one in result["paths"]] == [0.9, 0.1]
    adds_up(result)


def test_of_urls_the_path_is_asked_for_and_comments_are_skipped(load, shop):
    load("# of yesterday\n\nhttp://shop.example/a?b\nhttp://shop.example\n/c\n", "--order", "once", "-c", "1")
    assert asked(shop) == ["GET /a?b", "GET /", "GET /c"]


def test_paths_beyond_the_most_are_one_row(load, shop):
    lines = "".join(f"/{number}\n" for number in range(150))
    result = load(lines, "--order", "once").json
    paths = result["paths"]
    assert (len(paths), paths[98]["name"], paths[99]["name"]) == (100, "/98", "others")
    assert (paths[0]["requests"], paths[99]["requests"]) == (1, 51)
    adds_up(result)


def test_a_hundred_thousand_paths_are_each_sent_once(said, reference, folder):
    (folder / "list").write_text("".join(f"/items/{number}\n" for number in range(100_000)))
    done = said("load", reference, "--requests-from", "list", "--order", "once", "-c", "20", "--json", "-")
    result = done.json
    assert (result["account"]["ok"], result["connections"]["requests_sent"]) == (100_000, 100_000)
    assert (result["paths"][98]["requests"], result["paths"][99]["requests"]) == (1, 99_901)
    adds_up(result)


ROWS = 'id,q,"who"\n1,a b,"say ""no"""\n2,x/y&z,\u00e9\n'


def test_values_fill_a_template_and_stay_values(load, shop):
    options = (
        "--path",
        "/i/{{id}}?q={{q}}",
        "-m",
        "POST",
        "-H",
        "X-Q: <{{q}}>",
        "--order",
        "once",
        "-c",
        "1",
    )
    body = ("-H", "Content-Type: application/json", "--body", '{"who": "{{who}}", "id": {{id}}}')
    result = load(ROWS, *options, *body, name="--data").json
    assert asked(shop) == ["POST /i/1?q=a%20b", "POST /i/2?q=x%2Fy%26z"]
    assert [headers["X-Q"] for _, _, headers, _ in shop.seen] == ["<a b>", "<x/y&z>"]
    bodies = [json.loads(body) for *_, body in shop.seen]
    assert bodies == [{"who": 'say "no"', "id": 1}, {"who": "\u00e9", "id": 2}]
    assert [one["name"] for one in result["paths"]] == ["/i/{{id}}?q={{q}}"]
    adds_up(result)


def test_no_value_of_a_row_is_in_the_result(load, folder):
    rows = "user,password\nann,s3cret\n"
    body = ("-m", "POST", "--body", "{{user}}:{{password}}", "-H", "X-Key: {{password}}")
    done = load(rows, "--path", "/login?p={{password}}", *body, "-n", "2", "--html", "a.html", name="--data")
    assert done.json["account"]["ok"] == 2
    encoded = base64.b64encode(b"ann:s3cret").decode()
    for text in (done.out, (folder / "a.html").read_text()):
        assert "s3cret" not in text
        assert encoded not in text
    assert done.json["workload"]["mix"]["file"]["name"] == "list"


def test_several_templates_share_the_rows(load, shop):
    paths = ("--path", "/a/{{id}}=3", "--path", "/b/{{id}}=1")
    result = load('{"id": 1}\n{"id": 2}\n', *paths, "-n", "256", "-c", "1", name="--data").json
    found = Counter(path[:2] for _, path, *_ in shop.seen)
    assert found == {"/a": 192, "/b": 64}
    assert [path[-1] for _, path, *_ in shop.seen[:4]] == ["1", "2", "1", "2"]
    assert [one["requests"] for one in result["paths"]] == [192, 64]


def test_few_requests_of_a_path_have_their_longest_in_its_usual_unit(said, shop, folder):
    (folder / "list").write_text("/a\n/b\n")
    done = said("load", shop.url, "--requests-from", "list", "--order", "once", "-c", "1")
    assert "max ns" not in done.out
    assert re.search(r"max (ms|µs|s)\n", done.out.partition("\nPaths\n")[2])


def test_raw_values_stand_as_they_are(load, shop):
    load("p\na/b?c\n", "--path", "/{{p|raw}}", "--order", "once", name="--data")
    assert asked(shop) == ["GET /a/b?c"]


def test_a_list_comes_from_standard_input(said, shop):
    reader, writer = os.pipe()
    os.write(writer, b"/a\n/b\n")
    os.close(writer)
    own = os.dup(0)
    os.dup2(reader, 0)
    try:
        done = said("load", shop.url, "--requests-from", "-", "--order", "once", "-c", "1")
    finally:
        os.dup2(own, 0)
        os.close(own)
        os.close(reader)
    assert (done.status, asked(shop)) == (0, ["GET /a", "GET /b"])


def test_a_form_is_sent_by_post_with_its_files(said, shop, folder):
    (folder / "cat.bin").write_bytes(b"\x00\xff")
    said("load", shop.url, "-n", "1", "-c", "1", "--form", "title=Cats", "--form", "photo=@cat.bin")
    (method, _, headers, body) = shop.seen[0]
    kind, _, boundary = headers["Content-Type"].partition("; boundary=")
    parts = body.split(b"--" + boundary.encode())
    assert (method, kind) == ("POST", "multipart/form-data")
    assert parts[1] == b'\r\nContent-Disposition: form-data; name="title"\r\n\r\nCats\r\n'
    assert b'name="photo"; filename="cat.bin"\r\n' in parts[2]
    assert parts[2].endswith(b"\r\n\r\n\x00\xff\r\n")
    assert parts[3] == b"--\r\n"


@pytest.mark.parametrize(
    ("text", "said_of_it"),
    [
        ("", "`list` has no lines"),
        ("path\n", "`list` has no requests"),
        ("/a\nb\n", "`list`, line 2: `b`: expected a path that starts with `/`, or a URL"),
        ("/a b\n", "`list`, line 1: `path` is `/a b`; expected a path that starts with `/`, without blanks"),
        ("http://a/\nhttp://b/\n", "`list`, line 2: `http://b/` is of another server"),
        ('{"path": "/"}\n{"path": }\n', "`list`, line 2, column 10: Expecting value"),
        ('{"path": "/", "colour": 1}\n', "`list`, line 1: unknown name `colour`"),
        ('{"path": "/", "headers": {"a": "b\\r\\nc: d"}}\n', "`list`, line 1: `headers` is "),
        ('{"path": "/", "weight": 0}\n', "`list`, line 1: `weight` is `0`"),
        (
            '{"path": "/", "weight": 1}\n{"path": "/"}\n',
            "line 2: expected a `weight` in each line, or in none",
        ),
        ('{"path": "/", "expect_status": 99}\n', "line 1: `expect_status` is `99`"),
        ("path,weight\n/a\n", "`list`, line 2, column 2: 1 values; expected 2"),
        ("path,path\n", "`list`, line 1, column 2: `path`; expected a name, each once"),
        ('path\n"/a\n', "`list`, line 2: "),
        ("{}\n", "`list`, line 1: expected a `path`, or a `url`"),
    ],
)
def test_what_is_no_list_is_refused_with_its_line(load, shop, text, said_of_it):
    done = load(text)
    assert done.status == 2
    assert said_of_it in " ".join(done.err.split()), done.err
    assert shop.seen == []


@pytest.mark.parametrize(
    ("text", "options", "said_of_it"),
    [
        ("id\n", ("--path", "/{{id}}"), "`list` has no rows"),
        ("id\n1\n", ("--path", "/x"), "`--data list` fills no template"),
        ("id\n1\n", ("--path", "/{{no}}"), "line 2: no column `no`, which a template names; there are `id`"),
        (
            '{"id": "a"}\n{"id": "b\\r\\nc: d"}\n',
            ("-H", "X: {{id}}"),
            "line 2: column `id`, character 2: '\\r'",
        ),
        (
            "id\na#b\n",
            ("--path", "/{{id|raw}}"),
            "line 2: column `id`, character 2: '#' cannot stand in a path",
        ),
        ('{"id": [1]}\n', ("--path", "/{{id}}"), "line 1: `id` is `[1]`; expected a text or a number"),
        ("id\n1\n", ("--path", "/{{id}}", "--order", "weighted"), "`--order weighted` only works with"),
    ],
)
def test_what_fills_no_template_is_refused_with_its_line(load, shop, text, options, said_of_it):
    done = load(text, *options, name="--data")
    assert done.status == 2
    assert said_of_it in " ".join(done.err.split()), done.err
    assert shop.seen == []


@pytest.mark.parametrize(
    ("options", "said_of_it"),
    [
        (("--order", "once", "-n", "5"), "it excludes `-n`"),
        (("--order", "weighted"), "`list` has no weights to go by"),
        (("--fleet", "local:2"), "`--fleet` does not work with requests from a file yet"),
        (("--path", "/a"), "`--requests-from` and `--path` exclude each other"),
        (("--data", "list"), "`--requests-from` and `--data` exclude each other"),
    ],
)
def test_options_that_do_not_fit_are_refused(load, shop, options, said_of_it):
    done = load("/a\n/b\n", *options)
    assert done.status == 2
    assert said_of_it in " ".join(done.err.split()), done.err
    assert shop.seen == []


def test_an_order_needs_a_file(said, shop):
    done = said("load", shop.url, "--order", "once")
    assert "`--order` only works with `--requests-from` or `--data`" in " ".join(done.err.split())
