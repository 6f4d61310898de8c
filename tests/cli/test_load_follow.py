"""`prony load --follow`: a request is what its final reply is, and hops are counted apart."""

import pytest

from counting_server import head_of, header, listening, requests


def reply(status, *fields, body=b"ok"):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join((*lines, "", "")).encode() + body


def redirect(location, status=302):
    return reply(status, f"Location: {location}")


def serving(pages):
    """Return what a server does that has a page for each path, and says no to others."""

    def handle(connection, seen):
        while head := head_of(connection):
            length = int(header(head, "content-length") or 0)
            body = b"".join(connection.recv(1) for _ in range(length)).decode()
            seen.append(head + body)
            connection.sendall(pages.get(head.split(" ")[1], reply(404)))

    return listening(handle)


def lines(seen):
    return [one.split(" HTTP/")[0] for one in requests(seen)]


def test_a_request_is_ok_when_its_final_reply_is_and_hops_are_counted_apart(said):
    pages = {"/": redirect("/login"), "/login": redirect("/home?x#top", 301), "/home?x": reply(200)}
    with serving(pages) as (port, seen):
        done = said(
            "load", f"http://127.0.0.1:{port}/", *("--follow", "3", "-n", "5", "-c", "1", "--json", "-")
        )
    found = done.json
    assert (found["account"]["scheduled"], found["account"]["ok"]) == (5, 5)
    assert found["account"]["ok_status"] == {"200": 5}
    assert found["followed"] == {"301": 5, "302": 5}
    assert found["connections"]["requests_sent"] == len(requests(seen)) == 15
    assert lines(seen)[:3] == ["GET /", "GET /login", "GET /home?x"]
    # Hops stay on the connection.
    assert (seen.count(""), found["connections"]["opened"]) == (1, 1)


def test_the_report_says_what_was_followed(said):
    with serving({"/": redirect("x"), "/x": reply(200)}) as (port, _):
        done = said("load", f"http://127.0.0.1:{port}/", "--follow", "1", "-n", "4", "-c", "1")
    assert done.status == 0
    assert "redirects followed, beside the requests: 302 4" in done.out
    assert "statuses: 200 4" in done.out


def test_the_response_time_covers_all_hops(said):
    def slow(connection, seen):
        import time

        while head := head_of(connection):
            seen.append(head)
            time.sleep(0.03)
            connection.sendall(reply(200) if " /x " in head else redirect("/x"))

    with listening(slow) as (port, _):
        url = f"http://127.0.0.1:{port}/"
        done = said("load", url, "--follow", "1", "-n", "3", "-c", "1", "--json", "-")
        late = said("load", url, "--follow", "1", "-n", "1", "--timeout", "45ms", "--json", "-")
    assert done.json["latency"]["ok"]["service_ns"]["min"] >= 60_000_000
    assert late.json["account"]["timed_out"] == 1


@pytest.mark.parametrize("more", [("--no-keepalive",), ("--requests-per-connection", "1"), ("--http1.0",)])
def test_a_hop_goes_on_a_new_connection_where_the_last_one_ends(said, more):
    with serving({"/": redirect("/x"), "/x": reply(200)}) as (port, seen):
        done = said(
            *("load", f"http://127.0.0.1:{port}/", "--follow", "2", *more),
            *("-n", "6", "-c", "2", "--json", "-"),
        )
    assert (done.json["account"]["ok"], done.json["followed"]) == (6, {"302": 6})
    assert len(requests(seen)) == 12
    assert 12 <= seen.count("") <= 14
    assert done.json["connections"]["retried"] == 0


@pytest.mark.parametrize(
    ("status", "method", "after"),
    [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"),
        (307, "POST", "POST"), (308, "POST", "POST"), (302, "PUT", "PUT"),
    ],
)  # fmt: skip
def test_the_method_after_a_redirect_is_that_of_the_standard(said, status, method, after):
    with serving({"/": redirect("/x", status), "/x": reply(200)}) as (port, seen):
        said(
            *("load", f"http://127.0.0.1:{port}/", "--follow", "1", "-n", "1", "-c", "1", "-m", method),
            *("--body", "hello", "-H", "Content-Type: text/plain"),
        )
    first, second = requests(seen)
    assert lines(seen) == [f"{method} /", f"{after} /x"]
    assert first.endswith("hello")
    assert second.endswith("hello") == (after == method)
    assert (header(second, "content-type") is not None) == (after == method)


def test_a_password_goes_with_a_hop(said):
    with serving({"/": redirect("/x"), "/x": reply(200)}) as (port, seen):
        said("load", f"http://me:x@127.0.0.1:{port}/", "--follow", "1", "-n", "1", "-c", "1")
    assert [header(one, "authorization") for one in requests(seen)] == ["Basic bWU6eA=="] * 2


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.2:{port}/x",
        "http://localhost:{port}/x",
        "http://127.0.0.1:{other}/x",
        "https://127.0.0.1:{port}/x",
        "//shop.example/x",
        "http://127.0.0.1:{port}@shop.example/x",
        "http://127.0.0.1:{port}.shop.example/x",
        "ftp://127.0.0.1:{port}/x",
    ],
)
def test_a_redirect_to_another_server_is_not_followed_but_a_failure(said, location):
    with serving({}) as (other, strange):
        pages = {}
        with serving(pages) as (port, seen):
            pages["/"] = redirect(location.format(port=port, other=other))
            done = said(
                *("load", f"http://127.0.0.1:{port}/", "--follow", "5", "-n", "2", "-c", "1"),
                *("--json", "-"),
            )
    assert (done.status, lines(seen), strange) == (3, ["GET /"] * 2, [])
    assert done.json["account"]["bad_status"] == {"302": 2}
    assert "leads to another host, scheme or port" in done.json["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (redirect("/"), "one redirect more than are followed"),
        (reply(302), "has no Location"),
        (redirect("/\x01"), None),
        (redirect("http:x"), "is no URL"),
        (reply(302, "X: " + "x" * 5000, "Location: /x"), "has no Location within 4 KiB"),
    ],
)
def test_what_leads_nowhere_is_a_failure_that_says_why(said, page, why):
    with serving({"/": page}) as (port, seen):
        done = said(
            *("load", f"http://127.0.0.1:{port}/", "--follow", "4", "-n", "2", "-c", "1", "--json", "-"),
        )
    assert (done.status, done.json["account"]["ok"]) == (3, 0)
    assert len(requests(seen)) in (2, 10)
    assert why is None or why in done.json["errors"][0]["detail"]


def test_a_head_in_pieces_leads_where_it_says_not_where_the_last_one_did(said):
    def handle(connection, seen):
        while head := head_of(connection):
            seen.append(head)
            path = head.split(" ")[1]
            page = {"/": redirect("/a"), "/a": redirect("/b"), "/b": reply(200)}[path]
            for place in range(0, len(page), 7):
                connection.sendall(page[place : place + 7])

    with listening(handle) as (port, seen):
        done = said(
            "load", f"http://127.0.0.1:{port}/", *("--follow", "2", "-n", "3", "-c", "1", "--json", "-")
        )
    assert done.json["account"]["ok"] == 3
    assert lines(seen) == ["GET /", "GET /a", "GET /b"] * 3


def test_without_the_option_a_redirect_is_a_reply_like_others(said):
    with serving({"/": redirect("/x")}) as (port, seen):
        done = said("load", f"http://127.0.0.1:{port}/", "-n", "2", "-c", "1", "--json", "-")
    assert (done.json["account"]["ok_status"], done.json["followed"]) == ({"302": 2}, {})
    assert lines(seen) == ["GET /"] * 2


def test_each_path_of_a_mix_is_followed_from_where_it_is(said):
    pages = {"/a/1": redirect("2"), "/a/2": reply(200), "/b/1": redirect("2"), "/b/2": reply(200)}
    with serving(pages) as (port, seen):
        done = said(
            *("load", f"http://127.0.0.1:{port}", "--path", "/a/1", "--path", "/b/1", "--follow", "1"),
            *("-n", "8", "-c", "1", "--json", "-"),
        )
    asked = lines(seen)
    counts = [one["account"]["ok"] for one in done.json["paths"]]
    assert counts == [asked.count("GET /a/2"), asked.count("GET /b/2")]
    assert sum(counts) == 8


def test_a_request_of_a_file_goes_on_with_what_its_line_has(said, folder):
    (folder / "list").write_text(
        '{"method": "POST", "path": "/a", "body": {"n": 1}, "headers": {"X-User": "7"}}\n'
        '{"path": "/b", "name": "second", "expect_status": 404}\n'
    )
    pages = {
        "/a": redirect("/a/2", 307),
        "/a/2": redirect("3", 303),
        "/a/3": reply(200),
        "/b": redirect("no"),
    }
    with serving(pages) as (port, seen):
        done = said(
            *("load", f"http://127.0.0.1:{port}", "--requests-from", "list", "--follow", "2"),
            *("--order", "once", "-c", "1", "--json", "-"),
        )
    asked = requests(seen)
    assert lines(seen) == ["POST /a", "POST /a/2", "GET /a/3", "GET /b", "GET /no"]
    assert [one.endswith('{"n":1}') for one in asked] == [True, True, False, False, False]
    assert [header(one, "x-user") for one in asked] == ["7", "7", "7", None, None]
    assert [(one["name"], one["account"]["ok"]) for one in done.json["paths"]] == [("/a", 1), ("second", 1)]
    assert done.json["followed"] == {"302": 1, "303": 1, "307": 1}


def test_each_row_of_a_template_is_followed_from_its_own_path(said, folder):
    (folder / "rows").write_text("id\n1\n2\n")
    pages = {f"/{n}/in": redirect("out") for n in (1, 2)} | {f"/{n}/out": reply(200) for n in (1, 2)}
    with serving(pages) as (port, seen):
        done = said(
            *("load", f"http://127.0.0.1:{port}", "--path", "/{{id}}/in", "--data", "rows", "--follow", "1"),
            *("--order", "once", "-c", "1", "--json", "-"),
        )
    assert lines(seen) == ["GET /1/in", "GET /1/out", "GET /2/in", "GET /2/out"]
    assert done.json["account"]["ok"] == 2


def test_a_hop_has_the_headers_of_its_group(said, folder):
    (folder / "regions.toml").write_text(
        '[[groups]]\nname = "near"\nheaders = { X-Region = "near" }\n'
        '[[groups]]\nname = "far"\nheaders = { X-Region = "far" }\ndelay = "10ms"\n'
    )
    with serving({"/": redirect("/x"), "/x": reply(200)}) as (port, seen):
        done = said(
            *("load", f"http://127.0.0.1:{port}/", "--groups", "regions.toml", "--follow", "1"),
            *("-n", "8", "-c", "2", "--json", "-"),
        )
    found = sorted(
        (line, header(one, "x-region")) for line, one in zip(lines(seen), requests(seen), strict=True)
    )
    each = [("GET /", "far"), ("GET /", "near"), ("GET /x", "far"), ("GET /x", "near")]
    assert found == sorted(each * 4)
    near, far = (one["service_ns"]["ok"]["min"] for one in done.json["groups"])
    assert near < 20_000_000 <= far


def test_a_hop_through_a_proxy_is_asked_for_by_its_whole_url(said):
    pages = {"http://localhost:81/": redirect("/x"), "http://localhost:81/x": reply(200)}
    with serving(pages) as (port, seen):
        done = said(
            *("load", "http://localhost:81/", "-x", f"http://me:x@127.0.0.1:{port}", "--follow", "1"),
            *("-n", "2", "-c", "1", "--json", "-"),
        )
    assert done.json["account"]["ok"] == 2
    assert lines(seen)[:2] == ["GET http://localhost:81/", "GET http://localhost:81/x"]
    assert all(header(one, "proxy-authorization") for one in requests(seen))
