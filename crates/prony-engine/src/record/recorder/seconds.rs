//! The per-second series, without stopping for it: a full histogram is swapped for a spare one and handed to the coordinator, who
//! encodes it, empties it and gives it back.

use crate::clock::NS_PER_S;
use crate::distribution::{Compact, Distribution};
use crate::record::recording::Second;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TryRecvError};

/// The latencies of one second of one worker.
#[derive(Debug)]
pub struct SecondLatency {
    /// Counted from the opening of the window.
    pub second: u64,
    /// Of the `ok` completed in it.
    pub latency: Box<Distribution>,
}

/// The worker's side.
#[derive(Debug)]
pub struct Seconds {
    open_ns: u64,
    counts: Vec<Counts>,
    current: u64,
    latency: Box<Distribution>,
    full: SyncSender<SecondLatency>,
    spare: Receiver<Box<Distribution>>,
}

/// The coordinator's side: keeps each second's latencies encoded.
#[derive(Debug)]
pub struct Ledger {
    full: Receiver<SecondLatency>,
    spare: SyncSender<Box<Distribution>>,
    kept: Vec<(u64, Compact)>,
    latest: Option<SecondLatency>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    scheduled: u64,
    due_ok: u64,
    sent: u64,
    ok: u64,
    failed: u64,
    body_bytes: u64,
}

// The coordinator looks every 100 ms; a worker that finds no spare takes a new one.
const SPARES: usize = 3;
// Room for a long run, so that the vector does not grow on the path of a request.
const EXPECTED_SECONDS: usize = 4096;

/// Both sides of one worker's series; second 0 begins at `open_ns`, unless that is set later.
pub fn seconds(open_ns: u64) -> (Seconds, Ledger) {
    let (full, from_worker) = sync_channel(64);
    let (spare, to_worker) = sync_channel(SPARES + 64);
    for _ in 0..SPARES {
        // The channel has room for all of them.
        let _ = spare.try_send(Box::default());
    }
    let counts = Vec::with_capacity(EXPECTED_SECONDS);
    let worker = Seconds {
        open_ns,
        counts,
        current: 0,
        latency: Box::default(),
        full,
        spare: to_worker,
    };
    (
        worker,
        Ledger {
            full: from_worker,
            spare,
            kept: Vec::new(),
            latest: None,
        },
    )
}

impl Seconds {
    /// Without a coordinator, for tests.
    pub fn detached() -> Self {
        seconds(0).0
    }

    /// Sets when second 0 begins: before any of its requests.
    pub fn begin_at(&mut self, open_ns: u64) {
        self.open_ns = open_ns;
    }

    /// Counts a request due at `at_ns`.
    pub fn scheduled(&mut self, at_ns: u64) {
        self.counts_at(at_ns).scheduled += 1;
    }

    /// Counts a request due at `at_ns` that got its answer, whenever that was.
    pub fn due_ok(&mut self, at_ns: u64) {
        self.counts_at(at_ns).due_ok += 1;
    }

    /// Counts a request that was first handed to the kernel at `now_ns`.
    pub fn sent(&mut self, now_ns: u64) {
        self.counts_at(now_ns).sent += 1;
    }

    /// Counts an answer at `now_ns`.
    pub fn answered(&mut self, now_ns: u64, latency_ns: u64, body_bytes: u64) {
        let second = self.second_of(now_ns);
        if second != self.current {
            self.turn_to(second);
        }
        self.latency.record(latency_ns);
        let counts = self.counts_at(now_ns);
        counts.ok += 1;
        counts.body_bytes += body_bytes;
    }

    /// Counts a failure at `now_ns`.
    pub fn failed(&mut self, now_ns: u64, body_bytes: u64) {
        let counts = self.counts_at(now_ns);
        counts.failed += 1;
        counts.body_bytes += body_bytes;
    }

    /// Hands on the last second and returns the counts, still without latencies.
    pub fn finish(&mut self) -> Vec<Second> {
        self.turn_to(u64::MAX);
        let numbered = (0u64..).zip(&self.counts);
        numbered
            .map(|(second, counts)| Second {
                second,
                scheduled: counts.scheduled,
                due_ok: Some(counts.due_ok),
                sent: counts.sent,
                ok: counts.ok,
                failed: counts.failed,
                body_bytes: counts.body_bytes,
                latency: Distribution::default(),
            })
            .collect()
    }

    fn second_of(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.open_ns) / NS_PER_S
    }

    fn counts_at(&mut self, at_ns: u64) -> &mut Counts {
        let second = self.second_of(at_ns) as usize;
        if second >= self.counts.len() {
            self.counts.resize(second + 1, Counts::default());
        }
        &mut self.counts[second]
    }

    #[cold]
    fn turn_to(&mut self, second: u64) {
        if !self.latency.is_empty() {
            let next = self.spare.try_recv().unwrap_or_default();
            let latency = std::mem::replace(&mut self.latency, next);
            // The coordinator outlives its workers; were it gone, the run would be lost anyway.
            let _ = self.full.send(SecondLatency {
                second: self.current,
                latency,
            });
        }
        self.current = second;
    }
}

impl Ledger {
    /// Takes what the worker has handed on; called often, never waits.
    pub fn collect(&mut self) {
        loop {
            match self.full.try_recv() {
                Ok(done) => {
                    self.kept.push((done.second, Compact::of(&done.latency)));
                    if let Some(mut before) = self.latest.replace(done) {
                        before.latency.clear();
                        // A worker that has ended needs no spares.
                        let _ = self.spare.try_send(before.latency);
                    }
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
            }
        }
    }

    /// The last second that the worker has handed on.
    pub fn latest(&self) -> Option<&SecondLatency> {
        self.latest.as_ref()
    }

    /// Writes the latencies into a series made by [`Seconds::finish`].
    pub fn fill(mut self, series: &mut [Second]) {
        self.collect();
        for (second, latency) in &self.kept {
            if let Some(place) = series.get_mut(*second as usize) {
                place.latency.merge(&latency.expand());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_latencies_meet_again_by_second() {
        let (mut worker, mut ledger) = seconds(10);
        for second in 0..20u64 {
            for _ in 0..=second {
                worker.scheduled(10 + second * NS_PER_S);
                worker.sent(10 + second * NS_PER_S + 1);
                worker.answered(10 + second * NS_PER_S + 5, 100 + second, 3);
            }
            ledger.collect();
            let latest = ledger
                .latest()
                .map(|latest| (latest.second, latest.latency.count()));
            assert_eq!(latest, second.checked_sub(1).map(|before| (before, second)));
        }
        worker.failed(10 + 20 * NS_PER_S, 7);
        worker.failed(10 + 20 * NS_PER_S, 8);
        let mut series = worker.finish();
        ledger.fill(&mut series);
        assert_eq!(series.len(), 21);
        for (number, second) in (0u64..20).zip(&series) {
            assert_eq!(
                (
                    second.second,
                    second.scheduled,
                    second.sent,
                    second.ok,
                    second.body_bytes
                ),
                (number, number + 1, number + 1, number + 1, 3 * (number + 1))
            );
            assert_eq!(
                (second.latency.count(), second.latency.max_ns()),
                (number + 1, Some(100 + number))
            );
        }
        let last = &series[20];
        assert_eq!((last.failed, last.body_bytes, last.latency.count()), (2, 15, 0));
    }
}
