//! The tools of a worker, for the connection that it is serving.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use rustls::ServerConfig;

use crate::clock::Clock;
use crate::config::Config;
use crate::counts::Counts;
use crate::reply::Replies;
use crate::timers::Timers;

/// What all workers of a server have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// Of a server with TLS.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) clock: Clock,
    requests: AtomicU64,
    first_request_ns: AtomicU64,
}

const NEVER_NS: u64 = u64::MAX;

impl Shared {
    pub(crate) fn new(config: Config, tls: Option<ServerConfig>) -> Shared {
        Shared {
            config,
            tls: tls.map(Arc::new),
            clock: Clock::start(),
            requests: AtomicU64::new(0),
            first_request_ns: AtomicU64::new(NEVER_NS),
        }
    }

    /// The number of a request that has just been received; the server's first is 1.
    fn number_request(&self) -> u64 {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        if number == 1 {
            self.first_request_ns
                .store(self.clock.now_ns(), Ordering::Release);
        }
        number
    }

    /// How much longer the server has to stand still; `None` when it need not.
    pub(crate) fn stall_left_ns(&self) -> Option<u64> {
        let stall = self.config.stall?;
        let first_ns = self.first_request_ns.load(Ordering::Acquire);
        if first_ns == NEVER_NS {
            return None;
        }
        let now_ns = self.clock.now_ns();
        let from_ns = first_ns.saturating_add(stall.after_ns);
        let to_ns = from_ns.saturating_add(stall.for_ns);
        (from_ns..to_ns).contains(&now_ns).then(|| to_ns - now_ns)
    }
}

/// One worker's tools.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counts: Counts,
    pub(crate) replies: Replies,
    pub(crate) timers: Timers,
    /// Where received bytes are put first.
    pub(crate) scratch: Box<[u8]>,
}

const SCRATCH_BYTES: usize = 64 * 1024;

impl Desk {
    pub(crate) fn new(shared: Arc<Shared>) -> Desk {
        Desk {
            replies: Replies::new(&shared.config),
            shared,
            counts: Counts::default(),
            timers: Timers::default(),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
        }
    }

    /// Counts a request and returns its number.
    pub(crate) fn count_request(&mut self, body_bytes: u64) -> u64 {
        self.counts.requests += 1;
        self.counts.body_bytes_received += body_bytes;
        self.shared.number_request()
    }

    /// Has the connection `token` called again in `delay_ns`.
    pub(crate) fn call_in(&mut self, delay_ns: u64, token: u64) {
        self.timers
            .set(self.shared.clock.now_ns().saturating_add(delay_ns), token);
    }
}
