//! What the driver notes about one direction while it moves packets.

use bdp_model::histogram::Histogram;
use bdp_model::link::DirectionConfig;

use crate::crossing::Crossings;

/// Shortest busy stretch over which a rate is told.
const SHORTEST_STRETCH_NS: u64 = 100_000_000;

/// Resolution at which the wire's busy time is kept.
const BUSY_STEP_NS: u64 = 50_000_000;
/// Steps that are kept: 24 hours.
const MOST_BUSY_STEPS: usize = 24 * 3600 * 20;
/// A driver that looks at a device this long after its last look was away: what it finds then may have waited.
const AWAY_NS: u64 = 20_000;

/// Lateness, achieved rate, and what the devices did.
#[derive(Debug)]
pub(crate) struct Meter {
    rate_bps: Option<u64>,
    overhead_bytes: u64,
    /// Actual minus due, of every release.
    pub(crate) lateness: Histogram,
    /// How long each packet may have waited in the sending device while the driver was away; 0 of one that was read at once.
    pub(crate) unread: Histogram,
    /// Probes that crossed.
    pub(crate) crossings: Crossings,
    looks: Looks,
    /// Wire segments that the receiving device would not take.
    pub(crate) device_refused: u64,
    /// Packets that were not of any flow.
    pub(crate) not_ours: u64,
    /// Packets handed to the receiving device, a super-packet being one.
    pub(crate) delivered: u64,
    /// Packets read from the sending device, a super-packet being one.
    pub(crate) read: u64,
    stretch: Option<Stretch>,
    /// How long the wire was taken by packets whose serialisation ended in each [`BUSY_STEP_NS`] since the beginning.
    busy_ns: Vec<u64>,
    begun_ns: u64,
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
    /// Of a direction whose sending device is looked at from `now_ns` on.
    pub(crate) fn new(config: &DirectionConfig, now_ns: u64) -> Self {
        Self {
            rate_bps: config.rate.map(|r| r.as_bps()),
            overhead_bytes: u64::from(config.overhead_bytes),
            lateness: Histogram::new(),
            unread: Histogram::new(),
            crossings: Crossings::default(),
            looks: Looks { last_ns: now_ns, ..Looks::default() },
            device_refused: 0,
            not_ours: 0,
            delivered: 0,
            read: 0,
            stretch: None,
            busy_ns: Vec::new(),
            begun_ns: now_ns,
            best: None,
        }
    }

    /// A look at the sending device at `now_ns` found nothing.
    pub(crate) fn found_nothing(&mut self, now_ns: u64) {
        self.looks.note(now_ns);
        self.looks.held_since_ns = None;
    }

    /// A look at the sending device at `now_ns` found a packet, which was read.
    pub(crate) fn found_packet(&mut self, now_ns: u64) {
        self.looks.note(now_ns);
        self.read += 1;
        self.unread.record(self.looks.held_since_ns.map_or(0, |since| now_ns.saturating_sub(since)));
    }

    /// The driver slept until something came, and has been ready to run since `ready_ns`.
    pub(crate) fn slept_until(&mut self, ready_ns: u64) {
        if self.looks.held_since_ns.is_none() {
            self.looks.last_ns = self.looks.last_ns.max(ready_ns);
        }
    }

    /// Notes the release at `released` of wire segments of `ip_bytes` together, the last of which was due at `due`.
    pub(crate) fn note_release(&mut self, due: u64, released: u64, segments: u32, ip_bytes: u64) {
        self.lateness.record(released.saturating_sub(due));
        let Some(rate) = self.rate_bps.filter(|&r| r > 0) else { return };
        let wire_bytes = ip_bytes + u64::from(segments) * self.overhead_bytes;
        let serialisation = wire_bytes * 8 * 1_000_000_000 / rate;
        let step = (due.saturating_sub(self.begun_ns) / BUSY_STEP_NS) as usize;
        if step < MOST_BUSY_STEPS {
            if self.busy_ns.len() <= step {
                self.busy_ns.resize(step + 1, 0);
            }
            self.busy_ns[step] += serialisation;
        }
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

    /// Share of a span of the monotonic clock during which the wire was busy, to the nearest steps; `None` without a rate, and
    /// of a span shorter than two steps.
    pub(crate) fn busy(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        self.rate_bps.filter(|&rate| rate > 0)?;
        let step = |at: u64| (at.saturating_sub(self.begun_ns) / BUSY_STEP_NS) as usize;
        // What leaves the wire is due one delay later: the first step of the span may hold what came before it.
        let (from, to) = (step(from_ns) + 1, step(to_ns));
        let steps = to.checked_sub(from).filter(|&steps| steps > 0)?;
        let busy: u64 = self.busy_ns.iter().skip(from).take(steps).sum();
        Some((busy as f64 / (steps as u64 * BUSY_STEP_NS) as f64).min(1.0))
    }

    /// Wire rate by actual releases over the longest stretch without a gap; `None` below a tenth of a second.
    pub(crate) fn achieved_bps(&mut self) -> Option<f64> {
        self.close_stretch();
        self.best.map(|(_, bps)| bps)
    }
}

/// When the sending device was looked at.
#[derive(Debug, Clone, Copy, Default)]
struct Looks {
    last_ns: u64,
    /// Since when the packets found now may have waited: the look before the driver was away.
    held_since_ns: Option<u64>,
}

impl Looks {
    fn note(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.last_ns) > AWAY_NS {
            self.held_since_ns.get_or_insert(self.last_ns);
        }
        self.last_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::units::Rate;

    use super::*;

    #[test]
    fn the_rate_is_that_of_the_longest_gapless_stretch() {
        let config = DirectionConfig { rate: Some(Rate::mbps(12)), overhead_bytes: 0, ..Default::default() };
        let mut meter = Meter::new(&config, 0);
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
        let mut meter = Meter::new(&config, 0);
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
        let mut meter = Meter::new(&config, 0);
        (0..50u64).for_each(|i| meter.note_release(i * 1_000_000, i * 1_000_000, 1, 1500));
        assert_eq!(meter.achieved_bps(), None);
    }

    #[test]
    fn the_busy_share_is_that_of_the_span() {
        let config = DirectionConfig { rate: Some(Rate::mbps(12)), overhead_bytes: 0, ..Default::default() };
        let mut meter = Meter::new(&config, 1_000_000_000);
        // A millisecond of wire every other millisecond, for a second that begins one second later.
        for i in 0..500u64 {
            let due = 2_000_000_000 + 2_000_000 * i;
            meter.note_release(due, due, 1, 1500);
        }
        let share = |from: u64, to: u64| meter.busy(from, to).map(|share| (share * 1e3).round() / 1e3);
        assert_eq!(share(2_000_000_000, 3_000_000_000), Some(0.5));
        assert_eq!(share(1_000_000_000, 2_000_000_000), Some(0.0));
        assert_eq!(share(2_000_000_000, 2_090_000_000), None);
        assert_eq!(Meter::new(&DirectionConfig::default(), 0).busy(0, 1_000_000_000), None);
    }

    #[test]
    fn packets_found_after_the_driver_was_away_may_have_waited_since_its_last_look() {
        let mut meter = Meter::new(&DirectionConfig::default(), 0);
        // Looks 5 us apart: nothing waits.
        meter.found_nothing(5_000);
        meter.found_packet(10_000);
        assert_eq!(meter.unread.max(), 0);
        // Away for 3 ms: what lies there then may have come at once, also what is read later without a pause.
        meter.found_packet(3_010_000);
        meter.found_packet(3_012_000);
        let waited: Vec<u64> = meter.unread.buckets().map(|b| b.count).collect();
        assert_eq!(waited.iter().sum::<u64>(), 3);
        assert!((2_990_000..=3_050_000).contains(&meter.unread.max()), "{}", meter.unread.max());
        // An empty device ends it.
        meter.found_nothing(3_014_000);
        meter.found_packet(3_016_000);
        assert_eq!(meter.unread.percentile(50.0), 0);
    }

    #[test]
    fn a_driver_that_slept_was_away_only_while_others_had_its_processor() {
        let mut meter = Meter::new(&DirectionConfig::default(), 0);
        meter.found_nothing(1_000);
        meter.slept_until(50_000_000);
        meter.found_packet(50_004_000);
        assert_eq!(meter.unread.max(), 0);
        meter.found_nothing(50_006_000);
        meter.slept_until(60_000_000);
        meter.found_packet(62_000_000);
        assert!((1_980_000..=2_040_000).contains(&meter.unread.max()), "{}", meter.unread.max());
        // What was left in the device when it slept has waited all that time.
        meter.slept_until(70_000_000);
        meter.found_packet(70_001_000);
        assert!(meter.unread.max() >= 9_900_000, "{}", meter.unread.max());
    }
}
