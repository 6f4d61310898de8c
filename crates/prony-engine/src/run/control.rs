//! How a run is ended from elsewhere.

use super::limits::resolve_one;
use crate::clock::{Clock, Monotonic};
use crate::error::Error;
use crate::socket::Addresses;
use crate::spec::Target;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// A handle to end a run from elsewhere; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Control(pub(super) Arc<Flags>);

#[derive(Debug, Default)]
pub(super) struct Flags {
    pub(super) cancelled: AtomicBool,
    pub(super) aborted: AtomicBool,
    pub(super) addresses: Addresses,
}

impl Control {
    /// A handle for one run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the load now, and lets the run return what it has, marked as interrupted.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Ends the run now, without a result.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Relaxed);
        self.cancel();
    }

    /// New connections go to these hosts of the target in turn from now on; those that are open stay.
    ///
    /// # Errors
    /// [`Error::Resolve`] for a host without an address.
    pub fn connect_to<'h>(
        &self,
        target: &Target,
        hosts: impl Iterator<Item = &'h String>,
    ) -> Result<(), Error> {
        let resolved = |host: &'h String| Ok((host.clone(), resolve_one(target, host)?));
        self.0
            .addresses
            .set(hosts.map(resolved).collect::<Result<_, Error>>()?);
        Ok(())
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Relaxed)
    }

    /// Sleeps until then, or until the run is cancelled: a start that was agreed on may be seconds away.
    pub(super) fn wait_until(&self, at_ns: u64) {
        while let Some(left_ns) = at_ns.checked_sub(Monotonic.now()).filter(|&left_ns| left_ns > 0) {
            if self.is_cancelled() {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left_ns).min(SLICE));
        }
    }
}
pub(super) const SLICE: Duration = Duration::from_millis(100);
