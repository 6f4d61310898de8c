//! `encode_request`, `decode_reply`, `Stream`: one exchange for callers with their own I/O.

use prony_engine::spec::Wire;
use prony_engine::spec::CIPHERS;
use prony_engine::wire::exchange;
use prony_engine::Error;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::error::to_python;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("WIRES", PyTuple::new(module.py(), Wire::NAMES)?)?;
    module.add("CIPHERS", PyTuple::new(module.py(), CIPHERS)?)?;
    module.add_function(wrap_pyfunction!(encode_request, module)?)?;
    module.add_function(wrap_pyfunction!(decode_reply, module)?)?;
    module.add_class::<Stream>()
}

/// Return the bytes of a request to a target; both are JSON, as in a specification.
///
/// Raises EngineError of the kind `invalid_spec`.
#[pyfunction]
fn encode_request<'py>(py: Python<'py>, target: &str, request: &str) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = parse("the target", target)
        .and_then(|target| exchange::encode_request(&target, &parse("the request", request)?))
        .map_err(|error| to_python(py, &error))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Return status and body of the reply to a request with this method, null as long as it is not complete.
///
/// `data` is everything received so far; `ended`: nothing more will come. Raises EngineError of the kind `reply` for an invalid reply.
#[pyfunction]
fn decode_reply<'py>(
    py: Python<'py>,
    wire: &str,
    method: &str,
    data: &[u8],
    ended: bool,
) -> PyResult<Option<(u16, Bound<'py, PyBytes>)>> {
    let reply = named(wire)
        .and_then(|wire| exchange::decode_reply(wire, method, data, ended))
        .map_err(|error| to_python(py, &error))?;
    Ok(reply.map(|reply| (reply.status, PyBytes::new(py, &reply.body))))
}

/// One exchange over HTTP/2, whose body may wait for the server's word.
///
/// Target and request are JSON, as in a specification. Raises EngineError of the kind `invalid_spec`.
#[pyclass(module = "prony._engine")]
struct Stream(exchange::Stream);

#[pymethods]
impl Stream {
    #[new]
    fn new(py: Python<'_>, target: &str, request: &str) -> PyResult<Self> {
        parse("the target", target)
            .and_then(|target| exchange::Stream::new(&target, &parse("the request", request)?))
            .map(Self)
            .map_err(|error| to_python(py, &error))
    }

    /// Return what is to be sent now, once; empty where the server is to say something first.
    fn take_pending<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.take_pending())
    }

    /// Take what was received, nothing at the end of the connection; return status and body once they are complete.
    ///
    /// Raises EngineError of the kind `reply` for an invalid reply.
    fn receive<'py>(&mut self, py: Python<'py>, data: &[u8]) -> PyResult<Option<(u16, Bound<'py, PyBytes>)>> {
        let reply = self.0.receive(data).map_err(|error| to_python(py, &error))?;
        Ok(reply.map(|reply| (reply.status, PyBytes::new(py, &reply.body))))
    }
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::InvalidSpec(format!("{what}: {error}")))
}

fn named(wire: &str) -> Result<Wire, Error> {
    let unknown = || format!("no wire `{wire}`; expected one of {}", Wire::NAMES.join(", "));
    Wire::named(wire).ok_or_else(|| Error::InvalidSpec(unknown()))
}
