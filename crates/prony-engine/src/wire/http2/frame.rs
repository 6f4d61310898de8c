//! Frames (RFC 9113 section 4): nine bytes that say what follows, and what follows.

/// The bytes before each frame's own.
pub const HEADER_BYTES: usize = 9;
/// What a frame may hold, where nothing else was agreed on; nothing else is.
pub const LARGEST_BYTES: usize = 16_384;

/// What a connection begins with.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 0x1;
/// Of SETTINGS and PING.
pub const ACK: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
pub const WITH_PRIORITY: u8 = 0x20;

pub const TABLE_SIZE: u16 = 1;
pub const ENABLE_PUSH: u16 = 2;
pub const MOST_STREAMS: u16 = 3;
pub const INITIAL_WINDOW: u16 = 4;
pub const FRAME_SIZE: u16 = 5;
pub const LIST_SIZE: u16 = 6;

/// Why a stream or a connection ended (RFC 9113 section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u32);

impl Code {
    /// A rule was broken.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// More came than was allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// Something came for a stream that was over.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame was too long or too short.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The request was not looked at.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is not needed any more.
    pub const CANCEL: Self = Self(8);
    /// A head could not be read.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer asks for too much.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);

    /// Its name in the RFC.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("an unknown code")
    }
}

/// The nine bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    /// 0: the connection.
    pub stream: u32,
}

impl Header {
    pub fn parse(raw: [u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = raw;
        Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & LARGEST_STREAM,
        }
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Streams have numbers of 31 bits.
pub const LARGEST_STREAM: u32 = (1 << 31) - 1;

/// Appends the beginning of a frame.
pub fn push_header(kind: u8, flags: u8, stream: u32, length: usize, out: &mut Vec<u8>) {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

/// Appends a whole frame.
pub fn push(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    push_header(kind, flags, stream, payload.len(), out);
    out.extend_from_slice(payload);
}

/// Appends a head: in one frame, or in as many as it takes.
pub fn push_head(block: &[u8], ends: bool, stream: u32, out: &mut Vec<u8>) {
    let end_stream = if ends { END_STREAM } else { 0 };
    let (first, rest) = block.split_at(block.len().min(LARGEST_BYTES));
    let is_whole = |rest: &[u8]| if rest.is_empty() { END_HEADERS } else { 0 };
    push(HEADERS, end_stream | is_whole(rest), stream, first, out);
    let mut rest = rest;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(LARGEST_BYTES));
        push(CONTINUATION, is_whole(after), stream, piece, out);
        rest = after;
    }
}

/// What stands between the padding and the priority of a frame; null where they do not fit.
pub fn unpadded(header: &Header, payload: &[u8]) -> Option<(usize, usize)> {
    let padded = usize::from(header.has(PADDED));
    let priority = if header.kind == HEADERS && header.has(WITH_PRIORITY) {
        5
    } else {
        0
    };
    let padding = if padded == 1 {
        usize::from(*payload.first()?)
    } else {
        0
    };
    let (begin, end) = (padded + priority, payload.len().checked_sub(padding)?);
    (begin <= end).then_some((begin, end))
}

/// A number of 32 bits at a place; 0 where it is not there.
pub fn number_at(payload: &[u8], place: usize) -> u32 {
    payload
        .get(place..place + 4)
        .map_or(0, |four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}
