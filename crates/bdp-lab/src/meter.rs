//! What the driver notes about one direction while it moves packets.

use bdp_model::histogram::Histogram;
use bdp_model::link::DirectionConfig;

/// Shortest busy stretch over which a rate is told.
const SHORTEST_STRETCH_NS: u64 = 100_000_000;

/// Lateness, achieved rate, and what the devices did.
#[derive(Debug)]
pub(crate) struct Meter {
    rate_bps: Option<u64>,
    overhead_bytes: u64,
    /// Actual minus due, of every release.
    pub(crate) lateness: Histogram,
    /// Wire segments that the receiving device would not take.
    pub(crate) device_refused: u64,
    /// Packets that were not of any flow.
    pub(crate) not_ours: u64,
    /// Packets handed to the receiving device, a super-packet being one.
    pub(crate) delivered: u64,
    /// Packets read from the sending device, a super-packet being one.
    pub(crate) read: u64,
    stretch: Option<Stretch>,
    best: Option<(u64, f64)>,
}

/// Packets that left the wire back to back.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    last_due: u64,
    first_release: u64,
    last_release: u64,
    wire_bytes: u64,
}

impl Meter {
    pub(crate) fn new(config: &DirectionConfig) -> Self {
        Self {
            rate_bps: config.rate.map(|r| r.as_bps()),
            overhead_bytes: u64::from(config.overhead_bytes),
            lateness: Histogram::new(),
            device_refused: 0,
            not_ours: 0,
            delivered: 0,
            read: 0,
            stretch: None,
            best: None,
        }
    }

    /// Notes the release at `released` of wire segments of `ip_bytes` together, the last of which was due at `due`.
    pub(crate) fn note_release(&mut self, due: u64, released: u64, segments: u32, ip_bytes: u64) {
        self.lateness.record(released.saturating_sub(due));
        let Some(rate) = self.rate_bps.filter(|&r| r > 0) else { return };
        let wire_bytes = ip_bytes + u64::from(segments) * self.overhead_bytes;
        let serialisation = wire_bytes * 8 * 1_000_000_000 / rate;
        match &mut self.stretch {
            // Back to back: this one's serialisation began when the last one's ended (to the rounding).
            Some(s) if due.abs_diff(s.last_due + serialisation) <= 2 => {
                s.last_due = due;
                s.last_release = released;
                s.wire_bytes += wire_bytes;
            }
            _ => {
                self.close_stretch();
                self.stretch = Some(Stretch {
                    last_due: due,
                    first_release: released,
                    last_release: released,
                    wire_bytes: 0,
                });
            }
        }
    }

    fn close_stretch(&mut self) {
        if let Some(s) = self.stretch.take() {
            let span = s.last_release.saturating_sub(s.first_release);
            if span >= SHORTEST_STRETCH_NS && self.best.is_none_or(|(longest, _)| span > longest) {
                self.best = Some((span, s.wire_bytes as f64 * 8e9 / span as f64));
            }
        }
    }

    /// Wire rate by actual releases over the longest stretch without a gap; `None` below a tenth of a second.
    pub(crate) fn achieved_bps(&mut self) -> Option<f64> {
        self.close_stretch();
        self.best.map(|(_, bps)| bps)
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::units::Rate;

    use super::*;

    #[test]
    fn the_rate_is_that_of_the_longest_gapless_stretch() {
        let config = DirectionConfig { rate: Some(Rate::mbps(12)), overhead_bytes: 0, ..Default::default() };
        let mut meter = Meter::new(&config);
        // 1500 bytes at 12 Mbit/s are a millisecond each; releases are 10 us late throughout.
        for i in 0..50u64 {
            meter.note_release(i * 1_000_000, i * 1_000_000 + 10_000, 1, 1500);
        }
        for i in 0..200u64 {
            let due = 90_000_000 + i * 1_000_000;
            meter.note_release(due, due + 10_000, 1, 1500);
        }
        let bps = meter.achieved_bps().unwrap();
        assert!((bps - 12e6).abs() < 1.0, "{bps}");
        assert!((9_990..=10_160).contains(&meter.lateness.percentile(50.0)));
    }

    #[test]
    fn a_run_counts_with_the_overhead_of_each_of_its_segments() {
        let config =
            DirectionConfig { rate: Some(Rate::mbps(12_304)), overhead_bytes: 38, ..Default::default() };
        let mut meter = Meter::new(&config);
        // 1538 wire bytes are a microsecond each; runs of 50 and of 7 alternate.
        let mut due = 0;
        for n in 0..5_000u64 {
            let segments = if n % 2 == 0 { 50 } else { 7 };
            due += segments * 1_000;
            meter.note_release(due, due, segments as u32, segments * 1500);
        }
        let bps = meter.achieved_bps().unwrap();
        assert!((bps - 12_304e6).abs() < 1_000.0, "{bps}");
    }

    #[test]
    fn a_short_stretch_tells_nothing() {
        let config = DirectionConfig { rate: Some(Rate::mbps(12)), overhead_bytes: 0, ..Default::default() };
        let mut meter = Meter::new(&config);
        (0..50u64).for_each(|i| meter.note_release(i * 1_000_000, i * 1_000_000, 1, 1500));
        assert_eq!(meter.achieved_bps(), None);
    }
}
