//! What the load cost the generator, and whether the generator set the figures.

use crate::verdict::{Evidence, Limited};
use serde::{Deserialize, Serialize};

/// What the load cost the generator within the window, and its own verdict on itself.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)] // defined in docs/reference/engine-wire.md, field by field
pub struct Generator {
    pub limited: Limited,
    pub evidence: Vec<Evidence>,
    pub sent_in_window: u64,
    pub cpu_work_ns: u64,
    pub cpu_spin_ns: u64,
    pub run_queue_ns: u64,
    pub cpu_ns_per_request: Option<f64>,
    pub spin_share: f64,
    pub threads: Vec<Thread>,
    /// How long after the agreed start the last worker began; null where no start was agreed with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_late_ns: Option<u64>,
}

/// One worker, within the window.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Thread {
    pub cpu: Option<usize>,
    pub user_ns: u64,
    pub system_ns: u64,
    pub spin_ns: u64,
    pub spin_margin_ns: Option<u64>,
    pub run_queue_ns: u64,
    pub turns: u64,
    pub long_waits: u64,
    pub long_wait_ns: u64,
    pub throttled_ns: Option<u64>,
}

impl Generator {
    /// Adds another worker.
    pub fn merge(&mut self, other: &Self) {
        self.sent_in_window += other.sent_in_window;
        self.threads.extend(other.threads.iter().cloned());
        self.start_late_ns = self.start_late_ns.max(other.start_late_ns);
    }

    /// Sums up the threads, for a window of this length in which so many requests were completed.
    pub fn sum_up(&mut self, window_ns: u64, completed: u64) {
        let sum = |of: fn(&Thread) -> u64| self.threads.iter().map(of).sum::<u64>();
        self.cpu_spin_ns = sum(|thread| thread.spin_ns);
        self.run_queue_ns = sum(|thread| thread.run_queue_ns);
        self.cpu_work_ns = sum(Thread::work_ns);
        self.cpu_ns_per_request = (completed > 0).then(|| self.cpu_work_ns as f64 / completed as f64);
        let thread_time_ns = (window_ns * self.threads.len() as u64).max(1);
        self.spin_share = self.cpu_spin_ns as f64 / thread_time_ns as f64;
    }
}

impl Thread {
    /// CPU time without spinning.
    pub fn work_ns(&self) -> u64 {
        (self.user_ns + self.system_ns).saturating_sub(self.spin_ns)
    }

    /// How long a quota stopped it: of the time that its groups were throttled, on all their CPUs, what it waited itself. A thread
    /// that is throttled waits on the run queue; where the kernel counts no waits, the groups' time is all that is known.
    pub fn stopped_ns(&self) -> u64 {
        let groups_ns = self.throttled_ns.unwrap_or(0);
        if self.turns > 0 {
            groups_ns.min(self.run_queue_ns)
        } else {
            groups_ns
        }
    }

    /// Time that others kept it from the CPU in long waits: not those that a quota made it wait.
    pub fn kept_waiting_ns(&self) -> u64 {
        self.long_wait_ns.saturating_sub(self.stopped_ns())
    }
}
