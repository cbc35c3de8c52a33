//! Location of the capture: the round trip from there to the sender, measured by acknowledgements and the data they trigger.

use super::half::{HalfConnection, SOONER};

/// Longest response time of a host: an end no further away is where the capture was taken,
const HOST_NS: u64 = 300_000;
/// if the other end is this many times as far.
const HERE_OF: u64 = 10;

impl HalfConnection {
    /// Records whether data echoes the latest timestamp of the other end, or an older one although a newer passed long before and had not
    /// reached the sender.
    pub const fn note_echo(&mut self, latest: Option<(bool, u64)>) {
        const LONG_NS: u64 = 1_000_000;
        match latest {
            Some((true, ago)) if ago >= LONG_NS => self.echoes_late[1] += 1,
            Some((false, _)) => self.echoes_late[0] += 1,
            _ => {}
        }
    }

    /// Whether the capture was taken at the sender, or indistinguishably near.
    pub fn is_at_sender(&self) -> bool {
        const LATE: u32 = 8;
        let [prompt, late] = self.echoes_late;
        let Some(own) = self.own_side.filter(|&ns| ns < HOST_NS) else { return false };
        let there = self.rtt.min();
        // Data in the sender's own device queue echoes old timestamps too, with a distant receiver.
        if late >= LATE && late > prompt && there.is_none_or(|rtt| rtt < HERE_OF * HOST_NS) {
            return false;
        }
        there.is_none_or(|rtt| own * HERE_OF < rtt || rtt < HOST_NS)
    }

    /// Returns the time from an acknowledgement passing here to the return of the data it triggers: slightly less than usual, since data that
    /// returns sooner was triggered too.
    pub(super) fn own_delay(&self) -> u64 {
        let usual = if self.is_at_sender() { 0 } else { self.own_now.unwrap_or(0) };
        usual - usual / SOONER
    }

    /// Returns the smallest round trip from the sender to the receiver.
    pub(super) fn least_rtt(&self) -> Option<u64> {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let there = least(self.rtt.min(), self.other_way[0]);
        match (there, least(self.own_side, self.other_way[1])) {
            (Some(there), Some(own)) => Some(there + own),
            (there, own) => there.or(own),
        }
    }

    /// Returns the smoothed round trip from the sender to the receiver.
    pub(super) fn round_trip(&self) -> Option<u64> {
        Some(self.rtt.smoothed()? + self.own_now.unwrap_or(0))
    }

    /// Adds a round trip from here to this direction's sender.
    pub fn on_own_side_rtt(&mut self, now: u64, ns: u64, stamp: Option<u32>) {
        self.own_stamp = stamp.map(|stamp| (stamp, now, ns));
        self.own_side = Some(self.own_side.map_or(ns, |least| least.min(ns)));
        // Smoothed as in RFC 6298, but faster, to match data with its acknowledgement. Acknowledgements of an end without data may be delayed.
        self.own_now = match self.own_now {
            Some(now) if self.has_data() => Some(now - now / 4 + ns / 4),
            _ => self.own_side,
        };
        if let Some(most) = self.full_rtt() {
            self.whole.add(most);
        }
    }

    /// Returns the latest round trip from the sender to the receiver.
    pub(super) fn full_rtt(&self) -> Option<u64> {
        Some(self.rtt.latest()? + self.own_now?)
    }

    /// Whether the sender resumed within half of this time after earlier data, so that only the round trip to it took time. An end
    /// without data answers at once.
    pub fn went_on(&self, now: u64, took: u64, payload: u32) -> bool {
        !self.has_data() || payload > 0 && now.saturating_sub(self.last_sent) <= took / 2
    }
}
