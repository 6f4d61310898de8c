//! Why a run failed.

/// What went wrong, in words for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The specification has an invalid value: field, value and expectation.
    #[error("{0}")]
    InvalidSpec(String),
    /// The target's name has no address.
    #[error("no address for `{host}`: {reason}")]
    Resolve {
        /// The name as given.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// What TLS needs is missing or does not fit: which file, and what is wrong with it.
    #[error("TLS: {0}")]
    Tls(String),
    /// A system call of the engine failed (failed requests are counted instead).
    #[error("{action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The account of requests does not add up: a bug in the engine.
    #[error("the account does not add up: {0}")]
    Account(String),
    /// The received bytes are not a complete reply, for this reason.
    #[error("{0}")]
    Reply(&'static str),
    /// The run was aborted, without a result.
    #[error("aborted")]
    Aborted,
}

impl Error {
    /// Attaches what was tried to a system error.
    pub(crate) fn io(action: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::Io { action, source }
    }
}
