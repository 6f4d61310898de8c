//! The load engine: one specification in, events, one [`Recording`] out.
//!
//! A run is a [`schedule`] (when is the n-th request due) x a [`wire`] (bytes in, replies out, no I/O) x a [`socket`] driver (how bytes
//! reach the kernel) in one loop, the [`worker`]. Each worker is a thread that shares nothing: own sockets, own histograms. Results
//! are merged by addition when all have ended.
//!
//! Times are integer nanoseconds of CLOCK_MONOTONIC. The crate knows no Python, no command line and no archive.
//! `docs/reference/engine-wire.md` defines every field that crosses the border.

// What all rooms know.
pub mod account;
pub mod clock;
mod cpu;
pub mod distribution;
mod error;
pub mod histogram;
pub mod random;
// The rooms, from below to above.
pub mod expect;
pub mod record;
mod run;
pub mod schedule;
pub mod socket;
pub mod spec;
pub mod wire;
pub mod worker;

pub use distribution::Distribution;
pub use error::Error;
pub use record::Recording;
pub use run::{limits, run, run_with, Control, Event, Files};
pub use spec::Spec;
