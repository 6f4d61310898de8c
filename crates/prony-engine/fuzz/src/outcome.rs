//! What a reply comes to when its bytes are followed by the peer's close.

use prony_engine::wire::{EndOfStream, Progress, Reader};

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Outcome {
    /// It is complete, and `surplus` bytes lie behind it.
    Reply {
        status: u16,
        body: Vec<u8>,
        keeps_alive: bool,
        surplus: usize,
    },
    /// It is not of the protocol, for this reason.
    Malformed(&'static str),
    /// It ended before it was complete.
    Unfinished(EndOfStream),
}

/// Feeds the pieces, and checks what a reader says on the way. Pieces behind the reply's end are surplus.
///
/// # Panics
/// Where the reader contradicts itself.
pub fn outcome<'d>(reader: &mut impl Reader, pieces: impl IntoIterator<Item = &'d [u8]>) -> Outcome {
    reader.reset();
    assert!(!reader.has_begun() && reader.status() == 0 && reader.body_bytes() == 0 && !reader.keeps_alive());
    let (mut body, mut fed) = (Vec::new(), 0);
    let mut pieces = pieces.into_iter();
    let surplus = loop {
        let Some(piece) = pieces.next() else {
            let end = reader.end_of_stream();
            assert_eq!(reader.end_of_stream(), end, "a second time");
            assert_eq!(end == EndOfStream::NoReply, fed == 0, "{end:?} after {fed} bytes");
            match end {
                EndOfStream::Complete => break 0,
                unfinished => return Outcome::Unfinished(unfinished),
            }
        };
        fed += piece.len();
        let progress = reader.feed(piece, &mut |part| {
            assert!(!part.is_empty(), "an empty piece of body");
            body.extend_from_slice(part);
        });
        assert!(body.len() <= fed && reader.body_bytes() == body.len() as u64);
        assert_eq!(reader.has_begun(), fed > 0);
        match progress {
            Progress::More => (),
            Progress::Complete { surplus } => {
                assert!(surplus <= piece.len(), "{surplus} of {}", piece.len());
                break surplus + pieces.by_ref().map(<[u8]>::len).sum::<usize>();
            }
            Progress::Ended(end) => {
                assert_ne!(end, EndOfStream::Complete);
                return Outcome::Unfinished(end);
            }
            Progress::Malformed(reason) => {
                let again = reader.feed(b"x", &mut |_| panic!("a body behind what is malformed"));
                assert_eq!(again, Progress::Malformed(reason), "it stays so");
                return Outcome::Malformed(reason);
            }
        }
    };
    assert!((100..1000).contains(&reader.status()), "{}", reader.status());
    Outcome::Reply {
        status: reader.status(),
        body,
        keeps_alive: reader.keeps_alive(),
        surplus,
    }
}
