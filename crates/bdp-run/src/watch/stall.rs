//! Data that was sent and is never acknowledged: since when, how often it was retransmitted, and whether its size is
//! the reason.

use bdp_model::facts::Oversized;
use bdp_sys::tcp_info::TcpInfo;

use super::account::{Account, TICK_NS, count, handshake};

/// Nothing was acknowledged for this long, and this many round trips, although data is in flight.
const STALLED: (u64, u64) = (1_000_000_000, 5);

impl Account<'_> {
    /// Returns since when nothing was acknowledged, for a socket that has data in flight at the end and has waited
    /// too long for it.
    pub(super) fn stalled(&self) -> Option<u64> {
        let last = self.moments.last().filter(|m| m.2.unacked_segments > Some(0))?;
        let since = self.moments.iter().rev().take_while(|m| m.2.bytes_acked == last.2.bytes_acked).last()?;
        let longest =
            STALLED.0.max(STALLED.1 * self.moments.iter().filter_map(|m| m.2.rtt_ns).max().unwrap_or(0));
        // If nothing was in flight then, the wait began when data was next sent.
        let sent = self.moments.iter().find(|m| m.0 >= since.0 && m.2.unacked_segments > Some(0))?;
        (last.0 - sent.0 >= longest).then_some(sent.0)
    }

    pub(super) fn is_stalled(&self, at_ns: u64) -> bool {
        self.stalled_since.is_some_and(|since| at_ns >= since)
    }

    pub(super) fn at_stall(&self) -> TcpInfo {
        let since = self.stalled_since.unwrap_or(0);
        self.moments.iter().find(|m| m.0 >= since).map(|m| m.2).unwrap_or_default()
    }

    /// Returns the retransmissions of never acknowledged data, or SYNs, and for how long they were tried.
    pub(super) fn in_vain(&self) -> (u64, u64) {
        let Some(last) = self.moments.last() else { return (0, 0) };
        if handshake(last.1).is_some() {
            /// The first wait for an answer (RFC 6298, section 2); none is shorter.
            const FIRST_NS: u64 = 1_000_000_000;
            let since = self.moments.iter().find(|m| handshake(m.1).is_some()).map_or(last.0, |m| m.0);
            let tries = u64::from(last.1.tries);
            let before = FIRST_NS * tries;
            return (tries, before.max(last.0 - since));
        }
        let Some(since) = self.stalled_since else { return (0, 0) };
        let again = count(|i| i.total_retrans.map(u64::from), &self.at_stall(), &last.2);
        // The first may have been before the reading in which it stands.
        (again.max(u64::from(last.1.tries)), last.0 - since)
    }

    /// Whether the unacknowledged data is at least a full segment.
    pub(super) fn full_segment_waits(&self) -> bool {
        let last = self.moments.last();
        last.is_some_and(|(_, reading, info)| {
            info.snd_mss.is_some_and(|mss| mss > 0 && reading.queued >= mss)
        })
    }

    /// The unacknowledged data, if it is a single segment larger than everything acknowledged so far.
    pub(super) fn oversized(&self) -> Option<Oversized> {
        let (_, reading, info) = self.moments.last().filter(|_| self.stalled_since.is_some())?;
        // The SYN is one of them.
        let acked = info.bytes_acked?.saturating_sub(1);
        let is_one = u64::from(reading.queued) <= u64::from(info.snd_mss?);
        Oversized::of(u64::from(reading.queued), acked, self.small_ones_pass()).filter(|_| is_one)
    }

    /// Whether packets arrived from the other end since data stalled.
    pub(super) fn small_ones_pass(&self) -> bool {
        let Some((since, last)) = self.stalled_since.zip(self.moments.last()) else { return false };
        let heard = last.1.last();
        let until = since as i64 + 2 * self.rtt_ns as i64 + TICK_NS;
        heard.received_ns.max(heard.acknowledged_ns) > until
    }
}
