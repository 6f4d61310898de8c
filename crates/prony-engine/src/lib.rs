//! The load engine: one specification in, events, one [`Recording`] out.
//!
//! A run is a [`schedule`] (when is the n-th request due) x a [`protocol`] (bytes in, replies out, no I/O) x a [`driver`] (how bytes
//! reach the kernel) in one loop, the [`worker`]. Each worker is a thread that shares nothing: own sockets, own histograms. Results
//! are merged by addition when all have ended.
//!
//! Times are integer nanoseconds of CLOCK_MONOTONIC. The crate knows no Python, no command line and no archive.
//! `docs/reference/engine-wire.md` defines every field that crosses the border.

pub mod account;
pub mod clock;
mod cpu;
pub mod distribution;
pub mod driver;
mod error;
pub mod event;
pub mod exchange;
pub mod expect;
pub mod generator;
pub mod histogram;
pub mod limit;
mod mix;
pub mod protocol;
pub mod random;
pub mod recorder;
pub mod recording;
mod redirect;
pub mod requests;
mod run;
pub mod schedule;
pub mod spec;
mod throttle;
pub mod tls;
mod transport;
pub mod verdict;
pub mod worker;

pub use distribution::Distribution;
pub use error::Error;
pub use event::Event;
pub use recording::Recording;
pub use run::{run, run_with, Control, Files};
pub use spec::Spec;
