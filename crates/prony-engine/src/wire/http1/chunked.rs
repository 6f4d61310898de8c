//! The chunked transfer coding (RFC 9112 section 7.1), decoded byte by byte around the data.
//!
//! Line ends are CRLF, nothing else: a sender whose chunks end otherwise has miscounted them, or is another protocol.

use super::take_piece;

/// The longest size line with its extensions, and the longest trailer section; beyond it, there is no end in sight.
const LINES_LIMIT_BYTES: u32 = 64 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    SizeStart,
    Size,
    SizePadding,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerNext,
    TrailerName,
    TrailerValue,
    TrailerLf,
    LastLf,
    End,
}

/// A body in chunks, between two pieces.
#[derive(Debug, Default)]
pub(super) struct ChunkedBody {
    state: State,
    /// The size of the chunk as far as it is read; within its data, how much of it is to come.
    remaining: u64,
    /// The length so far of the current lines outside the data.
    line_bytes: u32,
}

impl ChunkedBody {
    /// Takes a piece of the body. Once it is complete, returns the number of bytes behind it.
    pub(super) fn take(
        &mut self,
        data: &[u8],
        deliver: &mut impl FnMut(&[u8]),
    ) -> Result<Option<usize>, &'static str> {
        let mut rest = data;
        while let [byte, after @ ..] = rest {
            if self.state == State::Data {
                rest = self.take_data(rest, deliver);
                continue;
            }
            self.state = self.step(*byte)?;
            rest = after;
            if self.state == State::End {
                return Ok(Some(rest.len()));
            }
        }
        Ok(None)
    }

    fn take_data<'d>(&mut self, data: &'d [u8], deliver: &mut impl FnMut(&[u8])) -> &'d [u8] {
        let rest = take_piece(self.remaining, data, deliver);
        self.remaining -= (data.len() - rest.len()) as u64;
        if self.remaining == 0 {
            self.state = State::DataCr;
        }
        rest
    }

    /// The state after a byte outside the data.
    fn step(&mut self, byte: u8) -> Result<State, &'static str> {
        self.line_bytes += 1;
        if self.line_bytes > LINES_LIMIT_BYTES {
            return Err("a chunk's size line or the trailers are longer than 64 KiB");
        }
        match self.state {
            State::SizeStart | State::Size | State::SizePadding | State::Extension => self.step_size(byte),
            State::SizeLf if byte == b'\n' => Ok(self.end_size_line()),
            State::SizeLf => Err("a chunk's size line does not end in CRLF"),
            State::DataCr if byte == b'\r' => Ok(State::DataLf),
            State::DataLf if byte == b'\n' => Ok(State::SizeStart),
            State::Data | State::DataCr | State::DataLf => Err("a chunk does not end in CRLF"),
            _ => self.step_trailer(byte),
        }
    }

    fn step_size(&mut self, byte: u8) -> Result<State, &'static str> {
        match (self.state, byte) {
            (State::SizeStart | State::Size, _) if byte.is_ascii_hexdigit() => self.add_digit(byte),
            (State::SizeStart, _) => Err("a chunk's size is not a hexadecimal number"),
            (_, b'\r') => Ok(State::SizeLf),
            (_, b'\n') => Err("a chunk's size line does not end in CRLF"),
            (State::Extension, _) if is_text(byte) => Ok(State::Extension),
            (State::Extension, _) => Err("a chunk's extension has a control character"),
            (_, b';') => Ok(State::Extension),
            // Not in the grammar, but old servers pad the size to a fixed width.
            (_, b' ' | b'\t') => Ok(State::SizePadding),
            _ => Err("a chunk's size is not a hexadecimal number"),
        }
    }

    fn add_digit(&mut self, byte: u8) -> Result<State, &'static str> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            _ => (byte | 0x20) - b'a' + 10,
        };
        let shifted = self
            .remaining
            .checked_mul(16)
            .ok_or("a chunk's size is larger than 64 bits")?;
        self.remaining = shifted | u64::from(digit);
        Ok(State::Size)
    }

    fn end_size_line(&mut self) -> State {
        self.line_bytes = 0;
        match self.remaining {
            0 => State::TrailerStart,
            _ => State::Data,
        }
    }

    fn step_trailer(&mut self, byte: u8) -> Result<State, &'static str> {
        match (self.state, byte) {
            (State::TrailerStart | State::TrailerNext, b'\r') => Ok(State::LastLf),
            // A folded line (RFC 9112 section 5.2).
            (State::TrailerNext, b' ' | b'\t') => Ok(State::TrailerValue),
            (State::TrailerName, b':') => Ok(State::TrailerValue),
            (State::TrailerStart | State::TrailerNext | State::TrailerName, _) if is_token(byte) => {
                Ok(State::TrailerName)
            }
            (State::TrailerValue, b'\r') => Ok(State::TrailerLf),
            (State::TrailerValue, _) if is_text(byte) => Ok(State::TrailerValue),
            (State::TrailerLf, b'\n') => Ok(State::TrailerNext),
            (State::LastLf, b'\n') => Ok(State::End),
            _ => Err("the trailers of a chunked body are not header fields"),
        }
    }
}

/// What a field value or a chunk extension may hold: HTAB, SP, visible characters and obs-text.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

/// What a field name may hold (`tchar`, RFC 9110 section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(data: &[u8]) -> (Result<Option<usize>, &'static str>, Vec<u8>) {
        let mut body = Vec::new();
        let end = ChunkedBody::default().take(data, &mut |piece| body.extend_from_slice(piece));
        (end, body)
    }

    #[test]
    fn sizes_are_hexadecimal_in_either_case_with_zeros_or_padding() {
        for size in ["a", "A", "0000000000000000000000A", "a  ", "a\t;x", "a ; x=\"y\""] {
            let (end, body) = decode(format!("{size}\r\n0123456789\r\n0\r\n\r\n").as_bytes());
            assert_eq!(
                (end, body.as_slice()),
                (Ok(Some(0)), b"0123456789".as_slice()),
                "{size}"
            );
        }
    }

    #[test]
    fn a_size_of_64_bit_is_awaited_and_one_beyond_is_refused() {
        assert_eq!(decode(b"ffffffffffffffff\r\nx"), (Ok(None), b"x".to_vec()));
        assert_eq!(
            decode(b"10000000000000000\r\n").0,
            Err("a chunk's size is larger than 64 bits")
        );
    }

    #[test]
    fn an_endless_line_is_refused() {
        for start in ["", "1;", "0\r\nname", "0\r\nname:"] {
            let endless = format!("{start}{}", "0".repeat(LINES_LIMIT_BYTES as usize + 1));
            assert_eq!(
                decode(endless.as_bytes()).0,
                Err("a chunk's size line or the trailers are longer than 64 KiB"),
                "{start:?}"
            );
        }
    }

    #[test]
    fn many_chunks_do_not_add_up_to_a_long_line() {
        let chunks = "1\r\nx\r\n".repeat(LINES_LIMIT_BYTES as usize);
        let (end, body) = decode(format!("{chunks}0\r\n\r\n").as_bytes());
        assert_eq!((end, body.len()), (Ok(Some(0)), LINES_LIMIT_BYTES as usize));
    }
}
