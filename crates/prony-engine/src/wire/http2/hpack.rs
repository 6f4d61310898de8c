//! HPACK (RFC 7541): the fields of a head as bytes, and back.
//!
//! Requests are rendered once and sent on any connection, so they are coded without a dynamic table. Replies are read with one, as
//! whoever sends them likes.

use super::{free_if_large, huffman};
use std::collections::VecDeque;

/// RFC 7541 appendix A; the first one has the number 1.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// What a field adds to a table and to a list beyond its bytes (sections 4.1 of RFC 7541 and 6.5.2 of RFC 9113).
const FIELD_BYTES: usize = 32;
/// The size of the table that a peer may use: the one that holds where nothing is said.
pub const TABLE_BYTES: usize = 4096;
/// The most that the fields of one head may come to, decoded.
pub const LIST_BYTES: usize = 64 * 1024;
/// Says that the dynamic table is empty from now on; stands before a head.
pub const EMPTY_TABLE: u8 = 0x20;
// What the first byte of a field says, and how many of its bits belong to the number after that (RFC 7541 section 6).
const INDEXED: (u8, u32) = (0x80, 7);
const ADDED: (u8, u32) = (0x40, 6);
const RESIZED: (u8, u32) = (0x20, 5);
const PLAIN: (u8, u32) = (0x00, 4);
const CODED: (u8, u32) = (0x80, 7);

/// Appends a field, without a dynamic table.
pub fn encode(name: &str, value: &str, out: &mut Vec<u8>) {
    match STATIC.iter().position(|field| *field == (name, value)) {
        Some(place) => push_number(INDEXED, place + 1, out),
        None => {
            encode_name(name, out);
            push_string(value, out);
        }
    }
}

/// Appends a field as far as its value, a string literal.
pub fn encode_name(name: &str, out: &mut Vec<u8>) {
    match STATIC.iter().position(|(known, _)| *known == name) {
        Some(place) => push_number(PLAIN, place + 1, out),
        None => {
            push_number(PLAIN, 0, out);
            push_string(name, out);
        }
    }
}

fn push_string(text: &str, out: &mut Vec<u8>) {
    let (plain, length) = (text.as_bytes(), huffman::coded_length(text.as_bytes()));
    if length < plain.len() {
        push_number(CODED, length, out);
        huffman::encode(plain, out);
    } else {
        push_number((0, CODED.1), plain.len(), out);
        out.extend_from_slice(plain);
    }
}

/// A number behind the bits of a first byte (RFC 7541 section 5.1).
fn push_number((first, bits): (u8, u32), number: usize, out: &mut Vec<u8>) {
    let most = (1usize << bits) - 1;
    if number < most {
        out.push(first | number as u8);
        return;
    }
    out.push(first | most as u8);
    let mut rest = number - most;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// A field of the dynamic table.
#[derive(Debug, Default)]
struct Entry {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Entry {
    fn size(&self) -> usize {
        self.name.len() + self.value.len() + FIELD_BYTES
    }
}

/// Reads the heads of one connection, one after the other. Memory of entries that were evicted is used again.
#[derive(Debug)]
pub struct Decoder {
    // The newest first.
    entries: VecDeque<Entry>,
    spare: Vec<Entry>,
    size: usize,
    limit: usize,
    most: usize,
    changes: u64,
    name: Vec<u8>,
    value: Vec<u8>,
}

type Wrong = &'static str;

impl Decoder {
    /// With an empty table, which may grow to `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            spare: Vec::new(),
            size: 0,
            limit: most,
            most,
            changes: 0,
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// How often the table has changed: while it does not, the same bytes have the same meaning.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Hands on the fields of a head, in their order.
    ///
    /// # Errors
    /// In words, where the bytes are not HPACK, or come to more than [`LIST_BYTES`]. The table is of no more use then.
    pub fn decode(&mut self, block: &[u8], on_field: &mut impl FnMut(&[u8], &[u8])) -> Result<(), Wrong> {
        let (mut rest, mut list_bytes, mut has_fields) = (block, 0, false);
        while let Some(&first) = rest.first() {
            if first & 0xe0 == RESIZED.0 {
                let size = number(RESIZED.1, &mut rest)?;
                self.resize(size, has_fields)?;
                continue;
            }
            has_fields = true;
            list_bytes += self.field(first, &mut rest, on_field)?;
            if list_bytes > LIST_BYTES {
                return Err("the fields of a head come to more than 64 KiB");
            }
        }
        free_if_large(&mut self.name);
        free_if_large(&mut self.value);
        Ok(())
    }

    /// Returns what the field adds to the list.
    fn field(
        &mut self,
        first: u8,
        rest: &mut &[u8],
        on_field: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Wrong> {
        if first & INDEXED.0 != 0 {
            let index = number(INDEXED.1, rest)?;
            let (name, value) = self.at(index)?;
            on_field(name, value);
            return Ok(name.len() + value.len() + FIELD_BYTES);
        }
        let is_added = first & ADDED.0 != 0;
        let index = number(if is_added { ADDED.1 } else { PLAIN.1 }, rest)?;
        let mut name = std::mem::take(&mut self.name);
        let named = self.take_name(index, rest, &mut name);
        self.name = name;
        named?;
        string(rest, &mut self.value)?;
        on_field(&self.name, &self.value);
        if is_added {
            self.add();
        }
        Ok(self.name.len() + self.value.len() + FIELD_BYTES)
    }

    fn take_name(&self, index: usize, rest: &mut &[u8], name: &mut Vec<u8>) -> Result<(), Wrong> {
        if index == 0 {
            return string(rest, name);
        }
        name.clear();
        name.extend_from_slice(self.at(index)?.0);
        Ok(())
    }

    /// The field of this number: static ones first, then the newest.
    fn at(&self, index: usize) -> Result<(&[u8], &[u8]), Wrong> {
        if let Some((name, value)) = index.checked_sub(1).and_then(|place| STATIC.get(place)) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        index
            .checked_sub(STATIC.len() + 1)
            .and_then(|place| self.entries.get(place))
            .map(|entry| (&*entry.name, &*entry.value))
            .ok_or("a field has a number that the tables do not have")
    }

    fn resize(&mut self, size: usize, has_fields: bool) -> Result<(), Wrong> {
        if has_fields {
            return Err("the size of the table changes behind a field");
        }
        if size > self.most {
            return Err("the table is to be larger than it may be");
        }
        self.changes += 1;
        self.limit = size;
        self.evict_to(size);
        Ok(())
    }

    /// Adds the field that was just read; one that is larger than the table empties it (RFC 7541 section 4.4).
    fn add(&mut self) {
        self.changes += 1;
        let size = self.name.len() + self.value.len() + FIELD_BYTES;
        self.evict_to(self.limit.saturating_sub(size));
        if size > self.limit {
            return;
        }
        let mut entry = self.spare.pop().unwrap_or_default();
        entry.name.clear();
        entry.name.extend_from_slice(&self.name);
        entry.value.clear();
        entry.value.extend_from_slice(&self.value);
        self.size += size;
        self.entries.push_front(entry);
    }

    fn evict_to(&mut self, most: usize) {
        while self.size > most {
            let Some(entry) = self.entries.pop_back() else {
                return;
            };
            self.size -= entry.size();
            if entry.name.capacity() + entry.value.capacity() <= SPARE_BYTES {
                self.spare.push(entry);
            }
        }
    }
}

// Memory of a field that is used again: more than most fields have. Of large ones a table could keep as many as of small ones.
const SPARE_BYTES: usize = 512;
// Beyond what any head of 64 KiB needs.
const LARGEST: usize = 1 << 24;

/// Takes a number off `rest`, of whose first byte it has so many bits.
fn number(bits: u32, rest: &mut &[u8]) -> Result<usize, Wrong> {
    const CUT: Wrong = "a number is not whole";
    let (&first, mut after) = rest.split_first().ok_or(CUT)?;
    let most = (1usize << bits) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (&byte, others) = after.split_first().ok_or(CUT)?;
            after = others;
            value += usize::from(byte & 0x7f) << shift;
            if value > LARGEST || shift > 21 {
                return Err("a number is too large");
            }
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
        }
    }
    *rest = after;
    Ok(value)
}

/// Takes a string off `rest`, in place of what is in `out`.
fn string(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Wrong> {
    let is_coded = rest.first().is_some_and(|first| first & CODED.0 != 0);
    let length = number(CODED.1, rest)?;
    let (text, after) = rest.split_at_checked(length).ok_or("a string is not whole")?;
    *rest = after;
    out.clear();
    if is_coded {
        return huffman::decode(text, out);
    }
    out.extend_from_slice(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    type Fields = Vec<(String, String)>;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex
            .chars()
            .filter(|one| !one.is_whitespace())
            .map(|one| one.to_digit(16).unwrap() as u8)
            .collect();
        digits.chunks(2).map(|pair| (pair[0] << 4) | pair[1]).collect()
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, Wrong> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.decode(block, &mut |name, value| fields.push((text(name), text(value))))?;
        Ok(fields)
    }

    fn fields(expected: &[(&str, &str)]) -> Fields {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        expected.iter().map(owned).collect()
    }

    fn table(decoder: &Decoder) -> Fields {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder
            .entries
            .iter()
            .map(|entry| (text(&entry.name), text(&entry.value)))
            .collect()
    }

    #[test]
    fn c1_numbers() {
        for (bits, coded, value) in [
            (5, &[0x0a][..], 10),
            (5, &[0x1f, 0x9a, 0x0a], 1337),
            (8, &[0x2a], 42),
        ] {
            assert_eq!(number(bits, &mut &*coded), Ok(value));
            let mut out = Vec::new();
            push_number((0, bits), value, &mut out);
            assert_eq!(out, coded);
        }
        for wrong in [
            &[][..],
            &[0x1f],
            &[0x1f, 0x80],
            &[0x1f, 0xff, 0xff, 0xff, 0x7f],
            &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x01],
        ] {
            assert!(number(5, &mut &*wrong).is_err(), "{wrong:x?}");
        }
    }

    #[test]
    fn c2_single_fields() {
        let cases = [
            (
                "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
                ("custom-key", "custom-header"),
                55,
            ),
            ("040c 2f73 616d 706c 652f 7061 7468", (":path", "/sample/path"), 0),
            (
                "1008 7061 7373 776f 7264 0673 6563 7265 74",
                ("password", "secret"),
                0,
            ),
            ("82", (":method", "GET"), 0),
        ];
        for (hex, field, size) in cases {
            let mut decoder = Decoder::new(TABLE_BYTES);
            assert_eq!(decode(&mut decoder, &bytes(hex)).unwrap(), fields(&[field]));
            assert_eq!(decoder.size, size);
        }
    }

    /// Of a head its bytes, its fields, and the size of the table behind it.
    type Coded<'t> = (&'t str, &'t [(&'t str, &'t str)], usize);

    /// Heads in a row.
    fn check(most: usize, heads: &[Coded<'_>]) -> Decoder {
        let mut decoder = Decoder::new(most);
        for (hex, expected, size) in heads {
            assert_eq!(decode(&mut decoder, &bytes(hex)).unwrap(), fields(expected));
            assert_eq!(decoder.size, *size);
        }
        decoder
    }

    const REQUESTS: [&[(&str, &str)]; 3] = [
        &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
        ],
        &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
            ("cache-control", "no-cache"),
        ],
        &[
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/index.html"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
        ],
    ];

    #[test]
    fn c3_and_c4_requests_in_a_row_plain_and_coded() {
        let plain = [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ];
        let coded = [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ];
        for heads in [plain, coded] {
            let sizes = [57, 110, 164];
            let heads: Vec<_> = (0..3).map(|n| (heads[n], REQUESTS[n], sizes[n])).collect();
            let decoder = check(TABLE_BYTES, &heads);
            let expected = [
                ("custom-key", "custom-value"),
                ("cache-control", "no-cache"),
                (":authority", "www.example.com"),
            ];
            assert_eq!(table(&decoder), fields(&expected));
        }
    }

    const COOKIE: &str = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

    #[test]
    fn c5_and_c6_replies_in_a_row_evict_plain_and_coded() {
        let date = |second| format!("Mon, 21 Oct 2013 20:13:2{second} GMT");
        let (first, third) = (date(1), date(2));
        let location = ("location", "https://www.example.com");
        let replies: [&[(&str, &str)]; 3] = [
            &[
                (":status", "302"),
                ("cache-control", "private"),
                ("date", &first),
                location,
            ],
            &[
                (":status", "307"),
                ("cache-control", "private"),
                ("date", &first),
                location,
            ],
            &[
                (":status", "200"),
                ("cache-control", "private"),
                ("date", &third),
                location,
                ("content-encoding", "gzip"),
                ("set-cookie", COOKIE),
            ],
        ];
        let plain = [
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 \
             3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 \
             7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 \
             6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
        ];
        let coded = [
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad \
             1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 \
             e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ];
        for heads in [plain, coded] {
            let sizes = [222, 222, 215];
            let heads: Vec<_> = (0..3).map(|n| (heads[n], replies[n], sizes[n])).collect();
            let decoder = check(256, &heads);
            let expected = [
                ("set-cookie", COOKIE),
                ("content-encoding", "gzip"),
                ("date", &third),
            ];
            assert_eq!(table(&decoder), fields(&expected));
        }
    }

    #[test]
    fn the_table_shrinks_before_a_head_and_never_behind_a_field_or_beyond_its_limit() {
        let mut decoder = check(TABLE_BYTES, &[("400161 0162", &[("a", "b")], 34)]);
        assert_eq!(
            decode(&mut decoder, &bytes("3f03 be")).unwrap(),
            fields(&[("a", "b")])
        );
        assert_eq!(decode(&mut decoder, &bytes("20 82")).unwrap().len(), 1);
        assert_eq!((decoder.size, decoder.entries.len()), (0, 0));
        for wrong in ["be", "82 20", "3fe2 1f", "80", "c0", "ff", "40", "0003"] {
            assert!(
                decode(&mut Decoder::new(TABLE_BYTES), &bytes(wrong)).is_err(),
                "{wrong}"
            );
        }
        // A field that is larger than the table empties it.
        let mut small = Decoder::new(40);
        decode(&mut small, &bytes("400161 0162")).unwrap();
        decode(&mut small, &bytes("400161 0a62626262626262626262")).unwrap();
        assert_eq!(small.entries.len(), 0);
    }

    #[test]
    fn large_fields_and_small_ones_in_turn_leave_no_more_memory_than_the_table_has() {
        let mut decoder = Decoder::new(TABLE_BYTES);
        let mut large = bytes("40 0161 7fa11e");
        large.extend_from_slice(&[b'x'; 4000]);
        let small = bytes("400162 0163");
        // Each time so many that another entry is made large.
        for round in 0..200 {
            decode(&mut decoder, &large).unwrap();
            decode(&mut decoder, &small.repeat(1 + round % 119)).unwrap();
        }
        let all = decoder.entries.iter().chain(&decoder.spare);
        let kept: usize = all
            .map(|entry| entry.name.capacity() + entry.value.capacity())
            .sum();
        assert!(kept <= TABLE_BYTES / FIELD_BYTES * SPARE_BYTES, "{kept} bytes");
    }

    #[test]
    fn a_few_bytes_that_stand_for_many_are_refused() {
        let mut block = bytes("40 0161 7fa11e");
        block.extend_from_slice(&[b'x'; 4000]);
        let mut decoder = Decoder::new(TABLE_BYTES);
        decode(&mut decoder, &block).unwrap();
        let mut count = 0;
        let bomb = vec![0xbe; 20_000];
        let refused = decoder.decode(&bomb, &mut |_, _| count += 1);
        assert!(refused.is_err() && count < 20, "{count} fields");
    }

    #[test]
    fn a_request_uses_what_the_static_table_has() {
        let mut out = Vec::new();
        for (name, value) in [(":method", "GET"), (":path", "/a"), ("x-y", "\u{1}")] {
            encode(name, value, &mut out);
        }
        let expected = [&[0x82, 0x04, 2][..], b"/a", &[0, 3], b"x-y", &[1, 1]];
        assert_eq!(out, expected.concat());
        out.clear();
        encode("user-agent", "no-cache", &mut out);
        assert_eq!(out, bytes("0f2b 86a8 eb10 649c bf"));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            given in proptest::collection::vec(("[a-z:-]{0,20}", "[ -~]{0,300}"), 0..20)
        ) {
            let mut block = Vec::new();
            given.iter().for_each(|(name, value)| encode(name, value, &mut block));
            let mut decoder = Decoder::new(TABLE_BYTES);
            prop_assert_eq!(decode(&mut decoder, &block).unwrap(), given);
            prop_assert_eq!(decoder.changes(), 0);
        }

        #[test]
        fn any_bytes_are_fields_or_an_error_and_the_table_keeps_its_limit(
            blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20)
        ) {
            let mut decoder = Decoder::new(200);
            for block in blocks {
                if decode(&mut decoder, &block).is_err() {
                    break;
                }
                let size: usize = decoder.entries.iter().map(Entry::size).sum();
                prop_assert!(size == decoder.size && size <= decoder.limit && decoder.limit <= 200);
                prop_assert!(decoder.entries.len() + decoder.spare.len() <= 40);
            }
        }
    }
}
