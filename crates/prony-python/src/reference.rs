//! `ReferenceServer`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use prony_reference::{Config, Server};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::to_python;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ReferenceServer>()
}

/// A server whose behaviour is known exactly, in threads of this process. A context manager: stopped at the end.
#[pyclass(frozen, module = "prony._engine")]
struct ReferenceServer {
    port: u16,
    server: Mutex<Server>,
}

impl ReferenceServer {
    /// A thread that panicked left the server as it was.
    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl ReferenceServer {
    /// Start a server with the JSON `config`. Raises EngineError for an invalid field or a port that is in use.
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<ReferenceServer> {
        let started = py.detach(|| Config::from_json(config).and_then(Server::start));
        let server = started.map_err(|error| to_python(py, &error))?;
        Ok(ReferenceServer {
            port: server.port(),
            server: Mutex::new(server),
        })
    }

    /// The port that it listens on.
    #[getter]
    fn port(&self) -> u16 {
        self.port
    }

    /// Return its counts so far as JSON, including everything that a client has seen by now.
    fn counts(&self, py: Python<'_>) -> PyResult<String> {
        let counts = py.detach(|| self.server().counts());
        serde_json::to_string(&counts).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Close all connections and end its threads; the counts stay. To stop it twice does nothing.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.server().stop());
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.stop(py);
    }
}
