//! What a sample costs: `cargo run --release -p prony-linux --example cost -- 50` (processes, default 50).

use std::process::{Child, Command};

use prony_linux::{detail, memory, Sampler};

const ROUNDS: u32 = 1000;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let processes: usize = std::env::args().nth(1).map_or(Ok(50), |text| text.parse())?;
    let mut children = (0..processes)
        .map(|_| Command::new("sleep").arg("600").spawn())
        .collect::<Result<Vec<Child>, _>>()?;
    std::thread::sleep(std::time::Duration::from_millis(200));
    let pid = std::process::id();
    report("sample", ROUNDS, sampling(Sampler::new(pid)))?;
    let pids: Vec<u32> = children.iter().map(Child::id).collect();
    report("memory() of each", ROUNDS / 10, || {
        Ok(pids.iter().try_for_each(|&pid| memory(pid).map(drop))?)
    })?;
    report("detail() of each", ROUNDS / 10, || {
        Ok(pids.iter().try_for_each(|&pid| detail(pid).map(drop))?)
    })?;
    for child in &mut children {
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}

fn sampling(mut sampler: Sampler) -> impl FnMut() -> Outcome {
    move || Ok(sampler.sample().map(drop)?)
}

fn report(what: &str, rounds: u32, mut work: impl FnMut() -> Outcome) -> Outcome {
    let begin_ns = own_cpu_ns()?;
    for _ in 0..rounds {
        work()?;
    }
    let each_us = (own_cpu_ns()? - begin_ns) as f64 / 1e3 / f64::from(rounds);
    println!(
        "{what:<24} {each_us:>8.0} us, at 2 Hz {:.3} % of a core",
        each_us * 2.0 / 1e4
    );
    Ok(())
}

/// The CPU time of this thread, from the scheduler.
fn own_cpu_ns() -> std::io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    text.split(' ')
        .next()
        .unwrap_or_default()
        .parse()
        .map_err(std::io::Error::other)
}
