//! What is due, earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap of (due time, token). A timer is not cancelled: the token of a connection that has ended is not found.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Timers {
    pub(crate) fn set(&mut self, due_ns: u64, token: u64) {
        self.heap.push(Reverse((due_ns, token)));
    }

    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Takes out the earliest timer if it is due at `now_ns`.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<u64> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse((_, token))| token)
    }
}

#[cfg(test)]
mod tests {
    use super::Timers;

    #[test]
    fn timers_come_out_in_order_and_only_when_due() {
        let mut timers = Timers::default();
        timers.set(30, 3);
        timers.set(10, 1);
        timers.set(20, 2);
        assert_eq!(timers.next_due_ns(), Some(10));
        assert_eq!(timers.pop_due(9), None);
        assert_eq!(timers.pop_due(25), Some(1));
        assert_eq!(timers.pop_due(25), Some(2));
        assert_eq!(timers.pop_due(25), None);
    }
}
