//! A request that goes on where a redirect leads: the same flight, one hop further.

use super::Worker;
use crate::clock::Clock;
use crate::socket::Streams;
use crate::wire::redirect::{Hop, Next};
use crate::wire::{Protocol, Reader};

impl<P: Protocol, D: Streams, C: Clock> Worker<P, D, C> {
    /// What the reply on a slot asks for next.
    pub(super) fn next_hop(&self, slot: usize) -> Next {
        let connection = &self.connections[slot];
        let (Some(redirects), Some(flight)) = (&self.task.redirects, connection.flight) else {
            return Next::Nothing;
        };
        let (status, location) = (connection.reader.status(), connection.reader.field("location"));
        redirects.next(flight.request, connection.hop.as_deref(), status, location)
    }

    /// How many redirects the last request on a slot has followed: each of them took the way to its user and back.
    pub(super) fn hops(&self, slot: usize) -> u32 {
        self.connections[slot].hop.as_ref().map_or(0, |hop| hop.number())
    }

    /// Sends the next hop of a slot's request: on this connection if that stays, else on a new one. Its clocks run on.
    pub(super) fn follow(&mut self, slot: usize, hop: Box<Hop>, stays: bool) {
        let now_ns = self.clock.now();
        let status = self.connections[slot].reader.status();
        if self.is_counted(now_ns) {
            *self.followed.entry(status).or_default() += 1;
        }
        let connection = &mut self.connections[slot];
        connection.hop = Some(hop);
        connection.is_suspect = false;
        match connection.flight {
            Some(flight) if stays => self.send(slot, flight, now_ns),
            _ => {
                self.disconnect(slot);
                self.repeats.push_back(slot);
            }
        }
    }
}
