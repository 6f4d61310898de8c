#![allow(clippy::unwrap_used)]
use super::*;
use crate::wire::http2::hpack;
use proptest::prelude::*;

/// News of one stream, as text; pieces of a body are joined.
type Shown = Vec<(usize, String)>;

fn note(shown: &mut Shown, key: usize, news: News<'_>) {
    let text = match news {
        News::Bytes => return,
        News::Head(text) => String::from_utf8_lossy(text).replace("\r\n", "|"),
        News::Body(piece) => {
            // Byte by byte: a piece may end within a character.
            let piece = piece.escape_ascii().to_string();
            let last = shown.iter_mut().rev().find(|(other, _)| *other == key);
            if let Some((_, text)) = last.filter(|(_, text)| text.starts_with('+')) {
                text.push_str(&piece);
                return;
            }
            format!("+{piece}")
        }
        News::Broken(_) => "broken".to_owned(),
        News::Reset(code) => format!("reset {}", code.name()),
        other => format!("{other:?}").to_lowercase(),
    };
    shown.push((key, text));
}

fn take(connection: &mut Connection, bytes: &[u8]) -> (Shown, Result<(), &'static str>) {
    let mut shown = Vec::new();
    let result = connection.take(bytes, &mut |key, _, news| note(&mut shown, key, news));
    (shown, result)
}

fn one(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::push(kind, flags, stream, payload, &mut bytes);
    bytes
}

fn settings(given: &[(u16, u32)]) -> Vec<u8> {
    let each = given
        .iter()
        .flat_map(|(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()));
    one(frame::SETTINGS, 0, 0, &each.collect::<Vec<u8>>())
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    fields
        .iter()
        .for_each(|(name, value)| hpack::encode(name, value, &mut block));
    block
}

fn head(stream: u32, ends: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::push_head(&block(fields), ends, stream, &mut bytes);
    bytes
}

fn body(stream: u32, ends: bool, text: &[u8]) -> Vec<u8> {
    let flags = if ends { frame::END_STREAM } else { 0 };
    one(frame::DATA, flags, stream, text)
}

fn goaway(last: u32, code: u32) -> Vec<u8> {
    let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    one(frame::GOAWAY, 0, 0, &payload)
}

const GET: &[u8] = &[0x82, 0x84, 0x86];
const OK: &[(&str, &str)] = &[(":status", "200")];

/// A connection whose settings are there, with so many requests on it, of the keys 0, 1, 2; what it has sent is forgotten.
fn with_requests(count: usize) -> Connection {
    let mut connection = Connection::new();
    assert_eq!(take(&mut connection, &settings(&[])).1, Ok(()));
    for key in 0..count {
        let id = connection.begin(key, GET, false, true);
        assert_eq!(id, Some(2 * key as u32 + 1));
    }
    forget_pending(&mut connection);
    connection
}

fn forget_pending(connection: &mut Connection) {
    let count = connection.pending().len();
    connection.advance(count);
}

fn shown(expected: &[(usize, &str)]) -> Shown {
    expected
        .iter()
        .map(|&(key, text)| (key, text.to_owned()))
        .collect()
}

#[test]
fn it_opens_with_the_preface_its_settings_and_a_large_window() {
    let connection = Connection::new();
    let rest = connection.pending().strip_prefix(frame::PREFACE).unwrap();
    let header = Header::parse(rest[..9].try_into().unwrap());
    assert_eq!(
        (header.kind, header.stream, header.length),
        (frame::SETTINGS, 0, 18)
    );
    let header = Header::parse(rest[27..36].try_into().unwrap());
    assert_eq!((header.kind, header.stream), (frame::WINDOW_UPDATE, 0));
}

#[test]
fn replies_come_in_any_order_and_in_pieces_of_any_streams() {
    let mut connection = with_requests(3);
    let bytes = [
        head(5, true, &[(":status", "204")]),
        head(1, false, &[(":status", "200"), ("content-length", "4")]),
        body(1, false, b"ab"),
        head(3, false, OK),
        body(3, false, b""),
        body(1, true, b"cd"),
        body(3, false, b"x"),
        head(3, true, &[("checksum", "1")]),
    ];
    let (news, result) = take(&mut connection, &bytes.concat());
    let expected = [
        (2, "HTTP/2 204||"),
        (2, "complete"),
        (0, "HTTP/2 200|content-length: 4||"),
        (0, "+abcd"),
        (1, "HTTP/2 200||"),
        (0, "complete"),
        (1, "+x"),
        (1, "complete"),
    ];
    assert_eq!((news, result), (shown(&expected), Ok(())));
    assert_eq!((connection.active(), connection.has_answered()), (0, true));
}

#[test]
fn the_bytes_of_a_stream_are_those_of_its_frames() {
    let mut connection = with_requests(2);
    let own = [
        head(1, false, OK),
        one(frame::DATA, frame::PADDED, 1, b"\x03abc\0\0\0"),
        head(1, true, &[("x", "y")]),
    ]
    .concat();
    let others = [one(frame::PING, 0, 0, b"12345678"), head(3, true, OK)].concat();
    let mut sums = [0; 2];
    for piece in [own.clone(), others.clone()].concat().chunks(5) {
        let mut count = |key: usize, bytes: usize, _: News<'_>| sums[key] += bytes;
        connection.take(piece, &mut count).unwrap();
    }
    assert_eq!(sums, [own.len(), others.len() - 17]);
}

#[test]
fn a_head_may_take_several_frames_and_may_be_padded() {
    let mut connection = with_requests(1);
    let fields = block(&[(":status", "200"), ("x", "y")]);
    let padded = [&[2, 0, 0, 0, 0, 0][..], &fields[..1], &[0, 0]].concat();
    let bytes = [
        one(frame::HEADERS, frame::PADDED | frame::WITH_PRIORITY, 1, &padded),
        one(frame::CONTINUATION, 0, 1, &fields[1..3]),
        one(frame::CONTINUATION, frame::END_HEADERS, 1, &fields[3..]),
    ];
    let (news, result) = take(&mut connection, &bytes.concat());
    assert_eq!((news, result), (shown(&[(0, "HTTP/2 200|x: y||")]), Ok(())));
}

#[test]
fn what_it_does_not_know_is_ignored_and_pings_and_settings_are_answered() {
    let mut connection = with_requests(1);
    let bytes = [
        one(0xbe, 0xff, 77, b"anything"),
        // PRIORITY.
        one(2, 0, 1, &[0; 5]),
        one(frame::PING, 0, 0, b"12345678"),
        one(frame::PING, frame::ACK, 0, b"12345678"),
        settings(&[(0xf00, 1)]),
        one(frame::SETTINGS, frame::ACK, 0, &[]),
    ];
    assert_eq!(take(&mut connection, &bytes.concat()), (vec![], Ok(())));
    let answers = [
        one(frame::PING, frame::ACK, 0, b"12345678"),
        one(frame::SETTINGS, frame::ACK, 0, &[]),
    ];
    assert_eq!(connection.pending(), answers.concat());
}

#[test]
fn streams_are_as_many_as_the_server_takes_also_when_it_takes_fewer_later() {
    let mut connection = Connection::new();
    assert_eq!(connection.room(), FIRST_STREAMS as usize);
    let whole = settings(&[(frame::MOST_STREAMS, 3)]);
    let (first, rest) = whole.split_at(12);
    take(&mut connection, first).1.unwrap();
    assert_eq!(connection.room(), FIRST_STREAMS as usize);
    take(&mut connection, rest).1.unwrap();
    assert_eq!((connection.room(), connection.most_streams()), (3, Some(3)));
    for key in 0..3 {
        assert!(connection.begin(key, GET, false, true).is_some());
    }
    assert_eq!(connection.begin(3, GET, false, true), None);
    take(&mut connection, &settings(&[(frame::MOST_STREAMS, 1)]))
        .1
        .unwrap();
    take(&mut connection, &[head(1, true, OK), head(3, true, OK)].concat())
        .1
        .unwrap();
    assert_eq!((connection.active(), connection.room()), (1, 0));
    take(&mut connection, &head(5, true, OK)).1.unwrap();
    assert_eq!(connection.room(), 1);
}

#[test]
fn a_body_is_sent_as_far_as_both_windows_allow() {
    let mut connection = Connection::new();
    let first = settings(&[(frame::INITIAL_WINDOW, 10)]);
    take(&mut connection, &first).1.unwrap();
    forget_pending(&mut connection);
    let id = connection.begin(0, GET, false, false).unwrap();
    forget_pending(&mut connection);
    assert_eq!(connection.send(id, &[7; 25]), 10);
    assert_eq!(connection.pending(), body(1, false, &[7; 10]));
    forget_pending(&mut connection);
    assert_eq!(connection.send(id, &[7; 15]), 0);
    let more = |stream, count: u32| one(frame::WINDOW_UPDATE, 0, stream, &count.to_be_bytes());
    assert_eq!(take(&mut connection, &more(1, 5)).0, shown(&[(0, "room")]));
    assert_eq!(connection.send(id, &[7; 15]), 5);
    // The window shrinks below what was sent already.
    let (news, _) = take(&mut connection, &settings(&[(frame::INITIAL_WINDOW, 0)]));
    assert_eq!(news, vec![]);
    assert_eq!(take(&mut connection, &more(1, 10)).0, vec![]);
    assert_eq!(take(&mut connection, &more(1, 10)).0, shown(&[(0, "room")]));
    forget_pending(&mut connection);
    assert_eq!(connection.send(id, &[7; 10]), 10);
    assert_eq!(connection.pending(), body(1, true, &[7; 10]));
    let (news, _) = take(&mut connection, &head(1, true, OK));
    assert_eq!(news.len(), 2);
    assert_eq!(connection.active(), 0);
}

#[test]
fn the_window_of_the_connection_is_shared() {
    let mut connection = Connection::new();
    take(&mut connection, &settings(&[(frame::INITIAL_WINDOW, 1 << 20)]))
        .1
        .unwrap();
    let first = connection.begin(0, GET, false, false).unwrap();
    let second = connection.begin(1, GET, false, false).unwrap();
    forget_pending(&mut connection);
    let whole = vec![1; 100_000];
    assert_eq!(connection.send(first, &whole[..30_000]), 30_000);
    // What stands ready is bounded, whatever the windows allow.
    assert!(connection.send(second, &whole) < MOST_PENDING - 30_000);
    forget_pending(&mut connection);
    let sent = DEFAULT_WINDOW - 30_000 - connection.send_window;
    assert_eq!(
        connection.send(second, &whole[sent as usize..]),
        35_535 - sent as usize
    );
    forget_pending(&mut connection);
    assert_eq!(connection.send(second, &whole[35_535..]), 0);
    let more = one(frame::WINDOW_UPDATE, 0, 0, &1000u32.to_be_bytes());
    assert_eq!(take(&mut connection, &more).0, shown(&[(1, "room")]));
}

/// The server allows ten thousand bytes again and again: far less than any of the bodies.
#[test]
fn bodies_that_wait_take_turns_at_what_the_server_allows() {
    const COUNT: usize = 8;
    let mut connection = Connection::new();
    take(&mut connection, &settings(&[(frame::INITIAL_WINDOW, 1 << 30)]))
        .1
        .unwrap();
    let whole = vec![1; 1 << 20];
    let ids: Vec<u32> = (0..COUNT)
        .map(|key| connection.begin(key, GET, false, false).unwrap())
        .collect();
    forget_pending(&mut connection);
    let mut sent: Vec<usize> = ids.iter().map(|&id| connection.send(id, &whole)).collect();
    forget_pending(&mut connection);
    let more = one(frame::WINDOW_UPDATE, 0, 0, &10_000u32.to_be_bytes());
    for _ in 0..10 * COUNT {
        let mut turns = Vec::new();
        let mut on_news = |key: usize, _: usize, news: News<'_>| {
            assert_eq!(news, News::Room);
            turns.push(key);
        };
        connection.take(&more, &mut on_news).unwrap();
        for key in turns {
            sent[key] += connection.send(ids[key], &whole[sent[key]..]);
        }
        forget_pending(&mut connection);
    }
    assert_eq!(sent.iter().sum::<usize>(), 65_535 + 10 * COUNT * 10_000);
    // The first one had the window with which a connection begins.
    assert!(sent[1..].iter().all(|&bytes| bytes >= 100_000), "{sent:?}");
}

#[test]
fn what_a_server_receives_never_waits_for_this_side() {
    let mut connection = with_requests(1);
    take(&mut connection, &head(1, false, OK)).1.unwrap();
    let piece = body(1, false, &[0; LARGEST_BYTES]);
    let frames = OWN_WINDOW as usize / 2 / LARGEST_BYTES + 2;
    for _ in 0..frames {
        connection.take(&piece, &mut |_, _, _| {}).unwrap();
    }
    let pending = connection.pending();
    let kinds: Vec<(u8, u32)> = pending
        .chunks(13)
        .map(|one| Header::parse(one[..9].try_into().unwrap()))
        .map(|header| (header.kind, header.stream))
        .collect();
    assert_eq!(kinds, [(frame::WINDOW_UPDATE, 0), (frame::WINDOW_UPDATE, 1)]);
}

#[test]
fn going_away_leaves_what_is_processed_and_gives_back_the_rest() {
    let mut connection = with_requests(3);
    take(&mut connection, &head(5, false, OK)).1.unwrap();
    assert_eq!(
        take(&mut connection, &goaway(LARGEST_STREAM, 0)),
        (vec![], Ok(()))
    );
    assert_eq!((connection.room(), connection.is_usable()), (0, false));
    let (news, result) = take(&mut connection, &goaway(1, 11));
    let expected = [(1, "unprocessed"), (2, "reset ENHANCE_YOUR_CALM")];
    assert_eq!((news, result), (shown(&expected), Ok(())));
    assert_eq!(connection.going(), Some(Code::ENHANCE_YOUR_CALM));
    // What was on its way for them is nobody's.
    let (news, result) = take(
        &mut connection,
        &[body(5, true, b"x"), head(1, true, OK)].concat(),
    );
    assert_eq!(
        (news, result),
        (shown(&[(0, "HTTP/2 200||"), (0, "complete")]), Ok(()))
    );
    assert!(take(&mut connection, &goaway(3, 0)).1.is_err());
}

#[test]
fn what_is_given_back_keeps_its_order() {
    let mut connection = with_requests(50);
    let (news, result) = take(&mut connection, &goaway(19, 0));
    let expected: Shown = (10..50).map(|key| (key, "unprocessed".to_owned())).collect();
    assert_eq!((news, result), (expected, Ok(())));
}

#[test]
fn a_stream_that_is_reset_is_refused_or_failed() {
    let mut connection = with_requests(2);
    let reset = |stream, code: u32| one(frame::RST_STREAM, 0, stream, &code.to_be_bytes());
    let (news, result) = take(&mut connection, &[reset(1, 7), reset(3, 2), reset(3, 2)].concat());
    let expected = [(0, "refused"), (1, "reset INTERNAL_ERROR")];
    assert_eq!((news, result), (shown(&expected), Ok(())));
    assert_eq!(connection.active(), 0);
}

/// Of a request whose body is larger than the window: the reply to it is complete, and then comes this.
fn answered_early(then: &[u8]) -> Shown {
    let mut connection = with_requests(0);
    let id = connection.begin(7, GET, false, false).unwrap();
    while connection.send(id, &[0; 100_000]) > 0 {
        forget_pending(&mut connection);
    }
    let (news, result) = take(&mut connection, &head(id, true, OK));
    assert_eq!(
        (news, result),
        (shown(&[(7, "HTTP/2 200||"), (7, "complete")]), Ok(()))
    );
    assert!(connection.has(id));
    let (news, result) = take(&mut connection, then);
    assert_eq!(result, Ok(()));
    assert!(!connection.has(id) || news == shown(&[(7, "room")]));
    news
}

#[test]
fn a_reply_that_is_complete_stays_so_when_the_server_wants_no_more_of_its_request() {
    for code in [0u32, 8, 7] {
        let reset = one(frame::RST_STREAM, 0, 1, &code.to_be_bytes());
        assert_eq!(answered_early(&reset), shown(&[(7, "unwanted")]));
    }
    assert_eq!(answered_early(&goaway(0, 0)), shown(&[(7, "unwanted")]));
    let more = 100_000u32.to_be_bytes();
    let room = [
        one(frame::WINDOW_UPDATE, 0, 0, &more),
        one(frame::WINDOW_UPDATE, 0, 1, &more),
    ];
    assert_eq!(answered_early(&room.concat()), shown(&[(7, "room")]));
}

#[test]
fn a_stream_is_over_when_the_rest_of_its_request_is_sent() {
    let mut connection = with_requests(0);
    let id = connection.begin(7, GET, false, false).unwrap();
    let taken = connection.send(id, &[0; 100_000]);
    let more = 100_000u32.to_be_bytes();
    let room = [
        one(frame::WINDOW_UPDATE, 0, 0, &more),
        one(frame::WINDOW_UPDATE, 0, 1, &more),
    ]
    .concat();
    let _ = take(&mut connection, &[head(id, true, OK), room].concat());
    forget_pending(&mut connection);
    assert_eq!(connection.send(id, &vec![0; 100_000 - taken]), 100_000 - taken);
    assert_eq!((connection.active(), connection.has(id)), (0, false));
}

#[test]
fn what_still_comes_for_a_cancelled_stream_is_dropped_and_keeps_the_table() {
    let mut connection = with_requests(2);
    connection.cancel(1);
    let reset = one(frame::RST_STREAM, 0, 1, &8u32.to_be_bytes());
    assert_eq!(connection.pending(), reset);
    // The head of the cancelled one adds `a: b` to the table, which the other one names.
    let late = one(frame::HEADERS, frame::END_HEADERS, 1, b"\x88\x40\x01a\x01b");
    let own = one(
        frame::HEADERS,
        frame::END_HEADERS | frame::END_STREAM,
        3,
        b"\x88\xbe",
    );
    let bytes = [late, body(1, true, b"x"), own].concat();
    let (news, result) = take(&mut connection, &bytes);
    assert_eq!(
        (news, result),
        (shown(&[(1, "HTTP/2 200|a: b||"), (1, "complete")]), Ok(()))
    );
    // However many were cancelled.
    let mut many = with_requests(400);
    (0..400).for_each(|place| many.cancel(2 * place + 1));
    assert_eq!(take(&mut many, &head(1, true, OK)), (vec![], Ok(())));
    assert_eq!(take(&mut many, &head(799, true, OK)), (vec![], Ok(())));
}

#[test]
fn a_reply_that_breaks_a_rule_ends_its_stream_alone() {
    let cases: Vec<Vec<u8>> = vec![
        body(1, true, b"x"),
        head(1, true, &[]),
        head(1, true, &[("x", "y")]),
        head(1, true, &[(":status", "200"), ("X", "y")]),
        head(1, true, &[(":status", "100")]),
        head(1, false, &[(":status", "101")]),
        [head(1, false, OK), head(1, false, OK)].concat(),
        [head(1, false, OK), head(1, false, &[("x", "y")])].concat(),
        [
            head(1, false, OK),
            head(1, true, &[(":status", "200"), ("x", "y")]),
        ]
        .concat(),
        [
            head(1, false, &[(":status", "200"), ("content-length", "1")]),
            body(1, true, b"xy"),
        ]
        .concat(),
        [head(1, false, &[(":status", "304")]), body(1, true, b"x")].concat(),
        head(1, false, &[(":status", "103"), ("x", &"y".repeat(20_000))]).repeat(5),
        one(frame::WINDOW_UPDATE, 0, 1, &[0; 4]),
        one(frame::WINDOW_UPDATE, 0, 1, &LARGEST_STREAM.to_be_bytes()),
    ];
    for bytes in cases {
        let mut connection = with_requests(2);
        let (news, result) = take(&mut connection, &bytes);
        assert_eq!(result, Ok(()), "{bytes:x?}");
        assert_eq!(news.last(), Some(&(0, "broken".to_owned())), "{bytes:x?}");
        let header = Header::parse(connection.pending()[..9].try_into().unwrap());
        assert_eq!((header.kind, header.stream), (frame::RST_STREAM, 1));
        let (news, result) = take(&mut connection, &head(3, true, OK));
        assert_eq!((news.len(), result), (2, Ok(())));
    }
}

#[test]
fn a_reply_that_ends_before_its_announced_length_is_short() {
    let mut connection = with_requests(1);
    let long = &[(":status", "200"), ("content-length", "5")];
    let (news, _) = take(
        &mut connection,
        &[head(1, false, long), body(1, true, b"hell")].concat(),
    );
    assert_eq!(news.last(), Some(&(0, "short".to_owned())));
    // A reply to HEAD has none, whatever it announces.
    let id = connection.begin(1, GET, true, true).unwrap();
    let (news, _) = take(&mut connection, &head(id, true, long));
    assert_eq!(news.last(), Some(&(1, "complete".to_owned())));
}

#[test]
fn what_breaks_a_rule_of_the_connection_ends_it() {
    let after_settings: Vec<Vec<u8>> = vec![
        one(frame::PUSH_PROMISE, frame::END_HEADERS, 1, &[0, 0, 0, 2]),
        one(frame::CONTINUATION, frame::END_HEADERS, 1, &[]),
        [
            one(frame::HEADERS, 0, 1, &[0x88]),
            one(frame::PING, 0, 0, &[0; 8]),
        ]
        .concat(),
        [
            one(frame::HEADERS, 0, 1, &[0x88]),
            one(frame::CONTINUATION, 4, 3, &[]),
        ]
        .concat(),
        one(frame::HEADERS, 0, 1, &[0x88])
            .into_iter()
            .chain(one(frame::CONTINUATION, 0, 1, &[]).repeat(20_000))
            .collect(),
        one(frame::HEADERS, 0, 1, &[0x88])
            .into_iter()
            .chain(one(frame::CONTINUATION, 0, 1, &[0; 16_000]).repeat(5))
            .collect(),
        one(frame::HEADERS, frame::END_HEADERS | frame::PADDED, 1, &[9, 0x88]),
        one(frame::HEADERS, frame::END_HEADERS, 1, &[0xff]),
        one(frame::HEADERS, frame::END_HEADERS, 2, &[0x88]),
        one(frame::HEADERS, frame::END_HEADERS, 7, &[0x88]),
        one(frame::HEADERS, frame::END_HEADERS, 0, &[0x88]),
        [head(1, true, OK), head(1, true, OK)].concat(),
        [head(1, true, OK), body(1, true, b"")].concat(),
        body(0, true, b"x"),
        body(9, true, b"x"),
        one(frame::DATA, frame::PADDED, 1, &[]),
        [head(1, false, OK), one(frame::DATA, frame::PADDED, 1, &[2, 0])].concat(),
        one(frame::RST_STREAM, 0, 0, &[0; 4]),
        one(frame::RST_STREAM, 0, 1, &[0; 3]),
        one(frame::RST_STREAM, 0, 9, &[0; 4]),
        one(frame::SETTINGS, 0, 1, &[]),
        one(frame::SETTINGS, 0, 0, &[0; 5]),
        one(frame::SETTINGS, frame::ACK, 0, &[0; 6]),
        settings(&[(frame::ENABLE_PUSH, 1)]),
        settings(&[(frame::INITIAL_WINDOW, 1 << 31)]),
        [
            settings(&[(frame::INITIAL_WINDOW, 0)]),
            one(frame::WINDOW_UPDATE, 0, 1, &LARGEST_STREAM.to_be_bytes()),
            settings(&[(frame::INITIAL_WINDOW, 1)]),
        ]
        .concat(),
        settings(&[(frame::FRAME_SIZE, 16_383)]),
        settings(&[(frame::FRAME_SIZE, 1 << 24)]),
        one(frame::PING, 0, 1, &[0; 8]),
        one(frame::PING, 0, 0, &[0; 7]),
        one(frame::GOAWAY, 0, 1, &[0; 8]),
        one(frame::GOAWAY, 0, 0, &[0; 7]),
        one(frame::WINDOW_UPDATE, 0, 0, &[0; 4]),
        one(frame::WINDOW_UPDATE, 0, 0, &LARGEST_STREAM.to_be_bytes()),
        one(frame::WINDOW_UPDATE, 0, 0, &[0; 3]),
        one(frame::WINDOW_UPDATE, 0, 9, &[1; 4]),
        [0, 0x40, 1, 0xbe, 0, 0, 0, 0, 0].to_vec(),
    ];
    let at_first = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        head(1, true, OK),
        one(frame::SETTINGS, frame::ACK, 0, &[]),
        vec![0x16; 20],
    ];
    let with_settings = after_settings.iter().map(|bytes| (with_requests(2), bytes));
    let without = at_first.iter().map(|bytes| (Connection::new(), bytes));
    for (mut connection, bytes) in with_settings.chain(without) {
        connection.begin(5, GET, false, true);
        forget_pending(&mut connection);
        let (_, result) = take(&mut connection, bytes);
        assert!(result.is_err(), "{:x?}", &bytes[..bytes.len().min(40)]);
        assert!(!connection.is_usable() && connection.begin(6, GET, false, true).is_none());
        let last = &connection.pending()[connection.pending().len() - 17..];
        assert_eq!(Header::parse(last[..9].try_into().unwrap()).kind, frame::GOAWAY);
        // It stays so.
        assert_eq!(take(&mut connection, &head(3, true, OK)), (vec![], result));
    }
}

#[test]
fn a_server_that_asks_for_answers_and_takes_none_is_left() {
    let mut connection = with_requests(1);
    let pings = one(frame::PING, 0, 0, &[0; 8]).repeat(1000);
    let refused = (0..100).find_map(|_| take(&mut connection, &pings).1.err());
    assert_eq!(refused, Some("the server asks for answers and takes none"));
    assert!(connection.pending().len() < MOST_OWED + 100);
}

#[test]
fn numbers_of_streams_run_out() {
    let mut connection = with_requests(0);
    connection.next_id = LARGEST_STREAM;
    assert!(connection.begin(0, GET, false, true).is_some());
    assert_eq!((connection.room(), connection.is_usable()), (0, false));
}

#[test]
fn a_server_that_wants_another_table_learns_that_it_stays_empty() {
    let mut connection = Connection::new();
    take(&mut connection, &settings(&[(frame::TABLE_SIZE, 0)]))
        .1
        .unwrap();
    forget_pending(&mut connection);
    connection.begin(0, GET, false, true);
    connection.begin(1, GET, false, true);
    let mut expected = Vec::new();
    frame::push_head(&[&[EMPTY_TABLE], GET].concat(), true, 1, &mut expected);
    frame::push_head(GET, true, 3, &mut expected);
    assert_eq!(connection.pending(), expected);
}

#[test]
fn a_long_head_of_a_request_goes_in_several_frames() {
    let mut connection = with_requests(0);
    connection.begin(0, &[0x82; 40_000], false, true);
    let lengths = [16_384, 16_384, 7_232];
    let mut rest = connection.pending();
    for (place, length) in lengths.into_iter().enumerate() {
        let header = Header::parse(rest[..9].try_into().unwrap());
        assert_eq!((header.length, header.stream), (length, 1));
        assert_eq!(header.has(frame::END_HEADERS), place == 2);
        rest = &rest[9 + length..];
    }
    assert!(rest.is_empty());
}

#[test]
fn a_body_is_the_same_when_it_is_cut_within_a_character() {
    let bytes = [head(1, false, OK), body(1, true, "a\u{80}b".as_bytes())].concat();
    let expected = take(&mut with_requests(1), &bytes);
    let (mut connection, mut news) = (with_requests(1), Vec::new());
    for piece in bytes.chunks(1) {
        connection
            .take(piece, &mut |key, _, one| note(&mut news, key, one))
            .unwrap();
    }
    assert_eq!((news, Ok(())), expected);
}

/// Interim heads of 20 bytes, each of which stands for 64 KiB.
fn bomb() -> Vec<u8> {
    // Adds a field of four thousand bytes to the table, and stands for it fifteen times from then on.
    let mut first = b"\x08\x03103\x40\x01a\x7f\xa1\x1e".to_vec();
    first.extend_from_slice(&[b'x'; 4000]);
    let again = [&b"\x08\x03103"[..], &[0xbe; 15]].concat();
    let head = |block: &[u8]| one(frame::HEADERS, frame::END_HEADERS, 1, block);
    [head(&first), head(&again).repeat(2000)].concat()
}

#[test]
fn interim_heads_are_bounded_by_what_they_come_to() {
    let mut connection = with_requests(2);
    let (mut text_bytes, mut last) = (0, String::new());
    let result = connection.take(&bomb(), &mut |_, _, news| match news {
        News::Head(text) => text_bytes += text.len(),
        News::Broken(why) => why.clone_into(&mut last),
        _ => {}
    });
    assert_eq!(
        (result, &*last),
        (Ok(()), "the heads of a reply are longer than 64 KiB")
    );
    assert!(text_bytes <= 2 * HEADS_BYTES, "{text_bytes} bytes of heads");
    // The table is still that of the server.
    let (news, _) = take(&mut connection, &one(frame::HEADERS, 5, 3, &[0x88, 0xbe]));
    assert!(news[0].1.starts_with("HTTP/2 200|a: xxx"), "{news:?}");
    let kept = [&connection.head.text, &connection.block, &connection.known];
    assert!(kept.iter().all(|buffer| buffer.capacity() <= KEPT_BYTES));
}

#[test]
fn a_large_head_leaves_no_large_buffers() {
    let mut connection = with_requests(1);
    let (news, result) = take(
        &mut connection,
        &head(1, true, &[(":status", "200"), ("x", &"~".repeat(40_000))]),
    );
    assert_eq!((news.len(), result), (2, Ok(())));
    let kept = [&connection.head.text, &connection.block, &connection.known];
    assert!(kept.iter().all(|buffer| buffer.capacity() <= KEPT_BYTES));
}

#[test]
fn no_stream_is_begun_while_a_server_takes_nothing() {
    let mut connection = with_requests(0);
    let mut begun = 0;
    while let Some(id) = connection.begin(0, &[0x82; 1000], false, true) {
        connection.cancel(id);
        begun += 1;
        assert!(begun < 1000, "{} bytes wait", connection.pending().len());
    }
    assert!(connection.is_usable());
    assert!(connection.pending().len() <= MOST_BEGUN + 2000);
    forget_pending(&mut connection);
    assert!(connection.begin(0, GET, false, true).is_some());
}

#[test]
fn many_settings_cost_no_walk_over_all_streams() {
    let mut connection = with_requests(0);
    let count = 20_000;
    for key in 0..count {
        assert!(connection.begin(key, GET, false, false).is_some());
        forget_pending(&mut connection);
    }
    // Nor does a stream that is over, whose window was as large as any may be.
    let large = [
        settings(&[(frame::INITIAL_WINDOW, 0)]),
        one(frame::WINDOW_UPDATE, 0, 1, &LARGEST_STREAM.to_be_bytes()),
        one(frame::RST_STREAM, 0, 1, &[0; 4]),
    ];
    take(&mut connection, &large.concat()).1.unwrap();
    let windows: Vec<(u16, u32)> = (0..2000).map(|size| (frame::INITIAL_WINDOW, size)).collect();
    let bytes = settings(&windows).repeat(20);
    let before_ns = crate::cpu::time_ns();
    take(&mut connection, &bytes).1.unwrap();
    let took_ns = crate::cpu::time_ns() - before_ns;
    // One after the other they would be 800 million visits, of a nanosecond and more each.
    assert!(took_ns < 200_000_000, "{took_ns} ns");
    // The last one holds for streams that were begun before.
    let id = 2 * count as u32 - 1;
    assert_eq!(connection.send(id, &[1; 3000]), 1999);
}

/// Something that a server might send, and much that it must not.
fn some_frame() -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![Just(0u32), 1..9u32];
    let payload = proptest::collection::vec(any::<u8>(), 0..30);
    prop_oneof![
        (id.clone(), any::<bool>()).prop_map(|(id, ends)| head(id | 1, ends, OK)),
        (id.clone(), any::<bool>(), payload.clone()).prop_map(|(id, ends, text)| body(id | 1, ends, &text)),
        (id.clone(), 0..9u32).prop_map(|(id, code)| one(frame::RST_STREAM, 0, id | 1, &code.to_be_bytes())),
        (id.clone(), 0..3u32).prop_map(|(id, more)| one(frame::WINDOW_UPDATE, 0, id, &more.to_be_bytes())),
        (1..7u16, 0..9u32).prop_map(|(name, value)| settings(&[(name, value)])),
        (0..9u32, 0..3u32).prop_map(|(last, code)| goaway(last, code)),
        (0..12u8, any::<u8>(), id, payload).prop_map(|(kind, flags, id, bytes)| one(kind, flags, id, &bytes)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn however_the_bytes_are_cut_the_news_are_the_same(
        frames in proptest::collection::vec(some_frame(), 0..30), cuts in proptest::collection::vec(1usize..40, 1..10)
    ) {
        let bytes = frames.concat();
        let mut whole = with_requests(4);
        let expected = take(&mut whole, &bytes);
        let mut pieces = with_requests(4);
        let (mut news, mut result, mut rest) = (Vec::new(), Ok(()), &bytes[..]);
        for cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            result = pieces.take(piece, &mut |key, _, one| note(&mut news, key, one));
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!((news, result), expected);
        prop_assert_eq!(pieces.pending(), whole.pending());
        prop_assert_eq!((pieces.active(), pieces.room()), (whole.active(), whole.room()));
    }

    #[test]
    fn each_stream_has_one_end_and_no_news_behind_it(frames in proptest::collection::vec(some_frame(), 0..40)) {
        let mut connection = with_requests(4);
        let mut ends = [0; 4];
        let result = connection.take(&frames.concat(), &mut |key: usize, _, news: News<'_>| {
            assert!(ends[key] == 0, "{news:?} behind the end");
            let goes_on = matches!(news, News::Bytes | News::Head(_) | News::Body(_) | News::Room);
            ends[key] += usize::from(!goes_on);
        });
        let ended: usize = ends.iter().sum();
        prop_assert!(result.is_err() || ended + connection.active() == 4);
        prop_assert_eq!(connection.blocked, 0);
    }
}
