//! What data in flight fills: the receive window, the send buffer, or a window of the programs' own.

use bdp_model::facts::{TimeState, is_round_amount};
use bdp_model::statistics::median;
use bdp_model::tuning::setting::Setting;
use bdp_sys::tcp_info::TcpInfo;

use super::account::{Account, Moment, count};

/// Packets in flight / send buffer of one that has no room for the next write; in how many of the readings with data in flight.
const TAKEN: f64 = 2.0 / 3.0;
const TAKEN_OFTEN: f64 = 0.9;
/// The same share for a buffer whose size its program set, or that is as large as its host allows: it never grows.
const TAKEN_OFTEN_FIXED: f64 = 0.6;
/// Bytes that were never sent / bytes written and not acknowledged, at the most: more waits for something else.
const UNSENT: f64 = 0.15;
/// In flight / receive window if it limits the sender, and in which share of the readings; a queue counts if it adds
/// more than this, and more than a round trip.
const WINDOW_TAKEN: (f64, f64, u64) = (0.85, 0.5, 40_000_000);
/// Least round trip / minimum with a program that reads late; largest goodput / what a window carries per round trip.
const READ_LATE: (f64, f64) = (1.3, 0.85);
/// Data in flight stays within this part of its median, in this share of the readings, if a program's own window is
/// used up; in segments, at least.
const PLATEAU: (f64, f64, u64) = (0.15, 0.6, 4);
/// In flight / that median, for readings that are not part of it.
const LITTLE: f64 = 0.2;
/// In flight / rate times round trip, for such a window.
const EXPLAINS: std::ops::RangeInclusive<f64> = 0.6..=1.5;

impl Account<'_> {
    /// Whether data in flight fills the receive window and not the congestion window, without a long standing queue.
    pub(super) fn window_is_taken(&self) -> bool {
        let is_taken = |(_, _, info): &&Moment<'_>| {
            let in_flight =
                info.unacked_segments.zip(info.snd_mss).map(|(out, mss)| f64::from(out) * f64::from(mss));
            let cwnd = info.unacked_segments.zip(info.cwnd_segments).is_some_and(|(out, cwnd)| out < cwnd);
            cwnd && in_flight
                .zip(info.snd_wnd)
                .is_some_and(|(bytes, window)| bytes >= WINDOW_TAKEN.0 * f64::from(window))
        };
        let mut smoothed: Vec<f64> = self.busy().filter_map(|m| m.2.rtt_ns).map(|ns| ns as f64).collect();
        let added = median(&mut smoothed).map_or(0, |ns| (ns as u64).saturating_sub(self.rtt_ns));
        let readings = self.busy().count();
        readings >= bdp_model::finding::threshold::SAMPLES_MIN
            && self.busy().filter(is_taken).count() as f64 >= WINDOW_TAKEN.1 * readings as f64
            && added <= WINDOW_TAKEN.2.max(self.rtt_ns)
    }

    /// Whether a window is sent at once and acknowledged at once but late: less gets through than it carries in a
    /// round trip, which is longer than the smallest. With a queue as the reason, exactly that would get through.
    pub(super) fn reads_late(&self) -> bool {
        let of = |value: fn(&TcpInfo) -> Option<u64>| {
            let mut values: Vec<f64> = self.busy().filter_map(|m| value(&m.2)).map(|v| v as f64).collect();
            median(&mut values)
        };
        let Some((rtt, window)) = of(|i| i.rtt_ns).zip(of(|i| i.snd_wnd.map(u64::from))) else {
            return false;
        };
        let carries = window * 8e9 / rtt.max(1.0);
        rtt >= READ_LATE.0 * self.rtt_ns as f64 && self.facts.goodput_bps <= READ_LATE.1 * carries
    }

    /// Returns the readings with data in flight.
    pub(super) fn busy(&self) -> impl Iterator<Item = &Moment<'_>> {
        self.moments.iter().filter(|(_, _, info)| info.unacked_segments > Some(0))
    }

    /// Returns in how many readings packets in flight take most of the send buffer, and out of how many.
    pub(super) fn buffer_taken(&self) -> (u64, u64) {
        let is_taken = |(_, reading, info): &&Moment<'_>| {
            let room = info.unacked_segments.zip(info.cwnd_segments).is_some_and(|(out, cwnd)| out < cwnd);
            let mss = info.snd_mss.unwrap_or(0);
            let window = info
                .snd_wnd
                .zip(info.unacked_segments)
                .is_none_or(|(window, out)| (out + 1).saturating_mul(mss) <= window);
            room && window
                && reading.send_buffer > 0
                && f64::from(reading.taken) >= TAKEN * f64::from(reading.send_buffer)
        };
        (self.busy().filter(is_taken).count() as u64, self.busy().count() as u64)
    }

    /// Returns the state of time with data in flight while both windows have room.
    pub(super) fn of_flight(&self, (taken, busy): (u64, u64), (stops, _): (u64, u64)) -> Option<TimeState> {
        if !self.sending || busy < bdp_model::finding::threshold::SAMPLES_MIN as u64 {
            return None;
        }
        let (unsent, queued) = self.busy().fold((0, 0), |(unsent, queued), (_, reading, info)| {
            (unsent + info.notsent_bytes.unwrap_or(0), queued + u64::from(reading.queued))
        });
        let nothing_waits = unsent as f64 <= UNSENT * queued as f64;
        let asked = self.facts.sender.socket.and_then(|s| s.send_buffer_asked);
        let is_fixed = asked == Some(true) || self.at_largest();
        let often = if is_fixed { TAKEN_OFTEN_FIXED } else { TAKEN_OFTEN };
        let is_taken = taken as f64 >= often * busy as f64 && nothing_waits;
        // One that a program did not ask for grows with the congestion window, up to the largest.
        let is_window = stops > 0 && nothing_waits;
        let cannot_grow = is_fixed || asked.is_none() && !is_window;
        if is_taken && cannot_grow {
            return Some(TimeState::SendBuffer);
        }
        is_window.then_some(TimeState::ProgramWindow)
    }

    /// Whether the send buffer is as large as the host allows.
    pub(super) fn at_largest(&self) -> bool {
        let largest = self.facts.sender.host.sysctls.get(Setting::TcpWmem.name);
        let largest = largest.and_then(|value| value.split_whitespace().next_back()?.parse::<u64>().ok());
        largest.zip(self.facts.send_buffer_bytes).is_some_and(|(largest, buffer)| buffer >= largest)
    }

    /// Returns how often the same amount is in flight while the other program keeps answering, and that amount; zero
    /// if it is not a window of the programs.
    pub(super) fn plateau(&self) -> (u64, u64) {
        let mut amounts: Vec<f64> = self.busy().map(|(_, reading, _)| f64::from(reading.queued)).collect();
        let readings = amounts.len();
        let Some(amount) = median(&mut amounts) else { return (0, 0) };
        let near = amounts.iter().filter(|&&a| (a - amount).abs() <= PLATEAU.0 * amount).count();
        // A login, and other small messages, are not part of it.
        let large = amounts.iter().filter(|&&a| a >= LITTLE * amount).count();
        let mss = self.facts.mss_bytes.unwrap_or(1);
        let has_room = self
            .busy()
            .filter(|(_, _, i)| {
                i.unacked_segments.zip(i.cwnd_segments).is_some_and(|(out, cwnd)| out * 5 < cwnd * 4)
            })
            .count();
        let answered =
            self.moments.windows(2).filter(|p| count(|i| i.bytes_received, &p[0].2, &p[1].2) > 0).count();
        let moved =
            self.moments.windows(2).filter(|p| count(|i| i.bytes_acked, &p[0].2, &p[1].2) > 0).count();
        // While it is in flight: earlier messages, such as a login, had their own pace.
        let (bytes, took) = self
            .moments
            .windows(2)
            .filter(|p| {
                let near = |m: &Moment<'_>| f64::from(m.1.queued) >= (1.0 - PLATEAU.0) * amount;
                near(&p[0]) && near(&p[1])
            })
            .fold((0, 1), |(bytes, took), p| {
                (bytes + count(|i| i.bytes_acked, &p[0].2, &p[1].2), took + p[1].0 - p[0].0)
            });
        let rtt = self.facts.rtt_loaded().map_or(self.rtt_ns, |rtt| rtt.0);
        let each = bytes as f64 / took as f64 * rtt as f64;
        let is_window = readings >= 2 * bdp_model::finding::threshold::SAMPLES_MIN
            && near as f64 >= PLATEAU.1 * large as f64
            && amount >= (PLATEAU.2 * mss) as f64
            // Successive answers of one size look the same except for that.
            && (self.has_channels || is_round_amount(amount as u64))
            && has_room as f64 >= PLATEAU.1 * readings as f64
            && answered as f64 >= TAKEN_OFTEN * moved as f64
            && EXPLAINS.contains(&(amount / each.max(1.0)));
        if is_window { (near as u64, amount as u64) } else { (0, 0) }
    }
}
