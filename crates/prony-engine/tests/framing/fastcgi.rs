//! Replies in FastCGI's records.

use prony_engine::wire::fastcgi::ReplyReader;
use prony_engine::wire::EndOfStream;
use proptest::prelude::*;

use super::outcome::*;
use super::properties::{bytes, cut, cuts};

const END: &[u8] = b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0";
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let header = [1, kind, 0, 1, high, low, padding, 0];
    [&header[..], content, &vec![0xff; usize::from(padding)]].concat()
}

/// The reply with this standard output, in one record.
fn reply(output: &str) -> Vec<u8> {
    [&record(STDOUT, output.as_bytes(), 3), END].concat()
}

fn read(data: &[u8]) -> Outcome {
    read_every_way(&String::from_utf8_lossy(data), data, || ReplyReader::new(false))
}

#[track_caller]
fn assert_reads(data: &[u8], (status, body, keeps_alive, surplus): (u16, &str, bool, usize)) {
    let body = body.as_bytes().to_vec();
    assert_eq!(
        read(data),
        Outcome::Reply {
            status,
            body,
            keeps_alive,
            surplus
        }
    );
}

/// Appendix B of the specification, its first and third example: output in one record, and in two with errors between.
#[test]
fn replies_of_the_specification_are_read() {
    let output = "Content-type: text/html\r\n\r\n<html>\n<head> ... ";
    let end = b"\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    let whole = [
        &b"\x01\x06\x00\x01\x00\x2d\x00\x00"[..],
        output.as_bytes(),
        b"\x01\x06\x00\x01\x00\x00\x00\x00",
        end,
    ];
    assert_eq!(output.len(), 0x2d);
    assert_reads(&whole.concat(), (200, "<html>\n<head> ... ", KEEPS, 0));
    let mixed = [
        record(STDOUT, b"Content-type: text/html\r\n\r\n<ht", 0),
        record(STDERR, b"config error: missing SI_UID\n", 0),
        record(STDOUT, b"ml>\n<head> ... ", 0),
        record(STDOUT, b"", 0),
        record(STDERR, b"", 0),
        end.to_vec(),
    ];
    assert_reads(&mixed.concat(), (200, "<html>\n<head> ... ", KEEPS, 0));
}

#[test]
fn a_reply_is_complete_with_the_end_of_the_request_and_its_padding() {
    let mut padded = reply("Status: 404 No\r\nContent-Length: 2\r\n\r\n42");
    let at = padded.len() - END.len() + 6;
    padded[at] = 2;
    assert_reads(&[&padded[..], b"pp", b"more"].concat(), (404, "42", KEEPS, 4));
    assert_eq!(
        read(&[&padded[..], b"p"].concat()),
        Outcome::Unfinished(EndOfStream::WithinBody)
    );
}

#[test]
fn records_of_management_are_not_of_the_reply() {
    let mut management = record(11, &[0; 8], 0);
    management[3] = 0;
    assert_reads(
        &[&management[..], &reply("A: b\r\n\r\n42")].concat(),
        (200, "42", KEEPS, 0),
    );
}

#[test]
fn more_output_than_the_length_says_ends_the_connection() {
    assert_reads(&reply("Content-Length: 2\r\n\r\n42!"), (200, "42", CLOSES, 0));
}

#[test]
fn a_body_that_answers_head_is_dropped() {
    let data = reply("Content-Length: 2\r\n\r\n42");
    let outcome = read_every_way("head", &data, || ReplyReader::new(true));
    assert_eq!(
        outcome,
        Outcome::Reply {
            status: 200,
            body: vec![],
            keeps_alive: true,
            surplus: 0
        }
    );
}

#[test]
fn an_end_too_early_is_no_reply() {
    for (data, end) in [
        (vec![], EndOfStream::NoReply),
        (b"\x01".to_vec(), EndOfStream::WithinHead),
        (END[..15].to_vec(), EndOfStream::WithinHead),
        (END.to_vec(), EndOfStream::NoReply),
        (reply(""), EndOfStream::NoReply),
        (reply("Status: 200"), EndOfStream::WithinHead),
        (reply("Content-Length: 3\r\n\r\n42"), EndOfStream::WithinBody),
        (
            record(STDOUT, b"Content-Length: 2\r\n\r\n42", 0),
            EndOfStream::WithinBody,
        ),
    ] {
        assert_eq!(read(&data), Outcome::Unfinished(end), "{data:?}");
    }
}

#[test]
fn a_request_that_is_refused_says_why() {
    for (status, reason) in [
        (1, "refused: the server accepts one request per connection"),
        (2, "refused: the server is overloaded"),
        (3, "refused: the server is not a responder"),
    ] {
        let mut end = END.to_vec();
        end[12] = status;
        assert_eq!(read(&end), Outcome::Unfinished(EndOfStream::Refused(reason)));
    }
    let mut end = END.to_vec();
    end[12] = 4;
    assert_eq!(
        read(&end),
        Outcome::Malformed("the end of the request has an unknown protocol status")
    );
}

#[test]
fn garbage_is_refused_with_its_reason() {
    for (data, reason) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "a record is not of version 1 of FastCGI",
        ),
        (b"\x01\x06\0\x02\0\0\0\0", "a record belongs to another request"),
        (
            b"\x01\x05\0\x01\0\0\0\0",
            "a record is of a kind that no application sends",
        ),
        (
            b"\x01\x03\0\x01\0\x07\0\0",
            "the record that ends the request does not have 8 bytes",
        ),
        (
            b"\x01\x06\0\x01\0\x02\0\0\r\n",
            "the head of a CGI reply has no header",
        ),
    ] {
        assert_eq!(read(data), Outcome::Malformed(reason));
    }
    assert_eq!(
        read(&reply("HTTP/1.1 200 OK\r\nA: b\r\n\r\n")),
        Outcome::Malformed("a header's name has a forbidden character")
    );
}

proptest! {
    /// However the application cuts its output into records, and the network these into pieces.
    #[test]
    fn a_reply_round_trips(
        body in bytes(3000),
        records in cuts(),
        padding: u8,
        errors in bytes(20),
        cuts in cuts(),
        behind in bytes(20),
    ) {
        let output = [b"Status: 200 OK\r\nX: y\r\n\r\n", body.as_slice()].concat();
        let mut data = Vec::new();
        for piece in cut(&output, &records).into_iter().filter(|piece| !piece.is_empty()) {
            data.extend(record(STDOUT, piece, padding));
            data.extend(record(STDERR, &errors, padding));
        }
        data.extend_from_slice(END);
        data.extend_from_slice(&behind);
        let expected = Outcome::Reply { status: 200, body, keeps_alive: true, surplus: behind.len() };
        prop_assert_eq!(read_with(&mut ReplyReader::new(false), cut(&data, &cuts)), expected);
    }

    #[test]
    fn a_damaged_reply_has_one_outcome_however_it_is_cut(
        at in any::<prop::sample::Index>(),
        byte: u8,
        cuts in cuts(),
    ) {
        let sound = [record(STDOUT, b"Status: 200 OK\r\nContent-Length: 5\r\n\r\nhello", 2), END.to_vec()].concat();
        let mut data = sound.clone();
        data[at.index(sound.len())] = byte;
        let mut reader = ReplyReader::new(false);
        read_with(&mut reader, [sound.as_slice()]);
        let whole = read_with(&mut ReplyReader::new(false), [data.as_slice()]);
        prop_assert_eq!(&read_with(&mut reader, cut(&data, &cuts)), &whole);
        prop_assert_eq!(&read_with(&mut reader, data.chunks(1)), &whole);
    }

    #[test]
    fn garbage_has_one_outcome_however_it_is_cut(data in bytes(300), cuts in cuts(), is_version_1: bool) {
        let data = if is_version_1 { [&[1, 6, 0, 1][..], &data].concat() } else { data };
        let whole = read_with(&mut ReplyReader::new(false), [data.as_slice()]);
        prop_assert_eq!(read_with(&mut ReplyReader::new(false), cut(&data, &cuts)), whole);
    }
}
