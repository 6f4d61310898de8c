//! A reference server on its own: prints its port, serves until its standard input ends, prints its counts.
//!
//! ```sh
//! sleep 30 | cargo run --release -p prony-reference --example serve -- '{"port": 8000, "cpus": [0]}'
//! ```

use std::io::{Read, Write};

use prony_reference::{Config, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = std::env::args().nth(1).unwrap_or_else(|| "{}".to_owned());
    let mut server = Server::start(Config::from_json(&config)?)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", server.port())?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    server.stop();
    writeln!(out, "{}", serde_json::to_string(&server.counts())?)?;
    Ok(())
}
