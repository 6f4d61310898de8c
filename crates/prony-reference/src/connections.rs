//! The open connections of a worker, each under a token that is never used again.

use crate::connection::Connection;

/// A table of slots. A token is the slot's index and how often the slot was used before, so that a timer of a
/// connection that has ended finds nothing instead of its successor.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Connection>,
}

impl Connections {
    /// Puts in what `make` returns for its token.
    pub(crate) fn insert(&mut self, make: impl FnOnce(u64) -> Connection) -> &mut Connection {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        let token = (u64::from(slot.generation) << 32) | u64::from(index);
        slot.connection.insert(make(token))
    }

    pub(crate) fn get(&mut self, token: u64) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(token as u32 as usize)?;
        if u64::from(slot.generation) != token >> 32 {
            return None;
        }
        slot.connection.as_mut()
    }

    /// Closes the connection.
    pub(crate) fn remove(&mut self, token: u64) {
        if self.get(token).is_none() {
            return;
        }
        let index = token as u32;
        let slot = &mut self.slots[index as usize];
        slot.connection = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
    }
}
