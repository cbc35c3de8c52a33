//! Facts about one direction of a connection: what the sender's kernel would have reported, as far as its packets show.

use std::net::SocketAddr;

use bdp_model::capture::CapturedRtt;
use bdp_model::facts::{Conversation, End, Facts, OneWay, Role, Source, TimeState};
use bdp_model::flow::udp::OneWayDelay;
use bdp_model::flow::{FlowSpec, connection};
use bdp_model::record::{
    LossEpisode, ReceiverSample, RttReport, RttSummary, SenderSample, Transfer, WindowReport,
};
use bdp_model::units::{ByteCount, Nanos};

use super::connection::{Connection, congestion_control};
use super::half::{HalfConnection, Reading};

/// Initial window, segments (RFC 6928).
const INITIAL_WINDOW: u32 = 10;
/// Round trips up to which a connection is a short transfer.
const SHORT: u64 = 30;
/// Part of a transfer up to which its time belongs to its beginning.
const BEGINNING: u64 = 4;

pub(crate) fn of(connection: &Connection, side: usize, ends: [SocketAddr; 2]) -> Option<Facts> {
    let way = &connection.halves[side];
    let is_refused = connection.refused().is_some() && way.role == Some(Role::Client);
    let from = way.first_data_at.or(is_refused.then(|| connection.began_at()))?;
    if connection.seen != [true, true] && !is_refused {
        return None;
    }
    let took_ns = way.data_until().saturating_sub(from).max(1);
    let mss = way.mss();
    let readings = readings(way, from);
    // From elsewhere, pauses of the sender's program can't be distinguished from its windows.
    let is_here = way.is_at_sender();
    let sent: Vec<SenderSample> = readings
        .iter()
        .map(|(at, reading)| sample(*at, reading, mss))
        .map(|s| SenderSample { app_limited: s.app_limited.filter(|_| is_here), ..s })
        .collect();
    let scaling = scaling(connection, side, &readings);
    let name = |end: SocketAddr, window_scaling: Option<bool>| End {
        name: end.to_string(),
        window_scaling,
        ..End::default()
    };
    let longest = readings.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap_or(0);
    let omit_ns = beginning(&readings, took_ns);
    let before = readings.iter().take_while(|(at, _)| *at < omit_ns).last().map_or(0, |(_, r)| r.acked);
    let counted = way.acked().saturating_sub(before);
    let goodput_bps = counted as f64 * 8e9 / took_ns.saturating_sub(omit_ns).max(1) as f64;
    let is_whole = connection.syns != [0, 0] && connection.fins[side];
    let rtt = connection.handshake_ns.or(way.whole.min()).unwrap_or(0);
    let is_short = is_whole && took_ns <= SHORT.saturating_mul(rtt);
    let bytes = is_short.then(|| ByteCount::bytes(way.acked()));
    Some(Facts {
        source: Source::Captured,
        // Readings are taken as packets arrive: a period without any is not a pause of the receiver.
        asked: FlowSpec { bytes, interval: Nanos(longest), ..FlowSpec::default() },
        sender: name(ends[side], scaling[0]),
        receiver: name(ends[1 - side], scaling[1]),
        bytes: way.acked(),
        one_way: one_way(connection, side, &readings, omit_ns),
        // A sender that ignores the window scale is blocked when its program seems to pause.
        conversation: connection.conversation(side).map(|all| match scaling {
            [Some(false), Some(true)] => Conversation {
                spent: all.spent.renamed(TimeState::SenderApplication, TimeState::ReceiveWindow),
                ..all
            },
            _ => all,
        }),
        transfer: Transfer {
            goodput_bps,
            duration_ns: took_ns,
            omit_ns,
            stream_goodput_bps: vec![goodput_bps],
            window: WindowReport { on_the_wire_bytes: way.window_most, ..WindowReport::default() },
            rtt_ns: RttReport {
                // Without a handshake, the smallest round trip of any segment.
                idle: connection.handshake_ns.or(way.whole.min()).map(once),
                loaded: way.whole.report().map(|rtt| summary(&rtt)),
                ..RttReport::default()
            },
            retransmits: Some(way.retransmissions.segments),
            needless_retransmits: Some(way.retransmissions.needless_reported),
            congestion_control: congestion_control(way)
                .map_or_else(String::new, |guess| guess.like.name().to_owned()),
            mss_bytes: Some(mss),
            connection: agreed(connection, side),
            received: readings.iter().map(|(at, reading)| received(*at, reading)).collect(),
            sent,
            loss_episodes: episodes(way, from),
            ..Transfer::default()
        },
        ..Facts::default()
    })
}

/// Returns the readings over time since the first byte.
fn readings(way: &HalfConnection, from: u64) -> Vec<(u64, Reading)> {
    let mut readings: Vec<(u64, Reading)> =
        way.series.iter().filter(|(at, _)| *at >= from).map(|&(at, reading)| (at - from, reading)).collect();
    // A sender whose next segments an acknowledgement sets off waited for room, in its send buffer perhaps.
    if half_is_unprompted(way) {
        for (_, reading) in readings.iter_mut().filter(|(_, reading)| reading.is_quiet) {
            (reading.is_starved, reading.not_sent) = (true, reading.not_sent.or(Some(0)));
        }
    }
    if way.sends_by_its_own_clock() {
        readings.iter_mut().for_each(|(_, reading)| (reading.is_starved, reading.not_sent) = (true, Some(0)));
    }
    readings
}

/// A first window / what all later ones are as the sender reads them, at the least.
const SHRUNK_TO: u64 = 32;
/// Largest possible window without scaling, in whole segments.
const NEAR_64_KIB: u64 = 58_000;

/// Whether sender and receiver use window scaling: both or neither by their SYNs, unless the sender ignores the scale of
/// a receiver that uses it.
fn scaling(connection: &Connection, side: usize, readings: &[(u64, Reading)]) -> [Option<bool>; 2] {
    if reads_unscaled(connection, side, readings) {
        return [Some(false), Some(true)];
    }
    let [a, b] = connection.offers.map(|offer| offer.map(|offer| offer.window_scale.is_some()));
    let is_refused = a.zip(b).is_some_and(|(a, b)| !(a && b));
    // Only the first window is unscaled: the receiver scales all later ones, because it does not know that its option was removed.
    let first = connection.offers[1 - side].map_or(0, |offer| u64::from(offer.window));
    if is_refused && connection.halves[side].window_most.is_some_and(|most| most * SHRUNK_TO < first) {
        return [Some(false), Some(true)];
    }
    // A window that stays well below has another cause.
    let is_largest = connection.halves[side].window_most.is_some_and(|most| most >= NEAR_64_KIB);
    [(is_refused && is_largest).then_some(false); 2]
}

/// Whether the bytes in flight never exceed the unscaled window but reach it, although it is scaled: the sender does not know the scale, because
/// something on the path removed the option from a SYN.
fn reads_unscaled(connection: &Connection, side: usize, readings: &[(u64, Reading)]) -> bool {
    const REACHED: f64 = 0.8;
    const READINGS_MIN: usize = 8;
    let half = &connection.halves[side];
    let Some(shift) = connection.shift_of(1 - side).filter(|&shift| shift > 0) else { return false };
    let written = half.window_most.unwrap_or(0) >> shift;
    let begins = 3 * connection.handshake_ns.or(half.whole.min()).unwrap_or(0);
    let settled: Vec<u64> =
        readings.iter().filter(|(at, _)| *at > begins).map(|(_, reading)| reading.in_flight).collect();
    let most = settled.iter().copied().max().unwrap_or(0);
    settled.len() >= READINGS_MIN
        && half.retransmissions.segments == 0
        && half.initial_flight > written
        && most <= written
        && most as f64 >= REACHED * written as f64
}

/// Whether most sends are not triggered by acknowledgements, or this is unknown.
fn half_is_unprompted(half: &HalfConnection) -> bool {
    half.paced_share().is_none_or(|share| share >= 0.5)
}

/// Returns the duration of slow start; 0 if unknown.
fn beginning(readings: &[(u64, Reading)], took_ns: u64) -> u64 {
    let left = readings.iter().find(|(_, reading)| reading.threshold.is_some());
    left.map_or(0, |&(at, _)| at.min(took_ns / BEGINNING))
}

/// Returns the change of each one-way delay relative to its minimum, by the clock of the other end's timestamps.
fn one_way(
    connection: &Connection,
    side: usize,
    readings: &[(u64, Reading)],
    omit_ns: u64,
) -> Option<OneWay> {
    let [own, other] = [side, 1 - side].map(|s| &connection.halves[s]);
    let (is_here, is_there) = (own.is_at_sender(), other.is_at_sender());
    own.own_side.and(other.own_side)?;
    let stamps: Vec<(u64, u32, u64, u64)> = readings
        .iter()
        .filter_map(|(at, reading)| {
            let stamped = if is_here { reading.ack_stamp } else { reading.own_stamp.filter(|_| is_there) };
            let (stamp, seen, rtt) = stamped?;
            Some((*at, stamp, seen, rtt))
        })
        .collect();
    let (&(_, first, from, _), &(_, last, until, _)) = (stamps.first()?, stamps.last()?);
    let tick_ns = tick(last.wrapping_sub(first), until.checked_sub(from)?)?;
    // Data arrived then by the receiver's clock, or left then by the sender's.
    let delays: Vec<(u64, i64, i64)> = stamps
        .iter()
        .map(|&(at, stamp, seen, rtt)| {
            let clock = i64::from(stamp.wrapping_sub(first)) * tick_ns;
            let since = seen.wrapping_sub(from) as i64;
            let rtt = rtt as i64;
            let there = if is_here { clock - (since - rtt) } else { since - clock };
            (at, there, rtt - there)
        })
        .collect();
    // The minimum belongs to a timestamp about to change: up to a tick below the others. At the receiver, so does that of the
    // acknowledgement answered.
    let blur = if is_here { tick_ns } else { 2 * tick_ns };
    let base = |of: fn(&(u64, i64, i64)) -> i64| delays.iter().map(of).min().map(|least| least + blur);
    let loaded = |of: fn(&(u64, i64, i64)) -> i64| {
        OneWayDelay::of(delays.iter().filter(|d| d.0 >= omit_ns).map(of).collect(), tick_ns as u64)
    };
    let idle = |ns: i64| OneWayDelay::of(vec![ns], tick_ns as u64);
    Some(OneWay {
        idle: base(|d| d.1).and_then(idle),
        loaded: loaded(|d| d.1),
        back_idle: base(|d| d.2).and_then(idle),
        back_loaded: loaded(|d| d.2),
    })
}

/// Returns the tick of a clock that counted `count` in this time, if stacks use it (RFC 7323, section 5.4); `None` if none fits.
fn tick(count: u32, ns: u64) -> Option<i64> {
    const SPAN_NS: u64 = 500_000_000;
    const TICKS_NS: [u64; 5] = [1_000, 1_000_000, 2_000_000, 4_000_000, 10_000_000];
    if ns < SPAN_NS || count == 0 {
        return None;
    }
    let found = ns as f64 / f64::from(count);
    TICKS_NS.into_iter().find(|&tick| (found / tick as f64 - 1.0).abs() < 0.02).map(|tick| tick as i64)
}

/// Returns what both SYNs agreed on; `None` if one is missing.
fn agreed(connection: &Connection, side: usize) -> Option<connection::Connection> {
    let [a, b] = connection.offers;
    let (a, b) = (a?, b?);
    let scaled = a.window_scale.is_some() && b.window_scale.is_some();
    let shift = |offer: bdp_model::capture::Offer| Some(offer.window_scale.filter(|_| scaled).unwrap_or(0));
    let (own, other) = if side == 0 { (a, b) } else { (b, a) };
    Some(connection::Connection {
        sack: Some(a.sack && b.sack),
        timestamps: Some(a.timestamps && b.timestamps),
        ecn: Some(a.ecn && b.ecn),
        sender_window_shift: shift(own),
        receiver_window_shift: shift(other),
    })
}

fn once(ns: u64) -> RttSummary {
    RttSummary { sent: 1, received: 1, min: ns, p50: ns, max: ns, ..RttSummary::default() }
}

fn summary(rtt: &CapturedRtt) -> RttSummary {
    RttSummary {
        sent: rtt.samples,
        received: rtt.samples,
        min: rtt.min.as_ns(),
        p50: rtt.p50.as_ns(),
        p95: (rtt.samples >= 20).then_some(rtt.p95.as_ns()),
        max: rtt.max.as_ns(),
        ..RttSummary::default()
    }
}

fn episodes(way: &HalfConnection, from: u64) -> Vec<LossEpisode> {
    let since = |e: &LossEpisode| LossEpisode { at_ns: e.at_ns.saturating_sub(from), ..*e };
    way.episodes.iter().map(since).collect()
}

fn received(at_ns: u64, reading: &Reading) -> ReceiverSample {
    ReceiverSample { at_ns, bytes: reading.acked, rcv_wnd_bytes: reading.window, ..ReceiverSample::default() }
}

fn sample(at_ns: u64, reading: &Reading, mss: u64) -> SenderSample {
    let segments = |bytes: u64| (bytes / mss) as u32;
    let unacked = reading.in_flight.div_ceil(mss) as u32;
    let is_window_full = reading.window.is_some_and(|window| (u64::from(unacked) + 1) * mss > window);
    let least = segments(reading.congestion_window).max(unacked);
    // Until something is lost, a window is at least its initial size (RFC 6928).
    let least =
        if reading.retransmitted == 0 && reading.marks == 0 { least.max(INITIAL_WINDOW) } else { least };
    let least = if reading.is_starved { least.max(unacked + unacked / 4 + 1) } else { least };
    SenderSample {
        at_ns,
        acked_bytes: Some(reading.acked),
        unacked: Some(unacked),
        // A sender stopped by another window has room in this one.
        cwnd: Some(if is_window_full { least + 1 } else { least }),
        snd_wnd_bytes: reading.window,
        srtt_ns: reading.srtt,
        min_rtt_ns: reading.min_rtt,
        retransmits: Some(reading.retransmitted),
        reorder_seen: Some(reading.reordered),
        needless_retransmits: Some(reading.needless),
        delivered: Some(u64::from(segments(reading.acked))),
        delivered_ce: Some(reading.marks),
        timeouts: Some(reading.timeouts),
        busy_ns: Some(reading.busy),
        rwnd_limited_ns: Some(reading.window_limited),
        sndbuf_limited_ns: Some(0),
        congestion_state: reading.state,
        ssthresh: reading.threshold.map(segments),
        delivery_rate_bps: reading.rate_bps,
        app_limited: Some(reading.is_starved),
        not_sent_bytes: reading.not_sent,
        ..SenderSample::default()
    }
}
