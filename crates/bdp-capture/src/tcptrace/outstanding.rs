//! The data of a direction that were sent and not acknowledged yet, in samples and over time.

/// Data outstanding.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outstanding {
    /// Behind the highest number that was sent.
    end: Option<u64>,
    /// The highest acknowledgement.
    acked: Option<u64>,
    pub max: u64,
    /// The least that was more than nothing.
    pub min: u64,
    sum: u128,
    count: u64,
    /// Bytes x microseconds until the last change.
    area: u128,
    changed_us: u64,
}

impl Outstanding {
    fn now(&self) -> u64 {
        self.end.zip(self.acked).map_or(0, |(end, acked)| end.saturating_sub(acked))
    }

    fn advance(&mut self, now_us: u64) {
        self.area += u128::from(self.now()) * u128::from(now_us.saturating_sub(self.changed_us));
        self.changed_us = self.changed_us.max(now_us);
    }

    /// Data up to here were sent.
    pub fn send(&mut self, now_us: u64, end: u64) {
        self.advance(now_us);
        self.end = Some(self.end.map_or(end, |known| known.max(end)));
    }

    /// All up to here was acknowledged.
    pub fn acknowledge(&mut self, now_us: u64, number: u64) {
        self.advance(now_us);
        self.acked = Some(self.acked.map_or(number, |known| known.max(number)));
    }

    /// A packet whose data end here is sent; while nothing was acknowledged, no more than the packet is known to be outstanding.
    pub fn sample(&mut self, end: u64, payload: u64) {
        let bytes = self.acked.map_or(payload, |acked| end.saturating_sub(acked));
        self.max = self.max.max(bytes);
        if bytes > 0 && (self.min == 0 || bytes < self.min) {
            self.min = bytes;
        }
        self.sum += u128::from(bytes);
        self.count += 1;
    }

    /// Mean of the samples.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(u128::from(self.count)).unwrap_or(0) as u64
    }

    /// Mean over the time of the connection, which ended just now; `None` if it took no time.
    pub fn mean_over_time(mut self, from_us: u64, to_us: u64) -> Option<u64> {
        self.advance(to_us);
        self.area.checked_div(u128::from(to_us.saturating_sub(from_us))).map(|bytes| bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outstanding_counts_for_as_long_as_it_was() {
        let mut outstanding = Outstanding::default();
        outstanding.acknowledge(1_000_000, 5_000);
        for (at, end) in [(1_000_000, 5_500), (1_100_000, 6_000), (2_100_000, 7_000)] {
            outstanding.send(at, end);
            outstanding.sample(end, 500);
        }
        outstanding.acknowledge(2_200_000, 7_000);
        assert_eq!((outstanding.max, outstanding.min, outstanding.mean()), (2_000, 500, 1_166));
        // 500 bytes for 0.1 s, 1000 for 1 s and 2000 for 0.1 s, of 1.2 s and of 2.4 s.
        assert_eq!(outstanding.mean_over_time(1_000_000, 2_200_000), Some(1_041));
        assert_eq!(outstanding.mean_over_time(1_000_000, 3_400_000), Some(520));
        assert_eq!(outstanding.mean_over_time(5, 5), None);
    }
}
