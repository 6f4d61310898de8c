//! Replies at and beyond the limits, malformed ones, and unfinished ones.

use prony_engine::wire::http1::EndOfStream;

use super::outcome::*;

#[test]
fn large_heads_are_read_up_to_their_limits() {
    let headers = |count: usize| (0..count).fold(String::new(), |text, k| text + &format!("X-{k}: v\r\n"));
    for count in [63, 64, 99, 1023] {
        let fields = headers(count) + "Content-Length: 1\r\n";
        assert_reply("many headers", with_fields(&fields, "x"), (200, "x", KEEPS, 0));
    }
    assert_malformed(
        "the head has more than 1024 headers",
        &[&with_fields(&headers(1025), "")],
    );

    let limit = 64 * 1024;
    let rest = with_fields("Content-Length: 1\r\nX: \r\n", "").len();
    let of_length = |length: usize| {
        let filler = "v".repeat(length - rest);
        with_fields(&format!("Content-Length: 1\r\nX: {filler}\r\n"), "x")
    };
    for length in [60 * 1024, limit] {
        assert_reply("large head", of_length(length), (200, "x", KEEPS, 0));
    }
    let endless = with_fields(&format!("X: {}", "v".repeat(2 * limit)), "");
    assert_malformed(
        "the head is longer than 64 KiB",
        &[&of_length(limit + 1), &endless],
    );
}

#[test]
fn another_protocol_is_refused_at_its_first_bytes() {
    let reason = "the reply does not begin with HTTP/1.";
    assert_malformed(
        reason,
        &[
            "SSH-2.0-OpenSSH_9.6",
            "\x15\x03\x01",
            "\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/2 200 \r\n\r\n",
            "h",
            "HTTP /1.1",
        ],
    );
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    assert_malformed(reason, &[&format!("{interim}x")]);
}

#[test]
fn hostile_heads_are_malformed() {
    let status = "the status line cannot be parsed";
    assert_malformed(
        status,
        &[
            "HTTP/1.1 abc OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 200 a\0b\r\n\r\n",
        ],
    );
    assert_malformed(
        "the version is not HTTP/1.0 or HTTP/1.1",
        &["HTTP/1.20 200 OK\r\n\r\n", "HTTP/1.x 200 OK\r\n\r\n"],
    );
    assert_malformed("the status code is below 100", &["HTTP/1.1 099 OK\r\n\r\n"]);
    assert_malformed(
        "a header's name has a forbidden character",
        &[
            &with_fields("a b: c\r\n", ""),
            &with_fields("a\0: c\r\n", ""),
            &with_fields(": c\r\n", ""),
            &with_fields("no colon\r\n", ""),
        ],
    );
    assert_malformed(
        "a header's value has a forbidden character",
        &[&with_fields("a: b\0c\r\n", ""), &with_fields("a: b\rc\r\n", "")],
    );
}

#[test]
fn lengths_that_are_none_are_malformed() {
    let number = "the Content-Length is not a number";
    for value in ["", "x", "-1", "+1", "1 2", "0x1", "1,", "1.0"] {
        assert_malformed(
            number,
            &[&with_fields(&format!("Content-Length: {value}\r\n"), "x")],
        );
    }
    let beyond = "the Content-Length is larger than 64 bits";
    for value in ["18446744073709551616", "99999999999999999999", &"9".repeat(1000)] {
        assert_malformed(
            beyond,
            &[&with_fields(&format!("Content-Length: {value}\r\n"), "x")],
        );
    }
    let differ = "two Content-Lengths differ";
    for fields in [
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: 1, 2, 1\r\n",
    ] {
        assert_malformed(differ, &[&with_fields(fields, "x")]);
    }
}

#[test]
fn codings_other_than_one_chunked_are_malformed() {
    for fields in [
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: gzip\r\nContent-Length: 1\r\n",
    ] {
        assert_malformed(
            "the Transfer-Encoding is not `chunked` alone",
            &[&with_fields(fields, "1\r\nx\r\n0\r\n\r\n")],
        );
    }
}

#[test]
fn interim_replies_without_end_are_malformed() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let most = 64 * 1024 / interim.len();
    let last = with_fields("Content-Length: 1\r\n", "x");
    assert_reply("most", interim.repeat(most) + &last, (200, "x", KEEPS, 0));
    assert_malformed(
        "the interim replies are longer than 64 KiB",
        &[&(interim.repeat(most + 1) + &last)],
    );
}

#[test]
fn hostile_chunks_are_malformed() {
    let cases: [(&str, &[&str]); 5] = [
        (
            "a chunk's size is not a hexadecimal number",
            &[
                "g\r\n", "\r\n", "\n", "-1\r\n", "0x1\r\n", "1 2\r\n", ";a\r\n", " 1\r\n",
            ],
        ),
        (
            "a chunk's size is larger than 64 bits",
            &["10000000000000000\r\n", "fffffffffffffffff\r\n"],
        ),
        (
            "a chunk's size line does not end in CRLF",
            &["1\nx\r\n", "1\rx\r\n", "1;a\nx\r\n", "0\n\n"],
        ),
        (
            "a chunk does not end in CRLF",
            &["1\r\nxy\r\n", "1\r\nx\n0\r\n\r\n", "1\r\nx\rx", "1\r\nx0\r\n\r\n"],
        ),
        (
            "the trailers of a chunked body are not header fields",
            &[
                "0\r\n\n",
                "0\r\nno colon\r\n\r\n",
                "0\r\na: b\n\r\n",
                "0\r\n: b\r\n\r\n",
                "0\r\na: \0\r\n\r\n",
                "0\r\n\rx",
            ],
        ),
    ];
    for (reason, bodies) in cases {
        for body in bodies {
            assert_malformed(reason, &[&chunked(body)]);
        }
    }
    let control = "a chunk's extension has a control character";
    assert_malformed(control, &[&chunked("1;a\0\r\nx\r\n0\r\n\r\n")]);
}

#[test]
fn a_close_says_what_was_missing() {
    assert_unfinished(EndOfStream::NoReply, &[""]);
    assert_unfinished(
        EndOfStream::WithinHead,
        &[
            "H",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n",
            "HTTP/1.1 100 \r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r",
        ],
    );
    let known = with_fields("Content-Length: 3\r\n", "ab");
    let largest = with_fields("Content-Length: 18446744073709551615\r\n", "ab");
    assert_unfinished(EndOfStream::WithinBody, &[&known, &largest]);
    for body in [
        "",
        "5",
        "5\r\n",
        "5\r\nab",
        "2\r\nab",
        "2\r\nab\r\n",
        "0\r\n",
        "0\r\n\r",
        "0\r\na: b\r\n",
        "ffffffffffffffff\r\nab",
    ] {
        assert_unfinished(EndOfStream::WithinBody, &[&chunked(body)]);
    }
}
