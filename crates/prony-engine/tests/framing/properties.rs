//! Random bodies in random pieces, and random bytes.

use prony_engine::spec::HttpVersion;
use prony_engine::wire::http1::ReplyReader;
use proptest::prelude::*;

use super::outcome::*;

/// `data` cut at the given points, in any order and beyond its end.
pub fn cut<'d>(data: &'d [u8], cuts: &[prop::sample::Index]) -> Vec<&'d [u8]> {
    let mut points: Vec<usize> = cuts.iter().map(|cut| cut.index(data.len() + 1)).collect();
    points.extend([0, data.len()]);
    points.sort_unstable();
    points.windows(2).map(|pair| &data[pair[0]..pair[1]]).collect()
}

pub fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..20)
}

pub fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

/// Bytes that are often of HTTP: they come further than random ones.
fn http_like() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: [&[u8]; 22] = [
        b"HTTP/1.1 ",
        b"HTTP/1.0 ",
        b"200 OK",
        b"100 ",
        b"204",
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"\r",
        b" ",
        b":",
        b",",
        b";",
        b"Content-Length: ",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"0",
        b"5",
        b"a",
        b"f",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ];
    let word = prop_oneof![
        9 => prop::sample::select(&WORDS[..]).prop_map(<[u8]>::to_vec),
        1 => bytes(3),
    ];
    let start = prop::sample::select(&WORDS[20..]);
    (start, prop::collection::vec(word, 0..30)).prop_map(|(start, words)| [start, &words.concat()].concat())
}

proptest! {
    #[test]
    fn a_body_of_known_length_round_trips(body in bytes(2000), behind in bytes(20), cuts in cuts()) {
        let head = with_fields(&format!("Content-Length: {}\r\n", body.len()), "");
        let data = [head.as_bytes(), &body, &behind].concat();
        let expected = Outcome::Reply { status: 200, body, keeps_alive: true, surplus: behind.len() };
        prop_assert_eq!(read_with(&mut ReplyReader::new(HttpVersion::V1_1, false), cut(&data, &cuts)), expected);
    }

    #[test]
    fn a_body_in_chunks_round_trips(
        chunks in prop::collection::vec(bytes(200), 0..20),
        behind in bytes(20),
        cuts in cuts(),
    ) {
        let mut data = chunked("").into_bytes();
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            data.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            data.extend_from_slice(chunk);
            data.extend_from_slice(b"\r\n");
        }
        data.extend_from_slice(b"0\r\n\r\n");
        data.extend_from_slice(&behind);
        let body = chunks.concat();
        let expected = Outcome::Reply { status: 200, body, keeps_alive: true, surplus: behind.len() };
        prop_assert_eq!(read_with(&mut ReplyReader::new(HttpVersion::V1_1, false), cut(&data, &cuts)), expected);
    }

    #[test]
    fn garbage_has_one_outcome_however_it_is_cut(data in bytes(300), cuts in cuts(), is_head_request: bool) {
        let whole = read_whole(&data, is_head_request);
        prop_assert_eq!(read_with(&mut ReplyReader::new(HttpVersion::V1_1, is_head_request), cut(&data, &cuts)), whole);
    }

    #[test]
    fn what_looks_like_http_has_one_outcome_however_it_is_cut(
        data in http_like(),
        cuts in cuts(),
        is_head_request: bool,
    ) {
        let whole = read_whole(&data, is_head_request);
        let mut reader = ReplyReader::new(HttpVersion::V1_1, is_head_request);
        prop_assert_eq!(&read_with(&mut reader, [data.as_slice()]), &whole);
        prop_assert_eq!(&read_with(&mut reader, cut(&data, &cuts)), &whole);
        prop_assert_eq!(&read_with(&mut reader, data.chunks(1)), &whole);
    }

    #[test]
    fn a_damaged_reply_has_one_outcome_however_it_is_cut(
        at in any::<prop::sample::Index>(),
        byte: u8,
        cuts in cuts(),
    ) {
        let head = "X: y\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n";
        let sound = with_fields(head, "3;a=b\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nX: y\r\n\r\n");
        let mut data = sound.clone().into_bytes();
        data[at.index(sound.len())] = byte;
        let mut reader = ReplyReader::new(HttpVersion::V1_1, false);
        read_with(&mut reader, [sound.as_bytes()]);
        let whole = read_whole(&data, false);
        prop_assert_eq!(&read_with(&mut reader, [data.as_slice()]), &whole);
        prop_assert_eq!(&read_with(&mut reader, cut(&data, &cuts)), &whole);
    }
}
