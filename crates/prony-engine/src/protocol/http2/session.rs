//! A connection of HTTP/2 as one of several kinds that requests share.

use super::{parts, Connection};
use crate::protocol::session::{News, Session};

impl Session for Connection {
    fn begin(&mut self, key: usize, request: &[u8], is_head: bool) -> (Option<u32>, usize) {
        let (head, body) = parts(request);
        let id = Self::begin(self, key, head, is_head, body.is_empty());
        let mut taken = request.len() - body.len();
        if let Some(id) = id.filter(|_| !body.is_empty()) {
            taken += Self::send(self, id, body);
        }
        (id, taken)
    }

    fn send(&mut self, id: u32, rest: &[u8]) -> usize {
        Self::send(self, id, rest)
    }

    fn cancel(&mut self, id: u32) {
        Self::cancel(self, id);
    }

    fn pending(&self) -> &[u8] {
        Self::pending(self)
    }

    fn advance(&mut self, count: usize) {
        Self::advance(self, count);
    }

    fn take(
        &mut self,
        bytes: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), &'static str> {
        Self::take(self, bytes, on_news)
    }

    fn find_room(&mut self, on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        Self::find_room(self, on_news);
    }

    fn room(&self) -> usize {
        Self::room(self)
    }

    fn is_usable(&self) -> bool {
        Self::is_usable(self)
    }

    fn has(&self, id: u32) -> bool {
        Self::has(self, id)
    }

    fn has_answered(&self) -> bool {
        Self::has_answered(self)
    }

    fn was_announced(&self) -> bool {
        self.going().is_some()
    }

    fn most_streams(&self) -> Option<u32> {
        Self::most_streams(self)
    }

    fn ping(&mut self) {
        Self::ping(self);
    }
}
