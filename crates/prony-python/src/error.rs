//! The one place where errors of the Rust crates become a Python exception.

use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

create_exception!(
    prony._engine,
    EngineError,
    PyRuntimeError,
    "What could not be run or read. `kind` is `invalid_spec`, `resolve`, `tls`, `io`, `account`, `reply` or `aborted`."
);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<EngineError>();
    // For an exception that was made in Python, without one of its own.
    class.setattr("kind", "io")?;
    module.add("EngineError", class)
}

/// A value of a Rust crate's error that has a `kind`.
pub(crate) trait Kind: std::error::Error {
    fn kind(&self) -> &'static str;
}

impl Kind for prony_engine::Error {
    fn kind(&self) -> &'static str {
        use prony_engine::Error;
        match self {
            Error::InvalidSpec(_) => "invalid_spec",
            Error::Resolve { .. } => "resolve",
            Error::Tls(_) => "tls",
            Error::Io { .. } => "io",
            Error::Account(_) => "account",
            Error::Reply(_) => "reply",
            Error::Aborted => "aborted",
        }
    }
}

impl Kind for prony_reference::Error {
    fn kind(&self) -> &'static str {
        use prony_reference::Error;
        match self {
            Error::Json(_) | Error::Field { .. } | Error::Tls { .. } => "invalid_spec",
            Error::Io { .. } => "io",
        }
    }
}

impl Kind for prony_linux::Error {
    fn kind(&self) -> &'static str {
        "io"
    }
}

/// The exception for an error. To be called with the GIL held.
pub(crate) fn to_python(py: Python<'_>, error: &dyn Kind) -> PyErr {
    let exception = EngineError::new_err(error.to_string());
    match exception.value(py).setattr("kind", error.kind()) {
        Ok(()) => exception,
        Err(refused) => refused,
    }
}
