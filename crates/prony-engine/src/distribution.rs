//! A histogram with what it cannot hold exactly.

use crate::error::Error;
use crate::histogram::Histogram;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use serde::{Deserialize, Serialize};

/// Times in nanoseconds: a histogram, and count, extremes and sum to the nanosecond.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Distribution {
    histogram: Histogram,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Distribution {
    /// Counts one time.
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Counts one time so often.
    pub fn record_n(&mut self, value_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.min_ns = if self.histogram.is_empty() {
            value_ns
        } else {
            self.min_ns.min(value_ns)
        };
        self.max_ns = self.max_ns.max(value_ns);
        self.sum_ns += u128::from(value_ns) * u128::from(count);
        self.histogram.record_n(value_ns, count);
    }

    /// Adds another distribution; associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.min_ns = if self.is_empty() {
            other.min_ns
        } else {
            self.min_ns.min(other.min_ns)
        };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
        self.histogram.merge(&other.histogram);
    }

    /// Forgets everything; allocates nothing.
    pub fn clear(&mut self) {
        self.histogram.clear();
        (self.min_ns, self.max_ns, self.sum_ns) = (0, 0, 0);
    }

    /// The number of times counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether nothing has been counted.
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// The exact smallest time; null when empty.
    pub fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min_ns)
    }

    /// The exact largest time; null when empty.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// The exact sum.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The time at a quantile (0 to 1), within the exact extremes; null when empty.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let value = || {
            self.histogram
                .value_at_quantile(quantile)
                .clamp(self.min_ns, self.max_ns)
        };
        (!self.is_empty()).then(value)
    }

    /// The histogram alone.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }
}

/// A distribution in few bytes: an hour of seconds in full would take a gigabyte.
#[derive(Debug)]
pub(crate) struct Compact {
    histogram: Vec<u8>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Compact {
    pub(crate) fn of(full: &Distribution) -> Self {
        let mut histogram = Vec::new();
        full.histogram.encode_plain(&mut histogram);
        Self {
            histogram,
            min_ns: full.min_ns,
            max_ns: full.max_ns,
            sum_ns: full.sum_ns,
        }
    }

    pub(crate) fn expand(&self) -> Distribution {
        // Written by `of`, so it reads; an empty one in its place would break the count that the account is checked against.
        let histogram = Histogram::decode(&self.histogram).unwrap_or_default();
        Distribution {
            histogram,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
            sum_ns: self.sum_ns,
        }
    }
}

/// The JSON form: an empty distribution has count 0 and nulls.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    count: u64,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    sum_ns: Option<u128>,
    histogram: Option<String>,
}

impl From<Distribution> for Wire {
    fn from(own: Distribution) -> Self {
        let some = !own.is_empty();
        Self {
            count: own.count(),
            min_ns: own.min_ns(),
            max_ns: own.max_ns(),
            sum_ns: some.then_some(own.sum_ns),
            histogram: some.then(|| STANDARD.encode(own.histogram.encode())),
        }
    }
}

impl TryFrom<Wire> for Distribution {
    type Error = Error;

    fn try_from(wire: Wire) -> Result<Self, Error> {
        let Some(text) = wire.histogram else {
            return Ok(Self::default());
        };
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| Error::InvalidSpec(format!("a histogram is not base64: {error}")))?;
        let histogram = Histogram::decode(&bytes)?;
        if histogram.len() != wire.count {
            return Err(Error::InvalidSpec(format!(
                "a histogram of {} values says {}",
                histogram.len(),
                wire.count
            )));
        }
        let (min_ns, max_ns) = (wire.min_ns.unwrap_or(0), wire.max_ns.unwrap_or(0));
        Ok(Self {
            histogram,
            min_ns,
            max_ns,
            sum_ns: wire.sum_ns.unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Distribution {
        let mut distribution = Distribution::default();
        values.iter().for_each(|&value| distribution.record(value));
        distribution
    }

    #[test]
    fn t17_mean_times_count_is_the_sum() {
        let values: Vec<u64> = (1..=100_000).map(|value| value * 7919).collect();
        assert_eq!(
            of(&values).sum_ns(),
            values.iter().map(|&value| u128::from(value)).sum()
        );
    }

    #[test]
    fn t20_one_reply_of_3_s_among_ten_million_is_the_maximum_and_above_the_last_percentiles() {
        let worker = of(&[50_000; 1_000_000]);
        let mut distribution = of(&[50_000; 999_999]);
        (0..9).for_each(|_| distribution.merge(&worker));
        distribution.record(3_000_000_000);
        assert_eq!(distribution.count(), 10_000_000);
        assert_eq!(distribution.max_ns(), Some(3_000_000_000));
        assert_eq!(distribution.quantile_ns(0.999_999).map(|ns| ns / 1000), Some(50));
        assert_eq!(distribution.quantile_ns(1.0), Some(3_000_000_000));
    }

    #[test]
    fn t38_an_empty_one_has_no_values() {
        let json = serde_json::to_value(Distribution::default()).unwrap();
        let expected = serde_json::json!({"count": 0, "min_ns": null, "max_ns": null, "sum_ns": null, "histogram": null});
        assert_eq!(json, expected);
    }

    proptest! {
        #[test]
        fn t19_quantiles_are_monotone_and_within_the_extremes(values in proptest::collection::vec(1u64..1 << 40, 1..100)) {
            let distribution = of(&values);
            let quantiles: Vec<u64> = (0..=100).map(|step| distribution.quantile_ns(f64::from(step) / 100.0).unwrap()).collect();
            prop_assert!(quantiles.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert!(quantiles[0] >= *values.iter().min().unwrap() && quantiles[100] == *values.iter().max().unwrap());
        }

        #[test]
        fn the_json_form_keeps_all(values in proptest::collection::vec(1u64..1 << 40, 0..50)) {
            let text = serde_json::to_string(&of(&values)).unwrap();
            let back: Distribution = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&back).unwrap(), text);
        }
    }
}
