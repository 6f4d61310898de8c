//! Makes a run: the file of a specification in, its Recording as JSON out.
//!
//! ```sh
//! cargo run --release --example load -- spec.json > recording.json
//! ```

use prony_engine::{Control, Spec};
use std::error::Error;
use std::process::ExitCode;

fn load(path: &str) -> Result<String, Box<dyn Error>> {
    let spec = Spec::from_json(&std::fs::read_to_string(path)?)?;
    let recording = prony_engine::run(&spec, &Control::new(), &mut |_| {})?;
    Ok(serde_json::to_string(&recording)?)
}

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: load SPEC.json");
        return ExitCode::from(2);
    };
    match load(&path) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
