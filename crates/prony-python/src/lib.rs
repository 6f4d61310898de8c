//! The Python face of the engine, module `prony._engine`: converts, releases the GIL, maps errors; nothing else.
//!
//! Each file registers its own classes and functions. `python/prony/_engine.pyi` describes them for type checkers, and
//! `stubtest` holds the two together.

mod error;
mod exchange;
mod histogram;
mod process;
mod reference;
mod run;
mod tree;

use pyo3::prelude::*;

/// The measuring parts of Prony that are written in Rust.
#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(module)?;
    run::register(module)?;
    exchange::register(module)?;
    histogram::register(module)?;
    reference::register(module)?;
    process::register(module)?;
    tree::register(module)
}
