//! Why the machine could not be read.

/// What failed. A process that has ended is none of these.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file under `/proc` that must exist cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        /// The file.
        path: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file under `/proc` has a form that this version does not know.
    #[error("`{path}` has an unknown form: `{line}`")]
    Form {
        /// The file.
        path: String,
        /// Its line.
        line: String,
    },
    /// The kernel does not let this user watch threads, or has no room for it.
    #[error("the kernel refuses to watch threads: {source} (kernel.perf_event_paranoid is {paranoid})")]
    Refused {
        /// The setting by which it decides; empty where it has none.
        paranoid: String,
        /// The system's answer.
        source: std::io::Error,
    },
}
