//! The Python face of the engine: converts, releases the GIL, maps errors; nothing else.
use pyo3::prelude::*;

/// The extension module `prony._engine`.
#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
