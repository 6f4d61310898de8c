//! Why a reference server could not be started.

/// What failed, on which value, and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is not the JSON of a [`crate::Config`].
    #[error("the configuration is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// A field has a value that it may not have.
    #[error("`{field}` is {value}: expected {expected}")]
    Field {
        /// The field of the configuration.
        field: &'static str,
        /// Its value, as JSON.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// TLS cannot be spoken with this field.
    #[error("`{field}`: {reason}")]
    Tls {
        /// The field of the configuration.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused something.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried, with its value.
        action: String,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl Error {
    /// Names the field of the configuration with which TLS cannot be spoken.
    pub(crate) fn tls(field: &'static str, reason: &impl std::fmt::Display) -> Error {
        let reason = reason.to_string();
        Error::Tls { field, reason }
    }

    /// Names an action, for `map_err`.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let action = action.into();
        move |source| Error::Io { action, source }
    }
}
