//! Latency histograms: HdrHistogram, 3 significant digits, 1 ns to 1 h.

use crate::error::Error;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer, V2Serializer};
use std::io::Read;

/// The largest value that is distinguished from larger ones: 1 h.
pub const MAX_NS: u64 = 3_600_000_000_000;

const DIGITS: u8 = 3;
// A histogram of this range takes 270 KB; a larger one in an archive is a forgery.
const MAX_ENCODED_BYTES: usize = 4 << 20;

/// Counts of values within 0.1 % of each other.
///
/// *Source*: G. Tene, HdrHistogram; the V2 encoding is that of the Java library.
#[derive(Clone)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

/// Without its tens of thousands of counts.
impl std::fmt::Debug for Histogram {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (len, min, max) = (self.len(), self.min(), self.max());
        write!(formatter, "Histogram({len} from {min} to {max})")
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    #[allow(clippy::expect_used)] // the bounds are constants, and valid
    pub fn new() -> Self {
        Self(hdrhistogram::Histogram::new_with_bounds(1, MAX_NS, DIGITS).expect("1 < 2 x MAX_NS, 3 digits"))
    }

    /// Counts one value, in nanoseconds; above 1 h it counts as 1 h.
    pub fn record(&mut self, value_ns: u64) {
        self.0.saturating_record(value_ns.min(MAX_NS));
    }

    /// Counts one value `count` times.
    pub fn record_n(&mut self, value_ns: u64, count: u64) {
        self.0.saturating_record_n(value_ns.min(MAX_NS), count);
    }

    /// Adds the counts of another histogram; associative and commutative.
    #[allow(clippy::expect_used)] // both have the same bounds: `decode` refuses others
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("equal bounds");
    }

    /// Forgets all counts.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// The number of values counted.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing has been counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest recorded value (to 0.1 %) such that at least `quantile` (0 to 1) of all are at or below it; 0 when empty.
    pub fn value_at_quantile(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile.clamp(0.0, 1.0))
    }

    /// The smallest value, to 0.1 %; 0 when empty.
    pub fn min(&self) -> u64 {
        self.0.min()
    }

    /// The largest value, to 0.1 %; 0 when empty.
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The mean, to 0.1 %; 0 when empty.
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// How many values are below `value_ns`, to the histogram's resolution.
    pub fn count_below(&self, value_ns: u64) -> u64 {
        let lowest = self.0.lowest_equivalent(value_ns.min(MAX_NS));
        match lowest.checked_sub(1) {
            Some(last) => self
                .0
                .iter_recorded()
                .take_while(|step| step.value_iterated_to() <= last)
                .map(|step| step.count_at_value())
                .sum(),
            None => 0,
        }
    }

    /// The V2 encoding, deflated.
    #[allow(clippy::expect_used)] // writing to a vector cannot fail
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .expect("a vector takes all");
        bytes
    }

    /// Reads the V2 encoding, deflated or not.
    ///
    /// # Errors
    /// When the bytes are not a histogram, or one with another range or precision.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |reason: String| Error::InvalidSpec(format!("not a latency histogram: {reason}"));
        let limited = bytes.take(MAX_ENCODED_BYTES as u64);
        let mut read: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut { limited })
            .map_err(|error| damaged(error.to_string()))?;
        if read.sigfig() != DIGITS || read.high() > 2 * MAX_NS {
            return Err(damaged(format!("{} digits to {} ns", read.sigfig(), read.high())));
        }
        read.auto(false);
        if (read.low(), read.high()) == (1, MAX_NS) {
            // It is one of ours: to count it into another one would take as long as to read it.
            return Ok(Self(read));
        }
        let mut own = Self::new();
        own.0.add(&read).map_err(|error| damaged(error.to_string()))?;
        Ok(own)
    }

    /// The V2 encoding as it is: quick to write and read, for what stays in memory.
    #[allow(clippy::expect_used)] // writing to a vector cannot fail
    pub(crate) fn encode_plain(&self, bytes: &mut Vec<u8>) {
        V2Serializer::new()
            .serialize(&self.0, bytes)
            .expect("a vector takes all");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    #[test]
    fn t21_a_response_of_90_s_is_recorded_as_90_s() {
        let value = of(&[90_000_000_000]).value_at_quantile(0.5);
        assert!(value.abs_diff(90_000_000_000) <= 90_000_000, "{value}");
    }

    #[test]
    fn smallest_largest_and_mean_are_those_of_the_values_to_a_thousandth() {
        let histogram = of(&[1_000_000, 2_000_000, 6_000_000]);
        let near = |value: f64, expected: f64| (value - expected).abs() * 1000.0 <= expected;
        assert!(near(histogram.min() as f64, 1e6), "{histogram:?}");
        assert!(near(histogram.max() as f64, 6e6), "{histogram:?}");
        assert!(near(histogram.mean(), 3e6), "{histogram:?}");
        let empty = Histogram::new();
        assert_eq!((empty.min(), empty.max(), empty.mean()), (0, 0, 0.0));
    }

    #[test]
    fn t18_a_percentile_lies_at_a_real_sample() {
        let mut histogram = Histogram::new();
        histogram.record_n(100_000_000, 94);
        histogram.record_n(1_500_000_000, 6);
        let near = |value: u64, sample: u64| value.abs_diff(sample) * 1000 <= sample;
        for quantile in [0.01, 0.5, 0.9, 0.94] {
            assert!(
                near(histogram.value_at_quantile(quantile), 100_000_000),
                "{quantile}"
            );
        }
        for quantile in [0.95, 0.99, 1.0] {
            assert!(
                near(histogram.value_at_quantile(quantile), 1_500_000_000),
                "{quantile}"
            );
        }
    }

    #[test]
    fn a_foreign_precision_is_refused() {
        let mut other = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1000, 2).unwrap();
        other.record(5).unwrap();
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&other, &mut bytes).unwrap();
        assert!(Histogram::decode(&bytes).is_err());
        assert!(Histogram::decode(b"nonsense").is_err());
    }

    #[test]
    fn a_foreign_range_is_read_to_twice_our_own() {
        let read = |longest_ns: u64| {
            let mut other = hdrhistogram::Histogram::<u64>::new_with_bounds(1, longest_ns, DIGITS).unwrap();
            other.record(5).unwrap();
            let mut bytes = Vec::new();
            V2Serializer::new().serialize(&other, &mut bytes).unwrap();
            Histogram::decode(&bytes).map(|histogram| histogram.max())
        };
        assert_eq!(read(MAX_NS / 2).unwrap(), 5);
        assert_eq!(read(2 * MAX_NS).unwrap(), 5);
        assert!(read(3 * MAX_NS).is_err());
    }

    #[test]
    fn shown_to_a_developer_it_is_a_line() {
        assert_eq!(format!("{:?}", of(&[3, 5])), "Histogram(2 from 3 to 5)");
    }

    proptest! {
        #[test]
        fn t22_merging_is_associative_and_adds(a in values(), b in values(), c in values()) {
            let (mut left, mut tail) = (of(&a), of(&b));
            left.merge(&of(&b));
            left.merge(&of(&c));
            tail.merge(&of(&c));
            let mut right = of(&a);
            right.merge(&tail);
            prop_assert_eq!(&left.0, &right.0);
            let all: Vec<u64> = [a, b, c].concat();
            prop_assert_eq!(&left.0, &of(&all).0);
        }

        #[test]
        fn t23_a_quantile_is_within_a_thousandth_of_the_sample(mut list in values(), quantile in 0.0f64..=1.0) {
            prop_assume!(!list.is_empty());
            list.sort_unstable();
            let rank = ((quantile * list.len() as f64).ceil() as usize).clamp(1, list.len());
            let (exact, got) = (list[rank - 1], of(&list).value_at_quantile(quantile));
            prop_assert!(got.abs_diff(exact) * 1000 <= exact.max(1000), "{} for {}", got, exact);
        }

        #[test]
        fn t26_what_is_encoded_decodes_to_the_same(list in values()) {
            let histogram = of(&list);
            prop_assert_eq!(&Histogram::decode(&histogram.encode()).unwrap().0, &histogram.0);
            let mut plain = Vec::new();
            histogram.encode_plain(&mut plain);
            prop_assert_eq!(&Histogram::decode(&plain).unwrap().0, &histogram.0);
        }

        #[test]
        fn count_below_counts(list in values(), bound in 1u64..MAX_NS) {
            let exact = list.iter().filter(|&&value| value.max(1) < bound).count() as u64;
            let got = of(&list).count_below(bound);
            let near = list.iter().filter(|&&value| value.abs_diff(bound) * 500 <= bound).count() as u64;
            prop_assert!(got.abs_diff(exact) <= near);
        }
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(
            prop_oneof![1u64..10_000, 1_000_000u64..100_000_000, 1u64..MAX_NS],
            0..200,
        )
    }
}
