//! What the load cost the generator, and whether the generator set the figures.

use serde::{Deserialize, Serialize};

/// Whether the generator, and not the server, set the figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limited {
    /// Nothing says so.
    #[default]
    No,
    /// It may have moved the figures.
    Suspect,
    /// It did.
    Yes,
}

/// What is seen of the generator, with its numbers; shares are of the window where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Cause {
    /// The limit of requests in flight was reached, so long after the opening: from then on the loop was closed.
    InFlight { connections: u64, at_ns: u64 },
    /// So many requests found no free port on this side.
    Ports { requests: u64 },
    /// So many found no free descriptor.
    Descriptors { requests: u64 },
    /// So many found no memory in the kernel.
    Buffers { requests: u64 },
    /// A control group's quota stopped a worker for so large a share.
    Throttled { share: f64 },
    /// A worker worked for so large a share.
    Busy { share: f64 },
    /// Others had the CPU of a worker for so large a share, `wait_ns` at a time; so large a share of all replies was taken only then.
    KeptWaiting {
        share: f64,
        wait_ns: u64,
        late_share: f64,
    },
    /// The send lag is so large a share of the latency at the same percentile.
    Late {
        share: f64,
        percentile: f64,
        lag_ns: u64,
    },
    /// The throughput is so large a share of what this generator can reach on this machine.
    NearCeiling { share: f64, ceiling_per_s: f64 },
    /// In the window so large a share less was sent than was due.
    RateMissed { share: f64, sent_per_s: f64 },
}

/// One cause, and what it says by itself.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Evidence {
    pub level: Limited,
    #[serde(flatten)]
    pub cause: Cause,
}

/// Of evidence from several machines the strongest of each kind, the strongest first.
pub fn strongest_of_each_kind(mut found: Vec<Evidence>) -> Vec<Evidence> {
    // The words decide between equals, so that the order of the machines does not.
    found.sort_by(|a, b| {
        let kinds = a.cause.place().cmp(&b.cause.place());
        let levels = b.level.cmp(&a.level);
        let sizes = b.cause.size().total_cmp(&a.cause.size());
        let words = || format!("{:?}", a.cause).cmp(&format!("{:?}", b.cause));
        kinds.then(levels).then(sizes).then_with(words)
    });
    found.dedup_by_key(|one| one.cause.place());
    found.sort_by_key(|one| std::cmp::Reverse(one.level));
    found
}

impl Cause {
    /// Where it stands among causes of equal strength, and what follows from them.
    fn place(&self) -> u8 {
        match self {
            Self::InFlight { .. } => 0,
            Self::Ports { .. } => 1,
            Self::Descriptors { .. } => 2,
            Self::Buffers { .. } => 3,
            Self::Throttled { .. } => 4,
            Self::Busy { .. } => 5,
            Self::KeptWaiting { .. } => 6,
            Self::NearCeiling { .. } => 7,
            Self::Late { .. } => 8,
            Self::RateMissed { .. } => 9,
        }
    }

    /// How much there is of it, to compare with its like. The limit of requests in flight was reached, the earlier the worse.
    fn size(&self) -> f64 {
        match *self {
            Self::InFlight { at_ns, .. } => -(at_ns as f64),
            Self::Ports { requests } | Self::Descriptors { requests } | Self::Buffers { requests } => {
                requests as f64
            }
            Self::Throttled { share }
            | Self::Busy { share }
            | Self::KeptWaiting { share, .. }
            | Self::NearCeiling { share, .. }
            | Self::Late { share, .. }
            | Self::RateMissed { share, .. } => share,
        }
    }
}

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
    /// Takes its verdict from all that speaks against it.
    pub fn conclude(&mut self, evidence: Vec<Evidence>) {
        self.limited = evidence.iter().map(|one| one.level).max().unwrap_or_default();
        self.evidence = evidence;
    }

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
