//! A server with known behaviour.
