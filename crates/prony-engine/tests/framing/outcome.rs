//! What a reply comes to, and the ways to feed it.

use prony_engine::spec::HttpVersion;
use prony_engine::wire::http1::ReplyReader;
use prony_engine::wire::{EndOfStream, Reader};
pub use prony_fuzz::{outcome as read_with, Outcome};

pub fn read_whole(data: &[u8], is_head_request: bool) -> Outcome {
    read_with(&mut ReplyReader::new(HttpVersion::V1_1, is_head_request), [data])
}

/// Split points of `data` in two: every one, or of a long reply every 251st (a prime, so that no period is met).
fn splits(data: &[u8]) -> impl Iterator<Item = usize> {
    let step = if data.len() <= 4096 { 1 } else { 251 };
    (0..=data.len()).step_by(step)
}

/// The outcome of `data`, after it was the same whole, byte by byte and split in two, by readers that are new and by
/// one that has seen the same reply before.
pub fn read_every_way<R: Reader>(name: &str, data: &[u8], new_reader: impl Fn() -> R) -> Outcome {
    let whole = read_with(&mut new_reader(), [data]);
    let mut used = new_reader();
    let mut check = |pieces: &[&[u8]], how: &str| {
        let mut fresh = new_reader();
        for reader in [&mut fresh, &mut used] {
            assert_eq!(read_with(reader, pieces.iter().copied()), whole, "{name}, {how}");
        }
    };
    check(&[data], "whole");
    check(&[data], "whole, again");
    check(&data.chunks(1).collect::<Vec<_>>(), "byte by byte");
    for at in splits(data) {
        let (first, second) = data.split_at(at);
        check(&[first, second], &format!("split at {at}"));
    }
    whole
}

#[track_caller]
pub fn assert_reply(name: &str, data: impl AsRef<[u8]>, expected: (u16, &str, bool, usize)) {
    assert_reply_to(false, name, data, expected);
}

#[track_caller]
pub fn assert_reply_to(
    is_head_request: bool,
    name: &str,
    data: impl AsRef<[u8]>,
    (status, body, keeps_alive, surplus): (u16, &str, bool, usize),
) {
    let expected = Outcome::Reply {
        status,
        body: body.as_bytes().to_vec(),
        keeps_alive,
        surplus,
    };
    assert_eq!(
        read_every_way(name, data.as_ref(), || ReplyReader::new(
            HttpVersion::V1_1,
            is_head_request
        )),
        expected,
        "{name}"
    );
}

#[track_caller]
pub fn assert_malformed(reason: &'static str, cases: &[&str]) {
    for case in cases {
        let name: String = case.chars().take(100).collect();
        assert_eq!(
            read_every_way(&name, case.as_bytes(), || ReplyReader::new(
                HttpVersion::V1_1,
                false
            )),
            Outcome::Malformed(reason),
            "{name:?}"
        );
    }
}

#[track_caller]
pub fn assert_unfinished(expected: EndOfStream, cases: &[&str]) {
    for case in cases {
        assert_eq!(
            read_every_way(case, case.as_bytes(), || ReplyReader::new(
                HttpVersion::V1_1,
                false
            )),
            Outcome::Unfinished(expected),
            "{case:?}"
        );
    }
}

pub const KEEPS: bool = true;
pub const CLOSES: bool = false;

pub fn with_fields(fields: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}")
}

pub fn chunked(body: &str) -> String {
    with_fields("Transfer-Encoding: chunked\r\n", body)
}
