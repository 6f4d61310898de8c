//! T26: the log of a load, as HdrHistogram's own library reads it. `tests/report/formats/test_hdr_log.py` makes it.

#![allow(clippy::unwrap_used)]

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::Histogram;
use std::time::Duration;

const LOG: &[u8] = include_bytes!("../../../tests/golden/load.hlog");

#[test]
fn t26_a_log_is_read_elsewhere_with_the_same_counts() {
    let mut read = Vec::new();
    let mut base = None;
    for entry in IntervalLogIterator::new(LOG) {
        match entry.unwrap() {
            LogEntry::BaseTime(time) => base = Some(time),
            LogEntry::StartTime(time) => assert_eq!(time, Duration::from_secs(1_790_000_000)),
            LogEntry::Interval(interval) => {
                let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
                let histogram: Histogram<u64> =
                    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                read.push((interval.start_timestamp(), interval.duration(), histogram));
            }
        }
    }
    assert_eq!(base, Some(Duration::from_secs(1_790_000_000)));
    let times: Vec<_> = read
        .iter()
        .map(|(start, length, _)| (start.as_millis(), length.as_millis()))
        .collect();
    assert_eq!(times, [(0, 1000), (2000, 250)]);
    let counts: Vec<u64> = read.iter().map(|(_, _, histogram)| histogram.len()).collect();
    assert_eq!(counts, [3, 1000]);
    let (first, second) = (&read[0].2, &read[1].2);
    assert!(first.equivalent(first.max(), 3_000_000) && first.equivalent(first.min(), 1_000_000));
    assert!(second.equivalent(second.max(), 90_000_000_000));
    assert_eq!(second.count_at(5_000_000), 997);
}
