//! An HTTP/1.1 server whose behaviour is known exactly: the standard weight of the instrument.
//!
//! A load generator can only be judged with a server whose times of reply, failures and number of received requests
//! are known. This server does what its [`Config`] says, delays, stalls, errors and broken
//! connections included, and [`Server::counts`] returns exactly what it did.
//!
//! Nothing in it is left to chance that cannot be computed: the n-th request of the whole server gets the n-th delay of
//! a sequence that follows from the seed ([`Delay::of_request_ns`]), and "5 % errors" are every 20th request.
//!
//! It knows nothing about the load engine, so that neither can hide the other's mistakes.
//!
//! ```
//! use std::io::{Read, Write};
//! let config = prony_reference::Config::from_json(r#"{"body": "hello", "keep_alive": false}"#)?;
//! let server = prony_reference::Server::start(config)?;
//! let mut client = std::net::TcpStream::connect(("127.0.0.1", server.port()))?;
//! client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")?;
//! let mut reply = String::new();
//! client.read_to_string(&mut reply)?;
//! assert!(reply.ends_with("\r\n\r\nhello"));
//! assert_eq!(server.counts().responses_complete, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod channel;
mod clock;
mod config;
mod connection;
mod connections;
mod counts;
mod delay;
mod desk;
mod error;
mod reply;
mod request;
mod script;
mod server;
mod system;
mod timers;
mod worker;

pub use config::{Config, Framing, Stall, Tls};
pub use counts::Counts;
pub use delay::Delay;
pub use error::Error;
pub use reply::deterministic_body;
pub use server::Server;
