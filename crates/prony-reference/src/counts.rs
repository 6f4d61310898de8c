//! What a server did, exactly.

use serde::Serialize;

/// Counters over the life of a server, all its threads together.
///
/// A snapshot includes everything whose effect a client has seen before it was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Connections taken from the listen queue.
    pub connections_accepted: u64,
    /// Connections that the client ended, by FIN or RST, before the server did.
    pub connections_closed_by_peer: u64,
    /// Connections that could not be accepted because descriptors or memory ran out; the server tries again after 10 ms.
    pub accept_failures: u64,
    /// TLS handshakes that ended well.
    pub handshakes: u64,
    /// Of these, the ones that took up an earlier session.
    pub handshakes_resumed: u64,
    /// Connections that ended before their handshake did.
    pub handshakes_failed: u64,
    /// Requests of which head and body were received in full.
    pub requests: u64,
    /// Inputs that were not an HTTP/1.1 request; answered with 400 and a close, and not counted as requests or responses.
    pub requests_invalid: u64,
    /// Replies handed to the kernel in full, those with `error_status` included.
    pub responses_complete: u64,
    /// Of these, the ones with `error_status` that `error_every` asked for.
    pub responses_error_status: u64,
    /// Requests left unanswered by `silent_every`.
    pub silent: u64,
    /// Replies cut by a RST (`reset_after`).
    pub resets: u64,
    /// Replies cut by a FIN (`short_after`).
    pub short: u64,
    /// Connections that the server closed in order, after a complete reply.
    pub closes: u64,
    /// Bytes read from clients, without what TLS puts around them.
    pub bytes_received: u64,
    /// Bytes of request bodies, without chunk framing.
    pub body_bytes_received: u64,
    /// Bytes that the kernel took for sending: heads, framing and bodies, without what TLS puts around them.
    pub bytes_sent: u64,
    /// Bytes of content, without chunk framing, in replies that were sent in full or up to their cut.
    pub body_bytes_sent: u64,
}

impl Counts {
    /// Adds another thread's counts.
    pub(crate) fn add(&mut self, other: &Counts) {
        self.connections_accepted += other.connections_accepted;
        self.connections_closed_by_peer += other.connections_closed_by_peer;
        self.accept_failures += other.accept_failures;
        self.handshakes += other.handshakes;
        self.handshakes_resumed += other.handshakes_resumed;
        self.handshakes_failed += other.handshakes_failed;
        self.requests += other.requests;
        self.requests_invalid += other.requests_invalid;
        self.responses_complete += other.responses_complete;
        self.responses_error_status += other.responses_error_status;
        self.silent += other.silent;
        self.resets += other.resets;
        self.short += other.short;
        self.closes += other.closes;
        self.bytes_received += other.bytes_received;
        self.body_bytes_received += other.body_bytes_received;
        self.bytes_sent += other.bytes_sent;
        self.body_bytes_sent += other.body_bytes_sent;
    }
}
