//! The addresses of a server, which may become others while a load runs.

use crate::socket::transport::Address;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All addresses that a server has had, and to which of them new connections go. Clones share them; each may have a
/// source of its own.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    shared: Arc<Shared>,
    source: Option<IpAddr>,
}

#[derive(Debug, Default)]
struct Shared {
    // Looked at for each connection; the lock is taken only where it has grown.
    version: AtomicUsize,
    known: Mutex<Known>,
}

/// What one worker knows of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    version: usize,
    /// In the order in which they came, with how they are written: they keep their numbers.
    pub(super) all: Vec<(String, Address)>,
    /// The numbers of those that new connections go to in turn; there is one at least, once there are any.
    pub(super) current: Vec<usize>,
}

impl Addresses {
    /// New connections go to these in turn from now on; none: nothing changes.
    pub fn set(&self, addresses: Vec<(String, Address)>) {
        if addresses.is_empty() {
            return;
        }
        let mut known = self.lock();
        let numbers = addresses.into_iter().map(|one| known.number_of(one)).collect();
        known.current = numbers;
        known.version += 1;
        self.shared.version.store(known.version, Ordering::Release);
    }

    /// How all of them are written, by their numbers.
    pub fn names(&self) -> Vec<String> {
        self.lock().all.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The same addresses, reached from this address of this machine.
    pub fn leaving_from(&self, source: Option<IpAddr>) -> Self {
        let shared = Arc::clone(&self.shared);
        Self { shared, source }
    }

    /// What has changed since then.
    pub(super) fn after(&self, known: &Known) -> Option<Known> {
        if self.shared.version.load(Ordering::Acquire) == known.version {
            return None;
        }
        let mut found = self.lock().clone();
        if let Some(source) = self.source {
            for (_, address) in &mut found.all {
                *address = address.with_source(source);
            }
        }
        Some(found)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Address> for Addresses {
    fn from(address: Address) -> Self {
        let addresses = Self::default();
        addresses.set(vec![(String::new(), address)]);
        addresses
    }
}

impl Known {
    fn number_of(&mut self, address: (String, Address)) -> usize {
        let known = self.all.iter().position(|(name, _)| *name == address.0);
        known.unwrap_or_else(|| {
            self.all.push(address);
            self.all.len() - 1
        })
    }

    pub(super) fn is_ipv4_loopback(&self) -> bool {
        self.current
            .iter()
            .all(|&number| self.all[number].1.is_ipv4_loopback())
    }
}
