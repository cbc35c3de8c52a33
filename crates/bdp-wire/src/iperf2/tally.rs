//! Counts of the datagrams of a flow as they arrive.

use super::{ServerReport, Stamp};

/// Counts of one flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    bytes: u64,
    arrived: u64,
    out_of_order: u64,
    highest: u64,
    jitter_us: f64,
    last_transit_us: Option<i64>,
    first_us: Option<u64>,
    last_us: u64,
    /// Number of the first datagram that ended the flow; later ones are repetitions.
    ended: Option<u64>,
}

impl Tally {
    /// Records a datagram: its stamp, length and time of arrival, microseconds since 1970.
    pub fn take(&mut self, stamp: &Stamp, length: usize, now_us: u64) {
        if self.ended.is_some() {
            return;
        }
        let number = stamp.number.unsigned_abs();
        self.first_us.get_or_insert(now_us);
        self.last_us = self.last_us.max(now_us);
        self.bytes += length as u64;
        self.arrived += 1;
        if number < self.highest {
            self.out_of_order += 1;
        }
        self.highest = self.highest.max(number);
        // RFC 3550, section 6.4.1: clocks need not agree, since only differences count.
        let transit = now_us.wrapping_sub(stamp.sent_us) as i64;
        if let Some(last) = self.last_transit_us.replace(transit) {
            let change = transit.wrapping_sub(last).unsigned_abs() as f64;
            self.jitter_us += (change - self.jitter_us) / 16.0;
        }
        if stamp.number < 0 {
            self.ended = Some(number);
        }
    }

    /// Whether the client has ended the flow.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the datagrams counted so far.
    pub fn datagrams(&self) -> u64 {
        self.arrived
    }

    /// Returns the bytes counted so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the report for the client.
    pub fn report(&self) -> ServerReport {
        ServerReport {
            bytes: self.bytes,
            took_us: self.last_us - self.first_us.unwrap_or(self.last_us),
            // With duplicates, more datagrams may arrive than were sent.
            lost: self.highest.saturating_sub(self.arrived),
            out_of_order: self.out_of_order,
            datagrams: self.highest,
            jitter_us: self.jitter_us as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_and_late_ones_are_told_apart_and_repetitions_of_the_end_do_not_count() {
        let mut tally = Tally::default();
        for (at, number) in [1, 2, 4, 3, 6, -8, -9, -10].into_iter().enumerate() {
            let stamp = Stamp { number, sent_us: 1000 * at as u64 };
            tally.take(&stamp, 100, 5_000_000 + 1000 * at as u64);
        }
        assert!(tally.has_ended());
        assert_eq!(
            tally.report(),
            ServerReport { bytes: 600, took_us: 5000, lost: 2, out_of_order: 1, datagrams: 8, jitter_us: 0 }
        );
    }

    #[test]
    fn jitter_is_that_of_the_standard() {
        let mut tally = Tally::default();
        for (number, sent_us, now_us) in [(1, 0, 100), (2, 1000, 1116), (3, 2000, 2100)] {
            tally.take(&Stamp { number, sent_us }, 1, now_us);
        }
        // 16/16, then 1 + (16 - 1) / 16.
        assert_eq!(tally.jitter_us, 1.9375);
    }
}
