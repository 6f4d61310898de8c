//! Adding up the finished Recordings of several machines, each with its own clock and its own verdict.

use std::panic::resume_unwind;
use std::thread;

use super::{Recording, Window};
use crate::error::Error;
use crate::record::generator::strongest_of_each_kind;
use crate::spec::Stop;

/// Another thread takes at least so many Recordings: to read one takes milliseconds, to start a thread a fraction of one.
const LEAST_OF_A_THREAD: usize = 2;

impl Recording {
    /// The Recordings of several machines, as JSON, as one: in a tree, of which each branch has a thread of its own as long as
    /// there are `threads`. How many there are changes nothing but the time.
    ///
    /// `ahead_ns`: of each machine, by how much the clock that its stamps are put on is ahead of its own.
    ///
    /// # Errors
    /// [`Error::Account`] for what is no Recording, for one whose account does not add up, and for none at all.
    pub fn of_machines(texts: &[String], ahead_ns: &[i64], threads: usize) -> Result<Self, Error> {
        if texts.is_empty() || texts.len() != ahead_ns.len() {
            return Err(Error::Account(
                "expected a Recording and a clock for each machine".to_owned(),
            ));
        }
        in_halves(texts, ahead_ns, threads)
    }

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
        self.generator.conclude(strongest_of_each_kind(evidence));
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

fn in_halves(texts: &[String], ahead_ns: &[i64], threads: usize) -> Result<Recording, Error> {
    if threads < 2 || texts.len() < 2 * LEAST_OF_A_THREAD {
        return one_by_one(texts, ahead_ns);
    }
    let (near, far) = texts.split_at(texts.len() / 2);
    let (near_ns, far_ns) = ahead_ns.split_at(near.len());
    let (near, far) = thread::scope(|scope| {
        let far = scope.spawn(|| in_halves(far, far_ns, threads / 2));
        let near = in_halves(near, near_ns, threads - threads / 2);
        (near, far.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    let mut whole = near?;
    whole.merge_machine(&far?)?;
    Ok(whole)
}

fn one_by_one(texts: &[String], ahead_ns: &[i64]) -> Result<Recording, Error> {
    let first = read(&texts[0], ahead_ns[0])?;
    let mut others = texts.iter().zip(ahead_ns).skip(1);
    others.try_fold(first, |mut whole, (text, &ahead_ns)| {
        whole.merge_machine(&read(text, ahead_ns)?)?;
        Ok(whole)
    })
}

fn read(text: &str, ahead_ns: i64) -> Result<Recording, Error> {
    let wrong = |error| Error::Account(format!("the Recording of a generator cannot be read: {error}"));
    let own: Recording = serde_json::from_str(text).map_err(wrong)?;
    own.check()?;
    Ok(own.on_a_clock_ahead_by(ahead_ns))
}

fn length_ns(window: &Window) -> u64 {
    window.close_ns.saturating_sub(window.open_ns)
}
