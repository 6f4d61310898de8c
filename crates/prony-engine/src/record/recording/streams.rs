//! The parts of a latency where several requests share a connection.

use crate::distribution::Distribution;

/// Of requests that were answered as expected. The parts of one request make up its latency.
#[derive(Debug, Default)]
pub struct StreamTimes {
    /// From when it was due to when it was given to a connection; null in a closed loop.
    pub schedule_wait: Option<Distribution>,
    /// From there to when it had a stream.
    pub stream_wait: Distribution,
    /// From there to the last byte of its reply.
    pub wire: Distribution,
}

impl StreamTimes {
    /// Empty ones.
    pub fn new(is_open_loop: bool) -> Self {
        Self {
            schedule_wait: is_open_loop.then(Distribution::default),
            ..Self::default()
        }
    }

    /// A request was answered.
    pub fn answered(&mut self, response_ns: u64, service_ns: u64, waited_ns: Option<u64>) {
        let waited_ns = waited_ns.unwrap_or(0).min(service_ns);
        if let Some(waits) = &mut self.schedule_wait {
            waits.record(response_ns.saturating_sub(service_ns));
        }
        self.stream_wait.record(waited_ns);
        self.wire.record(service_ns - waited_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_latency_make_it_up() {
        let mut times = StreamTimes::new(true);
        times.answered(900, 500, Some(200));
        let parts = [
            times.schedule_wait.as_ref(),
            Some(&times.stream_wait),
            Some(&times.wire),
        ];
        let sums = parts.map(|part| part.map_or(0, Distribution::sum_ns));
        assert_eq!(sums, [400, 200, 300]);
        assert!(StreamTimes::new(false).schedule_wait.is_none());
    }
}
