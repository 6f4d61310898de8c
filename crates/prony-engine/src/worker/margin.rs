//! How late a sleep ends on this thread, just now: what precise pacing has to spin away before a due time.
//!
//! It depends on the machine (timers, idle states, a hypervisor that takes an idle CPU away), so it is measured at the start of each
//! run, on the worker's own CPU, with the driver's own wait.

use crate::clock::Clock;
use crate::socket::Driver;

/// The least margin: a sleep can always end this late.
pub const LEAST_NS: u64 = 20_000;
/// The largest: beyond it, more spinning costs more than it saves.
pub const MOST_NS: u64 = 500_000;
/// The longest that measuring may take.
pub const BUDGET_NS: u64 = 60_000_000;

// Short sleeps end on a CPU that is still awake, long ones on one that is not.
const SLEEPS_NS: [u64; 4] = [150_000, 400_000, 900_000, 2_000_000];
const ROUNDS: usize = 12;
// Of so many sleeps, the share that ends within the margin; and the margin's surplus over that one.
const QUANTILE: f64 = 0.95;
const SURPLUS: f64 = 1.25;

/// Measures the margin by sleeping, for at most [`BUDGET_NS`] and one sleep.
///
/// # Errors
/// When the driver cannot wait.
pub fn measured(driver: &mut impl Driver, clock: &impl Clock) -> std::io::Result<u64> {
    let began_ns = clock.now();
    let mut late_ns = Vec::with_capacity(ROUNDS * SLEEPS_NS.len());
    for sleep_ns in std::iter::repeat_n(SLEEPS_NS, ROUNDS).flatten() {
        let due_ns = clock.now() + sleep_ns;
        driver.wait(sleep_ns, &mut Vec::new())?;
        late_ns.push(clock.now().saturating_sub(due_ns));
        if clock.now().saturating_sub(began_ns) > BUDGET_NS {
            break;
        }
    }
    Ok(margin_of(late_ns))
}

/// The margin for sleeps that ended so late.
fn margin_of(mut late_ns: Vec<u64>) -> u64 {
    late_ns.sort_unstable();
    let place = ((late_ns.len() as f64 * QUANTILE) as usize).min(late_ns.len().saturating_sub(1));
    let usual_ns = late_ns.get(place).copied().unwrap_or(MOST_NS);
    ((usual_ns as f64 * SURPLUS) as u64).clamp(LEAST_NS, MOST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_sleeps_end_within_the_margin() {
        let late_ns: Vec<u64> = (1..=100).map(|k| k * 1_000).collect();
        assert_eq!(margin_of(late_ns), 120_000);
    }

    #[test]
    fn one_sleep_that_others_held_back_does_not_set_it() {
        let mut late_ns = vec![40_000; 47];
        late_ns.push(8_000_000);
        assert_eq!(margin_of(late_ns), 50_000);
    }

    #[test]
    fn it_has_bounds() {
        assert_eq!(margin_of(vec![100; 48]), LEAST_NS);
        assert_eq!(margin_of(vec![9_000_000; 48]), MOST_NS);
        assert_eq!(margin_of(Vec::new()), MOST_NS);
    }
}
