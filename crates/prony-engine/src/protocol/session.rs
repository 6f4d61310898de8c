//! A connection that several requests share, without I/O.

use super::http2::Code;

/// What a connection reports of one of its requests, by the key that it was begun with.
///
/// Beside it stands how many bytes of the connection brought it: all of them together are those of the request's reply, as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News<'d> {
    /// Bytes of frames that hold nothing for the reader of a reply.
    Bytes,
    /// A head, as HTTP/1 would write it; interim ones (1xx) too.
    Head(&'d [u8]),
    /// A piece of the body.
    Body(&'d [u8]),
    /// More of the request may be sent.
    Room,
    /// The reply is complete. This and what follows here end the request.
    Complete,
    /// The server ended the reply before the length that its head announced.
    Short,
    /// The server ended the stream, for this reason.
    Reset(Code),
    /// The server says that it has not looked at the request: it may be sent again, whatever it asks (RFC 9113 section 8.7).
    Unprocessed,
    /// The reply breaks a rule; the stream was reset.
    Broken(&'static str),
}

/// A connection that several requests share.
pub trait Session: Default {
    /// Takes what fits of a request: its name here, and how many bytes. There is [`Session::room`] for one.
    fn begin(&mut self, key: usize, request: &[u8], is_head: bool) -> (Option<u32>, usize);
    /// Takes what fits of the rest of a request.
    fn send(&mut self, id: u32, rest: &[u8]) -> usize;
    /// Nobody waits for this reply any more.
    fn cancel(&mut self, id: u32);
    /// What is to be sent.
    fn pending(&self) -> &[u8];
    /// So much of it was.
    fn advance(&mut self, count: usize);
    /// Takes what was received.
    ///
    /// # Errors
    /// Why the connection is of no more use.
    fn take(
        &mut self,
        bytes: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), &'static str>;
    /// Reports requests of which more may be sent.
    fn find_room(&mut self, on_news: &mut impl FnMut(usize, usize, News<'_>));
    /// How many requests may be begun now.
    fn room(&self) -> usize;
    /// Whether it takes further requests, now or later.
    fn is_usable(&self) -> bool;
    /// Whether a request is still under way.
    fn has(&self, id: u32) -> bool;
    /// Whether any reply came.
    fn has_answered(&self) -> bool;
    /// Whether the server has announced that it leaves the connection.
    fn was_announced(&self) -> bool {
        false
    }
    /// How many requests at once the server takes; null: it has not said, or any.
    fn most_streams(&self) -> Option<u32> {
        None
    }
    /// Asks the server for a word, where that can be.
    fn ping(&mut self) {}
}
