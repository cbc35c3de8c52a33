//! Queue occupancy over time: readings at a fixed interval, since time zero.

use bdp_model::link::queue::QueueReading;
use bdp_model::units::Nanos;

/// Maximum number of readings; beyond it the interval is doubled, and every other one dropped.
const MOST: usize = 8_192;

/// The readings of one direction. Caught up with before every change.
#[derive(Debug, Clone)]
pub(crate) struct Occupancy {
    interval: Nanos,
    /// When the next one is due, once time zero is known.
    next: Option<Nanos>,
    readings: Vec<QueueReading>,
}

impl Occupancy {
    pub(crate) fn new(interval: Nanos) -> Self {
        Self { interval: interval.max(Nanos(1)), next: None, readings: Vec::new() }
    }

    /// Sets time zero, the time of the first reading.
    pub(crate) fn start_clock(&mut self, at: Nanos) {
        self.next = Some(at);
        self.readings.clear();
    }

    /// Takes all readings that were due before `now`, of a queue unchanged since the last one.
    pub(crate) fn read(&mut self, now: Nanos, of: impl Fn(Nanos) -> QueueReading) {
        while let Some(at) = self.next.filter(|at| *at < now && *at < Nanos(u64::MAX)) {
            self.readings.push(of(at));
            self.next = Some(at + self.interval);
            if self.readings.len() == MOST {
                self.halve();
            }
        }
    }

    /// The interval and the readings, the first of which is at time zero.
    pub(crate) fn readings(&self) -> (Nanos, &[QueueReading]) {
        (self.interval, &self.readings)
    }

    /// Drops every other reading, keeping the first.
    fn halve(&mut self) {
        let mut place = 0;
        self.readings.retain(|_| {
            place += 1;
            place % 2 == 1
        });
        // An even number was taken: the next one belongs to the wider interval too.
        self.interval = self.interval + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_stay_few_and_evenly_spaced() {
        let mut occupancy = Occupancy::new(Nanos(10));
        let of = |at: Nanos| QueueReading { packets: at.as_ns(), ..QueueReading::default() };
        occupancy.read(Nanos(500), of);
        assert!(occupancy.readings().1.is_empty());
        occupancy.start_clock(Nanos(1_000));
        occupancy.read(Nanos(1_000), of);
        assert!(occupancy.readings().1.is_empty());
        for now in (1_000..1_000_000).step_by(777) {
            occupancy.read(Nanos(now), of);
        }
        let (interval, readings) = occupancy.readings();
        assert!(readings.len() < MOST && readings.len() >= MOST / 2, "{}", readings.len());
        assert!((0u64..).zip(readings).all(|(i, reading)| reading.packets == 1_000 + i * interval.as_ns()));
    }
}
