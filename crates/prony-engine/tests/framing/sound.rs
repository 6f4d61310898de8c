//! Replies as RFC 9112 has them.

use prony_engine::spec::HttpVersion;
use prony_engine::wire::http1::ReplyReader;

use super::outcome::*;

#[test]
fn a_known_length_delimits() {
    for (name, data, expected) in [
        (
            "five bytes",
            with_fields("Content-Length: 5\r\n", "hello"),
            (200, "hello", KEEPS, 0),
        ),
        (
            "zero",
            with_fields("Content-Length: 0\r\n", ""),
            (200, "", KEEPS, 0),
        ),
        (
            "leading zeros, any case",
            with_fields("cOnTeNt-lEnGtH:\t0002 \r\n", "ab"),
            (200, "ab", KEEPS, 0),
        ),
        (
            "line ends in the body",
            with_fields("Content-Length: 4\r\n", "\r\n\r\n"),
            (200, "\r\n\r\n", KEEPS, 0),
        ),
        (
            "no reason phrase",
            "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx".into(),
            (200, "x", KEEPS, 0),
        ),
        (
            "no blank before none",
            "HTTP/1.1 503\r\nContent-Length: 1\r\n\r\nx".into(),
            (503, "x", KEEPS, 0),
        ),
        (
            "bare LF in the head",
            "HTTP/1.1 200 OK\nContent-Length: 1\n\nx".into(),
            (200, "x", KEEPS, 0),
        ),
        (
            "mixed ends",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\n\r\nx".into(),
            (200, "x", KEEPS, 0),
        ),
        (
            "status beyond 599",
            "HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n".into(),
            (999, "", KEEPS, 0),
        ),
    ] {
        assert_reply(name, data, expected);
    }
}

#[test]
fn equal_lengths_are_one_length() {
    assert_reply(
        "two",
        with_fields("Content-Length: 2\r\ncontent-length: 2\r\n", "ab"),
        (200, "ab", KEEPS, 0),
    );
    assert_reply(
        "a list",
        with_fields("Content-Length: 2, 02\r\n", "ab"),
        (200, "ab", KEEPS, 0),
    );
}

#[test]
fn what_lies_behind_the_reply_is_surplus() {
    let one = with_fields("Content-Length: 2\r\n", "ab");
    assert_reply("two replies", one.repeat(2), (200, "ab", KEEPS, one.len()));
    assert_reply(
        "chunked and one more",
        chunked("0\r\n\r\n") + &one,
        (200, "", KEEPS, one.len()),
    );
    assert_reply(
        "a body with 204",
        "HTTP/1.1 204 No\r\n\r\nabc",
        (204, "", KEEPS, 3),
    );
    assert_reply("a line end too many", one + "\r\n", (200, "ab", KEEPS, 2));
}

#[test]
fn chunks_delimit() {
    for (name, body, expected) in [
        ("two", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde"),
        ("none", "0\r\n\r\n", ""),
        ("line ends within", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n"),
        ("extensions", "3;a=b;c=\"d;e\"\r\nabc\r\n0;last\r\n\r\n", "abc"),
        ("trailers", "1\r\nx\r\n0\r\nX-Sum: 1\r\nX-Empty:\r\n\r\n", "x"),
        (
            "upper case, zeros, padding",
            "00A  \r\n0123456789\r\n000\r\n\r\n",
            "0123456789",
        ),
    ] {
        assert_reply(name, chunked(body), (200, expected, KEEPS, 0));
    }
}

#[test]
fn chunked_wins_over_a_length() {
    let body = "1\r\nx\r\n0\r\n\r\n";
    for fields in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "transfer-encoding: CHUNKED\r\nContent-Length: 3\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: , Chunked ,\r\n",
        "Transfer-Encoding:\r\n\tchunked\r\n",
    ] {
        assert_reply(fields, with_fields(fields, body), (200, "x", KEEPS, 0));
    }
    let none = "Transfer-Encoding: identity\r\nContent-Length: 1\r\n";
    assert_reply("identity is none", with_fields(none, "x"), (200, "x", KEEPS, 0));
}

#[test]
fn interim_replies_are_skipped() {
    let last = with_fields("Content-Length: 1\r\n", "x");
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: none\r\n\r\n";
    assert_reply("one", format!("{interim}{last}"), (200, "x", KEEPS, 0));
    assert_reply(
        "several",
        format!("{interim}{hints}{hints}{last}"),
        (200, "x", KEEPS, 0),
    );
    assert_reply("a thousand", interim.repeat(1000) + &last, (200, "x", KEEPS, 0));
    assert_reply(
        "closing is the final one's to say",
        format!("HTTP/1.1 100 \r\nConnection: close\r\n\r\n{last}"),
        (200, "x", KEEPS, 0),
    );
    assert_malformed(
        "the status 101 was not requested",
        &["HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"],
    );
}

#[test]
fn some_replies_end_with_their_head() {
    assert_reply("204", "HTTP/1.1 204 No Content\r\n\r\n", (204, "", KEEPS, 0));
    for fields in [
        "",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Content-Length: x\r\n",
    ] {
        let data = format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n");
        assert_reply("304", data, (304, "", KEEPS, 0));
        assert_reply_to(true, "HEAD", with_fields(fields, ""), (200, "", KEEPS, 0));
    }
    let huge = with_fields("Content-Length: 18446744073709551615\r\n", "");
    assert_reply_to(true, "HEAD of a length of 64 bit", huge, (200, "", KEEPS, 0));
}

#[test]
fn without_a_length_the_close_delimits() {
    assert_reply("1.0", "HTTP/1.0 200 OK\r\n\r\nhello", (200, "hello", CLOSES, 0));
    assert_reply("1.1", "HTTP/1.1 200 OK\r\n\r\nhello", (200, "hello", CLOSES, 0));
    assert_reply("empty", "HTTP/1.1 200 OK\r\n\r\n", (200, "", CLOSES, 0));
    let claims = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello";
    assert_reply("though it claims to go on", claims, (200, "hello", CLOSES, 0));
}

#[test]
fn the_connection_goes_on_by_version_and_tokens() {
    for (version, fields, keeps_alive) in [
        ("1.1", "", KEEPS),
        ("1.1", "Connection: close\r\n", CLOSES),
        ("1.1", "connection: foo, CLOSE\r\n", CLOSES),
        ("1.1", "Connection: foo\r\nConnection: close\r\n", CLOSES),
        ("1.1", "Connection: keep-alive, close\r\n", CLOSES),
        ("1.1", "Connection: closed\r\n", KEEPS),
        ("1.0", "", CLOSES),
        ("1.0", "Connection: Keep-Alive\r\n", KEEPS),
        ("1.0", "Connection: keep-alive\r\nConnection: close\r\n", CLOSES),
    ] {
        let data = format!("HTTP/{version} 200 OK\r\n{fields}Content-Length: 1\r\n\r\nx");
        assert_reply(fields, data, (200, "x", keeps_alive, 0));
    }
    let chunked = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_reply("chunks in 1.0", chunked, (200, "", CLOSES, 0));
}

#[test]
fn after_http_1_0_a_connection_goes_on_only_if_the_reply_says_so() {
    for (version, fields, body, keeps_alive) in [
        ("1.0", "Content-Length: 1\r\n", "x", CLOSES),
        ("1.1", "Content-Length: 1\r\n", "x", CLOSES),
        (
            "1.0",
            "Connection: keep-alive\r\nContent-Length: 1\r\n",
            "x",
            KEEPS,
        ),
        (
            "1.1",
            "Connection: Keep-Alive\r\nContent-Length: 1\r\n",
            "x",
            KEEPS,
        ),
        (
            "1.1",
            "Connection: keep-alive, close\r\nContent-Length: 1\r\n",
            "x",
            CLOSES,
        ),
        // A body that ends with the close.
        ("1.0", "", "x", CLOSES),
        ("1.1", "Connection: keep-alive\r\n", "x", CLOSES),
    ] {
        let data = format!("HTTP/{version} 200 OK\r\n{fields}\r\n{body}");
        let expected = Outcome::Reply {
            status: 200,
            body: body.as_bytes().to_vec(),
            keeps_alive,
            surplus: 0,
        };
        let reader = || ReplyReader::new(HttpVersion::V1_0, false);
        assert_eq!(read_every_way(&data, data.as_bytes(), reader), expected, "{data}");
    }
}

#[test]
fn a_reply_to_http_1_0_has_no_transfer_coding() {
    for (version, coding) in [("1.1", "chunked"), ("1.0", "identity")] {
        let data =
            format!("HTTP/{version} 200 OK\r\nTransfer-Encoding: {coding}\r\nContent-Length: 1\r\n\r\nx");
        let reader = || ReplyReader::new(HttpVersion::V1_0, false);
        let expected = Outcome::Malformed("the reply to HTTP/1.0 has a Transfer-Encoding");
        assert_eq!(read_every_way(&data, data.as_bytes(), reader), expected, "{data}");
    }
}

#[test]
fn a_reader_goes_from_reply_to_reply() {
    let replies = [
        (with_fields("Content-Length: 2\r\n", "ab"), "ab"),
        (with_fields("Content-Length: 2\r\n", "cd"), "cd"),
        (with_fields("Content-Length: 2\r\nX: y\r\n", "ef"), "ef"),
        (chunked("2\r\ngh\r\n0\r\n\r\n"), "gh"),
        (chunked("1\r\ni\r\n0\r\n\r\n"), "i"),
    ];
    let mut reader = ReplyReader::new(HttpVersion::V1_1, false);
    for (data, body) in replies.iter().chain(&replies) {
        let expected = Outcome::Reply {
            status: 200,
            body: body.as_bytes().to_vec(),
            keeps_alive: true,
            surplus: 0,
        };
        assert_eq!(read_with(&mut reader, [data.as_bytes()]), expected);
    }
}

#[test]
fn a_piece_that_looks_like_the_last_head_may_be_within_another() {
    let last = with_fields("Content-Length: 2\r\n", "ab");
    let mut reader = ReplyReader::new(HttpVersion::V1_1, false);
    read_with(&mut reader, [last.as_bytes()]);
    let outcome = read_with(&mut reader, [b"HTTP/1.1 404 No\r\nX: ", last.as_bytes()]);
    let expected = Outcome::Reply {
        status: 404,
        body: b"ab".to_vec(),
        keeps_alive: true,
        surplus: 0,
    };
    assert_eq!(outcome, expected);
}
