//! Replies as bytes, and what they are: the same however they are cut into pieces.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "framing/cgi.rs"]
mod cgi;
#[path = "framing/fastcgi.rs"]
mod fastcgi;
#[path = "framing/hostile.rs"]
mod hostile;
#[path = "framing/outcome.rs"]
mod outcome;
#[path = "framing/properties.rs"]
mod properties;
#[path = "framing/sound.rs"]
mod sound;
