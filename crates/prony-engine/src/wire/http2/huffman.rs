//! The Huffman code of HPACK (RFC 7541 appendix B).
//!
//! The code is canonical: codes of one length are consecutive numbers in the order of their symbols, and those of the next length go on
//! from there. So the lengths say all, and a symbol is found by comparing the next bits with where each length ends.

/// Of each byte, and of the end of the string.
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, //
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, //
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, //
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, //
    30,
];

const SYMBOLS: usize = 257;
const END: u16 = 256;
const LONGEST: usize = 30;
const SHORTEST: usize = 5;

/// The codes of one length, as numbers of 32 bits that begin with them.
#[derive(Clone, Copy)]
struct Level {
    first: u64,
    /// Behind the last one.
    end: u64,
    /// Where its symbols begin.
    at: usize,
}

struct Code {
    levels: [Level; LONGEST + 1],
    /// By length, then by their number.
    symbols: [u16; SYMBOLS],
    /// Of each symbol, aligned to the right.
    codes: [u32; SYMBOLS],
}

static CODE: Code = built();

const fn built() -> Code {
    let none = Level {
        first: 0,
        end: 0,
        at: 0,
    };
    let mut code = Code {
        levels: [none; LONGEST + 1],
        symbols: [0; SYMBOLS],
        codes: [0; SYMBOLS],
    };
    let (mut next, mut count, mut length) = (0u64, 0, 1);
    while length <= LONGEST {
        let (first, at, mut symbol) = (next, count, 0);
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                code.symbols[count] = symbol as u16;
                code.codes[symbol] = (next >> (32 - length)) as u32;
                count += 1;
                next += 1 << (32 - length);
            }
            symbol += 1;
        }
        code.levels[length] = Level { first, end: next, at };
        length += 1;
    }
    code
}

/// Appends what a coded string stands for.
///
/// # Errors
/// In words, where the string holds its end, or ends with more than seven bits or other bits than ones.
pub fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    // The next bits stand at the left; so many are there.
    let (mut bits, mut count) = (0u64, 0usize);
    let mut rest = coded.iter();
    loop {
        while count <= 56 {
            let Some(&byte) = rest.next() else { break };
            bits |= u64::from(byte) << (56 - count);
            count += 8;
        }
        let Some((symbol, length)) = first_symbol(bits >> 32, count) else {
            return if is_padding(bits, count) {
                Ok(())
            } else {
                Err("a Huffman code is not whole")
            };
        };
        if symbol == END {
            return Err("a Huffman code has the end of the string within it");
        }
        // All others are bytes.
        out.push(symbol as u8);
        bits <<= length;
        count -= length;
    }
}

/// The symbol at the left of 32 bits, of which `count` are there, and its length; null where it is not whole.
fn first_symbol(top: u64, count: usize) -> Option<(u16, usize)> {
    let mut length = SHORTEST;
    // The last level ends behind the largest number.
    while top >= CODE.levels[length].end {
        length += 1;
    }
    let level = CODE.levels[length];
    let place = level.at + ((top - level.first) >> (32 - length)) as usize;
    (length <= count).then(|| (CODE.symbols[place], length))
}

/// Fewer bits than a byte has, all of them ones: the beginning of the end's code.
fn is_padding(bits: u64, count: usize) -> bool {
    count < 8 && (count == 0 || (!bits) >> (64 - count) == 0)
}

/// How many bytes a string has when it is coded.
pub fn coded_length(plain: &[u8]) -> usize {
    let bits: usize = plain
        .iter()
        .map(|&byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends the code of a string.
pub fn encode(plain: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0u64, 0usize);
    for &byte in plain {
        let length = usize::from(LENGTHS[usize::from(byte)]);
        bits = (bits << length) | u64::from(CODE.codes[usize::from(byte)]);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        let ones = (1u64 << (8 - count)) - 1;
        out.push(((bits << (8 - count)) | ones) as u8);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, &'static str> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    fn encoded(plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(plain, &mut out);
        out
    }

    #[test]
    fn the_codes_fill_the_whole_tree() {
        assert_eq!(CODE.levels[LONGEST].end, 1 << 32);
        assert_eq!(CODE.levels[SHORTEST].first, 0);
    }

    /// RFC 7541 appendix B: one of each length that has any.
    #[test]
    fn codes_are_those_of_the_appendix() {
        let known = [
            (u16::from(b'0'), 0x0),
            (u16::from(b' '), 0x14),
            (u16::from(b':'), 0x5c),
            (u16::from(b'&'), 0xf8),
            (u16::from(b'!'), 0x3f8),
            (u16::from(b'|'), 0x7fc),
            (u16::from(b'>'), 0xffb),
            (u16::from(b'~'), 0x1ffd),
            (u16::from(b'}'), 0x3ffd),
            (u16::from(b'{'), 0x7ffe),
            (195, 0x7fff1),
            (226, 0xfffed),
            (230, 0x1f_ffe8),
            (233, 0x3f_ffeb),
            (239, 0x7f_fff4),
            (237, 0xff_fff5),
            (235, 0x1ff_ffef),
            (255, 0x3ff_ffee),
            (254, 0x7ff_fff0),
            (249, 0xfff_fffe),
            (22, 0x3fff_fffe),
            (END, 0x3fff_ffff),
        ];
        for (symbol, code) in known {
            assert_eq!(CODE.codes[usize::from(symbol)], code, "{symbol}");
        }
    }

    #[test]
    fn strings_of_the_appendix_are_coded_as_there() {
        let known: [(&[u8], &[u8]); 3] = [
            (
                b"www.example.com",
                &[
                    0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
                ],
            ),
            (b"no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            (b"302", &[0x64, 0x02]),
        ];
        for (plain, coded) in known {
            assert_eq!(encoded(plain), coded);
            assert_eq!(decoded(coded).unwrap(), plain);
            assert_eq!(coded_length(plain), coded.len());
        }
    }

    #[test]
    fn a_string_ends_with_fewer_than_eight_ones() {
        assert_eq!(decoded(b"").unwrap(), b"");
        // `0` is five zeros.
        assert_eq!(decoded(&[0b0000_0111]).unwrap(), b"0");
        for wrong in [&[0b0000_0110][..], &[0b0000_0111, 0xff], &[0xff], &[0xff; 4]] {
            assert!(decoded(wrong).is_err(), "{wrong:x?}");
        }
        assert_eq!(
            decoded(&[0xff, 0xff, 0xff, 0xff]),
            Err("a Huffman code has the end of the string within it")
        );
    }

    proptest! {
        #[test]
        fn what_is_coded_is_decoded(plain in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decoded(&encoded(&plain)).unwrap(), plain.clone());
            prop_assert_eq!(encoded(&plain).len(), coded_length(&plain));
        }

        /// There is one way to code a string.
        #[test]
        fn what_can_be_decoded_is_coded_so(coded in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(plain) = decoded(&coded) {
                prop_assert_eq!(encoded(&plain), coded);
            }
        }
    }
}
