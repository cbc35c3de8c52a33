//! Where the capture was taken: from there to the sender and back, which acknowledgements and what they set off take.

use super::half::{HalfConnection, SOONER};

/// What a host takes to answer at the most: an end that is no further away is where the capture was taken,
const HOST_NS: u64 = 300_000;
/// if the other one is so many times as far.
const HERE_OF: u64 = 10;

impl HalfConnection {
    /// Data passes that echoes the latest timestamp of the other end, or, where that passed so long before, an older one: then it had not reached the sender yet.
    pub const fn note_echo(&mut self, latest: Option<(bool, u64)>) {
        const LONG_NS: u64 = 1_000_000;
        match latest {
            Some((true, ago)) if ago >= LONG_NS => self.echoes_late[1] += 1,
            Some((false, _)) => self.echoes_late[0] += 1,
            _ => {}
        }
    }

    /// The capture was taken at the sender, or so near that nobody can tell.
    pub fn is_at_sender(&self) -> bool {
        const LATE: u32 = 8;
        let [prompt, late] = self.echoes_late;
        let Some(own) = self.own_side.filter(|&ns| ns < HOST_NS) else { return false };
        let there = self.rtt.min();
        // What waits in a queue of the sender's own device echoes old timestamps too, and its receiver is far away.
        if late >= LATE && late > prompt && there.is_none_or(|rtt| rtt < HERE_OF * HOST_NS) {
            return false;
        }
        there.is_none_or(|rtt| own * HERE_OF < rtt || rtt < HOST_NS)
    }

    /// For how long an acknowledgement that passes here is on its way to the sender and what it sets off comes back: a little less than is usual, since what
    /// comes back sooner was set off all the same.
    pub(super) fn own_delay(&self) -> u64 {
        let usual = if self.is_at_sender() { 0 } else { self.own_now.unwrap_or(0) };
        usual - usual / SOONER
    }

    /// From the sender to the receiver and back, at the least.
    pub(super) fn least_rtt(&self) -> Option<u64> {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let there = least(self.rtt.min(), self.other_way[0]);
        match (there, least(self.own_side, self.other_way[1])) {
            (Some(there), Some(own)) => Some(there + own),
            (there, own) => there.or(own),
        }
    }

    /// From the sender to the receiver and back, smoothed.
    pub(super) fn round_trip(&self) -> Option<u64> {
        Some(self.rtt.smoothed()? + self.own_now.unwrap_or(0))
    }

    /// What went to this way's sender was answered after so long.
    pub fn on_own_side_rtt(&mut self, now: u64, ns: u64, stamp: Option<u32>) {
        self.own_stamp = stamp.map(|stamp| (stamp, now, ns));
        self.own_side = Some(self.own_side.map_or(ns, |least| least.min(ns)));
        // As RFC 6298 smooths, but quicker: what is sent by then has to find its acknowledgement. Those of an end without data may be delayed ones.
        self.own_now = match self.own_now {
            Some(now) if self.has_data() => Some(now - now / 4 + ns / 4),
            _ => self.own_side,
        };
        if let Some(most) = self.full_rtt() {
            self.whole.add(most);
        }
    }

    /// The latest round trip from the sender to the receiver and back.
    pub(super) fn full_rtt(&self) -> Option<u64> {
        Some(self.rtt.latest()? + self.own_now?)
    }

    /// Whether what passes now went on from what passed before, within half of this time: then nothing but the way to the sender and back took it. An end
    /// without data answers at once.
    pub fn went_on(&self, now: u64, took: u64, payload: u32) -> bool {
        !self.has_data() || payload > 0 && now.saturating_sub(self.last_sent) <= took / 2
    }
}
