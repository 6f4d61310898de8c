//! When the requests of the slots time out: a list in order of time, threaded through the slots.
//!
//! All requests have one time-out and begin in order, so a new deadline nearly always goes to the end: adding and removing take no
//! search, and nothing is left behind by requests that were answered. One that was due before its connection was there, or is sent again,
//! goes to the front, behind the few that are under way: so places are looked for from both ends. Where connections have a time-out of
//! their own, theirs stand before those of requests that were sent, or behind.

const NONE: usize = usize::MAX;

#[derive(Debug, Clone, Copy)]
struct Link {
    at_ns: u64,
    before: usize,
    after: usize,
    listed: bool,
}

const UNLISTED: Link = Link {
    at_ns: 0,
    before: NONE,
    after: NONE,
    listed: false,
};

/// At most one deadline for each slot; slots come to be when they are named first.
#[derive(Debug)]
pub struct Deadlines {
    links: Vec<Link>,
    first: usize,
    last: usize,
}

impl Default for Deadlines {
    /// None yet.
    fn default() -> Self {
        Self {
            links: Vec::new(),
            first: NONE,
            last: NONE,
        }
    }
}

impl Deadlines {
    /// Sets the deadline of a slot, in place of an earlier one.
    pub fn set(&mut self, slot: usize, at_ns: u64) {
        if slot >= self.links.len() {
            self.links.resize(slot + 1, UNLISTED);
        }
        self.remove(slot);
        let before = self.before(at_ns);
        let after = if before == NONE {
            self.first
        } else {
            self.links[before].after
        };
        self.links[slot] = Link {
            at_ns,
            before,
            after,
            listed: true,
        };
        self.join(before, slot);
        self.join(slot, after);
    }

    /// The last one that is not later.
    fn before(&self, at_ns: u64) -> usize {
        let (mut from_end, mut from_front) = (self.last, self.first);
        while from_end != NONE && self.links[from_end].at_ns > at_ns {
            let early = self.links[from_front];
            if early.at_ns > at_ns {
                return early.before;
            }
            (from_end, from_front) = (self.links[from_end].before, early.after);
        }
        from_end
    }

    /// Takes back the deadline of a slot, if it has one.
    pub fn remove(&mut self, slot: usize) {
        let Some(&Link {
            before,
            after,
            listed,
            ..
        }) = self.links.get(slot)
        else {
            return;
        };
        if listed {
            self.links[slot].listed = false;
            self.join(before, after);
        }
    }

    /// The earliest: when, and whose.
    pub fn first(&self) -> Option<(u64, usize)> {
        (self.first != NONE).then(|| (self.links[self.first].at_ns, self.first))
    }

    fn join(&mut self, before: usize, after: usize) {
        match before {
            NONE => self.first = after,
            slot => self.links[slot].after = after,
        }
        match after {
            NONE => self.last = before,
            slot => self.links[slot].before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// With a search from the end alone this takes hours.
    #[test]
    fn what_goes_to_the_front_is_placed_at_once_however_many_are_listed() {
        let mut list = Deadlines::default();
        const WAITING: usize = 1_000_000;
        (0..WAITING).for_each(|slot| list.set(slot, 10_000_000));
        for turn in 0..WAITING as u64 {
            list.set(turn as usize, turn);
            assert_eq!(list.first(), Some((turn, turn as usize)));
            list.remove(turn as usize);
        }
        assert_eq!(list.first(), None);
    }

    proptest! {
        #[test]
        fn the_first_is_always_the_earliest(steps in proptest::collection::vec((0usize..8, proptest::option::of(0u64..50)), 0..200)) {
            let (mut list, mut model) = (Deadlines::default(), BTreeMap::new());
            for (slot, at) in steps {
                match at {
                    Some(at) => { list.set(slot, at); model.insert(slot, at); }
                    None => { list.remove(slot); model.remove(&slot); }
                }
                prop_assert_eq!(list.first().map(|(at, _)| at), model.values().min().copied());
                if let Some((at, slot)) = list.first() {
                    prop_assert_eq!(model.get(&slot), Some(&at));
                }
            }
        }
    }
}
