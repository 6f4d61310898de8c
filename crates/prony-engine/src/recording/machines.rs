//! Adding up the finished Recordings of several machines, each with its own clock and its own verdict.

use super::{Recording, Window};
use crate::error::Error;
use crate::spec::Stop;
use crate::verdict;

impl Recording {
    /// With its stamps on another clock, which is ahead of this machine's by so much. Latencies are differences, and stay.
    #[must_use]
    pub fn on_a_clock_ahead_by(mut self, ns: i64) -> Self {
        let Window {
            open_ns,
            close_ns,
            drained_ns,
            ..
        } = &mut self.window;
        let samples = self.error_samples.iter_mut().map(|sample| &mut sample.at_ns);
        for stamp in [open_ns, close_ns, drained_ns].into_iter().chain(samples) {
            *stamp = stamp.saturating_add_signed(ns);
        }
        self
    }

    /// Adds the finished Recording of another machine, with its stamps on the same clock. Associative, and commutative but for the
    /// order of the threads.
    ///
    /// Each machine's verdict is its own: it rests on what does not leave the machine. That of the whole has the strongest of each
    /// kind of evidence.
    ///
    /// # Errors
    /// [`Error::Account`] when a request has no end or two.
    pub fn merge_machine(&mut self, other: &Self) -> Result<(), Error> {
        let window = self.joint_window(&other.window);
        let evidence = [&*self.generator.evidence, &*other.generator.evidence].concat();
        self.merge(other);
        self.window = window;
        self.spec.share = None;
        self.spec.cpus = None;
        self.spec.threads = self.spec.threads.max(other.spec.threads);
        self.sum_up()?;
        self.generator.evidence = verdict::strongest_of_each_kind(evidence);
        self.generator.limited = verdict::limited(&self.generator.evidence);
        Ok(())
    }

    /// From the first opening on; where time ends the windows, as long as the longest of them: each machine has counted in its own.
    fn joint_window(&self, other: &Window) -> Window {
        let own = &self.window;
        let open_ns = own.open_ns.min(other.open_ns);
        let last_ns = own.close_ns.max(other.close_ns);
        let longest_ns = length_ns(own).max(length_ns(other));
        let close_ns = match self.spec.workload.stop {
            Stop::Duration { .. } => open_ns + longest_ns,
            Stop::Requests { .. } => last_ns,
        };
        Window {
            open_ns,
            close_ns,
            drained_ns: own.drained_ns.max(other.drained_ns),
            open_unix_ns: own.open_unix_ns.min(other.open_unix_ns),
            interrupted: own.interrupted || other.interrupted,
        }
    }
}

fn length_ns(window: &Window) -> u64 {
    window.close_ns.saturating_sub(window.open_ns)
}
