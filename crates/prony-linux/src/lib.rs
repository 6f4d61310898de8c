//! Reads the processes of a subject and the machine's CPUs from `/proc`, cheaply enough to run beside a measurement, and the state
//! of [`folder`]s.
//!
//! - [`Sampler`] samples a process and its descendants: CPU time, memory, faults, threads, state.
//! - [`detail`] returns its threads, its open files and its peak memory; call it at both ends of the window.
//! - [`memory`] splits a process's memory into shared and unshared; it is expensive, so call it rarely.
//! - [`machine_cpu`] returns how busy the CPUs are.
//! - [`SwitchWatch`] records when threads get and leave a CPU, for a trial of its own: it costs each switch something.
//! - [`StackWatch`] samples the stacks of threads, after a measurement.
//! - [`identity`] identifies a process, also when its number is reused.
//!
//! It does not know what a subject, a trial or a metric is, and keeps no history. Times are integer nanoseconds with the
//! resolution of the kernel's clock tick, mostly 10 ms: differences over less than a second say little.
//!
//! ```
//! let mut sampler = prony_linux::Sampler::new(std::process::id()).including_root();
//! let samples = sampler.sample()?;
//! assert!(samples[0].threads >= 1 && samples[0].rss_bytes > 0);
//! # Ok::<(), prony_linux::Error>(())
//! ```
//!
//! *Source*: proc(5); Linux `Documentation/filesystems/proc.rst`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cpu;
mod detail;
mod error;
pub mod folder;
mod memory;
mod perf;
mod sampler;
mod source;
mod stat;
mod switches;
mod tree;

pub use cpu::{machine_cpu, CpuTime, MachineCpu};
pub use detail::{detail, Detail, ThreadSample};
pub use error::Error;
pub use memory::{memory, Memory};
pub use perf::{Stack, StackWatch, SwitchWatch};
pub use sampler::{Identity, ProcessSample, Sampler};
pub use switches::ThreadSchedule;
