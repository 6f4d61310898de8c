//! Requests that differ in their path alone: a mix, over any protocol.

use super::{Protocol, Same};
use crate::mix::Draw;
use crate::schedule::Share;

/// A protocol with one rendered request for each path of a mix. A request is known by the number of its path.
#[derive(Debug, Clone)]
pub struct Mixed<P> {
    each: Vec<P>,
    draw: Draw,
}

impl<P> Mixed<P> {
    /// `each`: one of each path, in their order; there is at least one.
    pub fn new(each: Vec<P>, draw: Draw) -> Self {
        Self { each, draw }
    }
}

impl<P: Protocol<Request = Same>> Protocol for Mixed<P> {
    type Reader = P::Reader;
    type Request = usize;

    fn take_share(&mut self, share: Share) {
        self.draw.take_share(share);
    }

    fn next(&mut self) -> usize {
        self.draw.next_path()
    }

    fn bytes(&mut self, request: usize) -> &[u8] {
        self.each[request].bytes(Same)
    }

    fn is_idempotent(&self, request: usize) -> bool {
        self.each[request].is_idempotent(Same)
    }

    // They have the same method, which is all that a reader knows of its request.
    fn reader(&self) -> Self::Reader {
        self.each[0].reader()
    }

    fn keeps_alive(&self) -> bool {
        self.each[0].keeps_alive()
    }
}
