//! What a worker uses within the window.

use super::waits::Waits;
use super::{Edge, Round, Watch};
use crate::cpu::Usage;
use crate::distribution::Distribution;
use crate::record::generator::Thread;
use crate::worker::throttle::Throttle;

/// What a worker uses between the edges of the window: snapshots at both.
#[derive(Debug)]
pub struct Meter {
    throttle: Throttle,
    edges: [Snapshot; 2],
    waits: Waits,
}

#[derive(Debug, Clone, Copy, Default)]
struct Snapshot {
    usage: Usage,
    spin_ns: u64,
    throttled_ns: Option<u64>,
}

impl Meter {
    /// Before the window; one that never opens used nothing.
    pub fn of_this_thread() -> Self {
        Self {
            throttle: Throttle::of_this_thread(),
            edges: Default::default(),
            waits: Waits::of_this_thread(),
        }
    }

    /// The figures of the window, of a worker on this CPU that spins so long before a due time.
    pub fn thread(&self, cpu: Option<usize>, spin_margin_ns: Option<u64>) -> Thread {
        let [open, close] = &self.edges;
        let used = close.usage.since(&open.usage);
        let throttled = close.throttled_ns.zip(open.throttled_ns);
        Thread {
            cpu,
            user_ns: used.user_ns,
            system_ns: used.system_ns,
            spin_ns: close.spin_ns.saturating_sub(open.spin_ns),
            spin_margin_ns,
            run_queue_ns: used.queued.ns,
            turns: used.queued.turns,
            long_waits: self.waits.count,
            long_wait_ns: self.waits.total_ns,
            throttled_ns: throttled.map(|(close_ns, open_ns)| close_ns.saturating_sub(open_ns)),
        }
    }

    /// Of each reply in the window that was taken after a long wait, how long that was.
    pub fn late_replies(self) -> Distribution {
        self.waits.late_replies
    }
}

impl Watch for Meter {
    fn pass(&mut self, edge: Edge, spin_ns: u64) {
        self.edges[edge as usize] = Snapshot {
            usage: Usage::of_this_thread(),
            spin_ns,
            throttled_ns: self.throttle.total_ns(),
        };
        if edge == Edge::Open {
            self.waits.begin();
        }
    }

    fn round(&mut self, round: &Round) {
        self.waits.round(round);
    }
}
