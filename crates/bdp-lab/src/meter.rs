//! What the driver measures on one direction while it moves packets.

use bdp_model::link::DirectionConfig;
use bdp_model::statistics::histogram::Histogram;

use crate::crossing::Crossings;

/// Shortest busy stretch over which a rate is computed.
const SHORTEST_STRETCH_NS: u64 = 100_000_000;

/// Resolution of busy times and delays.
const STEP_NS: u64 = 50_000_000;
/// Number of steps kept: 24 hours.
const MOST_STEPS: usize = 24 * 3600 * 20;
/// A gap between two polls of a device that counts as being away: packets found then may have waited.
const AWAY_NS: u64 = 20_000;

/// Lateness, achieved rate, and what the devices did.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    rate_bps: Option<u64>,
    overhead_bytes: u64,
    /// Actual minus due time of every release.
    pub(crate) lateness: Histogram,
    /// How long each packet may have waited in the sending device while the driver was away; 0 for one read at once.
    pub(crate) unread: Histogram,
    /// Probes that crossed.
    pub(crate) crossings: Crossings,
    looks: Looks,
    /// Wire segments that the receiving device refused.
    pub(crate) device_refused: u64,
    /// Packets of no flow.
    pub(crate) not_ours: u64,
    /// Packets delivered to the receiving device, a super-packet counting as one.
    pub(crate) delivered: u64,
    /// Packets read from the sending device, a super-packet counting as one.
    pub(crate) read: u64,
    stretch: Option<Stretch>,
    /// Time on the wire of packets whose serialisation ended in each [`STEP_NS`] since the start.
    busy_ns: Vec<u64>,
    /// The longest that a packet lay unread or was late, in each of these steps.
    worst_ns: Vec<u64>,
    begun_ns: u64,
    /// Sum of the delays of both directions.
    round_trip_ns: u64,
    best: Option<(u64, f64)>,
}

/// The step of a moment, if within the steps kept.
fn step_of(steps: &mut Vec<u64>, begun_ns: u64, at_ns: u64) -> Option<&mut u64> {
    let step = (at_ns.saturating_sub(begun_ns) / STEP_NS) as usize;
    if step < MOST_STEPS && steps.len() <= step {
        steps.resize(step + 1, 0);
    }
    steps.get_mut(step)
}

/// Packets that left the wire back to back.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    first_due: u64,
    last_due: u64,
    wire_bytes: u64,
}

impl Meter {
    /// Creates the meter of a direction whose sending device is polled from `now_ns` on, given the way back.
    pub(crate) fn new(config: &DirectionConfig, back: &DirectionConfig, now_ns: u64) -> Self {
        Self {
            rate_bps: config.rate.filter(|_| config.rate_over_time.is_none()).map(|r| r.as_bps()),
            overhead_bytes: u64::from(config.overhead_bytes),
            looks: Looks { last_ns: now_ns, ..Looks::default() },
            round_trip_ns: config.delay.as_ns() + back.delay.as_ns(),
            begun_ns: now_ns,
            ..Self::default()
        }
    }

    /// Notes that a poll of the sending device at `now_ns` found nothing.
    pub(crate) fn found_nothing(&mut self, now_ns: u64) {
        let over = self.looks.note(now_ns);
        self.note_away(over);
        let over = self.looks.away.take();
        self.note_away(over);
    }

    /// Notes that a poll of the sending device at `now_ns` found a packet, which was read.
    pub(crate) fn found_packet(&mut self, now_ns: u64) {
        let over = self.looks.note(now_ns);
        self.note_away(over);
        self.read += 1;
        match &mut self.looks.away {
            Some(away) => away.found += 1,
            None => self.unread.record(0),
        }
    }

    /// Notes that a packet was read the moment it arrived.
    pub(crate) fn found_at_once(&mut self) {
        self.read += 1;
        self.passed_through();
    }

    /// Notes that a packet entered from another link, bypassing the sending device.
    pub(crate) fn passed_through(&mut self) {
        self.unread.record(0);
    }

    /// Notes that the receiving device refused a packet counted as delivered.
    pub(crate) fn refused_after_all(&mut self) {
        self.delivered -= 1;
        self.device_refused += 1;
    }

    /// Notes that the driver slept until a packet arrived, and has been ready to run since `ready_ns`.
    pub(crate) fn slept_until(&mut self, ready_ns: u64) {
        if self.looks.away.is_none() {
            self.looks.last_ns = self.looks.last_ns.max(ready_ns);
        }
    }

    /// Packets found after the driver had been away waited for part of that time: a flow sends what a round trip
    /// allows and then waits too, so packets arrive evenly over the first round trip of it, and not after.
    fn note_away(&mut self, away: Option<Away>) {
        let Some(Away { for_ns, until_ns, found: found @ 1.. }) = away else { return };
        let waited = for_ns - for_ns.min(self.round_trip_ns) / 2;
        self.unread.record_many(waited, found);
        self.worst(until_ns, waited);
    }

    /// Keeps the worst delay of a packet at this moment.
    fn worst(&mut self, at_ns: u64, delay_ns: u64) {
        if let Some(step) = step_of(&mut self.worst_ns, self.begun_ns, at_ns) {
            *step = (*step).max(delay_ns);
        }
    }

    /// The longest that a packet lay unread or was late within a step of this moment.
    pub(crate) fn worst_at(&self, at_ns: u64) -> u64 {
        let step = (at_ns.saturating_sub(self.begun_ns) / STEP_NS) as usize;
        self.worst_ns.iter().skip(step.saturating_sub(1)).take(3).copied().max().unwrap_or(0)
    }

    /// Notes the release at `released` of wire segments of `ip_bytes` in total, the last of which was due at `due`.
    pub(crate) fn note_release(&mut self, due: u64, released: u64, segments: u32, ip_bytes: u64) {
        let late = released.saturating_sub(due);
        self.lateness.record(late);
        if late > AWAY_NS {
            self.worst(released, late);
        }
        let Some(rate) = self.rate_bps.filter(|&r| r > 0) else { return };
        let wire_bytes = ip_bytes + u64::from(segments) * self.overhead_bytes;
        let serialisation = wire_bytes * 8 * 1_000_000_000 / rate;
        if let Some(step) = step_of(&mut self.busy_ns, self.begun_ns, due) {
            *step += serialisation;
        }
        match &mut self.stretch {
            // Back to back: this one's serialisation began when the last one's ended (within rounding).
            Some(s) if due.abs_diff(s.last_due + serialisation) <= 2 => {
                s.last_due = due;
                s.wire_bytes += wire_bytes;
            }
            _ => {
                self.close_stretch();
                self.stretch = Some(Stretch { first_due: due, last_due: due, wire_bytes: 0 });
            }
        }
    }

    fn close_stretch(&mut self) {
        if let Some(s) = self.stretch.take() {
            let span = s.last_due.saturating_sub(s.first_due);
            if span >= SHORTEST_STRETCH_NS && self.best.is_none_or(|(longest, _)| span > longest) {
                self.best = Some((span, s.wire_bytes as f64 * 8e9 / span as f64));
            }
        }
    }

    /// Share of a span of the monotonic clock during which the wire was busy, to the nearest steps; `None` without a
    /// rate, and for a span shorter than two steps.
    pub(crate) fn busy(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        self.rate_bps.filter(|&rate| rate > 0)?;
        let step = |at: u64| (at.saturating_sub(self.begun_ns) / STEP_NS) as usize;
        // What leaves the wire is due one delay later: the first step of the span may contain earlier packets.
        let (from, to) = (step(from_ns) + 1, step(to_ns));
        let steps = to.checked_sub(from).filter(|&steps| steps > 0)?;
        let busy: u64 = self.busy_ns.iter().skip(from).take(steps).sum();
        Some((busy as f64 / (steps as u64 * STEP_NS) as f64).min(1.0))
    }

    /// Wire rate of the releases, by due time, over the longest stretch without a gap; `None` below a tenth of a second.
    pub(crate) fn achieved_bps(&mut self) -> Option<f64> {
        self.close_stretch();
        self.best.map(|(_, bps)| bps)
    }
}

/// Times at which the sending device was polled.
#[derive(Debug, Clone, Copy, Default)]
struct Looks {
    last_ns: u64,
    away: Option<Away>,
}

/// The driver was away, and packets found since may have arrived meanwhile.
#[derive(Debug, Clone, Copy)]
struct Away {
    /// Duration and end.
    for_ns: u64,
    until_ns: u64,
    found: u64,
}

impl Looks {
    /// The time away that ends with a poll at `now_ns`, if the driver was away before it and reads what arrived meanwhile.
    fn note(&mut self, now_ns: u64) -> Option<Away> {
        let gap = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
        // Packets found later than the time away lasted arrived after it.
        let over = self.away.take_if(|away| gap > AWAY_NS || now_ns > away.until_ns + away.for_ns);
        if gap > AWAY_NS {
            self.away = Some(Away { for_ns: gap, until_ns: now_ns, found: 0 });
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::units::{Nanos, Rate};

    use super::*;

    #[test]
    fn the_rate_is_that_of_the_longest_gapless_stretch() {
        let config = DirectionConfig { rate: Some(Rate::mbps(12)), overhead_bytes: 0, ..Default::default() };
        let mut meter = Meter::new(&config, &config, 0);
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
        let mut meter = Meter::new(&config, &config, 0);
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
        let mut meter = Meter::new(&config, &config, 0);
        (0..50u64).for_each(|i| meter.note_release(i * 1_000_000, i * 1_000_000, 1, 1500));
        assert_eq!(meter.achieved_bps(), None);
    }

    #[test]
    fn the_busy_share_is_that_of_the_span() {
        let config = DirectionConfig { rate: Some(Rate::mbps(12)), overhead_bytes: 0, ..Default::default() };
        let mut meter = Meter::new(&config, &config, 1_000_000_000);
        // A millisecond of wire every other millisecond, for a second that begins one second later.
        for i in 0..500u64 {
            let due = 2_000_000_000 + 2_000_000 * i;
            meter.note_release(due, due, 1, 1500);
        }
        let share = |from: u64, to: u64| meter.busy(from, to).map(|share| (share * 1e3).round() / 1e3);
        assert_eq!(share(2_000_000_000, 3_000_000_000), Some(0.5));
        assert_eq!(share(1_000_000_000, 2_000_000_000), Some(0.0));
        assert_eq!(share(2_000_000_000, 2_090_000_000), None);
        assert_eq!(idle_meter(0).busy(0, 1_000_000_000), None);
    }

    /// A meter of a direction with this many milliseconds of delay, and as many back.
    fn idle_meter(delay_ms: u64) -> Meter {
        let config = DirectionConfig { delay: Nanos::millis(delay_ms), ..Default::default() };
        Meter::new(&config, &config, 0)
    }

    #[test]
    fn packets_found_after_the_driver_was_away_have_waited() {
        let mut meter = idle_meter(1);
        // Polls 5 us apart: nothing waits.
        meter.found_nothing(5_000);
        meter.found_packet(10_000);
        assert_eq!(meter.unread.max(), 0);
        // Away for 3 ms: the packets there arrived within the first 2 ms of it, one round trip.
        meter.found_packet(3_010_000);
        meter.found_packet(3_012_000);
        meter.found_nothing(3_014_000);
        assert_eq!(meter.unread.count(), 3);
        assert_eq!(meter.unread.max(), 2_000_000);
        assert_eq!(meter.worst_at(3_500_000), 2_000_000);
        assert_eq!(meter.worst_at(200_000_000), 0);
        // An empty device ends it.
        meter.found_packet(3_016_000);
        assert_eq!(meter.unread.percentile(50.0), 0);
        // Away for less than a round trip: half of it on average.
        meter.found_packet(4_016_000);
        meter.found_nothing(4_020_000);
        assert_eq!(meter.unread.count(), 5);
        assert!(
            meter.unread.percentile(60.0).abs_diff(500_000) < 10_000,
            "{}",
            meter.unread.percentile(60.0)
        );
    }

    #[test]
    fn what_is_found_long_after_the_driver_was_away_came_later() {
        let mut meter = idle_meter(0);
        meter.found_nothing(0);
        // Away for 100 us, then a device that is never empty.
        for i in 0..100u64 {
            meter.found_packet(100_000 + i * 2_000);
        }
        meter.found_nothing(301_000);
        let waited = meter.unread.buckets().filter(|b| b.count > 1).count();
        assert!(waited >= 1);
        assert_eq!(meter.unread.count(), 100);
        // 51 packets in the first 100 us after it.
        assert_eq!(meter.unread.percentile(40.0), 0);
        assert!(meter.unread.percentile(60.0) >= 100_000);
    }

    #[test]
    fn a_driver_that_slept_was_away_only_while_others_had_its_processor() {
        let mut meter = idle_meter(0);
        meter.found_nothing(1_000);
        meter.slept_until(50_000_000);
        meter.found_packet(50_004_000);
        meter.found_nothing(50_006_000);
        assert_eq!(meter.unread.max(), 0);
        meter.slept_until(60_000_000);
        meter.found_packet(62_000_000);
        meter.found_nothing(62_002_000);
        assert_eq!(meter.unread.max(), 2_000_000);
        // What was left in the device when it slept has waited all that time.
        meter.found_packet(62_100_000);
        meter.slept_until(70_000_000);
        meter.found_packet(70_001_000);
        meter.found_nothing(70_002_000);
        assert!(meter.unread.max() >= 7_900_000, "{}", meter.unread.max());
    }
}
