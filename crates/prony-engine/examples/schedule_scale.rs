//! What a load's schedule costs each of many generators: `schedule_scale RATE GENERATORS`, as JSON.
//!
//! For each kind of schedule: how long the first generator takes to work out its own due times of one second, and whether all
//! generators together have the due times of one alone, in the first part of it.

use prony_engine::schedule::{Constant, Poisson, Schedule, Stages};
use prony_engine::spec::Share;
use prony_engine::spec::{Arrivals, RateStage};
use std::time::Instant;

const SECOND_NS: u64 = 1_000_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rate_per_s: f64 = arguments.next().ok_or("expected a rate")?.parse()?;
    let generators: u64 = arguments
        .next()
        .ok_or("expected a number of generators")?
        .parse()?;
    let ramp = [RateStage {
        duration_ns: SECOND_NS,
        from_per_s: rate_per_s / 2.0,
        to_per_s: rate_per_s * 1.5,
    }];
    let constant = |share| Box::new(Constant::new(rate_per_s, share)) as Box<dyn Schedule>;
    let poisson = |share| Box::new(Poisson::new(rate_per_s, 1, share)) as Box<dyn Schedule>;
    let stages = |share| Box::new(Stages::new(0, &ramp, Arrivals::Constant, 1, share)) as Box<dyn Schedule>;
    let kinds: [(&str, OfShare<'_>); 3] = [
        ("constant", &constant),
        ("poisson", &poisson),
        ("stages", &stages),
    ];
    let rows: Vec<String> = kinds
        .iter()
        .map(|(name, of)| row(name, *of, generators))
        .collect();
    println!("[{}]", rows.join(", "));
    Ok(())
}

/// The part of a schedule that one generator has.
type OfShare<'r> = &'r dyn Fn(Share) -> Box<dyn Schedule>;

fn row(name: &str, of: OfShare<'_>, generators: u64) -> String {
    let begun = Instant::now();
    let own = seen(&mut *of(share(0, generators)), SECOND_NS);
    let took_ns = begun.elapsed().as_nanos();
    // All parts of a Poisson stream take as long as the whole: of that so much that it is over soon.
    let part_ns = SECOND_NS / generators;
    let alone = seen(&mut *of(share(0, 1)), part_ns);
    let parts = (0..generators).map(|worker| seen(&mut *of(share(worker, generators)), part_ns));
    let together = parts.fold(Seen::default(), |all, part| Seen {
        dues: all.dues + part.dues,
        sum_ns: all.sum_ns + part.sum_ns,
        mixed: all.mixed ^ part.mixed,
    });
    format!(
        r#"{{"kind": "{name}", "own_requests": {}, "took_ns": {took_ns}, "is_whole": {}}}"#,
        own.dues,
        together == alone
    )
}

fn share(worker: u64, workers: u64) -> Share {
    Share { worker, workers }
}

/// What due times come to, whatever their order.
#[derive(Default, PartialEq, Eq)]
struct Seen {
    dues: u64,
    sum_ns: u128,
    mixed: u64,
}

fn seen(schedule: &mut dyn Schedule, end_ns: u64) -> Seen {
    let mut found = Seen::default();
    loop {
        let due_ns = schedule.next_due();
        if due_ns >= end_ns {
            return found;
        }
        found.dues += 1;
        found.sum_ns += u128::from(due_ns);
        found.mixed ^= due_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    }
}
