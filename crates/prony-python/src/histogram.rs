//! `Histogram`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::to_python;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Histogram>()
}

/// Counts of times in nanoseconds, exact to 0.1 %, from 1 ns to 1 h (HdrHistogram, 3 digits).
#[pyclass(module = "prony._engine")]
#[derive(Default)]
struct Histogram {
    inner: prony_engine::histogram::Histogram,
}

#[pymethods]
impl Histogram {
    #[new]
    fn new() -> Histogram {
        Histogram::default()
    }

    /// Read the HdrHistogram V2 encoding, deflated or not. Raises EngineError when it is none.
    #[staticmethod]
    fn decode(py: Python<'_>, data: &[u8]) -> PyResult<Histogram> {
        let inner =
            prony_engine::histogram::Histogram::decode(data).map_err(|error| to_python(py, &error))?;
        Ok(Histogram { inner })
    }

    /// Return the HdrHistogram V2 encoding, deflated.
    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.encode())
    }

    /// Count a value `count` times. More than 1 h counts as 1 h.
    #[pyo3(signature = (value_ns, count=1))]
    fn record(&mut self, value_ns: u64, count: u64) {
        self.inner.record_n(value_ns, count);
    }

    /// Add the counts of another histogram.
    fn merge(this: &Bound<'_, Self>, other: &Bound<'_, Self>) {
        // Copied, since `other` may be `self`.
        let other = other.borrow().inner.clone();
        this.borrow_mut().inner.merge(&other);
    }

    /// Return the smallest recorded value that at least this share (0 to 1) of all do not exceed; 0 when empty.
    fn value_at_quantile(&self, quantile: f64) -> u64 {
        self.inner.value_at_quantile(quantile)
    }

    /// Return how many values are below `value_ns`.
    fn count_below(&self, value_ns: u64) -> u64 {
        self.inner.count_below(value_ns)
    }

    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    /// The smallest value; 0 when empty.
    #[getter]
    fn min(&self) -> u64 {
        self.inner.min()
    }

    /// The largest value; 0 when empty.
    #[getter]
    fn max(&self) -> u64 {
        self.inner.max()
    }

    /// The mean; 0 when empty.
    #[getter]
    fn mean(&self) -> f64 {
        self.inner.mean()
    }
}
