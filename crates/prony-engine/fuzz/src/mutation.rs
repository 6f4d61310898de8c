//! Changes of inputs, by a seed: for tests without libFuzzer, which does it better.

use prony_engine::random;

/// Numbers from a seed.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        random::next(&mut self.0)
    }

    /// A number below `limit`, which is at least 1.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn of<'s, T: ?Sized>(&mut self, choices: &[&'s T]) -> &'s T {
        choices[self.below(choices.len())]
    }
}

/// `data` in pieces, few or many by the seed; some are empty.
pub(crate) fn cut(data: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut random = Random(seed);
    let mut points: Vec<usize> = (0..random.below(12))
        .map(|_| random.below(data.len() + 1))
        .collect();
    points.extend([0, data.len()]);
    points.sort_unstable();
    points.windows(2).map(|pair| &data[pair[0]..pair[1]]).collect()
}

const WORDS: [&[u8]; 40] = [
    b"HTTP/1.1 ",
    b"HTTP/1.0 ",
    b"200 OK\r\n",
    b"100 Continue\r\n\r\n",
    b"204 ",
    b"304 ",
    b"101 ",
    b"\r\n",
    b"\r\n\r\n",
    b"\n\n",
    b"\r",
    b"Content-Length: ",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"Status: 200\r\n",
    b"Location: /\r\n",
    b"0\r\n\r\n",
    b"5;x=y\r\nhello\r\n",
    b"ffffffffffffffff\r\n",
    b"18446744073709551616",
    b"-1",
    b"+5",
    b"\x01\x06\x00\x01\x00\x05\x03\x00",
    b"\x01\x03\x00\x01\x00\x08\x00\x00",
    b"\x01\x07\x00\x01\xff\xff\xff\x00",
    b"\0\0\0\0\0\0\0\0",
    b"\x01\x0b\x00\x00\x00\x00\x00\x00",
    b"\0\0\0\x04\0\0\0\0\0",
    b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x01",
    b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\x09",
    b"\0\0\x01\x01\x04\0\0\0\x01\x88",
    b"\0\0\x01\x01\x05\0\0\0\x03\x88",
    b"\0\0\x02\0\x01\0\0\0\x01hi",
    b"\0\0\x05\0\x08\0\0\0\x01\x02hi\0\0",
    b"\0\0\x04\x03\0\0\0\0\x03\0\0\0\x07",
    b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0",
    b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x09",
];

/// Beyond the longest head, so that limits are met.
const LONGEST_BYTES: usize = 160 * 1024;

/// Makes inputs of kept ones, without end.
#[derive(Debug)]
pub struct Mutator<'c> {
    kept: &'c [Vec<u8>],
    random: Random,
}

impl<'c> Mutator<'c> {
    /// Of inputs, of which there is at least one.
    pub fn new(kept: &'c [Vec<u8>], seed: u64) -> Self {
        Self {
            kept,
            random: Random(seed),
        }
    }

    fn any(&mut self) -> &'c [u8] {
        &self.kept[self.random.below(self.kept.len())]
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.below(input.len() + 1);
        let until = at + random.below(input.len() + 1 - at);
        match random.below(8) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.next() as u8,
            2 => drop(input.drain(at..until)),
            3 => input.truncate(at),
            4 => {
                let word = random.of(&WORDS);
                input.splice(at..at, word.iter().copied());
            }
            5 => {
                let word = random.of(&WORDS);
                let end = (at + word.len()).min(input.len());
                input.splice(at..end, word.iter().copied());
            }
            6 => {
                let part = input[at..until].repeat(1 + random.below(3).pow(6));
                input.splice(at..at, part.into_iter().take(LONGEST_BYTES));
            }
            _ => {
                let other = self.any();
                let from = self.random.below(other.len() + 1);
                input.splice(at..until, other[from..].iter().copied());
            }
        }
    }
}

impl Iterator for Mutator<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut input = self.any().to_vec();
        for _ in 0..=self.random.below(5) {
            self.change(&mut input);
        }
        input.truncate(LONGEST_BYTES);
        Some(input)
    }
}
