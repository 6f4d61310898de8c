//! What threads did between two moments, from the kernel's records of their switches: running, preempted, blocked.
//!
//! Pure: records in, sums out. It does not know where records come from.

use std::collections::HashMap;

/// What happened to a thread, and when (`CLOCK_MONOTONIC`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time_ns: u64,
    pub(crate) kind: Kind,
}

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It got a CPU.
    In,
    /// It left its CPU: to wait for something, or because another took it.
    Out {
        /// Whether it could have gone on.
        preempted: bool,
    },
    /// It began.
    Began,
    /// It ended.
    Ended,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Preempted,
    Blocked,
    Unknown,
    Over,
}

/// What one thread did while it was watched. The four times add up to the time for which it was there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSchedule {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name, of at most 15 bytes; empty where it ended before anybody asked.
    pub name: String,
    /// On a CPU.
    pub running_ns: u64,
    /// Ready, after another thread took its CPU.
    pub preempted_ns: u64,
    /// Waiting for something, and then for a CPU: the kernel records no waking.
    pub blocked_ns: u64,
    /// Where records contradict each other, for some were lost.
    pub unknown_ns: u64,
    /// How often another thread took its CPU.
    pub preemptions: u64,
    /// How often it left its CPU by itself.
    pub waits: u64,
}

#[derive(Debug)]
struct Account {
    schedule: ThreadSchedule,
    state: State,
    since_ns: u64,
    /// Before the first record the state is what `/proc` said, which calls ready what may be running.
    guessed: bool,
}

impl Account {
    fn new(pid: u32, tid: u32, name: String, state: State, since_ns: u64) -> Account {
        let schedule = ThreadSchedule {
            pid,
            tid,
            name,
            ..ThreadSchedule::default()
        };
        Account {
            schedule,
            state,
            since_ns,
            guessed: true,
        }
    }

    fn take(&mut self, record: Record) {
        let was = self.corrected(record.kind);
        self.add(was, record.time_ns);
        self.guessed = false;
        self.state = match record.kind {
            Kind::In => State::Running,
            Kind::Out { preempted: true } => {
                self.schedule.preemptions += 1;
                State::Preempted
            }
            Kind::Out { preempted: false } => {
                self.schedule.waits += 1;
                State::Blocked
            }
            Kind::Began => State::Preempted,
            Kind::Ended => State::Over,
        };
    }

    /// What the thread did until a record of this kind.
    fn corrected(&self, next: Kind) -> State {
        match (next, self.state) {
            (Kind::In, State::Running) if self.guessed => State::Preempted,
            (Kind::Out { .. }, State::Preempted | State::Blocked) if self.guessed => State::Running,
            (Kind::In, State::Running) | (Kind::Out { .. }, State::Preempted | State::Blocked) => {
                State::Unknown
            }
            (_, state) => state,
        }
    }

    fn add(&mut self, state: State, until_ns: u64) {
        let length_ns = until_ns.saturating_sub(self.since_ns);
        match state {
            State::Running => self.schedule.running_ns += length_ns,
            State::Preempted => self.schedule.preempted_ns += length_ns,
            State::Blocked => self.schedule.blocked_ns += length_ns,
            State::Unknown => self.schedule.unknown_ns += length_ns,
            State::Over => {}
        }
        self.since_ns = self.since_ns.max(until_ns);
    }
}

/// The accounts of all threads that are watched.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    by_thread: HashMap<u32, Account>,
    ended: Vec<ThreadSchedule>,
}

impl Accounts {
    /// Opens the account of a thread that is there already; `state` as `/proc` says it.
    pub(crate) fn open(&mut self, pid: u32, tid: u32, name: String, state: State, since_ns: u64) {
        self.by_thread
            .entry(tid)
            .or_insert_with(|| Account::new(pid, tid, name, state, since_ns));
    }

    /// Whether a thread has an account.
    pub(crate) fn has(&self, tid: u32) -> bool {
        self.by_thread.contains_key(&tid)
    }

    /// Takes a record; one of an unknown thread opens its account.
    pub(crate) fn take(&mut self, record: Record) {
        let account = self.by_thread.entry(record.tid).or_insert_with(|| {
            let state = match record.kind {
                Kind::Out { .. } => State::Running,
                _ => State::Preempted,
            };
            Account::new(record.pid, record.tid, String::new(), state, record.time_ns)
        });
        account.take(record);
        if record.kind == Kind::Ended {
            // The kernel gives its number to another thread.
            self.ended
                .extend(self.by_thread.remove(&record.tid).map(|account| account.schedule));
        }
    }

    /// Forgets what was counted before a moment; states stay.
    pub(crate) fn begin(&mut self, at_ns: u64) {
        self.ended.clear();
        for account in self.by_thread.values_mut() {
            let old = std::mem::take(&mut account.schedule);
            account.schedule = ThreadSchedule {
                pid: old.pid,
                tid: old.tid,
                name: old.name,
                ..ThreadSchedule::default()
            };
            account.since_ns = account.since_ns.max(at_ns);
        }
    }

    /// What every thread did until a moment, the busiest first.
    pub(crate) fn finish(&mut self, at_ns: u64) -> Vec<ThreadSchedule> {
        let mut found = std::mem::take(&mut self.ended);
        for (_, mut account) in self.by_thread.drain() {
            let state = account.state;
            account.add(state, at_ns);
            found.push(account.schedule);
        }
        found.sort_by(|a, b| b.running_ns.cmp(&a.running_ns).then(a.tid.cmp(&b.tid)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Accounts, Kind, Record, State, ThreadSchedule};

    const OUT: Kind = Kind::Out { preempted: false };
    const TAKEN: Kind = Kind::Out { preempted: true };

    fn accounts(state: State, records: &[(u64, Kind)]) -> ThreadSchedule {
        let mut accounts = Accounts::default();
        accounts.open(7, 8, "a".to_owned(), state, 0);
        for &(time_ns, kind) in records {
            accounts.take(Record {
                pid: 7,
                tid: 8,
                time_ns,
                kind,
            });
        }
        accounts.finish(100).remove(0)
    }

    fn times(found: &ThreadSchedule) -> [u64; 4] {
        [
            found.running_ns,
            found.preempted_ns,
            found.blocked_ns,
            found.unknown_ns,
        ]
    }

    #[test]
    fn the_time_between_two_records_is_that_of_the_state_between_them() {
        let found = accounts(
            State::Blocked,
            &[(10, Kind::In), (30, TAKEN), (35, Kind::In), (60, OUT)],
        );
        assert_eq!(times(&found), [45, 5, 50, 0]);
        assert_eq!((found.preemptions, found.waits), (1, 1));
        assert_eq!((found.pid, found.tid, found.name.as_str()), (7, 8, "a"));
    }

    #[test]
    fn a_thread_without_a_record_did_one_thing_all_the_time() {
        assert_eq!(times(&accounts(State::Blocked, &[])), [0, 0, 100, 0]);
        assert_eq!(times(&accounts(State::Running, &[])), [100, 0, 0, 0]);
    }

    #[test]
    fn the_first_record_says_what_proc_could_not() {
        // It was ready, and not on a CPU.
        assert_eq!(
            times(&accounts(State::Running, &[(40, Kind::In)])),
            [60, 40, 0, 0]
        );
        // It was woken between the look and the watch.
        assert_eq!(times(&accounts(State::Blocked, &[(40, OUT)])), [40, 0, 60, 0]);
    }

    #[test]
    fn where_records_were_lost_nobody_knows_what_it_did() {
        let found = accounts(State::Blocked, &[(10, Kind::In), (20, OUT), (50, OUT)]);
        assert_eq!(times(&found), [10, 0, 60, 30]);
        let found = accounts(State::Blocked, &[(10, Kind::In), (50, Kind::In)]);
        assert_eq!(times(&found), [50, 0, 10, 40]);
    }

    #[test]
    fn a_thread_is_there_from_its_begin_to_its_end_and_its_number_may_come_again() {
        let mut accounts = Accounts::default();
        let turns = [
            (10, Kind::Began),
            (15, Kind::In),
            (40, Kind::Ended),
            (60, Kind::Began),
            (70, Kind::In),
        ];
        for (time_ns, kind) in turns {
            accounts.take(Record {
                pid: 7,
                tid: 9,
                time_ns,
                kind,
            });
        }
        let found = accounts.finish(100);
        let all: Vec<[u64; 4]> = found.iter().map(times).collect();
        assert_eq!(all, [[30, 10, 0, 0], [25, 5, 0, 0]]);
    }

    #[test]
    fn what_was_before_the_begin_does_not_count_but_its_state_does() {
        let mut accounts = Accounts::default();
        accounts.open(7, 8, String::new(), State::Blocked, 0);
        let record = |time_ns, kind| Record {
            pid: 7,
            tid: 8,
            time_ns,
            kind,
        };
        accounts.take(record(10, Kind::In));
        accounts.begin(50);
        accounts.take(record(80, OUT));
        let found = accounts.finish(100);
        assert_eq!(times(&found[0]), [30, 0, 20, 0]);
        assert_eq!((found[0].waits, found[0].pid), (1, 7));
    }

    #[test]
    fn the_times_of_a_thread_add_up_whatever_was_lost() {
        // Every sequence of four records out of three kinds.
        let kinds = [Kind::In, OUT, TAKEN];
        for number in 0..81_usize {
            let picked: Vec<(u64, Kind)> = (0..4_u32)
                .map(|place| (u64::from(place + 1) * 20, kinds[number / 3_usize.pow(place) % 3]))
                .collect();
            assert_eq!(times(&accounts(State::Blocked, &picked)).iter().sum::<u64>(), 100);
        }
    }
}
