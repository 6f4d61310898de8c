//! `read_tree`: the state of everything below a folder.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_tree, module)?)
}

/// Return how many entries a folder has, itself included, and a line for each; see `prony-linux`.
///
/// Raises OSError.
#[pyfunction]
fn read_tree(py: Python<'_>, folder: PathBuf) -> PyResult<(usize, Bound<'_, PyBytes>)> {
    let found = py.detach(|| prony_linux::folder::state(&folder))?;
    Ok((found.entries, PyBytes::new(py, &found.lines)))
}
