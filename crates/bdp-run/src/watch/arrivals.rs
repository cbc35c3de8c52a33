//! How data arrives at a receiver: continuously or with gaps, delayed by a queue, or with parts missing. Its socket
//! reveals more about the path than whether it reads: the round trip by echoed timestamps (`tcpi_rcv_rtt`) and that
//! of the handshake, the time since data arrived, and segments out of order.

use bdp_model::facts::TimeState;
use bdp_model::finding::threshold::{QUEUE_SHARE, SAMPLES_MIN};
use bdp_model::statistics::median;
use bdp_sys::tcp_info::TcpInfo;

use super::history::Reading;

/// Data flows if it arrived no longer ago than this, than this many segments take, or than this part of a round trip;
/// in which share of the readings.
const FLOWS: (u64, f64, f64) = (15_000_000, 2.0, 0.25);
const FLOWS_OFTEN: f64 = 0.8;
const FLOWS_AMID_LOSS: f64 = 0.5;
/// Bytes / the capacity of as many full segments, if segments are full.
const FULL: f64 = 0.8;
/// Bytes / the capacity of as many full segments, if writes are small.
const SMALL: f64 = 0.5;
/// A sender that has more to send is never silent for longer than a round trip and a tick; in how many of the readings one is that has not.
const TICK_NS: u64 = 10_000_000;
const SILENT_OFTEN: f64 = 0.2;
/// Longest repair of a loss by a timeout, in time and in round trips.
const REPAIR: (u64, u64) = (400_000_000, 5);
/// Least delay that counts as a queue: less may be the ticks of timestamps.
const QUEUE_NS: u64 = 8_000_000;
const QUEUE_SLIGHT_NS: u64 = 4_000_000;
/// Data of the second half of a transfer in slow start / that of the first half; over how many round trips, and with
/// how many readings.
const GROWTH: (f64, std::ops::RangeInclusive<u64>, usize) = (3.0, 3..=8, 5);
/// Data segments before the first of an answer.
const FIRST: u32 = 10;
/// Segments out of order that say that some were lost, or overtaken.
const MISSING: u64 = 10;

/// Returns the state of the time in which data arrives; `Unknown` if this end cannot tell.
pub(super) fn waits_for(moments: &[(u64, &Reading, TcpInfo)], goodput_bps: f64) -> TimeState {
    Arrivals::of(moments, goodput_bps).map_or(TimeState::Unknown, |arrivals| arrivals.state())
}

struct Arrivals {
    /// Readings with data flowing, and readings after a silence longer than the path explains; shares of all.
    flows: f64,
    silent: f64,
    /// Readings after a silence longer than a retransmission timeout takes; share of all.
    silent_long: f64,
    /// Round trip of the data above the smallest; `None` if unmeasured.
    queue_ns: Option<u64>,
    least_ns: u64,
    missing: u64,
    /// Whether segments are far from full: the sender had no more to send each time.
    are_small: bool,
    /// Whether each of the few round trips since the first data brought more than the previous one.
    grows: bool,
}

impl Arrivals {
    fn of(moments: &[(u64, &Reading, TcpInfo)], goodput_bps: f64) -> Option<Self> {
        let (first, last) = (moments.first()?, moments.last()?);
        let least = moments.iter().filter_map(|(_, _, info)| info.min_rtt_ns);
        let least_ns = least.filter(|&ns| ns > 0 && ns < u64::from(u32::MAX) * 1000).min()?;
        // From the first data to the last.
        let until = last.1.last().received_ns;
        let came = moments
            .iter()
            .filter(|(at, _, info)| *at as i64 <= until && info.bytes_received > first.2.bytes_received);
        let ago: Vec<u64> = came.map(|(at, reading, _)| at.saturating_sub(received(reading))).collect();
        if ago.len() < SAMPLES_MIN {
            return None;
        }
        let mss = f64::from(last.2.snd_mss.unwrap_or(0));
        // Segments that are not full are all that there was to send.
        let bytes = last.2.bytes_received?.saturating_sub(first.2.bytes_received?) as f64;
        let count = last.1.segments().data_in.saturating_sub(first.1.segments().data_in);
        let is_full = bytes >= FULL * mss * f64::from(count);
        let segments = if is_full { FLOWS.1 * mss * 8e9 / goodput_bps.max(1.0) } else { 0.0 };
        let flows_ns = FLOWS.0.max(segments as u64).max((FLOWS.2 * least_ns as f64) as u64);
        let share =
            |is: &dyn Fn(u64) -> bool| ago.iter().filter(|&&ns| is(ns)).count() as f64 / ago.len() as f64;
        let mut rtts: Vec<f64> = moments.iter().filter_map(|m| m.2.rcv_rtt_ns).map(|ns| ns as f64).collect();
        // Without timestamps it is the time that a whole window takes to arrive.
        let is_measured = last.2.timestamps == Some(true) && rtts.len() >= SAMPLES_MIN;
        let rtt = median(&mut rtts).filter(|_| is_measured);
        let grown = |of: fn(&TcpInfo) -> Option<u32>| {
            u64::from(of(&last.2).unwrap_or(0).saturating_sub(of(&first.2).unwrap_or(0)))
        };
        Some(Self {
            flows: share(&|ns| ns <= flows_ns),
            silent: share(&|ns| ns > flows_ns.max(least_ns + TICK_NS)),
            silent_long: share(&|ns| ns > flows_ns.max(REPAIR.0).max(REPAIR.1 * least_ns)),
            queue_ns: rtt.map(|ns| (ns as u64).saturating_sub(least_ns)),
            least_ns,
            missing: grown(|info| info.rcv_out_of_order),
            are_small: bytes < SMALL * mss * f64::from(count),
            grows: grows(moments, least_ns),
        })
    }

    fn state(&self) -> TimeState {
        let bound = QUEUE_NS.max((QUEUE_SHARE * self.least_ns as f64) as u64);
        let slight = QUEUE_SLIGHT_NS.max((QUEUE_SHARE * self.least_ns as f64) as u64);
        // A short full queue shows by its drops, too.
        let bound = if self.missing >= MISSING { bound.min(slight) } else { bound };
        let is_queued = self.queue_ns.is_some_and(|ns| ns >= bound);
        match () {
            () if self.grows && self.missing == 0 => TimeState::SlowStart,
            () if self.silent_long >= SILENT_OFTEN => TimeState::SenderApplication,
            () if self.missing >= MISSING && self.queue_ns.is_some_and(|ns| ns < bound) => {
                TimeState::CongestionAvoidance
            }
            () if self.flows >= FLOWS_OFTEN && is_queued => TimeState::FullPath,
            // A loss in a full queue holds up the data behind it.
            () if self.flows >= FLOWS_AMID_LOSS && is_queued && self.missing >= MISSING => {
                TimeState::FullPath
            }
            () if self.are_small && self.missing < MISSING => TimeState::SenderApplication,
            () if self.silent >= SILENT_OFTEN && self.missing < MISSING => TimeState::SenderApplication,
            () => TimeState::Unknown,
        }
    }
}

/// Whether arriving data shows slow start: each round trip brings twice what the previous one did.
fn grows(moments: &[(u64, &Reading, TcpInfo)], rtt_ns: u64) -> bool {
    let Some(begun) = moments.windows(2).position(|pair| {
        pair[0].1.segments().data_in <= FIRST && pair[1].2.bytes_received > pair[0].2.bytes_received
    }) else {
        return false;
    };
    let all = moments[moments.len() - 1].2.bytes_received;
    let Some(last) = moments.iter().rposition(|m| m.2.bytes_received != all) else { return false };
    // The last data arrived between two readings.
    let (from, until) = (moments[begun].0, moments.get(last + 1).map_or(moments[last].0, |m| m.0));
    let trips = until.saturating_sub(from) / rtt_ns.max(1);
    if last < begun + GROWTH.2 || !GROWTH.1.contains(&trips) {
        return false;
    }
    let at = |ns: u64| moments.iter().rev().find(|m| m.0 <= ns).and_then(|m| m.2.bytes_received).unwrap_or(0);
    let [first, half, end] = [from, from + (until - from) / 2, until].map(at);
    let (early, late) = (half.saturating_sub(first), end.saturating_sub(half));
    early > 0 && late as f64 >= GROWTH.0 * early as f64
}

fn received(reading: &Reading) -> u64 {
    reading.last().received_ns.max(0) as u64
}
