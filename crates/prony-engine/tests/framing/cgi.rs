//! Replies of CGI, as SCGI and uwsgi servers write them.

use prony_engine::wire::{scgi, EndOfStream};
use proptest::prelude::*;

use super::outcome::*;
use super::properties::{bytes, cut, cuts};

fn read(data: impl AsRef<[u8]>) -> Outcome {
    let data = data.as_ref();
    read_every_way(&String::from_utf8_lossy(data), data, || scgi::reader(false))
}

/// Status and body of a complete reply.
#[track_caller]
fn assert_reads(data: impl AsRef<[u8]>, expected: (u16, &str)) {
    match read(data) {
        Outcome::Reply { status, body, .. } => {
            assert_eq!((status, body.as_slice()), (expected.0, expected.1.as_bytes()))
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_refused(data: impl AsRef<[u8]>, reason: &'static str) {
    assert_eq!(read(data), Outcome::Malformed(reason));
}

/// The example of the SCGI specification.
#[test]
fn a_reply_is_complete_with_the_close() {
    assert_reads(
        "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n42",
        (200, "42"),
    );
}

#[test]
fn a_reply_is_complete_with_its_length() {
    let reply = read("status: 404 Not Found\r\ncontent-length: 2\r\n\r\n42more");
    let expected = Outcome::Reply {
        status: 404,
        body: b"42".to_vec(),
        keeps_alive: true,
        surplus: 4,
    };
    assert_eq!(reply, expected);
}

#[test]
fn a_status_line_of_http_is_a_head_too() {
    assert_reads(
        "HTTP/1.1 503 No\r\nContent-Type: text/plain\r\n\r\n42",
        (503, "42"),
    );
    assert_reads("HTTP/1.0 200 OK\r\n\r\n", (200, ""));
}

#[test]
fn lines_may_end_in_lf_and_a_status_may_lack_its_reason() {
    assert_reads("Content-Type: a\nStatus: 201\n\n42", (201, "42"));
}

#[test]
fn without_a_status_it_is_200_and_302_with_a_location() {
    assert_reads("Content-Type: text/plain\r\n\r\n", (200, ""));
    assert_reads("Location: http://a/\r\n\r\n", (302, ""));
    assert_reads("Location: http://a/\r\nStatus: 301 Moved\r\n\r\n", (301, ""));
}

#[test]
fn more_than_64_headers_are_read() {
    assert_reads(format!("{}\r\n42", "A: b\r\n".repeat(1000)), (200, "42"));
    assert_refused(
        format!("{}\r\n", "A: b\r\n".repeat(1025)),
        "the head has more than 1024 headers",
    );
}

#[test]
fn a_close_too_early_is_no_reply() {
    let unfinished = [
        ("", EndOfStream::NoReply),
        ("S", EndOfStream::WithinHead),
        ("Status: 200 OK\r\n", EndOfStream::WithinHead),
        ("Content-Length: 5\r\n\r\n1234", EndOfStream::WithinBody),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            EndOfStream::WithinBody,
        ),
    ];
    for (data, end) in unfinished {
        assert_eq!(read(data), Outcome::Unfinished(end), "{data:?}");
    }
}

#[test]
fn garbage_is_refused_with_its_reason() {
    for status in [
        "",
        "OK",
        "20",
        "2000 OK",
        "199 No",
        "100 Continue",
        "200OK",
        "-200",
    ] {
        assert_refused(
            format!("Status: {status}\r\n\r\n"),
            "the Status of a CGI reply is not 200 to 999",
        );
    }
    assert_refused("\r\n", "the head of a CGI reply has no header");
    assert_refused(
        "Transfer-Encoding: chunked\r\n\r\n",
        "a CGI reply has a Transfer-Encoding",
    );
    assert_refused("Content-Length: -1\r\n\r\n", "the Content-Length is not a number");
    assert_refused("SSH-2.0-x\r\n\r\n", "a header's name has a forbidden character");
    assert_refused("x".repeat(64 * 1024), "the head is longer than 64 KiB");
}

proptest! {
    #[test]
    fn a_body_of_known_length_round_trips(body in bytes(2000), cuts in cuts()) {
        let head = format!("Status: 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let data = [head.as_bytes(), &body].concat();
        let expected = Outcome::Reply { status: 200, body, keeps_alive: true, surplus: 0 };
        prop_assert_eq!(read_with(&mut scgi::reader(false), cut(&data, &cuts)), expected);
    }

    #[test]
    fn a_damaged_reply_has_one_outcome_however_it_is_cut(at in any::<prop::sample::Index>(), byte: u8, cuts in cuts()) {
        let sound = b"Status: 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello";
        let mut data = sound.to_vec();
        data[at.index(sound.len())] = byte;
        let mut reader = scgi::reader(false);
        read_with(&mut reader, [&sound[..]]);
        let whole = read_with(&mut scgi::reader(false), [data.as_slice()]);
        prop_assert_eq!(&read_with(&mut reader, cut(&data, &cuts)), &whole);
        prop_assert_eq!(&read_with(&mut reader, data.chunks(1)), &whole);
    }
}
